"""Exports in the shapes in which the services give them out, for tests to fill and to break."""

from __future__ import annotations

import json
import zipfile
from pathlib import Path
from typing import Any

Json = dict[str, Any]
NO_PARENT = "00000000-0000-4000-8000-000000000000"


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
