"""Vectors in memory are read again when they changed, but not for each search while somebody writes."""

from __future__ import annotations

import pytest

from co_cli.index.sqlite.engine import SqliteEngine
from co_cli.index.sqlite.resident import ResidentVectors
from co_cli.knowledge_base import KnowledgeBase

PART = "1/memory"


def test_changed_vectors_are_read_again_when_nobody_has_written_for_some_searches(kb: KnowledgeBase) -> None:
    pytest.importorskip("numpy", reason="vectors are kept in memory with numpy: pip install numpy")
    kb.remember("Parcels wait in the cellar.")
    space = kb.index.vectors().spaces.active
    assert space is not None
    held, query = ResidentVectors(), [0.0] * space.space.dimensions

    def worth(stamp: int) -> bool:
        return held.worth_reading(space, [(PART, stamp)])

    assert worth(1), "nothing is held yet"
    with SqliteEngine.at(kb.engine.path).database.reading() as connection:
        held.nearest(connection, space, [(PART, 1)], query, 1, None)
        assert worth(1)
        assert [worth(stamp) for stamp in range(2, 30)] == [False] * 28, "each search met another write"
        assert [worth(30) for _ in range(2)] == [False, True]
        held.nearest(connection, space, [(PART, 30)], query, 1, None)
    assert worth(30)
    assert not worth(31)
