"""In a fresh process a first look at all vectors finds the nearest passages of a vault of any size."""

from __future__ import annotations

from collections.abc import Sequence

import apsw
import pytest

from benchmarks.corpus import Writer, write_corpus
from co_cli.embedding.space import Vector
from co_cli.embedding.static import shared_embedder
from co_cli.index import vectors
from co_cli.index.connection import vector_extension
from co_cli.index.vectors import Neighbour, StoredSpace
from co_cli.knowledge_base import KnowledgeBase
from co_cli.values import Filters
from tests.meaning.conftest import Open
from tests.vault import Vault

pytestmark = pytest.mark.skipif(
    vector_extension() is None, reason="sqlite-vec is not installed: pip install sqlite-vec"
)
LIMIT = 5


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


@pytest.fixture
def measured(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many vectors were measured, look by look; no more than are asked for, as in a large vault."""
    seen: list[int] = []
    cosines = vectors.cosines

    def noted(
        connection: apsw.Connection, space: StoredSpace, query: Vector, passage_ids: Sequence[int]
    ) -> dict[int, float]:
        seen.append(len(passage_ids))
        return cosines(connection, space, query, passage_ids)

    monkeypatch.setattr(vectors, "cosines", noted)
    monkeypatch.setattr(vectors, "LEAST_MEASURED", 1)
    monkeypatch.setattr(vectors, "FEW", 1)
    return seen


def nearest(kb: KnowledgeBase, query: str, filters: Filters | None = None, limit: int = LIMIT) -> list[Neighbour]:
    active = kb.index.spaces().active
    [vector] = shared_embedder().embed([query], "query")
    assert active is not None
    assert vector is not None
    return kb.index.nearest(active, vector, filters, limit)


def test_it_finds_what_measuring_every_vector_finds(kb: KnowledgeBase, monkeypatch: pytest.MonkeyPatch) -> None:
    writer = Writer(seed=3)
    queries = [writer.sentence() for _ in range(25)]
    monkeypatch.setattr(vectors, "LEAST_MEASURED", vectors.MOST_NEAREST)
    exact = [nearest(kb, query) for query in queries]

    monkeypatch.setattr(vectors, "LEAST_MEASURED", 1)
    monkeypatch.setattr(vectors, "FEW", 1)
    seen = [nearest(kb, query) for query in queries]

    right = {(place, one.passage_id): one.cosine for place, found in enumerate(exact) for one in found}
    same = [(place, one) for place, found in enumerate(seen) for one in found if (place, one.passage_id) in right]
    assert len(same) >= 0.98 * len(right)
    assert [one.cosine for _, one in same] == pytest.approx([right[place, one.passage_id] for place, one in same])
    assert all([one.cosine for one in found] == sorted((one.cosine for one in found), reverse=True) for found in seen)


def test_it_measures_a_few_for_each_that_is_wanted_with_filters_and_without(
    kb: KnowledgeBase, measured: list[int]
) -> None:
    few = LIMIT * vectors.MEASURED

    assert len(nearest(kb, "who approved the refund")) == LIMIT
    assert few / 2 <= measured.pop() <= few
    found = nearest(kb, "who approved the refund", Filters(since=1_670_000_000.0))
    assert (len(found), measured) == (LIMIT, [few])


def test_it_looks_once_when_that_finds_enough_and_an_origin_alone_is_no_filter(
    kb: KnowledgeBase, measured: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    looked: list[str] = []
    fetch = vectors.fetch

    def noted(connection: apsw.Connection, statement: str, values: dict[str, object] | None = None) -> list[object]:
        looked.append(statement)
        return fetch(connection, statement, values)

    monkeypatch.setattr(vectors, "fetch", noted)
    everywhere = nearest(kb, "who approved the refund")
    once = [statement for statement in looked if "furthest" in statement]
    looked.clear()
    named = nearest(kb, "who approved the refund", Filters(roots=(kb.root,)))

    assert len(once) == 2, "in the memories, and in the articles"
    assert [statement for statement in looked if "furthest" in statement] == once
    assert (named, measured[0]) == (everywhere, measured[1])


def test_a_look_that_finds_too_few_goes_further(
    kb: KnowledgeBase, measured: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    right = nearest(kb, "who approved the refund")
    bounds = vectors._bounds
    for shorter in ([0], [0, 1]):

        def too_near(*asked: object, shorter: list[int] = shorter) -> list[int]:
            return [*shorter, *bounds(*asked)[-1:]]  # type: ignore[arg-type]

        monkeypatch.setattr(vectors, "_bounds", too_near)
        assert nearest(kb, "who approved the refund") == right


def test_who_wants_more_than_are_there_gets_all_of_them(kb: KnowledgeBase, measured: list[int]) -> None:
    found = nearest(kb, "who approved the refund", limit=400)

    assert len(found) == 400
    everything = nearest(kb, "who approved the refund", limit=1_000)
    assert found == everything[:400]
    assert len(everything) == kb.index.counts().passages
