"""Dates as people write them in frontmatter, into seconds since 1970 and back.

A moment without a time zone is UTC, and a bare date is its first second, so that every machine reads the same.
"""

from __future__ import annotations

import re
from datetime import UTC, date, datetime

from co_cli.values import moment_text as moment_text  # and back, without the imports of this module


def read_moment(value: object) -> float | None:
    """None for what is not a moment: a note with an odd date is still a note."""
    if isinstance(value, datetime):
        return (value if value.tzinfo else value.replace(tzinfo=UTC)).timestamp()
    if isinstance(value, date):
        return datetime(value.year, value.month, value.day, tzinfo=UTC).timestamp()
    if isinstance(value, bool) or not isinstance(value, str | int):
        return None
    text = str(value).strip()
    moment = _read_iso(text)
    if moment is not None:
        return moment
    if re.match(r"\d{4}$", text):
        text += "-01-01"
    elif re.match(r"\d{4}[-/.]\d{1,2}$", text):
        text += "-01"
    text = re.sub(
        r"^(\d{4})[-/.](\d{1,2})[-/.](\d{1,2})", lambda m: f"{m[1]}-{int(m[2]):02}-{int(m[3]):02}", text, count=1
    )
    text = (
        re.sub(r"\s*(Z|UTC|[+-]\d\d(?::?\d\d)?)$", lambda m: m[1].replace("UTC", "Z"), text) if len(text) > 10 else text
    )
    return _read_iso(text)


def _read_iso(text: str) -> float | None:
    try:
        moment = datetime.fromisoformat(text)
        return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()
    except (ValueError, OverflowError):
        return None


def noon_shift() -> float:
    """Seconds from midnight UTC to local noon. A bare date is stored as its midnight UTC, and is one day everywhere:
    filters in local time compare its noon."""
    offset = datetime.now().astimezone().utcoffset()
    return 43_200.0 - (offset.total_seconds() if offset else 0.0)


def as_local_day(moment: float) -> float:
    """A moment as filters compare it: a bare date by its noon."""
    return moment + noon_shift() if moment % 86_400 == 0 else moment
