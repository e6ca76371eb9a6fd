"""Read dates in frontmatter, and date phrases ("last week", "since May", "7d") in queries and options.

Queries may name them in other languages, too: `date_words.py` has their words.

A frontmatter time without a zone is UTC. A bare date is stored as its midnight UTC and compared with local days.
Phrases are local time: weeks start on Monday, days at midnight; a month without a year is the latest one that began.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from typing import NamedTuple

from co_cli.notes import date_words
from co_cli.notes.date_words import Phrase

MONTHS: Sequence[str] = "january february march april may june july august september october november december".split()
WEEKDAYS: Sequence[str] = "monday tuesday wednesday thursday friday saturday sunday".split()
COUNT_WORDS = "a an one two three four five six seven eight nine ten eleven twelve few".split()
COUNTS: dict[str, int | str] = dict(zip(COUNT_WORDS, (1, 1, *range(1, 13), 3), strict=True))
MONTHS_IN = {"month": 1, "quarter": 3, "year": 12}
HINTS = ("day", "tomorrow", "week", "month", "quarter", "year", *(month[:3] for month in MONTHS), *"0123456789")
"""Each date phrase contains one of these. Compiling PHRASES takes 20 ms, which other queries save."""
NAMED_DAYS: Sequence[str] = ("day before yesterday", "yesterday", "today", "tomorrow", "day after tomorrow")
OPEN_ENDED = ("since", "after", "before", "until", "till")
MAX_WORDS = 25  # in a longer query, a date is one detail of a story
IMPOSSIBLE = (ValueError, OverflowError, OSError)  # no such day, or out of range for a timestamp

_COUNT = rf"(?:a\s+(?=few))?(?P<count>\d{{1,5}}|{'|'.join(COUNTS)})"
_UNIT = r"(?P<unit>day|weekend|week|month|quarter|year)s?"
_MONTH = rf"(?P<month>(?:{'|'.join(MONTHS)})|(?:jan|feb|mar|apr|jun|jul|aug|sept?|oct|nov|dec)\b\.?)"
_YEAR, _DAY = r"(?P<year>(?:19|20)\d\d)", r"(?P<day>\d{1,2})(?:st|nd|rd|th)?"
_ENDING = _MONTH.replace("<month>", "<ending>")
_WHICH = r"(?P<which>this|last|past|previous|next)\s+"
_FORMS = (
    rf"{_WHICH}(?:{_COUNT}\s+)?{_UNIT}(?!\s+of\b)",
    rf"{_COUNT}\s+{_UNIT}\s+(?P<ago>ago)",
    rf"(?P<ahead>in)\s+{_COUNT}\s+{_UNIT}",
    rf"(?P<name>{'|'.join(NAMED_DAYS)})",
    rf"(?:{_WHICH})?(?P<weekday>{'|'.join(WEEKDAYS)})",
    rf"{_YEAR}-(?P<number>\d\d)(?:-{_DAY})?",
    rf"{_DAY}\s+(?:of\s+)?{_MONTH}(?:,?\s+{_YEAR})?",
    rf"{_MONTH}\s+{_DAY}(?![:\d])(?:,?\s+{_YEAR})?",
    rf"between\s+{_MONTH}\s+and\s+{_ENDING}(?:,?\s+(?:of\s+)?{_YEAR})?",
    rf"(?:{_WHICH})?{_MONTH}(?:,?\s+(?:of\s+)?{_YEAR})?",
    _YEAR,
)
_HOW = rf"(?:(?P<how>{'|'.join(OPEN_ENDED)}|in|on|during|from|of|for|within|over)\s+)?"
_PART = r"(?:the\s+)?(?:(?:early|late|mid|end of|start of|beginning of|middle of)[\s-]+(?:the\s+)?)?"
# ASCII, because ignoring case "ı" would match the "i" of "friday". Dates in paths and file names do not count.
PHRASES = [rf"(?<![\w./:#@-])(?ai:{_HOW}{_PART}{form})(?![\w-]|[.:/]\w)" for form in _FORMS]  # compiled on first use
SPAN = re.compile(rf"(?ai:{_COUNT}(?:(?<=\d)|\s)\s*(?P<unit>hour|day|week|month|year|[hdwmy])s?(?:\s+ago)?)")
ISO = re.compile(r"(\d{4})(?:([-/.])(\d{1,2})(?:\2(\d{1,2})(.*))?)?", re.ASCII | re.DOTALL)
# "the Monday before 3 May" is one day, not all the time until then
OFFSET_FROM_DATE = re.compile(r"(?i)\b(?:\w*days?|weeks?|weekend|months?|night|morning|evening)\s+$")
MAY_FOLLOW = """
    about on in at with for from to by and or but that which who whom what where when how why is are was were did do
    does i we you they he she it the a an my our regarding concerning""".split()
"""Words that can follow a date. In "last month number", the phrase belongs to the number."""
GENERIC = """
    what s which did do does done i we ve you me my our us is are was were has have had been happened happen going went
    there new note notes noted memory memories entry entries file files document documents everything anything all any
    every thing things stuff show list give get find tell see from of in on during for the a an that please can could
    write wrote written save saved add added create created change changed changes update updated worked
    discuss discussed talk talked about say said plan plans planned schedule scheduled due agenda up coming will be to
    """.split()
"""Words that say nothing about the subject of the notes."""


def read_moment(value: object) -> float | None:
    """None for what is not a moment: a note with an odd date is still a note."""
    if isinstance(value, bool) or not isinstance(value, str | int | date):
        return None
    with suppress(*IMPOSSIBLE):
        if found := _read_iso(str(value).strip()):
            moment = datetime.fromisoformat(f"{found[0]}{found[1]}")
            return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()
    return None


def _read_iso(text: str) -> tuple[date, str, str] | None:
    """The first day of an ISO date, its time of day, and whether it is a day, a month or a year."""
    match = ISO.fullmatch(re.sub(r"^(\d{4})(\d\d)(\d\d)(?!\d)", r"\1-\2-\3", text))
    if match is None:
        return (date.fromisoformat(text), "", "day") if re.match(r"\d{4}-?W", text) else None
    year, _, month, day, time = match.groups()
    time = re.sub(r"\s+(?=[+-]|Z$)", "", (time or "").replace("UTC", "Z"))
    return date(int(year), int(month or 1), int(day or 1)), time, "day" if day else "month" if month else "year"


def local_day(moment: float) -> float:
    """The local day of a moment in the form of a stored bare date: midnight UTC."""
    with suppress(*IMPOSSIBLE):
        return datetime.fromtimestamp(moment).replace(hour=0, minute=0, second=0, microsecond=0, tzinfo=UTC).timestamp()
    return moment  # outside the calendar, such as infinity


def is_bare_date(stored: float) -> bool:
    return stored % 86_400 == 0


def edge_for(stored: float, moment: float) -> float:
    """What to compare a stored date with: a moment, or for a bare date the local day of that moment."""
    return local_day(moment) if is_bare_date(stored) else moment


@dataclass(frozen=True, slots=True)
class Period:
    """A stretch of time. The phrase is as typed; None is open, and `until` is exclusive."""

    phrase: str
    since: float | None
    until: float | None
    language: str = "en"

    @property
    def day(self) -> str:
        """The day, such as `2026-11-10`, if the period is one."""
        if self.since is None or self.until is None:
            return ""
        first = date.fromtimestamp(self.since)
        return first.isoformat() if date.fromtimestamp(self.until - 1) == first else ""


class Mention(NamedTuple):
    """A date phrase, its days, and whether it narrows a query that has other content."""

    phrase: Phrase
    first: float
    after: float
    narrows: bool


def find_period(query: str, now: float) -> tuple[Period | None, str]:
    """The period that a query asks for, and the rest of the query without that phrase.

    A phrase such as "in May 2025" or "this week" is as often what the note is about as when it was written, so it
    counts only if the query asks for nothing else. Of several dates, none counts.
    """
    if len(query.split()) > MAX_WORDS:
        return None, query
    if any(hint in query.lower() for hint in HINTS) and (mention := _only_mention(_find_phrases(query, now))):
        rest = _without(query, mention.phrase)
        next_word = "".join(re.findall(r"^\s+(\w+)", query[mention.phrase.end :].lower()))
        if (mention.narrows and next_word in ("", *MAY_FOLLOW)) or asks_only_for_period(rest):
            return _period(query, mention), rest
    readings = list[tuple[Period, str]]()
    for language in date_words.find_languages(query):
        if mention := _only_mention(_mentions(date_words.find_phrases(query, language), query, now)):
            rest = _without(query, mention.phrase)
            if mention.narrows or asks_only_for_period(rest, language):
                readings.append((_period(query, mention, language), rest))
    return max(readings, key=lambda reading: len(reading[0].phrase), default=(None, query))


def _only_mention(mentions: Iterable[Mention]) -> Mention | None:
    """The date that counts of all that a query names."""
    found = list(mentions)
    if relative := [mention for mention in found if not mention.phrase.parts.keys() & {"month", "year"}]:
        has_year = any("year" in mention.phrase.parts for mention in found)  # "last Friday, on 23 January 2022"
        found = [mention for mention in found if (mention in relative) != has_year]
    return found[0] if len(found) == 1 else None


def _without(query: str, phrase: Phrase) -> str:
    following = re.sub(r"^(?:['’]s\b|[的の])", "", query[phrase.end :])  # "last week's notes"
    return " ".join(re.sub(r"\s+([?!.,;:])", r"\1", f"{query[: phrase.start]} {following}").strip(" ,;:").split())


def _period(query: str, mention: Mention, language: str = "en") -> Period:
    phrase, first, after, _ = mention
    how = phrase.parts.get("how", "")
    since = None if how in ("before", "until", "till") else after if how == "after" else first
    until = None if how in ("since", "after") else first if how == "before" else after
    return Period(query[phrase.start : phrase.end].strip(), since, until, language)


def asks_only_for_period(rest: str, language: str = "en") -> bool:
    """Whether only generic words are left, as in "what did I do": then the answer is a listing."""
    if language != "en":
        return date_words.is_generic(rest, language)
    return all(word in GENERIC for word in re.findall(r"\w+", rest.lower().replace("work on", "worked")))


def read_when(text: str, now: float, end: bool = False) -> float | None:
    """Read a --since, --until or --as-of value; None if it is not a date.

    Returns the first second of the period that it names, or with `end` its last millisecond. `7d` and "3 weeks ago"
    name the day that long ago, `12h` and `2026-03-01T09:00` an exact moment.
    """
    with suppress(*IMPOSSIBLE):
        if edges := _read_value(text.strip(), now):
            return edges[end]
    return None


def describe(period: Period) -> str:
    """The period in words, to show how a phrase was understood."""
    edges = (period.since, period.until, None if period.until is None else period.until - 0.001)
    first, after, last = (None if edge is None else f"{datetime.fromtimestamp(edge):%Y-%m-%d}" for edge in edges)
    days = f"{first} to {last}" if first and last else f"since {first}" if first else f"before {after}"
    if first == last:
        days = first or "any time"
    return f'"{period.phrase}": {days}' if period.phrase else days


def _find_phrases(text: str, now: float) -> Iterator[Mention]:
    """Each date phrase in English."""
    matches = (match for pattern in PHRASES for match in re.finditer(pattern, text))
    return _mentions(filter(None, map(_english_phrase, matches)), text, now)


def _mentions(phrases: Iterable[Phrase], text: str, now: float) -> Iterator[Mention]:
    """The phrases that name days; of those that overlap the first."""
    taken: list[Phrase] = []
    for phrase in phrases:
        part_of_longer_date = any(phrase.start < other.end and other.start < phrase.end for other in taken)
        quoted = text.count('"', 0, phrase.start) % 2
        with suppress(*IMPOSSIBLE):
            days = None if part_of_longer_date or quoted else _read_parts(phrase.parts, date.fromtimestamp(now))
            if days:
                yield Mention(phrase, _midnight(days[0]), _midnight(days[1]), days[2])
                taken.append(phrase)


def _english_phrase(match: re.Match[str]) -> Phrase | None:
    parts = {key: value.lower() for key, value in match.groupdict().items() if value}
    which, how, month = (parts.get(key, "") for key in ("which", "how", "month"))
    if (which == "next" and month) or (
        how in ("before", "after") and OFFSET_FROM_DATE.search(match.string[: match.start()])
    ):
        return None
    verb = month in ("may", "march") and (match["month"].islower() or match.start() == 0)  # "May I deploy"
    if parts.keys() == {"month"} and (verb or match[0] == match.string.strip()):
        return None  # a name, such as "April"
    if parts.keys() <= {"how", "year"} and how not in (*OPEN_ENDED, "in", "of", "from", "during"):
        return None  # a number, such as a part of a name
    for key in parts.keys() & {"month", "ending"}:
        parts[key] = str([name[:3] for name in MONTHS].index(parts[key][:3]) + 1)
    if "weekday" in parts:
        parts["weekday"] = str(WEEKDAYS.index(parts["weekday"]))
    if "name" in parts:
        parts["name"] = str(NAMED_DAYS.index(parts["name"]) - NAMED_DAYS.index("today"))
    return Phrase(match.start(), match.end(), parts)


def _read_parts(parts: dict[str, str], today: date) -> tuple[date, date, bool] | None:
    which, how, unit = (parts.get(key, "") for key in ("which", "how", "unit"))
    narrows, word = how in OPEN_ENDED, parts.get("count", "one")
    count = int(COUNTS.get(word, word))
    if "ago" in parts:
        return *_around(_back(today, unit, count), unit), narrows or unit != "year"
    if which == "next" or "ahead" in parts:
        return *_coming(parts, count, today), narrows
    if unit and "weekday" in parts:  # in Chinese and Japanese: Friday of the week before
        day = _around(_back(today, unit, 1), unit)[0] + timedelta(int(parts["weekday"]))
        return *_around(day, "day"), True
    if unit and ("count" in parts or which == "past" or unit == "day"):
        return None if which == "this" else (_back(today, unit, count), today + timedelta(1), True)
    if unit:
        day = today if which == "this" else _back(today, unit, 1)
        return *_around(day, unit), narrows or (which != "this" and unit != "year")
    if "weekday" in parts:  # "on Monday" and "this Monday" may be the next one
        day = today - timedelta((today.weekday() - int(parts["weekday"]) - 1) % 7 + 1)
        return None if which == "this" else (*_around(day, "day"), narrows or which != "")
    if "name" in parts:
        day = today + timedelta(int(parts["name"]))
        return *_around(day, "day"), narrows or day < today
    month = parts.get("month") or parts.get("number")
    first = date(int(parts.get("year", today.year)), int(month or 1), int(parts.get("day", 1)))
    if "year" not in parts and first > today:
        first = first.replace(year=first.year - 1)
    if "ending" in parts:
        months = (int(parts["ending"]) - first.month) % 12
        return first, _back(first, "month", -months - 1), True
    return *_around(first, "day" if "day" in parts else "month" if month else "year"), narrows


def _coming(parts: dict[str, str], count: int, today: date) -> tuple[date, date]:
    """Days that are not over. Notes about them are often older, so they narrow nothing but a query for them alone."""
    unit = parts.get("unit", "")
    if "ahead" in parts:
        return _around(_back(today, unit, -count), unit)
    if unit and "weekday" in parts:
        return _around(_around(_back(today, unit, -1), unit)[0] + timedelta(int(parts["weekday"])), "day")
    if "weekday" in parts:
        return _around(today + timedelta((int(parts["weekday"]) - today.weekday() - 1) % 7 + 1), "day")
    if "count" in parts or unit == "day":
        return today, _back(today, unit, -count) + timedelta(1)
    return _around(_back(today, unit, -1), unit)


def _read_value(text: str, now: float) -> tuple[float, float] | None:
    if match := SPAN.fullmatch(text):
        word, letter = match["count"].lower(), match["unit"][0].lower()
        count = int(COUNTS.get(word, word))
        if letter == "h":
            return now - count * 3600, now - count * 3600
        unit = {"d": "day", "w": "week", "m": "month", "y": "year"}[letter]
        days = _around(_back(date.fromtimestamp(now), unit, count), "day")
    elif found := _read_iso(text):
        first, time, unit = found
        if time:
            moment = datetime.fromisoformat(f"{first}{time}").timestamp()
            return moment, moment
        days = _around(first, unit)
    else:
        for value in (text, f"on {text}"):  # "on" makes "may" a month and "friday" a day
            for phrase, since, until, _ in _find_phrases(value, now):
                if phrase.end - phrase.start == len(value) and phrase.parts.get("how") not in OPEN_ENDED:
                    return since, until - 0.001
        return None
    return _midnight(days[0]), _midnight(days[1]) - 0.001


def _midnight(day: date) -> float:
    return datetime(day.year, day.month, day.day).timestamp()  # without a zone: local time


def _around(day: date, unit: str) -> tuple[date, date]:
    """The day, week, weekend, month, quarter or year that includes a day."""
    if unit == "day":
        return day, day + timedelta(1)
    if unit in MONTHS_IN:
        first = day.replace(day=1, month=(day.month - 1) // MONTHS_IN[unit] * MONTHS_IN[unit] + 1)
        return first, _back(first, unit, -1)
    monday = day - timedelta(day.weekday())
    return monday + timedelta(5 if unit == "weekend" else 0), monday + timedelta(7)


def _back(day: date, unit: str, count: int) -> date:
    if unit not in MONTHS_IN:
        return day - timedelta(count * (1 if unit == "day" else 7))
    months = day.year * 12 + day.month - 1 - count * MONTHS_IN[unit]
    first = date(months // 12, months % 12 + 1, 1)
    length = ((first + timedelta(31)).replace(day=1) - first).days
    return first.replace(day=min(day.day, length))
