"""Dates in a query into the stretch of time that they mean: "last week", "in May 2025", "before March". Pure.

Weeks begin on Monday and days at midnight UTC. A month without a year is the last one that has begun. Words that may
well be content ("may", "march", "today") count only where they stand as a date; what a date is worth is for others.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta

from co_cli.record import Record
from co_cli.retrieval.fuse import Scored

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

MONTHS = "january february march april may june july august september october november december".split()
SHORT = {name[:3]: number for number, name in enumerate(MONTHS, 1)} | {"sept": 9}
DAYS = "monday tuesday wednesday thursday friday saturday sunday".split()
NUMBERS = "zero a two three four five six seven eight nine ten eleven twelve".split()

LONGEST = 25
"""Words of a query that is narrowed: a longer one tells a story, in which a date is one detail of many."""
STEPS_BACK = 30
"""Years in which a month without a year is looked for."""
DAY = 86_400.0
LATER = 30 * DAY
"""Seconds in which a note about something that happened is still likely to be written down."""
DATED = 0.05
"""The share of a score that the date is, where it does not narrow. 0.02 to 0.1 gain on LoCoMo's dated questions, more
loses (docs/benchmarks.md)."""
UNKNOWN = 0.5
"""What a note without a date of its own has of that."""

_MONTH = rf"(?P<month>{'|'.join(MONTHS)}|jan|feb|mar|apr|jun|jul|aug|sept?|oct|nov|dec)\b\.?"
_YEAR = r"(?P<year>(?:19|20)\d\d)"
_DAY = r"(?P<day>\d{1,2})(?:st|nd|rd|th)?"
_AWAY = rf"(?P<away>\b(?:days?|weeks?|weekend|months?|night|morning|evening|{'|'.join(DAYS)})\s+)?"
"""The Monday before a date is a day near that date, and no time without a beginning."""
_BEFORE = r"(?:(?P<how>since|after|before|until|till|by|in|on|during|from|of|for|at|between|this|last|next)\s+)"
_PART = r"(?:the\s+)?(?:(?:early|late|mid|end of|start of|beginning of|middle of)[\s-]+)?"
CALENDAR = tuple(
    re.compile(rf"{_AWAY}\b{_BEFORE}?{_PART}{form}(?![\w-])", re.I)
    for form in (
        rf"{_YEAR}-(?P<number>\d\d)-{_DAY}",
        rf"{_YEAR}-(?P<number>0[1-9]|1[0-2])",
        rf"{_DAY}\s+(?:of\s+)?{_MONTH}(?:,?\s+{_YEAR})?",
        rf"{_MONTH}\s+{_DAY}(?![:\d])(?:,?\s+{_YEAR})?",
        rf"{_MONTH},?\s+(?:of\s+)?{_YEAR}",
        rf"{_MONTH}",
        rf"{_YEAR}",
    )
)
PERIOD = re.compile(
    r"\b(?:(?P<how>since|before|after|until|from|in|during|of|for|within|over)\s+)?(?:the\s+)?"
    r"(?P<which>this|last|past|previous)\s+(?:(?P<count>\d{1,3}|two|three|four|five|six|seven|eight|nine|ten|few)\s+)?"
    rf"(?P<unit>day|week|weekend|month|quarter|year|{'|'.join(DAYS)})s?\b(?!\s+of\b)",
    re.I,
)
AGO = re.compile(
    rf"\b(?:(?P<how>since|before|after|until)\s+)?(?P<count>\d{{1,3}}|an?|{'|'.join(NUMBERS[2:])})\s+"
    r"(?P<unit>day|week|month|year)s?\s+ago\b",
    re.I,
)
NAMED_DAY = re.compile(
    rf"\b(?:(?P<how>since|before|after|until|on|from)\s+)?"
    rf"(?P<day>the day before yesterday|yesterday|today|{'|'.join(DAYS)})\b",
    re.I,
)
NAMED = re.compile(r"\b(?P<how>since|after|before|until)\s+(?P<name>(?:the|our|my)\s+[^\s?!.,;][^?!.,;]{1,60})", re.I)


AFTER = frozenset(
    """
    about on in at with for from to by and or but that which who whom what where when how why is are was were did do
    does i we you they he she it the a an my our regarding concerning
    """.split()
)
"""Words that may follow a date. "Last month number" is a number, and no time."""


class Dates(Record):
    """A stretch of time that a query names; None leaves it open on that side."""

    phrase: str
    """As it was typed."""
    since: float | None
    until: float | None
    """The first second that is no longer in it."""
    narrows: bool
    """Who says so wants notes of that time. Else the date may be content, and is a reason among others."""
    any_year: bool = False
    """A month or a day without its year."""


class Since(Record):
    """ "Since the release": a moment that a note may know."""

    phrase: str
    how: str
    name: str


def read_dates(text: str, now: float) -> Dates | Since | None:
    """What a query says about time; of several dates nothing, because then they are told and not asked for."""
    today = datetime.fromtimestamp(now, UTC).replace(hour=0, minute=0, second=0, microsecond=0)
    found = [read for read in (_period(text, today), _ago(text, today), _named_day(text, today)) if read]
    calendar = _calendar(text, today)
    if not found or any(not one.any_year for one in calendar):
        found = calendar  # "last Friday, on 23 January 2022" is a day, whatever last Friday was
    if not found:
        named = NAMED.search(text)
        return Since(named[0].strip(), named["how"].lower(), named["name"].strip()) if named else None
    if len(found) > 1:
        return None
    dates = found[0]
    asked = len(text.split()) <= LONGEST and _stands_alone(text, dates.phrase)
    return dates if asked else dates._replace(narrows=False)


def _stands_alone(text: str, phrase: str) -> bool:
    rest = text.partition(phrase)[2]
    follows = rest.split()
    return not follows or not rest[:1].isspace() or follows[0].strip(",.;:!?").lower() in AFTER


def dates_of(named: Since, moment: float) -> Dates:
    """With the moment that a note gave."""
    open_until = named.how in ("since", "after")
    return Dates(named.phrase, moment if open_until else None, None if open_until else moment, True)


def fits(dates: Dates, moment: float) -> float:
    """How well a moment fits: 1 within the stretch, and less and less for a while after it."""
    if dates.since is not None and moment < dates.since:
        return 0.0
    if dates.until is None or moment < dates.until:
        return 1.0
    return max(0.0, 1.0 - (moment - dates.until) / LATER) if dates.since is not None else 0.0


def placed(dates: Dates, moments: Iterable[float]) -> Dates:
    """A month without a year: the last one that any of these moments is in, else the last one."""
    known, tried = list(moments), dates
    for _ in range(STEPS_BACK if dates.any_year else 0):
        if any((tried.since or 0) <= one < (tried.until or 0) for one in known):
            return tried
        tried = tried._replace(since=_year_before(tried.since), until=_year_before(tried.until))
    return dates


def nearer_in_time(ranked: Sequence[Scored], dates: Dates, moments: Mapping[int, float]) -> list[Scored]:
    """Notes of that time gain, best first; one that does not know its time gains a half. Nothing if none is of it."""
    dates = placed(dates, moments.values())
    fit = {doc: fits(dates, moment) for doc, moment in moments.items()}
    if not any(value == 1.0 for value in fit.values()):
        return list(ranked)
    scored: list[Scored] = []
    for candidate in ranked:
        parts = {name: part * (1 - DATED) for name, part in candidate.signals.items()}
        parts["date"] = DATED * fit.get(candidate.doc_id, UNKNOWN)
        scored.append(candidate._replace(score=candidate.score * (1 - DATED) + parts["date"], signals=parts))
    return sorted(scored, key=lambda candidate: (-candidate.score, candidate.passage_id))


def told(dates: Dates) -> str:
    """In words, for somebody who wonders which time was understood."""
    first = _day_text(dates.since) if dates.since is not None else None
    last = _day_text(dates.until - 1) if dates.until is not None else None
    if first is None:
        return f'"{dates.phrase}": before {_day_text(dates.until or 0)}'
    if last is None:
        return f'"{dates.phrase}": since {first}'
    return f'"{dates.phrase}": {first}' if first == last else f'"{dates.phrase}": {first} to {last}'


def date_in(title: str) -> float | None:
    """The day that a title names whole, such as that of a daily note."""
    for form in CALENDAR[:1] + CALENDAR[2:4]:
        found = form.search(title)
        if found and found.groupdict().get("year"):
            read = _stretch(found, datetime.now(UTC))
            return read[0].timestamp() if read else None
    return None


def _period(text: str, today: datetime) -> Dates | None:
    """ "Last week", "this year", "in the past three months", "last Friday"."""
    found = PERIOD.search(text)
    if not found:
        return None
    unit, this = found["unit"].lower(), found["which"].lower() == "this"
    if unit in DAYS:
        start = today - timedelta((today.weekday() - DAYS.index(unit) - 1) % 7 + 1)
        return None if this else _dates(found, start, start + timedelta(1))
    if found["count"]:
        if this or unit in ("weekend", "quarter"):
            return None
        count = 3 if found["count"].lower() == "few" else _number(found["count"])
        return _dates(found, _back(today, unit, count), today + timedelta(1))
    start, end = _around(today, unit)
    if not this:
        start, end = _around(start - timedelta(1), unit)
    # what is going on now is mostly told, not asked for; and what was a year ago was told at any time since
    return _dates(found, start, end)._replace(narrows=not this and unit != "year")


def _ago(text: str, today: datetime) -> Dates | None:
    found = AGO.search(text)
    if not found:
        return None
    unit, count = found["unit"].lower(), _number(found["count"])
    start = _back(today, unit, count)
    if unit == "day":
        return _dates(found, start, start + timedelta(1))
    return _dates(found, *_around(start, unit))._replace(narrows=unit != "year")


def _named_day(text: str, today: datetime) -> Dates | None:
    found = NAMED_DAY.search(text)
    if not found:
        return None
    name, how = found["day"].lower(), (found["how"] or "").lower()
    if name in DAYS:
        if how not in ("since", "before", "after", "until"):
            return None  # "on Monday" may be the next one
        start = today - timedelta((today.weekday() - DAYS.index(name) - 1) % 7 + 1)
    else:
        start = today - timedelta({"today": 0, "yesterday": 1}.get(name, 2))
    return _dates(found, start, start + timedelta(1))._replace(narrows=name != "today")


def _calendar(text: str, today: datetime) -> list[Dates]:
    found: dict[tuple[int, int], Dates] = {}
    for form in CALENDAR:
        for match in form.finditer(text):
            if any(match.start() < end and begin < match.end() for begin, end in found):
                continue  # a part of a date that was understood whole
            read = _date(match, today)
            if read:
                found[match.span()] = read
    return list(found.values())


def _date(found: re.Match[str], today: datetime) -> Dates | None:
    parts = found.groupdict()
    how, day, year = (parts["how"] or "").lower(), parts.get("day"), parts.get("year")
    month = parts.get("month")
    if month and not (year or day or how) and not month[:1].isupper():
        return None  # "may" and "march" are verbs
    if month and not (year or day or how) and month.lower() in ("may", "march") and not found.start("month"):
        return None  # "May I ..."
    if not month and not parts.get("number") and how in ("", "for", "at", "this", "last", "next"):
        return None  # a bare number, such as a part of a name
    if how == "next":
        return None
    read = _stretch(found, today)
    if not read:
        return None
    if parts["away"] and how in ("before", "after"):
        near = read[0].timestamp()
        return Dates(found[0].strip(), near - 14 * DAY, near + 14 * DAY, False, any_year=year is None)
    # a month that somebody names is as often what the note is about as when it was written
    narrows = how in ("since", "after", "before", "until", "till")
    return _dates(found, *read)._replace(narrows=narrows, any_year=year is None)


def _stretch(found: re.Match[str], today: datetime) -> tuple[datetime, datetime] | None:
    """The year, month or day that was named; without its year the last one that has begun."""
    parts = found.groupdict()
    name = parts.get("month")
    month = SHORT[name.lower().rstrip(".")[:3]] if name else int(parts.get("number") or 0)
    year = int(parts.get("year") or today.year)
    try:
        if not month:
            return datetime(year, 1, 1, tzinfo=UTC), datetime(year + 1, 1, 1, tzinfo=UTC)
        start = datetime(year, month, int(parts.get("day") or 1), tzinfo=UTC)
        if not parts.get("year") and start > today:
            start = start.replace(year=year - 1)
    except ValueError:
        return None  # no such day
    return (start, start + timedelta(1)) if parts.get("day") else _around(start, "month")


def _dates(found: re.Match[str], start: datetime, end: datetime) -> Dates:
    how, phrase = (found["how"] or "").lower(), found[0].strip()
    first, last = start.timestamp(), end.timestamp()
    if how == "since":
        return Dates(phrase, first, None, True)
    if how == "after":
        return Dates(phrase, last, None, True)
    if how == "before":
        return Dates(phrase, None, first, True)
    if how in ("until", "till"):
        return Dates(phrase, None, last, True)
    return Dates(phrase, first, last, True)


def _around(day: datetime, unit: str) -> tuple[datetime, datetime]:
    """The week, month, quarter or year that a day is in."""
    match unit:
        case "day":
            return day, day + timedelta(1)
        case "week":
            start = day - timedelta(day.weekday())
            return start, start + timedelta(7)
        case "weekend":
            start = day - timedelta((day.weekday() - 5) % 7)
            return start, start + timedelta(2)
        case "month":
            return day.replace(day=1), _next_month(day)
        case "quarter":
            start = day.replace(day=1, month=(day.month - 1) // 3 * 3 + 1)
            return start, _next_month(_next_month(_next_month(start)))
        case _:
            return day.replace(day=1, month=1), day.replace(day=1, month=1, year=day.year + 1)


def _next_month(day: datetime) -> datetime:
    return (day.replace(day=1) + timedelta(32)).replace(day=1)


def _back(day: datetime, unit: str, count: int) -> datetime:
    return day - timedelta(count * {"day": 1, "week": 7, "month": 30, "year": 365}[unit])


def _number(text: str) -> int:
    text = text.lower().replace("an", "a") if text.lower() == "an" else text.lower()
    return NUMBERS.index(text) if text in NUMBERS else int(text)


def _year_before(moment: float | None) -> float | None:
    if moment is None:
        return None
    day = datetime.fromtimestamp(moment, UTC)
    try:
        return day.replace(year=day.year - 1).timestamp()
    except ValueError:
        return (day - timedelta(366)).timestamp()  # the 29th of February


def _day_text(moment: float) -> str:
    return datetime.fromtimestamp(moment, UTC).strftime("%Y-%m-%d")
