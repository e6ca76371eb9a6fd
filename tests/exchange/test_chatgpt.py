"""ChatGPT's data export: which words of it become notes."""

from __future__ import annotations

from pathlib import Path

from tests.command import Co
from tests.exchange.exports import gpt_conversation, gpt_node, mooring, write_json, write_zip
from tests.vault import Vault

NOTE = "articles/chatgpt/mooring-alone.md"


def test_without_yes_it_is_told_and_nothing_is_written(co: Co, vault: Vault, tmp_path: Path) -> None:
    ran = co("import", "chatgpt", write_zip(tmp_path / "export.zip", {"conversations.json": [mooring()]}))

    assert (ran.code, ran.err) == (0, "")
    assert ran.out.splitlines() == [
        "                     new",
        "conversations          1",
        "",
        "new:",
        "  Mooring alone",
        "",
        "Nothing is written yet: the same command with --yes does it.",
    ]
    assert vault.notes() == []


def test_a_conversation_becomes_an_article(co: Co, vault: Vault, tmp_path: Path) -> None:
    path = write_zip(tmp_path / "export.zip", {"conversations.json": [mooring()], "user.json": {}, "chat.html": "<p>"})

    ran = co("import", "chatgpt", path, "--yes")

    assert (ran.code, ran.err) == (0, "")
    assert "  Mooring alone  article:chatgpt/mooring-alone" in ran.out.splitlines()
    assert vault.notes() == [NOTE]
    head, _, body = vault.read(NOTE).partition("\n---\n")
    lines = head.splitlines()
    assert lines[:6] == [
        "---",
        "title: Mooring alone",
        "kind: article",
        "created: 2023-11-14T22:13:20Z",
        "provenance: import",
        "updated: 2023-11-14T23:13:20Z",
    ]
    assert "imported_from: chatgpt" in lines
    assert "import_id: c-1" in lines
    assert body == (
        "## How do I moor alone?\n\n**You:**\n\nHow do I moor alone? The wind is strong.\n\n"
        "**ChatGPT:**\n\nUse one long line from the middle cleat.\n"
    )


def test_a_question_and_its_answer_are_found_as_one_passage(co: Co, tmp_path: Path) -> None:
    co("import", "chatgpt", write_json(tmp_path / "conversations.json", [mooring()]), "--yes")

    (hit,) = co("search", "which cleat", "--json", "--no-sync").json["hits"]

    assert hit["heading"] == "How do I moor alone?"
    shown = co("show", hit["ref"]).out
    assert "The wind is strong." in shown
    assert "Use one long line from the middle cleat." in shown


def test_only_the_branch_that_was_seen_last_is_kept(co: Co, vault: Vault, tmp_path: Path) -> None:
    tree = gpt_conversation(
        "c",
        "Branches",
        gpt_node("u1", "root", "user", "First question"),
        gpt_node("a1", "u1", "assistant", "An answer that was thrown away"),
        gpt_node("a2", "u1", "assistant", "The answer that stayed"),
        gpt_node("u2", "a1", "user", "A question on the old branch"),
        current="a2",
    )

    co("import", "chatgpt", write_json(tmp_path / "conversations.json", [tree]), "--yes")

    text = vault.read("articles/chatgpt/branches.md")
    assert "The answer that stayed" in text
    assert "thrown away" not in text
    assert "old branch" not in text


def test_what_was_hidden_and_what_tools_said_is_left_out(co: Co, vault: Vault, tmp_path: Path) -> None:
    hidden = {"is_visually_hidden_from_conversation": True}
    nodes = [
        gpt_node("s", "root", "system", "SECRET system"),
        gpt_node("c", "s", "user", "", content={"content_type": "user_editable_context", "user_profile": "SECRET"}),
        gpt_node("h", "c", "user", "SECRET hidden", metadata=hidden),
        gpt_node("u", "h", "user", "What is 2 + 2?"),
        gpt_node("t", "u", "assistant", "", content={"content_type": "thoughts", "thoughts": [{"content": "SECRET"}]}),
        gpt_node("k", "t", "assistant", "SECRET call", recipient="python"),
        gpt_node("o", "k", "tool", "SECRET output"),
        gpt_node("a", "o", "assistant", "It is 4\ue200cite\ue202turn0search1\ue201.【3†source】"),
    ]

    co("import", "chatgpt", write_json(tmp_path / "conversations.json", [gpt_conversation("c", "Sum", *nodes)]), "-y")

    text = vault.read("articles/chatgpt/sum.md")
    assert "SECRET" not in text
    assert text.endswith("**ChatGPT:**\n\nIt is 4.\n")


