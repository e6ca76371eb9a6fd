"""What happened in the vault, for the page: what was asked, given to agents and saved, and when."""

from __future__ import annotations

from collections.abc import Sequence
from math import inf
from typing import Any, NamedTuple

from pydantic import BaseModel, Field

from co_cli.activity.feed import Entry, FeedQuery, Kind, read_feed
from co_cli.local import LocalKnowledgeBase
from co_cli.notes.refs import without_lines
from co_cli.server.routes import route
from co_cli.upkeep.usage import memories_by_day, usage_of


class FeedAsked(BaseModel):
    """Which part of the activity."""

    kind: Sequence[Kind] = ("asked", "given", "saved")
    front_end: str | None = None
    before: float | None = None
    """Continue here: `next` of the page before."""
    limit: int = Field(30, ge=1, le=10_000)


class Feed(NamedTuple):
    """What happened, newest first."""

    entries: list[Entry]
    titles: dict[str, str]
    """Of the notes that they name, as far as these exist."""
    next: float | None
    query_log: str
    """The setting: on, no-text or off."""


class StatsAsked(BaseModel):
    """Of which days, and how many rows in each list."""

    days: int = 30
    limit: int = Field(10, ge=1, le=500)


@route("GET", "/activity")
def list_activity(kb: LocalKnowledgeBase, asked: FeedAsked) -> Feed:
    """List what was asked, given to agents and saved, newest first."""
    query = FeedQuery(asked.kind, asked.front_end, asked.before or inf, asked.limit)
    with kb.activity.written().reading() as connection:
        entries, more = read_feed(connection, kb.root, query)
    refs = {without_lines(note.ref) for entry in entries for note in entry.notes}
    titles = {note.ref: note.title for note in kb.index.notes.find("ref", *sorted(refs))}
    return Feed(entries, titles, more, kb.settings.query_log)


@route("GET", "/activity/stats")
def show_stats(kb: LocalKnowledgeBase, asked: StatsAsked) -> dict[str, Any]:
    """Show searches per day, unanswered questions and use, as `co feedback stats --json` does."""
    return usage_of(kb.vault, asked.days, asked.limit).as_object()


@route("GET", "/activity/memories")
def count_memories(kb: LocalKnowledgeBase) -> dict[str, int]:
    """Count the memories that were written on each day, as `2026-11-15`; other days have none."""
    return memories_by_day(kb.vault)
