"""Bringing files in as articles."""

from __future__ import annotations

from pathlib import Path

from co_cli.importers.articles import import_articles
from co_cli.knowledge_base import KnowledgeBase
from tests.vault import Vault


def test_a_twin_that_was_edited_since_the_last_sync_is_no_twin(kb: KnowledgeBase, vault: Vault, tmp_path: Path) -> None:
    (tmp_path / "oak.md").write_text("Oaks live long.")
    import_articles(kb, [str(tmp_path / "oak.md")])
    vault.write("articles/oak.md", "Now about elms.")

    again = import_articles(kb, [str(tmp_path / "oak.md")])

    assert again[0].saved is not None
    assert again[0].saved.outcome == "created"
    assert vault.read("articles/oak-2.md") == "Oaks live long."


def test_frontmatter_of_an_imported_file_counts(kb: KnowledgeBase, tmp_path: Path) -> None:
    (tmp_path / "page.md").write_text("---\ntitle: Oaks\ntags: [tree]\n---\nOaks live long.")

    imported = import_articles(kb, [str(tmp_path / "page.md")])

    assert imported[0].saved is not None
    assert kb.note(imported[0].saved.ref).title == "Oaks"
    assert [note.title for note in kb.notes(tags=["tree"])] == ["Oaks"]


def test_a_file_that_says_it_is_a_memory_gets_the_ref_of_one(kb: KnowledgeBase, tmp_path: Path) -> None:
    (tmp_path / "page.md").write_text("---\nkind: memory\n---\nOaks live long.")

    imported = import_articles(kb, [str(tmp_path / "page.md")])

    assert imported[0].saved is not None
    assert kb.note(imported[0].saved.ref).body == "Oaks live long."


def test_progress_is_told(kb: KnowledgeBase, tmp_path: Path) -> None:
    for number in range(3):
        (tmp_path / f"page-{number}.md").write_text(f"Page {number}.")
    told: list[tuple[int, int]] = []

    import_articles(kb, [str(tmp_path / f"page-{number}.md") for number in range(3)], lambda *step: told.append(step))

    assert told == [(1, 3), (2, 3), (3, 3)]
