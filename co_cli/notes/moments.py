"""Dates as people write them in frontmatter and on the command line, into seconds since 1970 and back.

A moment without a time zone is UTC, and a bare date is its first second, so that every machine reads the same.
"""

from __future__ import annotations

import re
from datetime import UTC, date, datetime, timedelta

from co_cli.values import moment_text as moment_text  # and back, without the imports of this module

AGO = re.compile(r"(\d{1,5})\s*(h|hours?|d|days?|w|weeks?|m|months?|y|years?)(?:\s+ago)?$", re.I)
HOURS = {"h": 1, "d": 24, "w": 7 * 24, "m": 30 * 24, "y": 365 * 24}


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


def read_since(text: str, now: float) -> float | None:
    """A moment, or a while ago: `2026-03-01`, `today`, `yesterday`, `7d`, `3 weeks ago`."""
    text = text.strip()
    today = datetime.fromtimestamp(now, UTC).replace(hour=0, minute=0, second=0, microsecond=0)
    if text.lower() == "today":
        return today.timestamp()
    if text.lower() == "yesterday":
        return (today - timedelta(days=1)).timestamp()
    ago = AGO.match(text)
    if ago:
        return now - int(ago[1]) * HOURS[ago[2][0].lower()] * 3600
    return read_moment(text)
