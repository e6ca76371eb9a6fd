"""What Claude gives out: claude.ai's export, and the memory folders of its tools."""

from __future__ import annotations

from pathlib import Path

from tests.command import Co
from tests.exchange.exports import NO_PARENT, claude_conversation, claude_message, write_json, write_zip
from tests.vault import Vault


def test_a_conversation_becomes_an_article(co: Co, vault: Vault, tmp_path: Path) -> None:
    talk = claude_conversation(
        "c-1",
        "Country momentum",
        claude_message("m1", "human", "Does momentum pay?", NO_PARENT),
        claude_message("m2", "assistant", "Hardly.", "m1"),
    )

    ran = co(
        "import", "claude", write_zip(tmp_path / "data.zip", {"conversations.json": [talk], "users.json": [{}]}), "-y"
    )

    assert (ran.code, ran.err) == (0, "")
    text = vault.read("articles/claude/country-momentum.md")
    assert "created: 2026-03-01T10:00:00Z\nprovenance: import\nupdated: 2026-03-02T11:00:00Z\n" in text
    assert text.endswith("## Does momentum pay?\n\n**You:**\n\nDoes momentum pay?\n\n**Claude:**\n\nHardly.\n")


def test_an_answer_that_was_made_again_is_left_out(co: Co, vault: Vault, tmp_path: Path) -> None:
    talk = claude_conversation(
        "c",
        "Again",
        claude_message("m1", "human", "Name one", NO_PARENT),
        claude_message("m2", "assistant", "The old one", "m1"),
        claude_message("m3", "assistant", "The new one", "m1"),
    )

    co("import", "claude", write_json(tmp_path / "conversations.json", [talk]), "-y")

    text = vault.read("articles/claude/again.md")
    assert "The new one" in text
    assert "The old one" not in text


def test_a_broken_chain_of_messages_loses_none(co: Co, vault: Vault, tmp_path: Path) -> None:
    talk = claude_conversation(
        "c",
        "Chain",
        claude_message("m1", "human", "One", NO_PARENT),
        claude_message("m2", "assistant", "Two", "lost"),
    )

    co("import", "claude", write_json(tmp_path / "conversations.json", [talk]), "-y")

    text = vault.read("articles/claude/chain.md")
    assert "One" in text
    assert "Two" in text


def test_thoughts_and_tools_are_left_out_and_pasted_text_is_kept(co: Co, vault: Vault, tmp_path: Path) -> None:
    blocks = [
        {"type": "thinking", "thinking": "SECRET"},
        {"type": "tool_use", "name": "web", "input": {"q": "SECRET"}},
        {"type": "tool_result", "content": [{"type": "text", "text": "SECRET"}]},
        {"type": "text", "text": "The answer."},
    ]
    files = [
        {"file_name": "", "extracted_content": "A long text that was pasted."},
        {"file_name": "plan.pdf", "extracted_content": "SECRET"},
    ]
    talk = claude_conversation(
        "c",
        "Blocks",
        claude_message("m1", "human", "Read this", attachments=files),
        claude_message(
            "m2", "assistant", "This block is not supported on your current device yet. SECRET", content=blocks
        ),
    )

    co("import", "claude", write_json(tmp_path / "conversations.json", [talk]), "-y")

    text = vault.read("articles/claude/blocks.md")
    assert "SECRET" not in text
    assert "Read this\n\nA long text that was pasted.\n\n*(attached: plan.pdf)*" in text
    assert text.endswith("**Claude:**\n\nThe answer.\n")


def test_what_claude_remembers_becomes_a_memory_a_section(co: Co, vault: Vault, tmp_path: Path) -> None:
    remembered = {
        "conversations_memory": "**Work context**\n\nAnna is a pilot.\n\n**Personal context**\n\nShe sings bass.",
        "project_memories": {"p-1": "The harbour is in Kiel."},
        "account_uuid": "acct",
    }
    files = {
        "memories.json": [remembered],
        "projects.json": [{"uuid": "p-1", "name": "Harbour", "docs": [], "prompt_template": ""}],
    }

    ran = co("import", "claude", write_zip(tmp_path / "data.zip", files), "-y")

    assert ran.code == 0
    assert vault.notes() == [
        "memories/harbour-the-harbour-is-in-kiel.md",
        "memories/personal-context.md",
        "memories/work-context.md",
    ]
    assert vault.read("memories/work-context.md").endswith("---\nAnna is a pilot.\n")
    assert "tags: [harbour]" in vault.read("memories/harbour-the-harbour-is-in-kiel.md")


