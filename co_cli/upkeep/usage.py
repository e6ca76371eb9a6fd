"""How a vault is used, from its activity: what `co feedback stats` and the page show."""

from __future__ import annotations

import time
from collections import Counter, defaultdict
from typing import NamedTuple

from co_cli.activity.extracted import ExtractionCost, cost
from co_cli.activity.query_log import MOST_DAYS
from co_cli.activity.statistics import (
    NotesUse,
    NoteUse,
    Searches,
    Turns,
    count_notes,
    count_saves,
    count_searches,
    count_turns,
)
from co_cli.ground.errors import InvalidInputError
from co_cli.ground.hits import Filters
from co_cli.ground.values import DAY, moment_text
from co_cli.index.stored import StoredNote
from co_cli.vault.vault import Vault


class Usage(NamedTuple):
    """What was searched, given to agents and saved in some days, and how notes are used."""

    searches: Searches
    turns: Turns
    saves: dict[str, int]
    """Changes of notes, by front end; `file` are those made outside of co."""
    notes: NotesUse
    extraction: ExtractionCost
    limit: int
    """Rows of each list."""

    def total(self, name: str) -> int:
        return sum(getattr(day, name) for day in self.searches.days)

    def never_recalled(self) -> list[NoteUse]:
        return self.notes.never_recalled[: self.limit]

    def as_object(self) -> dict[str, object]:
        searches = self.searches
        days = [{"date": moment_text(day.day * DAY)[:10], **day._asdict()} for day in searches.days]
        for day in days:
            del day["day"]
        never = {"count": len(self.notes.never_recalled), "notes": [_use(note) for note in self.never_recalled()]}
        return {
            **{name: self.total(name) for name in ("searches", "unanswered", "degraded")},
            **{name: getattr(searches, name) for name in ("median_ms", "p95_ms", "front_ends", "logged")},
            "common": [search._asdict() for search in searches.common],
            "found_nothing": [search._asdict() for search in searches.unanswered],
            "slow": [{**slow._asdict(), "at": moment_text(slow.at)} for slow in searches.slow],
            "given": self.turns._asdict(),
            "saves": self.saves,
            "extraction": self.extraction._asdict(),
            "most_recalled": [_use(note) for note in self.notes.recalled[: self.limit]],
            "never_recalled": never,
            "notes": self.notes.notes,
            "days": days,
        }


def _use(note: NoteUse) -> dict[str, object]:
    moments = (("recalled", note.recalled), ("opened", note.opened))
    return {**note._asdict(), **{name: None if at is None else moment_text(at) for name, at in moments}}


def usage_of(vault: Vault, days: int, limit: int) -> Usage:
    """Of the last days, today included. Raises ActivityUnavailableError."""
    if not 1 <= days <= MOST_DAYS:
        raise InvalidInputError(f"days must be between 1 and {MOST_DAYS}, not {days}")
    today = int(time.time() // DAY)
    stored: defaultdict[str, list[StoredNote]] = defaultdict(list)
    for index in map(vault.index.of, (vault.index.origin, *vault.index.linked)):
        stored[index.root] += index.notes.all()
    with vault.activity.written().reading() as connection:
        searches = count_searches(connection, vault.root, today - days + 1, today, limit)
        since = (today - days + 1) * DAY
        turns, saves = count_turns(connection, vault.root, since), count_saves(connection, vault.root, since)
        extraction = cost(connection, vault.root, since)
        notes = count_notes(connection, stored)
    return Usage(searches, turns, saves, notes, extraction, limit)


def memories_by_day(vault: Vault) -> dict[str, int]:
    """How many memories were written on each day, as `2026-11-15`; days without one are left out."""
    days = Counter(moment_text(note.created)[:10] for note in vault.index.notes.docs(Filters(("memory",))))
    return dict(sorted(days.items()))