def test_images_are_mentioned_and_what_was_said_aloud_is_kept(co: Co, vault: Vault, tmp_path: Path) -> None:
    parts = [
        {"content_type": "image_asset_pointer", "asset_pointer": "file-service://file-x"},
        {"content_type": "audio_transcription", "text": "Look at this knot"},
        "and tell me its name",
    ]
    question = gpt_node("u", "root", "user", "", content={"content_type": "multimodal_text", "parts": parts})
    tree = gpt_conversation("c", "Knot", question, gpt_node("a", "u", "assistant", "A bowline."))

    co("import", "chatgpt", write_json(tmp_path / "conversations.json", [tree]), "-y")

    text = vault.read("articles/chatgpt/knot.md")
    assert "*(an image)*\n\nLook at this knot\n\nand tell me its name" in text


def test_headings_and_open_code_of_a_message_stay_inside_it(co: Co, vault: Vault, tmp_path: Path) -> None:
    tree = gpt_conversation(
        "c",
        "Code",
        gpt_node("u", "root", "user", "Show me"),
        gpt_node("a", "u", "assistant", "# Step\n\n```sh\n# not a heading"),
        gpt_node("u2", "a", "user", "And then?"),
    )

    co("import", "chatgpt", write_json(tmp_path / "conversations.json", [tree]), "-y")

    text = vault.read("articles/chatgpt/code.md")
    assert "### Step\n\n```sh\n# not a heading\n```\n\n## And then?\n" in text


def test_numbered_files_of_a_large_export_are_read_together(co: Co, vault: Vault, tmp_path: Path) -> None:
    files = {
        f"conversations-00{number}.json": [
            gpt_conversation(f"c{number}", f"Talk {number}", gpt_node("u", "root", "user", f"Hello {number}"))
        ]
        for number in range(3)
    }

    ran = co("import", "chatgpt", write_zip(tmp_path / "export.zip", files), "--yes", "--json")

    assert ran.json["counts"]["created"] == 3
    assert [item["ref"] for item in ran.json["items"]] == [f"article:chatgpt/talk-{number}" for number in range(3)]


def test_saved_memories_come_as_json_or_as_lines(co: Co, vault: Vault, tmp_path: Path) -> None:
    listed = {"memories": [{"id": "m1", "content": "Prefers green tea.", "updated_at": "2026-02-01T08:00:00Z"}]}
    copied = (
        "# Saved memories\n\n- [2025-04-01] - Has a boat called Marie.\n2. Lives in Kiel\n[unknown] - Sings bass\n\n"
    )
    (tmp_path / "memories.txt").write_text(copied, "utf-8")

    co("import", "chatgpt", write_json(tmp_path / "memories.json", listed), str(tmp_path / "memories.txt"), "--yes")

    assert vault.notes() == [
        "memories/has-a-boat-called-marie.md",
        "memories/lives-in-kiel.md",
        "memories/prefers-green-tea.md",
        "memories/sings-bass.md",
    ]
    assert "created: 2025-04-01T00:00:00Z" in vault.read("memories/has-a-boat-called-marie.md")
    assert "updated: 2026-02-01T08:00:00Z" in vault.read("memories/prefers-green-tea.md")


def test_a_conversation_that_should_not_be_remembered_is_not(co: Co, vault: Vault, tmp_path: Path) -> None:
    private = {**mooring(), "is_do_not_remember": True}

    ran = co("import", "chatgpt", write_json(tmp_path / "conversations.json", [private]), "--yes")

    assert "do not remember" in ran.out
    assert vault.notes() == []
