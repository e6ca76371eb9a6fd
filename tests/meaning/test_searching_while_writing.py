"""A process keeps vectors in memory while another changes them: it answers right, and does not read all each time."""

from __future__ import annotations

from pathlib import Path

import pytest

from co_cli import KnowledgeBase
from co_cli.index.connection import vector_extension
from co_cli.index.resident import PATIENCE, ResidentVectors
from tests.vault import Vault

pytestmark = pytest.mark.skipif(vector_extension() is None, reason="without sqlite-vec there is no other way to scan")


def test_every_write_of_another_process_is_found_by_the_next_search(
    kb: KnowledgeBase, vault: Vault, data_dir: Path
) -> None:
    import numpy  # noqa: F401 - a process that has it keeps vectors in memory

    for number in range(30):
        vault.write(f"memories/{number}.md", f"Parcel {number} waits in the cellar.")
    kb.sync()
    assert kb.search("where do packages wait").hits
    with KnowledgeBase.open(vault.root, data_dir) as other:
        for number in range(PATIENCE + 3):
            saved = other.remember(f"Timber of kind {'xyz'[number % 3] * (number + 1)} is seasoned in the barn.")
            with KnowledgeBase.open(vault.root, data_dir) as fresh:
                wanted = [(hit.ref, round(hit.score, 4)) for hit in fresh.search("where is lumber dried").hits]
            for _ in range(1 if number % 3 else PATIENCE + 2):  # until it reads them again, and afterwards
                found = [(hit.ref, round(hit.score, 4)) for hit in kb.search("where is lumber dried").hits]
                assert saved.ref in [ref for ref, _ in found]
                assert found == wanted


def test_changed_vectors_are_read_again_when_nobody_has_written_for_some_searches(kb: KnowledgeBase) -> None:
    kb.remember("Parcels wait in the cellar.")
    kb.sync()
    held = ResidentVectors()
    space = kb.index.spaces().active
    assert space is not None
    query = bytes(4 * space.space.dimensions)

    def worth(stamp: int) -> bool:
        return held.worth_reading(space, [("1/memory", stamp)])

    assert worth(1), "nothing is held yet"
    with kb.index.rows.reading() as (connection, _):
        held.nearest(connection, space, [("1/memory", 1)], query, 1, None)
        assert worth(1)
        assert [worth(stamp) for stamp in range(2, 30)] == [False] * 28, "each search met another write"
        assert [worth(30) for _ in range(PATIENCE + 1)] == [False] * PATIENCE + [True]
        held.nearest(connection, space, [("1/memory", 30)], query, 1, None)
    assert worth(30)
    assert not worth(31)
