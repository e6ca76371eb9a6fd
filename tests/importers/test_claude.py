"""What Claude exports: claude.ai's data export, and the memory folders of its tools."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.folder import Vault
from tests.importers.conftest import ImportData
from tests.importers.exports import NO_PARENT, claude_conversation, claude_message, write_files, write_zip


def test_a_regenerated_answer_is_left_out_unless_the_chain_is_broken(import_data: ImportData, vault: Vault) -> None:
    for parent, kept in (("m1", False), ("lost", True)):
        messages = [
            claude_message("m1", "human", "Name one", NO_PARENT),
            claude_message("m2", "assistant", "The old one", "m1"),
            claude_message("m3", "assistant", "The new one", parent),
        ]

        import_data("claude", [claude_conversation("Again", *messages)])

        text = vault.read("conversations/claude/again.md")
        assert ("The new one" in text, "The old one" in text) == (True, kept)


def test_the_answer_that_is_shown_is_imported_even_if_it_is_not_the_last(import_data: ImportData, vault: Vault) -> None:
    messages = [
        claude_message("m1", "human", "Name one", NO_PARENT),
        claude_message("m2", "assistant", "The first one", "m1"),
        claude_message("m3", "assistant", "The second one", "m1"),
    ]

    import_data("claude", [{**claude_conversation("Again", *messages), "current_leaf_message_uuid": "m2"}])

    text = vault.read("conversations/claude/again.md")
    assert ("The first one" in text, "The second one" in text) == (True, False)


@pytest.mark.medium
def test_memory_files_of_the_export_become_memories(import_data: ImportData, vault: Vault, tmp_path: Path) -> None:
    files = [{"path": "/tea.md", "content": "Anna likes tea."}, {"path": "/boat.md", "content": "Anna has a boat."}]

    for _ in range(2):
        ran = import_data("claude", write_zip(tmp_path / "data.zip", {"memories.json": [{"memory_files": files}]}))

        assert (ran.code, ran.err) == (0, "")
        assert vault.notes() == ["memories/anna-has-a-boat.md", "memories/anna-likes-tea.md"]


def test_a_conversation_is_imported_without_thoughts_and_tools(import_data: ImportData, vault: Vault) -> None:
    blocks = [
        {"type": "thinking", "thinking": "SECRET"},
        {"type": "tool_use", "name": "web", "input": {"q": "SECRET"}},
        {"type": "tool_result", "content": [{"type": "text", "text": "SECRET"}]},
        {"type": "text", "text": "The answer."},
    ]
    pasted = {"file_name": "", "extracted_content": "A long text that was pasted."}
    files = [pasted, {"file_name": "plan.pdf", "extracted_content": "SECRET"}]
    asked = claude_message("m1", "human", "Read this", attachments=files)

    ran = import_data(
        "claude", [claude_conversation("Blocks", asked, claude_message("m2", "assistant", "", content=blocks))]
    )

    assert (ran.code, ran.err) == (0, "")
    text = vault.read("conversations/claude/blocks.md")
    assert "SECRET" not in text
    assert "created: 2026-03-01T10:00:00Z\nprovenance: import\nupdated: 2026-03-02T11:00:00Z\n" in text
    assert text.endswith(
        "## User\n\nRead this\n\n> A long text that was pasted.\n\n*(attached: plan.pdf)*\n\n## Claude\n\nThe answer.\n"
    )


@pytest.mark.medium
def test_projects_and_what_claude_remembers_become_notes(import_data: ImportData, vault: Vault, tmp_path: Path) -> None:
    remembered = {
        "conversations_memory": "**Work context**\n\nAnna is a pilot.\n\n**Personal context**\n\nShe sings bass.",
        "project_memories": {"p-1": "The harbour is in Kiel."},
        "account_uuid": "acct",
    }
    project = {
        "uuid": "p-1",
        "name": "Harbour",
        "description": "All about the harbour.",
        "prompt_template": "Answer in knots.",
        "docs": [{"uuid": "d-1", "filename": "depths.md", "content": "Four metres.", "created_at": None}],
    }
    one = write_zip(tmp_path / "memories-000.zip", {"memories.json": [remembered], "projects.json": [project]})
    other = write_zip(tmp_path / "projects-000.zip", {"projects/p-1.json": project})

    ran = import_data("claude", one, other)

    assert (ran.code, ran.err) == (0, "")
    assert vault.notes() == [
        "articles/claude/harbour/depths-md.md",
        "articles/claude/harbour/harbour.md",
        "articles/claude/what-claude-remembers-about-a-project.md",
        "articles/claude/what-claude-remembers.md",
    ]
    assert "## Instructions\n\nAnswer in knots.\n" in vault.read("articles/claude/harbour/harbour.md")
    text = vault.read("articles/claude/what-claude-remembers.md")
    assert text.endswith("## Work context\n\nAnna is a pilot.\n\n## Personal context\n\nShe sings bass.\n")
    assert vault.read("articles/claude/what-claude-remembers-about-a-project.md").endswith("The harbour is in Kiel.\n")


def test_memory_files_and_instructions_are_taken_from_claudes_folder(
    import_data: ImportData, vault: Vault, tmp_path: Path
) -> None:
    front = "---\nname: never-mock-the-database\nmetadata:\n  type: feedback\n---\n"
    memory = "projects/-work-boat/memory"
    files = {
        "CLAUDE.md": "Be brief.",
        "skills/pdf/SKILL.md": "A skill.",
        "settings.json": "{}",
        f"{memory}/MEMORY.md": "# Memory\n\n- [Tests](tests.md) — never mock\n",
        f"{memory}/tests.md": f"{front}Use a real database. See [[deploys]].\n",
        f"{memory}/progress.txt": "Half of the sails are sewn.\n",
    }
    root = write_files(tmp_path / ".claude", files)

    ran = import_data("claude", root)
    again = import_data("claude", root / memory, "--json")

    assert (ran.code, ran.err) == (0, "")
    names = (
        "articles/claude/claude-claude-md",
        "articles/claude/work-boat-memory-memory-md",
        "memories/half-of-the-sails-are-sewn",
        "memories/never-mock-the-database",
    )
    assert vault.notes() == [f"{name}.md" for name in names]
    text = vault.read("memories/never-mock-the-database.md")
    assert "category: feedback\nprovenance: import\n" in text
    assert text.endswith("Use a real database. See [[deploys]].\n")
    assert again.json["counts"]["unchanged"] == 3
