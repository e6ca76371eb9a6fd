"""Threads and processes that embed and search the same vault at once: no error, one vector a passage."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from co_cli.embedding.embedders import Embedders
from co_cli.embedding.space import Embedder, EmbedKind, Vector, VectorSpace
from co_cli.embedding.static import StaticEmbedder
from co_cli.index.sqlite.vectors import packed
from co_cli.knowledge_index import KnowledgeIndex
from tests.meaning.conftest import Open
from tests.meaning.inside import Inside
from tests.vault import Vault


class Interrupting(Embedders):
    """The static model; while it embeds documents, `meanwhile` happens, once."""

    def __init__(self) -> None:
        super().__init__("static")
        self.model = StaticEmbedder()
        self.meanwhile = lambda: None

    def of(self, space: VectorSpace) -> Embedder | None:
        return self if space.key == self.model.space.key else None  # type: ignore[return-value]

    def embed(self, texts: list[str], kind: EmbedKind, seconds: float | None = None) -> list[Vector | None]:
        vectors = self.model.embed(texts, kind)
        work, self.meanwhile = self.meanwhile, lambda: None
        work()
        return vectors


@pytest.fixture
def embedders() -> Interrupting:
    return Interrupting()


@pytest.fixture
def index(open_kb: Open, vault: Vault, embedders: Interrupting) -> KnowledgeIndex:
    return KnowledgeIndex(open_kb().engine, vault.root, embedders=embedders)


def test_a_note_that_changes_while_it_is_embedded_never_gets_the_old_texts_vector(
    open_kb: Open, vault: Vault, index: KnowledgeIndex, embedders: Interrupting, inside: Inside
) -> None:
    other = open_kb("none")
    for change in (other.sync, other.rebuild):

        def rewrite(change: Callable[[], object] = change) -> None:
            vault.write("memories/oak.md", "Invoices are due in thirty days.")
            change()

        vault.write("memories/oak.md", f"Oaks live for centuries, {change.__name__}.")
        embedders.meanwhile = rewrite
        index.sync()
        index.sync()

        [right] = embedders.model.embed(["Oak\nInvoices are due in thirty days."], "document")
        assert right is not None
        assert inside.vectors() == {"memories/oak.md": packed(right)}
        assert inside.waiting == 0


def test_a_search_db_deleted_while_notes_are_embedded_comes_back_whole(
    vault: Vault, index: KnowledgeIndex, embedders: Interrupting, inside: Inside, data_dir: Path
) -> None:
    vault.write("memories/oak.md", "Oaks live for centuries.")

    def delete() -> None:
        for file in data_dir.glob("search.db*"):
            file.unlink()

    embedders.meanwhile = delete
    index.sync()
    index.sync()

    assert set(inside.vectors()) == {"memories/oak.md"}
    assert inside.waiting == 0
