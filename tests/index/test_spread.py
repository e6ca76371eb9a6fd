"""Some passages that a search may find, spread over all of them: of the vault that was asked, and as filters want."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from co_cli.index.spread import TAKEN
from co_cli.index.vectors import StoredSpace
from co_cli.knowledge_base import KnowledgeBase
from co_cli.values import Filters
from tests.vault import Vault

NOTES = 90


@pytest.fixture
def large(vault: Vault, data_dir: Path) -> Iterator[KnowledgeBase]:
    for number in range(NOTES):
        vault.write(f"memories/n{number:03}.md", f"---\ntags: [{'odd' if number % 2 else 'even'}]\n---\nOak {number}.")
    with KnowledgeBase.open(vault.root, data_dir) as kb:
        kb.sync()
        yield kb


def space_of(kb: KnowledgeBase) -> StoredSpace:
    space = kb.index.spaces().active
    assert space is not None
    return space


def spread(kb: KnowledgeBase, candidates: list[int], filters: Filters | None = None) -> list[list[float]]:
    return [[*vector] for vector in kb.index.spread(space_of(kb), filters or Filters(), candidates)]


def every(kb: KnowledgeBase, filters: Filters | None = None) -> dict[int, list[float]]:
    passages = [match.passage_id for match in kb.index.search("oak", filters, 1_000)]
    return kb.index.vectors(space_of(kb), passages)


def test_no_more_are_read_than_needed_and_they_lie_between_the_candidates(large: KnowledgeBase) -> None:
    vectors = every(large)
    first, *_, last = sorted(vectors)

    found = spread(large, [last, first])

    assert NOTES // 2 <= len(found) <= TAKEN
    assert [vector in found for vector in (vectors[first], vectors[last])] == [True, NOTES % 2 == 1]
    few = [vectors[passage] for passage in range(first + 5, first + 10)]
    assert spread(large, [first + 5, first + 9]) == few


def test_without_candidates_there_is_nothing_to_read(large: KnowledgeBase) -> None:
    assert spread(large, []) == []


def test_filters_narrow_it(large: KnowledgeBase) -> None:
    odd = every(large, Filters(tags=("odd",)))

    found = spread(large, list(every(large)), Filters(tags=("odd",)))

    assert len(found) == NOTES // 2
    assert all(vector in odd.values() for vector in found)


def test_another_vault_in_the_same_search_db_is_not_read(large: KnowledgeBase, data_dir: Path, tmp_path: Path) -> None:
    other = Vault(tmp_path / "other")
    for number in range(20):
        other.write(f"memories/e{number}.md", f"Oak and elm {number}.")
    with KnowledgeBase.open(other.root, data_dir) as kb:
        kb.sync()
        own = every(kb)

        found = spread(kb, list(own))
        beyond = spread(kb, [1, *own])

    assert sorted(found) == sorted(own.values())
    assert sorted(beyond) == sorted(own.values())
