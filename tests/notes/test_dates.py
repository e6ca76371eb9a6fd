"""Dates in frontmatter, date phrases in queries, and values of --since."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from co_cli.notes.dates import Period, describe, find_period, read_when

SUNDAY = datetime(2026, 11, 15, 10, 30)
NOW = SUNDAY.timestamp()
PHRASES = {
    "what did we decide on pricing yesterday": "2026-11-14",
    "notes from last month about pricing": "2026-10-01 to 2026-10-31",
    "pricing last weekend": "2026-11-07 to 2026-11-08",
    "pricing last quarter": "2026-07-01 to 2026-09-30",
    "what broke last Friday?": "2026-11-13",
    "what broke in the last 3 days": "2026-11-12 to 2026-11-15",
    "deploys a week ago": "2026-11-02 to 2026-11-08",
    "deploys since Monday": "since 2026-11-09",
    "who joined after May 2025": "since 2025-06-01",
    "what did we know before December": "before 2025-12-01",
    "deploys until 3 May 2025": "before 2025-05-04",
    "what broke last Friday, before 23 January 2022": "before 2022-01-23",  # a full date wins
    "what did I do in may": "2026-05-01 to 2026-05-31",
    "last week's notes": "2026-11-02 to 2026-11-08",
    "what happened on October 13, 2023?": "2023-10-13",
    "2026-03-01": "2026-03-01",
    "tomorrow": "2026-11-16",
    "what do I have the day after tomorrow?": "2026-11-17",
    "this weekend": "2026-11-14 to 2026-11-15",
    "next week": "2026-11-16 to 2026-11-22",
    "what is planned for next month": "2026-12-01 to 2026-12-31",
    "the next 3 days": "2026-11-15 to 2026-11-18",
    "next Friday": "2026-11-20",
    "in two weeks": "2026-11-23 to 2026-11-29",
    "pricing between June and July": "2026-06-01 to 2026-07-31",
    "notes between November and February 2025": "2025-11-01 to 2026-02-28",
}
NOT_A_PERIOD = (
    # the date may be the subject
    "what did we learn in May", "what did we learn in may 2025", "the May report", "pricing this week",
    "what did Mara paint on October 13, 2023?", "who beat them in 2015", "pricing last year", "pricing a year ago",
    "I cannot train today", "on Monday we ship", "dentist tomorrow", "who ships in two weeks", "pricing next week",
    # it only looks like a date
    "", "how do we deploy", "may I deploy", "May I deploy", "march on", "April", "what did we say last time",
    "the last mile", "next May", "this Friday", "room 2015", "HTTP 2019 error",
    "2025", "over 2000 notes", "get last month number", "what happened on February 31", 'a song called "last week"',
    "memories/2026-03-01", "2026-03-01.md",
    # part of a longer expression, or of a long query
    "notes from May and June and July", "notes from yesterday and last week", "between 2026-03-01 and 2026-03-05",
    "the week before August 3, 2023", "the last week of August 2023", "yesterday " + "and then we walked on " * 5,
)  # fmt: skip
SINCE = {
    "Yesterday": "2026-11-14",
    "7d": "2026-11-08",
    "a month ago": "2026-10-15",
    "1y": "2025-11-15",
    " 2026-03-01 ": "2026-03-01",
    "20260301": "2026-03-01",
    "2026-03": "2026-03-01 to 2026-03-31",
    "2026": "2026-01-01 to 2026-12-31",
    "3 May 2025": "2025-05-03",
    "last week": "2026-11-02 to 2026-11-08",
    "friday": "2026-11-13",
    "next week": "2026-11-16 to 2026-11-22",
}
NOT_SINCE = (
    "", "soon", "7 parsecs", "-7d", "999999d", "99999y", "ad", "2026-02-30", "2026-13", "2026-03-01T25:00", "12345",
    "0000", "since March", "last week or so",
)  # fmt: skip


def understood(query: str, now: datetime = SUNDAY) -> str | None:
    period, rest = find_period(query, now.timestamp())
    if period is None:
        assert rest == query
        return None
    assert period.phrase in query
    return describe(period).removeprefix(f'"{period.phrase}": ')


def days(text: str, now: datetime = SUNDAY) -> str | None:
    """The days from the first second to the last millisecond of a --since value."""
    first, last = read_when(text, now.timestamp()), read_when(text, now.timestamp(), end=True)
    if first is None or last is None:
        assert first is last
        return None
    assert f"{datetime.fromtimestamp(first):%H:%M:%S.%f}" == "00:00:00.000000"
    assert f"{datetime.fromtimestamp(last):%H:%M:%S.%f}"[:12] == "23:59:59.999"
    return describe(Period("", first, last))


@pytest.fixture
def time_zone(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[str], None]]:
    with monkeypatch.context() as patch:

        def use(name: str) -> None:
            patch.setenv("TZ", name)
            time.tzset()

        yield use
    time.tzset()


def test_a_date_phrase_narrows_a_query() -> None:
    assert {query: understood(query) for query in PHRASES} == PHRASES


def test_other_phrases_do_not_narrow_a_query() -> None:
    assert [query for query in NOT_A_PERIOD if understood(query) is not None] == []


def test_the_phrase_is_taken_out_of_the_query() -> None:
    queries = ("notes from last month about pricing", "Yesterday, what did oak say?", "yesterday")

    assert [find_period(query, NOW)[1] for query in queries] == ["notes about pricing", "what did oak say?", ""]


def test_a_since_value_names_whole_days() -> None:
    assert {text: days(text) for text in SINCE} == SINCE
    assert [text for text in NOT_SINCE if days(text) is not None] == []


def test_phrases_are_counted_on_the_calendar() -> None:
    expected = {
        (datetime(2026, 3, 31), "1 month ago"): "2026-02-28",
        (datetime(2024, 2, 29), "1y"): "2023-02-28",
        (datetime(2026, 1, 5), "last quarter"): "2025-10-01 to 2025-12-31",
        (datetime(2026, 11, 18), "last weekend"): "2026-11-14 to 2026-11-15",
    }

    assert {(now, text): days(text, now) for now, text in expected} == expected


def test_days_begin_at_local_midnight_also_when_the_clocks_change(time_zone: Callable[[str], None]) -> None:
    time_zone("America/New_York")
    period, _ = find_period("what did we decide yesterday", datetime(2026, 11, 15, 3, tzinfo=UTC).timestamp())
    assert period is not None
    assert period.since == datetime(2026, 11, 13, 5, tzinfo=UTC).timestamp()
    assert period.until == datetime(2026, 11, 14, 5, tzinfo=UTC).timestamp()
    assert describe(period) == '"yesterday": 2026-11-13'

    for day, hours in (("2026-03-08", 23), ("2026-11-01", 25), ("2026-11-02", 24)):
        first, last = read_when(day, NOW), read_when(day, NOW, end=True)
        assert first is not None
        assert last == pytest.approx(first + hours * 3600 - 0.001, abs=1e-4)
    assert days("7d", datetime(2026, 3, 10, 12)) == "2026-03-03"
    assert understood("what broke last week", datetime(2026, 3, 10, 12)) == "2026-03-02 to 2026-03-08"


@given(text=st.text(max_size=60), now=st.floats(-1e13, 1e13))
@example(text="frıday", now=NOW)
@example(text="9999-12-31", now=NOW)
@example(text="١٩٩٩", now=NOW)
@example(text="99999 years", now=NOW)
def test_no_text_makes_it_fail(text: str, now: float) -> None:
    for query in (text, f"since {text}", f"{text} ago", f"in {text} 2020", f"{text} February 29", f"last {text}"):
        period, _ = find_period(query, now)
        if period is not None:
            assert period.since is None or period.until is None or period.since < period.until
            assert describe(period)
        for value in (text, query):
            first, last = read_when(value, now), read_when(value, now, end=True)
            assert (first is None) == (last is None)
            assert first is None or last is None or first <= last
