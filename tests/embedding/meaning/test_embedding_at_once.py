"""Threads and processes that embed and search the same vault at once: no error, one vector a passage."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from benchmarks.corpus import write_corpus
from co_cli.embedding.embedders import Embedders
from co_cli.embedding.space import Embedder, EmbedKind, Vector, VectorSpace
from co_cli.embedding.static import StaticEmbedder
from co_cli.entrance.knowledge_base import KnowledgeBase
from co_cli.index.packing import packed
from co_cli.knowledge_index import KnowledgeIndex
from tests.command import run_together
from tests.embedding.meaning.conftest import Open
from tests.embedding.meaning.inside import Inside
from tests.folder import Vault
from tests.trouble.test_parallel import run_all

pytestmark = pytest.mark.slow

QUESTION = "who approved the late refund"


def assert_one_vector_per_passage(kb: KnowledgeBase, inside: Inside) -> None:
    kb.sync()
    passages = inside.value("select count(*) from passages")
    assert inside.rows("select count(*), count(distinct rowid) from docs_vec") == [(passages, passages)]
    assert inside.waiting == 0
    assert [finding for finding in kb.doctor() if finding.level != "ok"] == []


def test_threads_sync_save_and_search_with_vectors_at_once(open_kb: Open, vault: Vault, inside: Inside) -> None:
    write_corpus(str(vault.root), 30)
    kb = open_kb()
    kb.sync()
    done = threading.Event()

    def change() -> None:
        try:
            for number in range(6):
                vault.write(f"memories/new-{number}.md", f"Refund {number} was approved by the manager.")
                vault.path(f"memories/new-{number - 1}.md").unlink(missing_ok=True)
                kb.sync()
        finally:
            done.set()

    def look() -> None:
        while not done.is_set():
            found = kb.search(QUESTION)
            assert found.degraded == []
            assert "meaning" in found.hits[0].signals

    def save() -> None:
        for number in range(6):
            assert kb.remember(f"Lantern {number} hangs at gate {number * 3}.").outcome == "created"

    assert run_all(change, look, look, save) == []
    assert_one_vector_per_passage(kb, inside)


REEMBED = f"""
import sys
from co_cli.entrance.knowledge_base import KnowledgeBase
with KnowledgeBase.open(*sys.argv[1:]) as kb:
    for _ in range(2):
        kb.reembed(fresh=True)
        found = kb.search({QUESTION!r})
        assert "meaning" in found.hits[0].signals, found  # others may be about to replace the vectors
"""


def test_processes_embed_the_same_passages_at_once(open_kb: Open, vault: Vault, data_dir: Path, inside: Inside) -> None:
    write_corpus(str(vault.root), 60)
    kb = open_kb()
    kb.sync()

    run_together(REEMBED, *[(vault.root, data_dir)] * 3)

    assert_one_vector_per_passage(kb, inside)


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
