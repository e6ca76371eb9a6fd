"""In a large vault a first look through sketches finds the nearest passages, with their exact cosines."""

from __future__ import annotations

from collections.abc import Sequence

import apsw
import pytest

from co_cli.benchmarks.corpus import Writer, write_corpus
from co_cli.embedding.space import Vector
from co_cli.embedding.static import shared_embedder
from co_cli.index import sketches, vectors
from co_cli.index.connection import vector_extension
from co_cli.index.vectors import Neighbour, StoredSpace
from co_cli.knowledge_base import KnowledgeBase
from co_cli.values import Filters
from tests.meaning.conftest import Open
from tests.vault import Vault

pytestmark = pytest.mark.skipif(
    vector_extension() is None, reason="sqlite-vec is not installed: pip install sqlite-vec"
)
LIMIT = 10


@pytest.fixture(autouse=True)
def as_a_cold_process_asks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of search.db, not of vectors in memory."""

    def never(searches: int) -> bool:
        return False

    monkeypatch.setattr("co_cli.index.reader.prefer_resident", never)


@pytest.fixture
def kb(open_kb: Open, vault: Vault) -> KnowledgeBase:
    write_corpus(str(vault.root), 300)
    opened = open_kb()
    opened.sync()
    return opened


def nearest(kb: KnowledgeBase, query: str, filters: Filters | None = None, limit: int = LIMIT) -> list[Neighbour]:
    active = kb.index.spaces().active
    [vector] = shared_embedder().embed([query], "query")
    assert active is not None
    assert vector is not None
    return kb.index.nearest(active, vector, filters, limit)


def test_it_finds_what_measuring_every_vector_finds(kb: KnowledgeBase, monkeypatch: pytest.MonkeyPatch) -> None:
    writer = Writer(seed=3)
    queries = [writer.sentence() for _ in range(25)]
    exact = [nearest(kb, query) for query in queries]

    monkeypatch.setattr(vectors, "SKETCHED_FROM", 1)
    seen = [nearest(kb, query) for query in queries]

    right = {(place, one.passage_id): one.cosine for place, found in enumerate(exact) for one in found}
    same = [(place, one) for place, found in enumerate(seen) for one in found if (place, one.passage_id) in right]
    assert len(same) >= 0.98 * len(right)
    assert [one.cosine for _, one in same] == pytest.approx([right[place, one.passage_id] for place, one in same])
    assert all([one.cosine for one in found] == sorted((one.cosine for one in found), reverse=True) for found in seen)


def test_it_looks_at_sketches_only_in_a_large_vault_without_filters(
    kb: KnowledgeBase, monkeypatch: pytest.MonkeyPatch
) -> None:
    measured: list[int] = []
    cosines = sketches.cosines

    def noted(
        connection: apsw.Connection, space: StoredSpace, query: Vector, passage_ids: Sequence[int]
    ) -> dict[int, float]:
        measured.append(len(passage_ids))
        return cosines(connection, space, query, passage_ids)

    monkeypatch.setattr(sketches, "cosines", noted)

    nearest(kb, "who approved the refund")
    assert measured == []
    monkeypatch.setattr(vectors, "SKETCHED_FROM", 1)
    nearest(kb, "who approved the refund", Filters(tags=("refund",)))
    assert measured == []
    assert len(nearest(kb, "who approved the refund")) == LIMIT
    assert measured == [LIMIT * sketches.MEASURED]


def test_who_wants_more_than_are_there_gets_all_of_them(kb: KnowledgeBase, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(vectors, "SKETCHED_FROM", 1)

    found = nearest(kb, "who approved the refund", limit=400)

    assert len(found) == 400
    assert found == nearest(kb, "who approved the refund", limit=1_000)[:400]
