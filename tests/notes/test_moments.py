"""Dates on the command line."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta, timezone

import pytest

from co_cli.notes.moments import moment_text, read_moment, read_since

NOW = datetime(2026, 11, 14, 9, 12, tzinfo=UTC)


@pytest.mark.parametrize(
    ("text", "moment"),
    [
        ("today", datetime(2026, 11, 14, tzinfo=UTC)),
        ("Yesterday", datetime(2026, 11, 13, tzinfo=UTC)),
        ("7d", NOW - timedelta(days=7)),
        ("3 weeks ago", NOW - timedelta(weeks=3)),
        ("12h", NOW - timedelta(hours=12)),
        ("2 months", NOW - timedelta(days=60)),
        ("1y", NOW - timedelta(days=365)),
        (" 2026-03-01 ", datetime(2026, 3, 1, tzinfo=UTC)),
        ("2026", datetime(2026, 1, 1, tzinfo=UTC)),
    ],
)
def test_a_while_ago_is_counted_from_now(text: str, moment: datetime) -> None:
    assert read_since(text, NOW.timestamp()) == moment.timestamp()


@pytest.mark.parametrize("text", ["", "soon", "7 parsecs", "-7d", "999999d", "2026-02-30"])
def test_what_is_no_date_is_none(text: str) -> None:
    assert read_since(text, NOW.timestamp()) is None


@pytest.mark.parametrize(
    ("value", "moment"),
    [
        (date(2026, 3, 1), datetime(2026, 3, 1, tzinfo=UTC)),
        (datetime(2026, 3, 1, 9, 30), datetime(2026, 3, 1, 9, 30, tzinfo=UTC)),
        (datetime(2026, 3, 1, 9, 30, tzinfo=timezone(timedelta(hours=1))), datetime(2026, 3, 1, 8, 30, tzinfo=UTC)),
    ],
)
def test_python_dates_are_moments_too(value: object, moment: datetime) -> None:
    assert read_moment(value) == moment.timestamp()


def test_a_moment_is_written_in_utc() -> None:
    assert moment_text(NOW.timestamp()) == "2026-11-14T09:12:00Z"
    assert read_moment("2026-11-14T09:12:00Z") == NOW.timestamp()
