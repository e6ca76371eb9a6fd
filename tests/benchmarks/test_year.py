"""A made-up year: what holds is found first, now and as of a day, and without a sense of time it is not."""

from __future__ import annotations

import time
from pathlib import Path

from benchmarks.year import YEAR, facts_of_a_year, live_a_year, questions_of
from co_cli.settings import load_settings


def test_a_year_follows_from_its_seed() -> None:
    year = facts_of_a_year(3)

    assert year == facts_of_a_year(3)
    assert year != facts_of_a_year(4)
    assert questions_of(year, 3) == questions_of(year, 3)
    assert len(year) == 400
    assert len({fact.slug for fact in year}) == 400
    changed = [fact for fact in year if fact.later]
    assert len(changed) == 80
    assert sum(fact.ends is not None for fact in year) == 40
    assert all(fact.day < fact.changed < YEAR for fact in changed)
    assert all(fact.ends < YEAR for fact in year if fact.ends is not None)


def test_every_question_of_a_day_asks_for_what_was_there_then() -> None:
    days = {fact.slug: fact for fact in facts_of_a_year(5)}
    for asked in questions_of(list(days.values()), 5):
        if asked.day is not None and asked.answer is not None:
            fact = days[asked.answer.removesuffix("-new")]
            assert (asked.day > fact.changed) == asked.answer.endswith("-new")
            assert asked.day > fact.day


def test_what_holds_is_found_first(tmp_path: Path) -> None:
    year = facts_of_a_year(seed=11, facts=50, changes=14, ends=6)
    rows = {row.name: row.value for row in live_a_year(str(tmp_path), load_settings(), time.time(), year)}

    for when in ("today", "on a day of the year"):
        assert rows[f"as it ships, with `supersedes`: right {when}"] >= 0.9
        assert rows[f"ignoring time, with `supersedes`: right {when}"] < 0.8
