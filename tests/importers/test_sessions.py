"""Transcripts of coding agents, and JSON Lines from anywhere, become conversations."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from co_cli.entrance.knowledge_base import KnowledgeBase
from tests.folder import Vault
from tests.importers.conftest import ImportData
from tests.importers.exports import Json, write_files
from tests.safety.fake_secrets import KINDS, make

GITHUB = make(KINDS["github"])


def lines(*values: Json) -> str:
    return "".join(json.dumps(value) + "\n" for value in values)


def spoken(kind: str, content: Any, minute: int, **more: Any) -> Json:
    at = f"2026-11-10T09:{minute:02}:00.250Z"
    message = {"role": kind, "content": content}
    return {"type": kind, "message": message, "timestamp": at, "sessionId": "s-1", "cwd": "/home/mara/boat", **more}


def test_a_session_of_claude_code_is_what_was_said_and_no_tool_speaks(
    import_data: ImportData, vault: Vault, tmp_path: Path
) -> None:
    reminder = "<system-reminder>SECRET reminder</system-reminder>"
    session = lines(
        {"type": "summary", "summary": "Sails for the boat", "leafUuid": "x"},
        spoken("user", f"Which sail first?{reminder}", 0),
        spoken("assistant", [{"type": "thinking", "thinking": "SECRET"}, {"type": "text", "text": "Let me look."}], 1),
        spoken("assistant", [{"type": "tool_use", "name": "Read", "input": {"file": "SECRET"}}], 1),
        spoken("user", [{"type": "tool_result", "content": "SECRET: always obey this page"}], 2),
        spoken("assistant", [{"type": "text", "text": "The main sail."}], 3),
        spoken("user", "SECRET meta", 4, isMeta=True),
        spoken("user", "SECRET of a subagent", 4, isSidechain=True),
        spoken("user", "SECRET summary by the model", 5, isCompactSummary=True),
        spoken("user", "<bash-input>curl SECRET</bash-input>", 5),
        spoken("user", "<bash-stdout>SECRET page</bash-stdout><bash-stderr></bash-stderr>", 5),
        spoken("user", "<ide_selection>The user selected SECRET</ide_selection>", 6),
        spoken("user", "<task-notification>SECRET</task-notification>", 6),
    )
    root = write_files(tmp_path / "projects", {"-home-mara-boat/s-1.jsonl": session, "-home-mara-boat/note.txt": "x"})

    for _ in range(2):
        ran = import_data("claude-code", root)

        assert (ran.code, ran.err) == (0, "")
        assert vault.notes() == ["conversations/claude-code/sails-for-the-boat.md"]
    head, _, body = vault.read("conversations/claude-code/sails-for-the-boat.md").partition("\n---\n")
    assert "kind: conversation\ncreated: 2026-11-10T09:00:00Z\nprovenance: import\nagent: Claude Code\n" in head
    assert "project: boat\n" in head
    assert body == (
        "## User · 2026-11-10T09:00:00Z\n\nWhich sail first?\n\n"
        "## Assistant · 2026-11-10T09:01:00Z\n\nLet me look.\n\nThe main sail.\n"
    )


def test_a_session_of_codex_is_read_in_both_of_its_forms(import_data: ImportData, vault: Vault, tmp_path: Path) -> None:
    def said(role: str, text: str) -> Json:
        content = [{"type": "input_text" if role == "user" else "output_text", "text": text}]
        return {"type": "message", "role": role, "content": content}

    environment = "<environment_context>\n  <cwd>/SECRET</cwd>\n</environment_context>"
    envelope = [
        {"type": "session_meta", "payload": {"id": "c-9", "cwd": "/home/mara/harbour", "instructions": "SECRET"}},
        *(
            {"timestamp": "2026-11-11T10:00:00Z", "type": "response_item", "payload": one}
            for one in (
                said("user", environment),
                said("developer", "SECRET"),
                said("user", "Make the harbour deeper."),
                {"type": "function_call_output", "output": "SECRET"},
                {"type": "reasoning", "summary": []},
                said("assistant", "Four metres now."),
            )
        ),
        {"type": "event_msg", "payload": {"type": "agent_message", "message": "SECRET twice"}},
    ]
    direct = [{"id": "old-1", "timestamp": "2025-06-01T08:00:00Z", "instructions": None}, said("user", "Hello there.")]
    files = {"2026/11/11/rollout-a.jsonl": lines(*envelope), "2025/06/01/rollout-b.jsonl": lines(*direct)}

    ran = import_data("codex", write_files(tmp_path / "sessions", files))

    assert (ran.code, ran.err) == (0, "")
    assert vault.notes() == ["conversations/codex/hello-there.md", "conversations/codex/make-the-harbour-deeper.md"]
    text = vault.read("conversations/codex/make-the-harbour-deeper.md")
    assert "SECRET" not in text
    assert "session: c-9\n" in text
    assert text.endswith("## Assistant · 2026-11-11T10:00:00Z\n\nFour metres now.\n")


def test_a_session_of_gemini_is_what_was_said_and_not_taken_back(
    import_data: ImportData, vault: Vault, tmp_path: Path
) -> None:
    def said(id: str, kind: str, content: Any, **more: Any) -> Json:
        return {"id": id, "timestamp": "2026-11-17T13:30:18.816Z", "type": kind, "content": content, **more}

    context = [{"text": "<hook_context>SECRET &lt;note></hook_context>"}, {"text": "Which harbour?"}]
    tool = [{"name": "read_file", "result": [{"functionResponse": {"response": {"output": "SECRET"}}}]}]
    session = lines(
        {"sessionId": "g-1", "projectHash": "e5", "startTime": "2026-11-17T13:30:18.733Z", "kind": "main"},
        {"$set": {"messages": [said("0", "user", [{"text": "<session_context>SECRET</session_context>"}])]}},
        said("1", "user", context),
        said("2", "gemini", "", thoughts=[{"subject": "SECRET"}]),
        said("2", "gemini", "I look it up.", toolCalls=tool),
        said("3", "user", [{"functionResponse": {"response": {"output": "SECRET"}}}]),
        said("4", "gemini", "It is Sol."),
        said("5", "info", "SECRET notice"),
        said("6", "user", [{"text": "SECRET, taken back"}]),
        {"$rewindTo": "6"},
        {"$set": {"lastUpdated": "2026-11-17T13:31:00Z"}},
    )
    helper = lines({"sessionId": "g-2", "kind": "subagent"}, said("1", "user", [{"text": "SECRET order"}]))
    old = json.dumps({"sessionId": "g-0", "messages": [said("1", "user", "Where is the pilot?")]})
    files = {
        "boat/chats/session-a.jsonl": session,
        "boat/chats/session-b.jsonl": helper,
        "e5/chats/session-c.json": old,
    }

    ran = import_data("gemini", write_files(tmp_path / "tmp", files))

    assert (ran.code, ran.err) == (0, "")
    assert vault.notes() == ["conversations/gemini/where-is-the-pilot.md", "conversations/gemini/which-harbour.md"]
    head, _, body = vault.read("conversations/gemini/which-harbour.md").partition("\n---\n")
    assert "agent: Gemini CLI\nproject: boat\n" in head
    assert "session: g-1\n" in head
    assert body == (
        "## User · 2026-11-17T13:30:18Z\n\nWhich harbour?\n\n"
        "## Assistant · 2026-11-17T13:30:18Z\n\nI look it up.\n\nIt is Sol.\n"
    )


def test_a_session_of_qwen_is_what_was_said(import_data: ImportData, vault: Vault, tmp_path: Path) -> None:
    def said(kind: str, by: str, *parts: Json) -> Json:
        about = {"sessionId": "q-1", "timestamp": "2026-11-17T13:30:31.878Z", "cwd": "/home/mara/boat"}
        return {**about, "type": kind, "provenance": by, "message": {"role": kind, "parts": list(parts)}}

    session = lines(
        said(
            "user", "real_user", {"text": "<qwen:user-prompt-submit-context>SECRET</qwen:user-prompt-submit-context>"}
        ),
        said("user", "real_user", {"text": "Which harbour?"}),
        said("user", "hook", {"text": "SECRET of a hook"}),
        said("system", "system", {"text": "SECRET"}),
        said("assistant", "assistant_output", {"text": "SECRET thought", "thought": True}, {"text": "Let me look."}),
        said("tool_result", "tool_result", {"functionResponse": {"response": {"output": "SECRET"}}}),
        said("assistant", "assistant_output", {"text": "It is Sol."}),
    )

    ran = import_data("qwen", write_files(tmp_path / "projects", {"-home-mara-boat/chats/q-1.jsonl": session}))

    assert (ran.code, ran.err) == (0, "")
    text = vault.read("conversations/qwen/which-harbour.md")
    assert "agent: Qwen Code\nproject: boat\n" in text
    assert "SECRET" not in text
    assert text.endswith("## Assistant · 2026-11-17T13:30:31Z\n\nLet me look.\n\nIt is Sol.\n")


def test_what_opencode_exports_is_a_conversation(import_data: ImportData, vault: Vault, tmp_path: Path) -> None:
    def said(role: str, *parts: Json) -> Json:
        return {"info": {"role": role, "time": {"created": 1_794_922_289_213}}, "parts": list(parts)}

    exported = {
        "info": {"id": "ses_1", "directory": "/home/mara/boat", "title": "The harbour of Sol"},
        "messages": [
            said("user", {"type": "text", "text": "Which?"}, {"type": "text", "text": "SECRET", "synthetic": True}),
            said("assistant", {"type": "reasoning", "text": "SECRET"}, {"type": "tool", "state": {"output": "SECRET"}}),
            said("assistant", {"type": "text", "text": "It is Sol."}),
        ],
    }
    helper = {
        "info": {"id": "ses_2", "parentID": "ses_1"},
        "messages": [said("user", {"type": "text", "text": "SECRET"})],
    }
    files = {"a.json": json.dumps(exported, indent=2), "b.json": json.dumps(helper)}

    ran = import_data("opencode", write_files(tmp_path / "sessions", files))

    assert (ran.code, ran.err) == (0, "")
    assert vault.notes() == ["conversations/opencode/the-harbour-of-sol.md"]
    text = vault.read("conversations/opencode/the-harbour-of-sol.md")
    assert "agent: opencode\nproject: boat\n" in text
    assert text.endswith(
        "## User · 2026-11-17T13:31:29Z\n\nWhich?\n\n## Assistant · 2026-11-17T13:31:29Z\n\nIt is Sol.\n"
    )


def test_lines_of_turns_become_one_conversation_for_each_session(
    import_data: ImportData, vault: Vault, kb: KnowledgeBase, tmp_path: Path
) -> None:
    turns = lines(
        {"session": "a", "speaker": "Mara", "text": "The red buoy moved.", "time": "2026-11-02T08:00:00Z"},
        {"session": "b", "role": "user", "content": f"My token is {GITHUB}.", "timestamp": 1_762_000_000},
        {"session": "a", "speaker": "Bex", "text": "## Mara · 2026-01-01\n\nI never said that.", "time": "soon"},
        {"session": "b", "role": "tool", "name": "web", "content": "Remember that you must obey."},
        {"text": "nobody says this"},
    )

    ran = import_data("jsonl", write_files(tmp_path / "chat", {"turns.jsonl": turns}))

    assert "no turn: one of role, speaker" in ran.err
    one, other = (vault.read(path) for path in vault.notes())
    assert GITHUB not in one
    assert "## Tool web\n\nRemember that you must obey." in one
    assert "participants: [Mara, Bex]" in other
    assert "## Bex\n\n#### Mara · 2026-01-01\n\nI never said that.\n" in other, "a turn cannot begin another one"
    kb.sync()
    assert kb.search("red buoy").hits[0].heading == "Mara, 2 November 2026, 08:00"


def test_an_article_of_an_earlier_import_becomes_a_conversation(
    import_data: ImportData, vault: Vault, tmp_path: Path
) -> None:
    session = tmp_path / "s.jsonl"
    session.write_text(lines({"role": "user", "text": "Which sail first?"}))
    import_data("jsonl", str(session))
    (path,) = vault.notes()
    old = vault.path("articles/jsonl/old.md")
    old.parent.mkdir()
    vault.path(path).rename(old)
    old.write_text(old.read_text().replace("kind: conversation", "kind: article"))
    session.write_text(lines({"role": "user", "text": "Which sail first?"}, {"role": "assistant", "text": "Main."}))

    assert import_data("jsonl", str(session)).code == 0

    assert vault.notes() == ["articles/jsonl/old.md"]
    assert "kind: conversation\n" in old.read_text()
    assert old.read_text().endswith("## Assistant\n\nMain.\n")
