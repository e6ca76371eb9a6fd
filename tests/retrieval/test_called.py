"""A note that is called what was asked for comes first; the others keep their order, and parts add up."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from co_cli.index.names import Called
from co_cli.knowledge_base import KnowledgeBase
from co_cli.retrieval.called import EXACT, name_first
from co_cli.retrieval.fuse import Scored
from tests.vault import Vault


def ranked(*scores: float) -> list[Scored]:
    """Two passages a note, best first."""
    ordered = sorted(scores, reverse=True)
    return [Scored(number, number // 2, score, {"words": score}) for number, score in enumerate(ordered)]


@given(
    scores=st.lists(st.floats(0, 1), max_size=12),
    theirs=st.sets(st.integers(0, 9), max_size=3),
    propose=st.booleans(),
)
def test_names_come_first_and_nobody_is_lost(scores: list[float], theirs: set[int], propose: bool) -> None:
    before = ranked(*scores)
    there = {one.doc_id for one in before}

    after = name_first(before, [Called(100 + doc, doc, "title") for doc in theirs], propose)

    lifted = [one.doc_id in theirs for one in after]
    assert lifted == sorted(lifted, reverse=True)
    assert {one.doc_id for one in after} == (there | theirs if propose else there)
    others = [one.passage_id for one in after if one.doc_id not in theirs]
    assert others == [one.passage_id for one in before if one.doc_id not in theirs]
    for one in after:
        assert sum(one.signals.values()) == pytest.approx(one.score)
        assert ("exact" in one.signals) == (one.doc_id in theirs)
        assert 0 <= one.score <= 1


def test_without_names_nothing_changes() -> None:
    assert name_first(ranked(0.9, 0.4), []) == ranked(0.9, 0.4)
    assert name_first(ranked(0.9, 0.4), [Called(9, 9, "slug")], propose=False) == ranked(0.9, 0.4)


@pytest.fixture
def ships(kb: KnowledgeBase, vault: Vault) -> KnowledgeBase:
    vault.write("memories/blue-pool.md", "---\ntitle: How it works\naliases: [Go live]\n---\nGreen follows later.\n")
    for number in range(12):
        vault.write(f"memories/pool{number}.md", f"---\ntitle: Pool {number}\n---\nThe blue pool: go live, it works.\n")
    kb.sync()
    return kb


@pytest.mark.parametrize("backend", ["fts5", "hybrid"])
@pytest.mark.parametrize("query", ["how it works", "HOW IT WORKS?", "go-live", "blue_pool", "memory:blue-pool"])
def test_a_search_for_a_name_answers_with_that_note_first(ships: KnowledgeBase, query: str, backend: str) -> None:
    found = ships.search(query, backend=backend)

    assert found.state == "found"
    assert found.hits[0].ref == "memory:blue-pool"
    assert found.hits[0].signals["exact"] == EXACT
    assert sum(found.hits[0].signals.values()) == pytest.approx(found.hits[0].score, abs=1e-3)
    assert all("exact" not in hit.signals for hit in found.hits[1:])


@pytest.mark.parametrize("profile", ["meaning", "spec"])
def test_it_can_be_turned_off(ships: KnowledgeBase, profile: str) -> None:
    assert all("exact" not in hit.signals for hit in ships.search("go live", profile=profile).hits)


def test_a_phrase_must_stand_and_an_excluded_word_must_not_whatever_the_note_is_called(ships: KnowledgeBase) -> None:
    refs = [hit.ref for hit in ships.search('"blue pool"', limit=20).hits]
    assert "memory:blue-pool" not in refs
    assert len(refs) == 12
    assert ships.search('"how it works"').hits[0].signals["exact"] == EXACT

    assert all("exact" not in hit.signals for hit in ships.search("go -live").hits)


def test_why_says_which_of_its_names_was_asked_for(ships: KnowledgeBase) -> None:
    found = ships.why("go live", "memory:blue-pool")

    assert (found.rank, found.fell) == (1, None)
    assert found.steps[0].name == "name"
    assert found.steps[0].told == "the query is its alias, and that comes first"
    assert ships.why("go live", "memory:pool1").steps[0].name == "words"
