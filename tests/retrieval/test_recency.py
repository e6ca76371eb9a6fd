"""Who asks how things stand now finds newer notes a little nearer; parts add up, and it can be turned off."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from co_cli.knowledge_base import KnowledgeBase
from co_cli.retrieval.fuse import Scored
from co_cli.retrieval.profiles import DEFAULT_PROFILE
from co_cli.retrieval.question import asks_for_newer, asks_for_now
from co_cli.retrieval.recency import AGED, NEWEST, newer_nearer
from co_cli.service.searching import search_index
from co_cli.values import Filters
from tests.vault import Vault


@pytest.mark.parametrize(
    "query", ["what did we say last time?", "my current address", "I\u2019ve moved on. What's the **next** step?"]
)
def test_first_person_and_a_word_of_now_ask_how_things_stand(query: str) -> None:
    assert asks_for_now(query)


@pytest.mark.parametrize(
    "query", ["when did Melanie last paint", "how do we deploy", "current address", "", "lasting myth"]
)
def test_neither_half_is_enough(query: str) -> None:
    assert not asks_for_now(query)


def test_who_asks_about_their_own_affairs_wants_newer_notes_half_as_much() -> None:
    assert asks_for_newer("my current address") == 1
    assert asks_for_newer("what is my address") == 0.5
    for query in ("when did I move", "where was my flat", "how does Melanie paint", ""):
        assert asks_for_newer(query) == 0


def ranked(*scores: float) -> list[Scored]:
    ordered = sorted(scores, reverse=True)
    return [Scored(number, number, score, {"words": score}) for number, score in enumerate(ordered)]


@given(
    scores=st.lists(st.floats(0, 1), max_size=12),
    created=st.dictionaries(st.integers(0, 11), st.floats(0, 2e9), max_size=12),
)
def test_nobody_is_lost_and_parts_add_up(scores: list[float], created: dict[int, float]) -> None:
    after = newer_nearer(ranked(*scores), created)

    assert sorted(one.passage_id for one in after) == list(range(len(scores)))
    for one in after:
        assert sum(one.signals.values()) == pytest.approx(one.score)
        assert 0 <= one.score <= 1 + 1e-9
    assert [one.score for one in after] == sorted((one.score for one in after), reverse=True)


def test_of_two_that_say_the_same_the_newer_one_comes_first() -> None:
    after = newer_nearer(ranked(0.52, 0.5), {0: 1_000.0, 1: 2_000_000.0})

    assert [one.passage_id for one in after] == [1, 0]
    assert after[0].signals["recency"] == NEWEST
    assert after[1].signals["recency"] == pytest.approx(NEWEST * 3 / 4)


def test_how_long_ago_does_not_count_but_how_many_days_are_newer() -> None:
    week = {number: 1_000.0 + number * 86_400 for number in range(3)}
    years = {number: 1_000.0 + number * 86_400 * 900 for number in range(3)}

    assert newer_nearer(ranked(0.5, 0.4, 0.3), week) == newer_nearer(ranked(0.5, 0.4, 0.3), years)


def test_a_clearly_better_note_stays_first_however_old() -> None:
    assert newer_nearer(ranked(0.8, 0.5), {0: 1_000.0, 1: 2_000_000.0})[0].passage_id == 0


def test_age_itself_counts_a_little_where_it_is_known() -> None:
    fresh = newer_nearer(ranked(0.5, 0.5), {0: 1_000.0, 1: 2_000_000.0}, NEWEST, {0: 0.2, 1: 0.9})

    assert fresh[0].signals["recency"] == pytest.approx(NEWEST + AGED * 0.9)
    assert all(sum(one.signals.values()) == pytest.approx(one.score) for one in fresh)


def test_without_two_dates_nothing_changes() -> None:
    for created in ({}, {0: 1_000.0}, {0: 1_000.0, 1: 1_000.0}):
        assert newer_nearer(ranked(0.9, 0.4), created) == ranked(0.9, 0.4)


@pytest.fixture
def moves(kb: KnowledgeBase, vault: Vault) -> KnowledgeBase:
    for year in (2019, 2026, 2022):
        head = f"title: Flat\ncreated: {year}-05-08"
        vault.write(f"memories/m{year}.md", f"---\n{head}\n---\nThe flat is in Long Street.\n")
    kb.sync()
    return kb


def test_a_search_for_how_things_stand_puts_the_newest_first(moves: KnowledgeBase) -> None:
    hits = moves.search("in which street is my flat now").hits

    assert hits[0].ref == "memory:m2026"
    assert NEWEST < hits[0].signals["recency"] <= NEWEST + AGED
    assert all("recency" not in hit.signals for hit in moves.search("in which street is the flat").hits)


def test_it_can_be_turned_off(moves: KnowledgeBase) -> None:
    with moves.index.snapshot():
        off = DEFAULT_PROFILE._replace(recency=False)
        found = search_index(moves.index, moves.embedders, "where is my flat now", Filters(), 10, None, off)

    assert all("recency" not in hit.signals for hit in found.hits)


def test_the_time_of_a_file_is_no_date(kb: KnowledgeBase, vault: Vault) -> None:
    for name in ("old", "new"):
        vault.write(f"memories/{name}.md", f"The {name} flat is in the same street.\n")
    kb.sync()

    assert all("recency" not in hit.signals for hit in kb.search("where is my flat now").hits)
