"""Each signal is between 0 and 1 whatever a note says, and what it does not say is neutral."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from co_cli.index.standing import Standing
from co_cli.retrieval import signals

DAY = 86_400.0
NOW = 1_700_000_000.0
ANYTHING = st.one_of(st.none(), st.booleans(), st.floats(), st.integers(), st.text(max_size=12), st.lists(st.text()))


@given(value=ANYTHING)
def test_whatever_stands_there_is_between_0_and_1(value: object) -> None:
    assert 0 <= signals.importance(value) <= 1
    assert 0 <= signals.severity(value) <= 1


@given(written=st.one_of(st.none(), st.floats(-1e11, 1e11)), half=st.floats(0.01, 1e5), protected=st.booleans())
def test_recency_is_between_its_floor_and_1(written: float | None, half: float, protected: bool) -> None:
    assert signals.FLOOR <= signals.recency(written, NOW, half, protected) <= 1


def test_recency_halves_in_a_half_life_and_never_falls_below_the_floor() -> None:
    assert signals.recency(NOW, NOW) == 1
    assert signals.recency(NOW - 365 * DAY, NOW) == pytest.approx(0.5)
    assert signals.recency(NOW - 60 * DAY, NOW, 30) == pytest.approx(0.25)
    assert signals.recency(NOW - 9_000 * DAY, NOW) == signals.FLOOR
    assert signals.recency(NOW + 5 * DAY, NOW) == 1


def test_a_protected_note_does_not_age_and_an_undated_one_is_neutral() -> None:
    assert signals.recency(NOW - 9_000 * DAY, NOW, protected=True) == 1
    assert signals.recency(None, NOW) == signals.NEUTRAL


def test_a_window_of_validity_counts_in_place_of_an_age() -> None:
    window = Standing(NOW - 1_000 * DAY, NOW - 8 * DAY, NOW + 2 * DAY, None)

    assert signals.recency(NOW - 1_000 * DAY, NOW - 7 * DAY, standing=window) == 1
    assert signals.recency(NOW - 1_000 * DAY, NOW, standing=window) == pytest.approx(0.8)
    assert signals.recency(NOW - 1_000 * DAY, NOW + 3 * DAY, standing=window) == 0


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("critical", 1.0),
        ("High", 0.75),
        (" low ", 0.25),
        (0.4, 0.4),
        (4, 0.8),
        (7, 0.7),
        ("3", 0.6),
        (None, 0.5),
        ("?", 0.5),
    ],
)
def test_severity_is_a_word_or_a_number(value: object, expected: float) -> None:
    assert signals.severity(value) == pytest.approx(expected)


def test_importance_is_what_the_note_says() -> None:
    assert [signals.importance(value) for value in (0.8, "0.2", 7, -1, None, "very", True)] == [
        0.8,
        0.2,
        1,
        0,
        0.5,
        0.5,
        0.5,
    ]


def test_tags_of_a_query_are_those_it_marks_else_words_that_are_tags() -> None:
    known = {"deploy", "ops", "cake"}

    assert signals.tags_asked("how do we #Ops this deploy?", known) == ["ops"]
    assert signals.tags_asked("how do we deploy a cake, and deploy it?", known) == ["deploy", "cake"]
    assert signals.tags_asked("nothing of that", known) == []


def test_the_share_of_tags_that_a_note_has() -> None:
    assert signals.tags(["ops", "cake"], ["ops/deploy", "tea"]) == 0.5
    assert signals.tags(["ops"], ["opsy"]) == 0
    assert signals.tags([], ["ops"]) == 0


def test_a_domain_is_named_with_all_its_words() -> None:
    assert signals.domain("who pays for human-resources today", ["Human Resources"]) == 1
    assert signals.domain("resources of the team", ["human resources", "billing"]) == 0
    assert signals.domain("billing, please", ["human resources", "billing"]) == 1
    assert signals.domain("anything", []) == 0


def test_use_grows_ever_more_slowly_and_opening_is_worth_more_than_being_found() -> None:
    values = [signals.use(recalls) for recalls in (0, 1, 5, 50, 5_000)]

    assert values == sorted(values)
    assert values[0] == 0
    assert values[-2:] == [1, 1]
    assert signals.use(0, 1) > signals.use(1)
