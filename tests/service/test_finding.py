"""A search without a usable index searches the files; a programming error is raised."""

from __future__ import annotations

from pathlib import Path

import pytest

from co_cli.embedding.embedders import Embedders
from co_cli.embedding.space import Embedder, VectorSpace
from co_cli.knowledge_base import KnowledgeBase
from tests.command import Co
from tests.vault import Vault


class Faulty(Embedders):
    """Whose author made a mistake."""

    def of(self, space: VectorSpace) -> Embedder | None:
        raise ZeroDivisionError("a mistake")


def test_a_programming_error_is_raised_and_not_hidden_by_a_fallback(vault: Vault, kb: KnowledgeBase) -> None:
    vault.write("memories/oak.md", "Oaks live long.")
    kb.sync()
    kb.index.embedders = Faulty("static")

    with pytest.raises(ZeroDivisionError):
        kb.search("oaks")
    assert kb.search("oaks", backend="grep").hits, "the files could have answered"
    assert kb.engine.database.set_aside is None


def test_what_the_settings_exclude_is_not_found_in_the_files_either(
    co: Co, vault: Vault, data_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CO_KNOWLEDGE_EXCLUDE", "diary*")
    vault.write("memories/oak.md", "Oaks live long.")
    vault.write("memories/diary.md", "Oaks bore me.")
    data_dir.write_text("a file where the folder of the index would be")

    found = co("search", "oaks", "--json").json

    assert [hit["ref"] for hit in found["hits"]] == ["memory:oak"]
    assert "answered from the files" in found["degraded"][0]
