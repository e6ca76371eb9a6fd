"""Exports in the shapes in which the services give them out, for tests to fill and to break."""

from __future__ import annotations

import json
import zipfile
from pathlib import Path
from typing import Any

import apsw

Json = dict[str, Any]
NO_PARENT = "00000000-0000-4000-8000-000000000000"
SHARED_COLUMNS = """
id integer primary key autoincrement, memory_session_id text not null, project text not null, prompt_number integer,
discovery_tokens integer default 0, created_at text not null, created_at_epoch integer not null,
merged_into_project text, synced_at integer, origin_device_id text, origin_local_id text,
sync_rev text not null default '1'
"""
CLAUDE_MEM = f"""
create table observations ({SHARED_COLUMNS}, text text, type text not null, title text, subtitle text, facts text,
  narrative text, concepts text, files_read text, files_modified text, content_hash text, generated_by_model text,
  relevance_count integer default 0, agent_type text, agent_id text, metadata text);
create table session_summaries ({SHARED_COLUMNS}, request text, investigated text, learned text, completed text,
  next_steps text, files_read text, files_edited text, notes text);
create table user_prompts (id integer primary key autoincrement, session_db_id integer, content_session_id text,
  prompt_number integer, prompt_text text, created_at text, created_at_epoch integer);
insert into user_prompts values (1, 1, 'content-1', 1, 'Why do deploys fail?', '2026-08-01', 1785578400000);
"""
OBSERVATION: Json = {
    "id": 1,
    "memory_session_id": "mem-1",
    "project": "harbour",
    "text": None,
    "type": "decision",
    "title": "Deploys go to the blue pool first",
    "subtitle": "Traffic order of the pools",
    "facts": '["Blue takes traffic first","Green follows after ten minutes"]',
    "narrative": "The team chose blue because green holds the sessions.",
    "concepts": '["deployment","trade-off"]',
    "files_read": '["ops/pools.yaml","ops/deploy.py"]',
    "files_modified": '["ops/deploy.py"]',
    "created_at": "2026-08-01T10:00:00.000Z",
    "created_at_epoch": 1785578400000,
}
SUMMARY: Json = {
    "id": 1,
    "memory_session_id": "mem-1",
    "project": "harbour",
    "request": "Find why Friday deploys fail",
    "investigated": "The pool script",
    "learned": "Green holds the sessions",
    "completed": None,
    "next_steps": "Write a test",
    "created_at": "2026-08-01T10:01:00.000Z",
    "created_at_epoch": 1785578460000,
}
BRAIN = {
    ".obsidian/app.json": "{}",
    "Boat.md": "---\naliases: [Nutmeg]\ntags: [boat]\n---\nThe engine needs new oil every hundred hours. "
    "The last change was on [[2026-05-02]].\n",
    "Daily/2026-05-02.md": "Changed the oil of [[Nutmeg]] at 412 hours. The impeller looked fine. #boat\n",
    "Winter storage.md": "Haul out before the first frost. Drain the water system and take the batteries home.\n",
}
"""An Obsidian vault."""
COFFEE = """---
title: Coffee Brewing Methods
type: note
permalink: main/coffee-brewing-methods
tags:
- coffee
---

# Coffee Brewing Methods

## Observations
- [method] Pour over gives more clarity than a press #brewing
- [technique] Water at 96 degrees extracts best (on a gas stove)

## Relations
- requires [[Grinding]]
"""
"""A note of basic-memory."""
TEA: Json = {
    "id": "4f9f2f3e-7c1b-4d0a-9a53-0a3f5b7c9f10",
    "memory": "Prefers green tea in the morning",
    "hash": "b3c1",
    "created_at": "2026-02-25T11:00:00+00:00",
    "updated_at": None,
    "user_id": "anna",
    "role": "user",
    "attributed_to": "user",
    "metadata": {"type": "taste"},
}
"""A memory as mem0's `get_all()` returns it."""


def gpt_node(name: str, parent: str | None, role: str, text: Any, **more: Any) -> Json:
    message: Json = {
        "author": {"role": role, "name": None, "metadata": {}},
        "create_time": 1_700_000_000.25,
        "content": {"content_type": "text", "parts": [text]},
        "recipient": "all",
        "metadata": {},
        **more,
    }
    return {"id": name, "message": message, "parent": parent, "children": []}


def gpt_conversation(identity: str, title: Any, *nodes: Json, **more: Any) -> Json:
    mapping: Json = {"root": {"id": "root", "message": None, "parent": None, "children": []}}
    for node in nodes:
        mapping[node["id"]] = node
        mapping[node["parent"]]["children"].append(node["id"])
    return {
        "title": title,
        "create_time": 1_700_000_000.25,
        "update_time": 1_700_003_600.5,
        "mapping": mapping,
        "current_node": nodes[-1]["id"] if nodes else "root",
        "conversation_id": identity,
        "default_model_slug": "gpt-4o",
        **more,
    }


def mooring(answer: str = "Use one long line from the middle cleat.") -> Json:
    question = gpt_node("u1", "root", "user", "How do I moor alone? The wind is strong.")
    return gpt_conversation("c-1", "Mooring alone", question, gpt_node("a1", "u1", "assistant", answer))


def talk(identity: str, title: Any, **more: Any) -> Json:
    return gpt_conversation(identity, title, gpt_node("u", "root", "user", f"Hello {identity}"), **more)


def claude_message(name: str, sender: str, text: str, parent: str | None = None, **more: Any) -> Json:
    content: list[Json] = [{"type": "text", "text": text, "citations": []}]
    chain = {"parent_message_uuid": parent} if parent else {}
    return {"uuid": name, "text": text, "content": content, "sender": sender, "attachments": [], **chain, **more}


def claude_conversation(name: str, *messages: Json) -> Json:
    return {
        "uuid": "c-1",
        "name": name,
        "created_at": "2026-03-01T10:00:00.123456Z",
        "updated_at": "2026-03-02T11:00:00.654321Z",
        "chat_messages": list(messages),
    }


def write_json(path: Path, value: Any) -> str:
    path.write_text(json.dumps(value), "utf-8")
    return str(path)


def write_zip(path: Path, files: dict[str, Any]) -> str:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, value in files.items():
            archive.writestr(name, value if isinstance(value, bytes | str) else json.dumps(value))
    return str(path)


def write_files(root: Path, files: dict[str, str]) -> Path:
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text, "utf-8", newline="")
    return root


def insert(database: apsw.Connection, table: str, row: Json) -> None:
    values = ", ".join(f":{key}" for key in row)
    database.execute(f"insert into {table} ({', '.join(row)}) values ({values})", row)


def claude_mem_database(path: Path) -> apsw.Connection:
    """One observation and one summary, in the tables that claude-mem 13.25 makes."""
    connection = apsw.Connection(str(path))
    connection.pragma("journal_mode", "wal")
    connection.execute(CLAUDE_MEM)
    insert(connection, "observations", OBSERVATION)
    insert(connection, "session_summaries", SUMMARY)
    return connection


def write_peers(home: Path) -> None:
    """What the guides add and import: an Obsidian vault, and what basic-memory, mem0 and claude-mem keep."""
    write_files(home / "Obsidian" / "brain", BRAIN)
    write_files(home / "basic-memory", {"Coffee Brewing Methods.md": COFFEE, "Grinding.md": "# Grinding\n\nFine.\n"})
    write_json(home / "mem0.json", {"results": [TEA]})
    (home / ".claude-mem").mkdir()
    claude_mem_database(home / ".claude-mem" / "claude-mem.db").close()
