"""Signals of notes: each is exactly what it says, from 0 to 1."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import pytest

from co_cli.ground.hits import UseCount
from co_cli.index.stored import StoredNote
from co_cli.retrieval.score import Scored
from co_cli.retrieval.signals import Material, add_signals

DAY = 86_400.0
NOW = 1_790_000_000.0
NOTE = 1


def facts(
    age: float = 0.0, window: tuple[float, float] | None = None, tags: tuple[str, ...] = (), **frontmatter: object
) -> StoredNote:
    """A note that is so many days old; its window of validity began and ends so many days from now."""
    start, end = ((NOW + days * DAY) for days in window) if window else (None, None)
    given: dict[str, Any] = {"created": NOW - age * DAY, "tags": tags, "valid_from": start, "valid_until": end}
    fields = dict.fromkeys(StoredNote._fields, "") | given | {"frontmatter_json": json.dumps(frontmatter, default=str)}
    return StoredNote(**fields)


def value(signal: str, note: StoredNote, query: str = "", half_life: float = 365.0) -> float:
    material = Material(query, NOW, half_life, {NOTE: note})
    return added(signal, material).get(NOTE, 0.0)


def added(signal: str, material: Material, notes: Mapping[int, float] | None = None) -> dict[int, float]:
    """The signal of each note, where notes have these scores."""
    ranked = [Scored(note, note, {"words": score}) for note, score in (notes or {NOTE: 0.5}).items()]
    return {one.note: one.signals.get(signal, 0.0) for one in add_signals(ranked, {signal: 1.0}, material)}


def test_severity_is_what_the_note_says() -> None:
    said = {"critical": 1.0, "Warning ": 0.7, "suggestion": 0.4, None: 0.0, "loud": 0.0, 3: 0.0}

    assert {text: value("severity", facts(severity=text)) for text in said} == said


def test_recency_halves_with_each_half_life() -> None:
    ages = {(0, 365): 1.0, (365, 365): 0.5, (730, 365): 0.25, (30, 30): 0.5, (-10, 30): 1.0}

    assert {one: value("recency", facts(one[0]), half_life=one[1]) for one in ages} == pytest.approx(ages)


def test_recency_counts_from_the_last_update_unless_the_note_is_protected() -> None:
    assert value("recency", facts(730, updated="2025-09-21")) > 0.49
    assert value("recency", facts(730, updated="not a date")) == pytest.approx(0.25)
    assert value("recency", facts(7_300, decay_protected=True)) == 1.0


def test_use_renews_a_note_by_half_of_its_age_at_most_where_the_profile_says_so() -> None:
    half_of = {0: 50.0, 10: 55.0, 100: 100.0, 500: 100.0, None: 100.0, -1: 100.0}
    """Days since a note of 100 days was used, and the age that counts; a use after the date of the search does not."""
    for days, age in half_of.items():
        used = UseCount(used=None if days is None else NOW - days * DAY)
        for renews, expected in ((True, age), (False, 100.0)):
            material = Material("", NOW, 100.0, {NOTE: facts(100)}, uses={NOTE: used}, use_renews=renews)
            assert added("recency", material)[NOTE] == pytest.approx(0.5 ** (expected / 100)), (days, renews)


def test_within_a_window_recency_is_full_for_three_quarters_then_falls_to_0_whatever_the_age() -> None:
    windows = {
        (-10, 90): 1.0,
        (-75, 25): 1.0,
        (-80, 20): 0.8,
        (-90, 10): 0.4,
        (-99, 1): 0.04,
        (-100, 0): 0.0,
        (1, 9): 0.0,
    }

    assert {window: value("recency", facts(3_650, window)) for window in windows} == pytest.approx(windows)


def test_tags_overlap_by_jaccard() -> None:
    cases = {
        ("ops deploy", ("ops", "deploy")): 1.0,
        ("ops deploy", ("ops",)): 0.5,
        ("Ops, please", ("ops", "deploy", "shop")): 1 / 3,
        ("boats", ("ops",)): 0.0,
        ("ops", ()): 0.0,
    }
    for (query, tags), expected in cases.items():
        known = {NOTE: facts(tags=tags), 2: facts(tags=("ops",)), 3: facts(tags=("deploy",))}
        assert added("tags", Material(query, NOW, 365, known))[NOTE] == pytest.approx(expected), query


def test_domain_is_1_if_the_query_names_it() -> None:
    cases: list[tuple[str, object, float]] = [
        ("late billing run", "billing", 1.0),
        ("late Customer-Care run", "customer care", 1.0),
        ("customer run", "customer_care", 0.0),
        ("billing", ["shop", "Billing"], 1.0),
        ("billing", None, 0.0),
        ("billing", "", 0.0),
    ]
    for query, domain, expected in cases:
        assert value("domain", facts(domain=domain), query) == expected, (query, domain)


def test_importance_is_what_the_note_says() -> None:
    said = {0.8: 0.8, "0.25": 0.25, 7: 1.0, -1: 0.0, "high": 0.5, "nan": 0.5}

    assert {one: value("importance", facts(importance=one)) for one in said} == said


def test_importance_falls_back_to_how_often_a_note_is_mentioned() -> None:
    known = {1: facts(), 2: facts(), 3: facts(), 4: facts(importance=0.1)}
    links = [*((other, 1) for other in range(5)), *((other, 2) for other in range(10, 20)), (5, 3), (5, 4), (6, 4)]

    found = added("importance", Material("", NOW, 365, known, links), dict.fromkeys(known, 0.5))

    assert found[2] == pytest.approx(1.0), "ten notes mention it"
    assert 0.5 < found[1] < found[2]
    assert found[3] == 0.5, "one mention is no reason to rank it lower than a note without any"
    assert found[4] == pytest.approx(0.1), "what it says itself counts more"


def test_ratings_raise_and_lower_importance() -> None:
    known = {number: facts() for number in range(1, 5)} | {5: facts(importance=0.9)}
    uses = {2: UseCount(good=1), 3: UseCount(bad=1), 4: UseCount(good=2, bad=9), 5: UseCount(good=20)}

    found = added("importance", Material("", NOW, 365, known, uses=uses), dict.fromkeys(known, 0.5))

    assert found == pytest.approx({1: 0.5, 2: 0.75, 3: 0.25, 4: 0.5 - 7 / 24, 5: 1.0})


def test_use_counts_recalls_and_more_so_openings_up_to_a_point() -> None:
    uses = {1: UseCount(), 2: UseCount(3, 0), 3: UseCount(0, 3), 4: UseCount(500, 500)}

    found = added("use", Material("", NOW, 365, uses=uses), dict.fromkeys(uses, 0.5))

    assert found[1] == 0.0
    assert 0 < found[2] < found[3] < found[4] == 1.0


def test_link_proximity_reaches_two_hops_from_the_best_notes_either_way() -> None:
    scores = {1: 0.9, 2: 0.01, 3: 0.01, 4: 0.01, 5: 0.01, 6: 0.01, 7: 0.01, 8: 0.01}
    chain = [(1, 6), (7, 6), (7, 8), (6, 6)]  # the five best are 1 to 5

    found = added("links", Material("", NOW, 365, links=chain), scores)

    assert found[6] == 1.0, "next to the best"
    assert 0 < found[7] < found[6], "two hops away, against the arrow"
    assert found[8] == 0.0, "three hops away"
    assert found[2] == 0.0, "linked to nothing"


def test_signals_are_weighed_added_and_change_the_order() -> None:
    ranked = [Scored(1, 1, {"words": 0.3}), Scored(2, 2, {"words": 0.25})]
    known = {1: facts(), 2: facts(severity="critical")}

    first, second = add_signals(ranked, {"severity": 0.1, "recency": 0.2}, Material("", NOW, 365, known))

    assert (first.note, second.note) == (2, 1)
    assert first.signals == pytest.approx({"words": 0.25, "severity": 0.1, "recency": 0.2})
    assert first.score == pytest.approx(0.55)
    assert add_signals(ranked, {"words": 1.0}, Material("", NOW, 365, known)) == ranked, "no signal is asked for"
