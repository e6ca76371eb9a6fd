"""ChatGPT's data export: which words of it become notes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.folder import Vault
from tests.importers.conftest import ImportData
from tests.importers.exports import gpt_conversation, gpt_node, mooring, talk, write_json, write_zip


@pytest.mark.medium
def test_a_conversation_becomes_a_note_after_a_dry_run(import_data: ImportData, vault: Vault, tmp_path: Path) -> None:
    files: dict[str, Any] = {"conversations.json": [mooring()], "conversations-001.json": [talk("c-2", "More")]}
    path = write_zip(tmp_path / "export.zip", {**files, "user.json": {}, "chat.html": "<p>"})

    planned = import_data("chatgpt", path, write=False)
    assert vault.notes() == []
    ran = import_data("chatgpt", path)

    assert planned.out.startswith(
        "                     new\nconversations          2\n\nnew:\n  More\n  Mooring alone\n"
    )
    assert "Nothing is written yet" in planned.out
    assert (ran.code, ran.err) == (0, "")
    assert "  Mooring alone  conversation:chatgpt/mooring-alone" in ran.out.splitlines()
    head, _, body = vault.read("conversations/chatgpt/mooring-alone.md").partition("\n---\n")
    assert head.startswith(
        "---\ntitle: Mooring alone\nkind: conversation\ncreated: 2023-11-14T22:13:20Z\n"
        "provenance: import\nupdated: 2023-11-14T23:13:20Z\nmodel: gpt-4o\nagent: ChatGPT\n"
        "participants: [User, ChatGPT]\nsession: c-1\nimported_from: chatgpt\nimport_id: c-1\n"
    )
    assert body == (
        "## User · 2023-11-14T22:13:20Z\n\nHow do I moor alone? The wind is strong.\n\n"
        "## ChatGPT · 2023-11-14T22:13:20Z\n\nUse one long line from the middle cleat.\n"
    )


def test_only_the_branch_seen_last_is_kept(import_data: ImportData, vault: Vault) -> None:
    nodes = [
        gpt_node("u1", "root", "user", "First question"),
        gpt_node("a1", "u1", "assistant", "An answer that was regenerated"),
        gpt_node("a2", "u1", "assistant", "The answer that stayed"),
        gpt_node("u2", "a1", "user", "A question on the old branch"),
    ]

    import_data("chatgpt", [gpt_conversation("c", "Branches", *nodes, current_node="a2")])

    text = vault.read("conversations/chatgpt/branches.md")
    assert "The answer that stayed" in text
    assert "regenerated" not in text
    assert "old branch" not in text


def test_hidden_messages_tools_and_thoughts_are_left_out(import_data: ImportData, vault: Vault) -> None:
    hidden = {"is_visually_hidden_from_conversation": True}
    thoughts = {"content_type": "thoughts", "thoughts": [{"content": "SECRET"}]}
    parts: list[Any] = [{"content_type": "image_asset_pointer", "asset_pointer": "file-service://x"}]
    parts += [{"content_type": "audio_transcription", "text": "Look at this knot"}, "and tell me its name"]
    nodes = [
        gpt_node("s", "root", "system", "SECRET system"),
        gpt_node("h", "s", "user", "SECRET hidden", metadata=hidden),
        gpt_node("u", "h", "user", "", content={"content_type": "multimodal_text", "parts": parts}),
        gpt_node("t", "u", "assistant", "", content=thoughts),
        gpt_node("k", "t", "assistant", "SECRET call", recipient="python"),
        gpt_node("o", "k", "tool", "SECRET output"),
        gpt_node("a", "o", "assistant", "A bowline\ue200cite\ue202turn0search1\ue201.【3†source】"),
    ]

    import_data("chatgpt", [gpt_conversation("c", "Knot", *nodes)])

    text = vault.read("conversations/chatgpt/knot.md")
    assert "SECRET" not in text
    assert "*(an image)*\n\nLook at this knot\n\nand tell me its name" in text
    assert text.endswith("## ChatGPT · 2023-11-14T22:13:20Z\n\nA bowline.\n")


def test_saved_memories_come_as_json_or_as_lines(import_data: ImportData, vault: Vault, tmp_path: Path) -> None:
    listed = {"memories": [{"id": "m1", "content": "Prefers green tea.", "updated_at": "2026-02-01T08:00:00Z"}]}
    copied = "# Saved memories\n\n- [2025-04-01] - Has a boat called Marie.\n2. Lives in Kiel\n[unknown] - Sings bass\n"
    (tmp_path / "memories.txt").write_text(copied, "utf-8")

    import_data("chatgpt", write_json(tmp_path / "memories.json", listed), str(tmp_path / "memories.txt"))

    names = ("has-a-boat-called-marie", "lives-in-kiel", "prefers-green-tea", "sings-bass")
    assert vault.notes() == [f"memories/{name}.md" for name in names]
    assert "created: 2025-04-01T00:00:00Z" in vault.read("memories/has-a-boat-called-marie.md")
    assert "updated: 2026-02-01T08:00:00Z" in vault.read("memories/prefers-green-tea.md")


def test_dates_are_seconds_or_text_and_wrong_ones_are_ignored(import_data: ImportData, vault: Vault) -> None:
    good = [1_700_000_000, "2023-11-14T22:13:20.123456+00:00"]
    bad: list[Any] = [None, 0, "soon", [], float("inf"), float("nan"), -1e300, True, "2024-13-45"]

    ran = import_data(
        "chatgpt", [talk(f"t{number}", "x", update_time=date) for number, date in enumerate([*good, *bad])]
    )

    assert (ran.code, ran.err) == (0, "")
    texts = [vault.read(path) for path in vault.notes()]
    assert sum("updated: 2023-11-14T22:13:20Z\n" in text for text in texts) == len(good)
    assert sum("updated:" in text for text in texts) == len(good)


def test_files_are_read_if_their_name_says_memories(import_data: ImportData, vault: Vault, tmp_path: Path) -> None:
    files: dict[str, Any] = {
        "saved_memories.json": [{"content": "Likes tea"}],
        "export/user_memory.json": [{"content": "Has a boat"}],
        "memories-2.txt": "Sings bass",
        "memorandum.txt": "Not a memory",
        "memorandum.json": [{"content": "Not this either"}],
    }

    import_data("chatgpt", write_zip(tmp_path / "data.zip", files))

    assert vault.notes() == [f"memories/{name}.md" for name in ("has-a-boat", "likes-tea", "sings-bass")]
