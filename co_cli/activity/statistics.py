"""How a vault is used, counted from activity.db: what was searched, what found nothing, and which notes were found."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from math import ceil
from typing import NamedTuple

import apsw

from co_cli.ground.values import DAY
from co_cli.index.sqlite.connection import fetch
from co_cli.index.stored import StoredNote

SEARCHES = """
select cast(at / 86400 as integer), state <> 'found', degraded is not null, took_ms, front_end
from searches join vaults on vaults.id = vault_id where root = :root and at >= :since and at < :until
"""
ASKED = """
select text, count(*) as times, min(searches.id) as first from searches join vaults on vaults.id = vault_id
where root = :root and at >= :since and at < :until and text is not null and (:all or state <> 'found')
group by folded order by times desc, first limit :limit
"""
SLOWEST = """
select took_ms, at, ifnull(text, ''), backend, front_end from searches join vaults on vaults.id = vault_id
where root = :root and at >= :since and at < :until order by took_ms desc, searches.id limit :limit
"""
LOGGED = "select count(*) from searches join vaults on vaults.id = vault_id where root = :root"
TURNS = """
select count(iif(notes, 1, null)), ifnull(sum(notes), 0), ifnull(sum(tokens), 0), count(cited),
    count(iif(notes or prompt is not null or late, 1, null)), count(late), max(late)
from turns join vaults on vaults.id = vault_id where root = :root and at >= :since
"""
GIVEN_TO = """
select front_end, sum(notes) as given from turns join vaults on vaults.id = vault_id
where root = :root and at >= :since and notes group by front_end order by given desc, front_end
"""
SAVES = """
select ifnull(front_end, 'file') as saved_by, count(*) as times from versions
join documents on documents.id = document_id join vaults on vaults.id = vault_id
where root = :root and at >= :since and what <> 'seen' group by saved_by order by times desc, saved_by
"""
RECALLED = """
select root, path, recalls, recalled, opens, opened from uses
join documents on documents.id = document_id join vaults on vaults.id = vault_id
where root in (select value from json_each(:roots)) and recalls > 0 order by recalls desc, recalled desc, path
"""

OPENED = """
select root, path, opens from uses join documents on documents.id = document_id join vaults on vaults.id = vault_id
where root in (select value from json_each(:roots)) and opens > 0
"""


class Day(NamedTuple):
    """One day of searches."""

    day: int
    """Days since 1970."""
    searches: int
    unanswered: int
    degraded: int
    median_ms: float | None
    p95_ms: float | None


class Asked(NamedTuple):
    """A text that was searched for, and how often."""

    text: str
    times: int


class Slow(NamedTuple):
    """A search that took long."""

    took_ms: float
    at: float
    text: str
    backend: str
    front_end: str


class Searches(NamedTuple):
    """What was searched in a vault in some days."""

    days: list[Day]
    """Every one of them, also those without a search."""
    median_ms: float | None
    p95_ms: float | None
    front_ends: dict[str, int]
    common: list[Asked]
    unanswered: list[Asked]
    slow: list[Slow]
    logged: int
    """All searches of this vault in the log."""


class Turns(NamedTuple):
    """Notes added to agents' prompts."""

    turns: int
    notes: int
    tokens: int
    cited: int
    """Answers that cite notes."""
    prompts: int
    """Also those for which there were no notes, if the log has them."""
    late: int
    """Prompts that got no notes, because it took too long."""
    late_seconds: float | None
    """How long was waited for them at most."""
    front_ends: dict[str, int]
    """Notes that each front end was given, most first."""

    @property
    def late_text(self) -> str:
        """Empty if none was too slow."""
        return f"{self.late:,} of {self.prompts:,} prompts: too slow, {self.late_seconds:.1f} s" if self.late else ""


class NoteUse(NamedTuple):
    """A note and how often it was in an answer, and opened."""

    ref: str
    title: str
    recalls: int = 0
    recalled: float | None = None
    opens: int = 0
    opened: float | None = None


class NotesUse(NamedTuple):
    """The use of all notes."""

    recalled: list[NoteUse]
    """Most often first."""
    never_recalled: list[NoteUse]
    notes: int


def count_searches(connection: apsw.Connection, root: str, first: int, last: int, limit: int) -> Searches:
    """From the first day to the last."""
    window = {"root": root, "since": first * DAY, "until": (last + 1) * DAY}
    by_day: dict[int, list[tuple[int, int, float]]] = {}
    front_ends: Counter[str] = Counter()
    for day, unanswered, degraded, took_ms, front_end in fetch(connection, SEARCHES, window):
        by_day.setdefault(day, []).append((unanswered, degraded, took_ms))
        front_ends[front_end] += 1
    days: list[Day] = []
    for day in range(first, last + 1):
        rows = by_day.get(day, [])
        took = [row[2] for row in rows]
        counts = len(rows), sum(row[0] for row in rows), sum(row[1] for row in rows)
        days.append(Day(day, *counts, quantile(took, 0.5), quantile(took, 0.95)))
    took = [row[2] for rows in by_day.values() for row in rows]
    common, unanswered = (
        [Asked(text, times) for text, times, _ in fetch(connection, ASKED, {**window, "all": every, "limit": limit})]
        for every in (True, False)
    )
    slow = [Slow._make(row) for row in fetch(connection, SLOWEST, {**window, "limit": limit})]
    logged = fetch(connection, LOGGED, {"root": root})[0][0]
    halves = quantile(took, 0.5), quantile(took, 0.95)
    return Searches(days, *halves, dict(front_ends.most_common()), common, unanswered, slow, logged)


def count_turns(connection: apsw.Connection, root: str, since: float) -> Turns:
    window = {"root": root, "since": since}
    counts = fetch(connection, TURNS, window)[0]
    return Turns._make((*counts, dict(fetch(connection, GIVEN_TO, window))))


def count_saves(connection: apsw.Connection, root: str, since: float) -> dict[str, int]:
    """Changes of notes by front end, most first; `file`: outside of co."""
    return dict(fetch(connection, SAVES, {"root": root, "since": since}))


def count_notes(connection: apsw.Connection, notes: Mapping[str, Sequence[StoredNote]]) -> NotesUse:
    """The use of these notes, given by the folder of their vault or source."""
    stored = {(root, note.path): note for root, found in notes.items() for note in found}
    recalled: list[NoteUse] = []
    for root, path, *use in fetch(connection, RECALLED, {"roots": json.dumps(list(notes))}):
        note = stored.pop((root, path), None)
        recalled.append(NoteUse(note.ref, note.title, *use) if note else NoteUse(path, "", *use))
    never = [NoteUse(note.ref, note.title) for note in stored.values()]
    return NotesUse(recalled, never, sum(map(len, notes.values())))


def recalled_paths(connection: apsw.Connection, root: str) -> set[str]:
    """Documents that were in an answer at least once."""
    return {row[1] for row in fetch(connection, RECALLED, {"roots": json.dumps([root])})}


def count_opened(connection: apsw.Connection, roots: Sequence[str]) -> dict[tuple[str, str], int]:
    """How often each document of these folders was opened, without those that never were."""
    return {(root, path): opens for root, path, opens in fetch(connection, OPENED, {"roots": json.dumps([*roots])})}


def quantile(values: Sequence[float], share: float) -> float | None:
    """The value that this share of the values does not exceed; None if there are none."""
    return round(sorted(values)[ceil(len(values) * share) - 1], 1) if values else None
