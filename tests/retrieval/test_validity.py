"""What holds at a moment, and how strongly."""

from __future__ import annotations

import pytest

from co_cli.index.standing import Standing
from co_cli.retrieval.fuse import Scored
from co_cli.retrieval.validity import holding, strength

FOR_EVER = Standing(0.0, None, None, None)
WINDOW = Standing(0.0, 100.0, 200.0, None)


@pytest.mark.parametrize(
    ("now", "strong"),
    [(99, 0.0), (100, 1.0), (150, 1.0), (175, 1.0), (187.5, 0.5), (195, 0.2), (200, 0.0), (1000, 0.0)],
)
def test_a_window_holds_for_three_quarters_and_fades_over_the_last(now: float, strong: float) -> None:
    assert strength(WINDOW, now) == pytest.approx(strong)


@pytest.mark.parametrize(
    ("standing", "now", "strong"),
    [
        (FOR_EVER, 1e9, 1.0),
        (Standing(0.0, 100.0, None, None), 50, 0.0),
        (Standing(0.0, 100.0, None, None), 1e9, 1.0),
        (Standing(100.0, None, 200.0, None), 150, 1.0),  # begins with the note
        (Standing(100.0, None, 200.0, None), 190, 0.4),
        (Standing(300.0, None, 200.0, None), 100, 1.0),  # a note about what is over, written before it was
        (Standing(0.0, None, None, "memory:new"), 1, 0.0),
    ],
)
def test_windows_with_one_end_and_notes_that_were_superseded(standing: Standing, now: float, strong: float) -> None:
    assert strength(standing, now) == pytest.approx(strong)


def test_what_does_not_hold_is_left_out_and_what_fades_is_weaker_and_parts_still_add_up() -> None:
    ranked = [
        Scored(number, number, 1.0 - number / 10, {"words": 0.4, "meaning": 0.6 - number / 10}) for number in (1, 2, 3)
    ]
    standings = {1: Standing(0.0, None, None, "memory:new"), 2: Standing(0.0, 0.0, 100.0, None), 3: FOR_EVER}

    kept, left = holding(ranked, standings, 90.0)

    assert [candidate.doc_id for candidate in kept] == [3, 2]
    assert [(one.doc_id, one.reason) for one in left] == [(1, "superseded by memory:new")]
    assert kept[1].score == pytest.approx(0.8 * 0.4)
    assert all(sum(candidate.signals.values()) == pytest.approx(candidate.score) for candidate in kept)


def test_who_asks_for_the_outdated_gets_everything_as_it_was() -> None:
    ranked = [Scored(1, 1, 0.5, {"words": 0.5})]

    assert holding(ranked, {1: Standing(0.0, None, None, "x")}, 1.0, outdated=True) == (ranked, [])