def test_projects_bring_their_instructions_and_documents(co: Co, vault: Vault, tmp_path: Path) -> None:
    project = {
        "uuid": "p-1",
        "name": "Harbour",
        "description": "All about the harbour.",
        "prompt_template": "Answer in knots.",
        "created_at": "2026-01-01T00:00:00Z",
        "docs": [{"uuid": "d-1", "filename": "depths.md", "content": "Four metres.", "created_at": None}],
    }

    co("import", "claude", write_zip(tmp_path / "data.zip", {"projects/p-1.json": project}), "-y")

    assert vault.notes() == ["articles/claude/harbour/depths-md.md", "articles/claude/harbour/harbour.md"]
    assert "## Instructions\n\nAnswer in knots.\n" in vault.read("articles/claude/harbour/harbour.md")


def test_the_memory_folder_of_claude_code_becomes_memories(co: Co, vault: Vault, tmp_path: Path) -> None:
    folder = tmp_path / "-work-boat" / "memory"
    folder.mkdir(parents=True)
    (folder / "MEMORY.md").write_text("# Memory\n\n- [Tests](tests.md) — never mock\n", "utf-8")
    (folder / "tests.md").write_text(
        "---\nname: never-mock-the-database\ndescription: real databases in tests\nmetadata:\n  type: feedback\n---\n"
        "Use a real database. See [[deploys]].\n",
        "utf-8",
    )
    (folder / "progress.txt").write_text("Half of the sails are sewn.\n", "utf-8")

    ran = co("import", "claude", str(folder), "-y")

    assert "MEMORY.md: it is only an index of the other files" in ran.out
    assert vault.notes() == ["memories/half-of-the-sails-are-sewn.md", "memories/never-mock-the-database.md"]
    text = vault.read("memories/never-mock-the-database.md")
    assert "category: feedback\nprovenance: import\n" in text
    assert "import_id: -work-boat/tests.md" in text.replace('"', "")
    assert text.endswith("Use a real database. See [[deploys]].\n")


def test_a_claude_md_becomes_an_article(co: Co, vault: Vault, tmp_path: Path) -> None:
    (tmp_path / "boat").mkdir()
    (tmp_path / "boat" / "CLAUDE.md").write_text("# Rules\n\nAlways run the tests.\n", "utf-8")

    co("import", "claude", str(tmp_path / "boat" / "CLAUDE.md"), "-y")

    assert vault.notes() == ["articles/claude/boat-claude-md.md"]
    assert "loading" not in vault.read("articles/claude/boat-claude-md.md")


def test_of_claudes_own_folder_only_what_it_remembers_is_taken(co: Co, vault: Vault, tmp_path: Path) -> None:
    root = tmp_path / ".claude"
    for name, text in {
        "CLAUDE.md": "Be brief.",
        "skills/pdf/SKILL.md": "A skill.",
        "todos/1.json": "[1]",
        "settings.json": "{}",
        "projects/-work-boat/memory/sails.md": "Half of the sails are sewn.",
    }.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text, "utf-8")

    ran = co("import", "claude", str(root), "-y")
    again = co("import", "claude", str(root / "projects" / "-work-boat" / "memory"), "--json")

    assert (ran.code, ran.err) == (0, "")
    assert vault.notes() == ["articles/claude/claude-claude-md.md", "memories/half-of-the-sails-are-sewn.md"]
    assert again.json["counts"]["unchanged"] == 1


def test_parts_of_an_export_are_read_together(co: Co, vault: Vault, tmp_path: Path) -> None:
    talk = claude_conversation("c", "Talk", claude_message("m", "human", "Hello"))
    one = write_zip(tmp_path / "conversations-000.zip", {"conversations.json": [talk]})
    other = write_zip(
        tmp_path / "memories-000.zip",
        {"memories/acct.json": {"conversations_memory": "She sings.", "project_memories": {}, "memory_files": []}},
    )

    ran = co("import", "claude", one, other, "-y")

    assert (ran.code, ran.err) == (0, "")
    assert vault.notes() == ["articles/claude/talk.md", "memories/she-sings.md"]
