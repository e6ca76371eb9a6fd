"""Dates in frontmatter."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta, timezone

import pytest

from co_cli.notes.dates import read_moment
from co_cli.values import moment_text

NOW = datetime(2026, 11, 14, 9, 12, tzinfo=UTC)


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
