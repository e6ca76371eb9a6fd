"""What is near to the best hits over links gains; what has no links gains nothing."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from co_cli.knowledge_base import KnowledgeBase
from co_cli.retrieval.links import proximity
from tests.vault import Vault

NOTES = st.integers(0, 8)


@given(
    seeds=st.dictionaries(NOTES, st.floats(0, 1), max_size=5),
    links=st.lists(st.tuples(NOTES, NOTES), max_size=20),
    hops=st.integers(0, 4),
)
def test_every_value_is_a_share_and_the_nearest_has_all(
    seeds: dict[int, float], links: list[tuple[int, int]], hops: int
) -> None:
    near = proximity(seeds, links, hops)

    assert all(0 <= value <= 1 for value in near.values())
    assert not near or max(near.values()) == 1
    assert set(near) <= {note for link in links for note in link}


def test_two_hops_reach_a_neighbour_and_its_neighbour_and_no_farther() -> None:
    near = proximity({1: 1.0}, [(1, 2), (3, 2), (3, 4)])

    assert near[2] > near[3] > 0
    assert 4 not in near


def test_a_note_is_not_near_to_itself() -> None:
    assert proximity({1: 1.0}, [(1, 1)]) == {}
    assert proximity({1: 1.0}, []) == {}
    assert proximity({}, [(1, 2)]) == {}


def test_a_note_that_links_to_everything_is_hardly_near_to_any() -> None:
    hub = [(1, other) for other in range(2, 50)]

    near = proximity({1: 0.5, 60: 0.5}, [*hub, (60, 61)])
    assert near[61] > 10 * near[2]


@pytest.fixture
def linked(kb: KnowledgeBase, vault: Vault) -> KnowledgeBase:
    vault.write("memories/harbour.md", "The harbour is deep. See [[pilots]] and [the map](../articles/map.md).")
    vault.write("memories/pilots.md", "Pilots wait by the deep water.")
    vault.write("memories/divers.md", "Divers wait by the deep water.")
    vault.write("articles/map.md", "# Map\n\nDeep water everywhere. More in [[Harbour]].")
    kb.sync()
    return kb


def test_links_are_found_whichever_way_they_point(linked: KnowledgeBase) -> None:
    ids = {row[0]: number for number in range(1, 5) for row in [(linked.index.note_facts([number])[number].path,)]}
    around = linked.index.links_around([ids["memories/pilots.md"]])

    assert around == [(ids["memories/harbour.md"], ids["memories/pilots.md"])]
    every = linked.index.links_around(list(ids.values()))
    harbour, chart = ids["memories/harbour.md"], ids["articles/map.md"]
    assert set(every) == {(harbour, ids["memories/pilots.md"]), (harbour, chart), (chart, harbour)}


def test_a_note_that_the_best_hit_links_to_comes_before_its_like(linked: KnowledgeBase) -> None:
    hits = linked.search("deep harbour water", weights={"links": 0.2}).hits
    refs = [hit.ref for hit in hits]

    assert refs.index("memory:pilots") < refs.index("memory:divers")
    assert next(hit for hit in hits if hit.ref == "memory:divers").signals["links"] == 0
    assert all(sum(hit.signals.values()) == pytest.approx(hit.score, abs=0.001) for hit in hits)
