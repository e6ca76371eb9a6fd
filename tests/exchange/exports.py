"""Exports in the shapes in which the services give them out, for tests to fill and to break."""

from __future__ import annotations

import json
import zipfile
from pathlib import Path
from typing import Any

Json = dict[str, Any]
NO_PARENT = "00000000-0000-4000-8000-000000000000"


def gpt_node(name: str, parent: str | None, role: str, text: Any, **more: Any) -> Json:
    content = more.pop("content", {"content_type": "text", "parts": [text]})
    message = {
        "id": name,
        "author": {"role": role, "name": None, "metadata": {}},
        "create_time": 1_700_000_000.25,
        "content": content,
        "status": "finished_successfully",
        "recipient": "all",
        "metadata": {},
        **more,
    }
    return {"id": name, "message": message, "parent": parent, "children": []}


def gpt_conversation(identity: str, title: str | None, *nodes: Json, current: str | None = None) -> Json:
    mapping: Json = {"root": {"id": "root", "message": None, "parent": None, "children": []}}
    for node in nodes:
        mapping[node["id"]] = node
        mapping[node["parent"]]["children"].append(node["id"])
    return {
        "title": title,
        "create_time": 1_700_000_000.25,
        "update_time": 1_700_003_600.5,
        "mapping": mapping,
        "current_node": current or (nodes[-1]["id"] if nodes else "root"),
        "conversation_id": identity,
        "id": identity,
        "is_archived": False,
        "default_model_slug": "gpt-4o",
    }


def mooring(answer: str = "Use one long line from the middle cleat.") -> Json:
    """A short conversation, as most are."""
    return gpt_conversation(
        "c-1",
        "Mooring alone",
        gpt_node("u1", "root", "user", "How do I moor alone? The wind is strong."),
        gpt_node("a1", "u1", "assistant", answer),
    )


def claude_message(name: str, sender: str, text: str, parent: str | None = None, **more: Any) -> Json:
    return {
        "uuid": name,
        "text": text,
        "content": [{"type": "text", "text": text, "citations": []}],
        "sender": sender,
        "created_at": "2026-03-01T10:00:00.123456Z",
        "updated_at": "2026-03-01T10:00:00.123456Z",
        "attachments": [],
        "files": [],
        **({"parent_message_uuid": parent} if parent else {}),
        **more,
    }


def claude_conversation(identity: str, name: str, *messages: Json) -> Json:
    return {
        "uuid": identity,
        "name": name,
        "summary": "",
        "created_at": "2026-03-01T10:00:00.123456Z",
        "updated_at": "2026-03-02T11:00:00.654321Z",
        "account": {"uuid": "acct"},
        "chat_messages": list(messages),
    }


def write_json(path: Path, value: Any) -> str:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(value), "utf-8")
    return str(path)


def write_zip(path: Path, files: dict[str, Any]) -> str:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, value in files.items():
            archive.writestr(name, value if isinstance(value, bytes | str) else json.dumps(value))
    return str(path)
