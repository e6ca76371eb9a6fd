"""A note in a listing, and the state of the index in numbers."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import NamedTuple


class NoteLine(NamedTuple):
    """What a listing of all notes sorts and counts by."""

    id: int
    origin_id: int
    source: str
    path: str
    title: str
    tags_json: str
    created: float
    changed: float
    """When its file was."""

    @property
    def tags(self) -> tuple[str, ...]:
        return stored_texts(self.tags_json)


def stored_texts(listed: str) -> tuple[str, ...]:
    """A list of texts that is stored as JSON."""
    if listed == "[]":
        return ()
    if "\\" in listed:  # a quotation mark in a text
        return tuple(json.loads(listed))
    return tuple(listed[2:-2].split('","'))  # a tenth of the time, and a list of all notes needs it for each


@dataclass(frozen=True, slots=True)
class NoteSummary:
    """One row of a listing."""

    ref: str
    source: str
    path: str
    title: str
    tags: tuple[str, ...]
    category: str | None
    created: str
    description: str = ""
    missing: bool = False
    """It is still indexed although its file is gone."""
    outdated: str | None = None
    """Why it is not valid now, such as `superseded by memory:new`."""


@dataclass(frozen=True, slots=True)
class Status:
    """The state of the index in numbers."""

    vault: str
    search_db: str
    search_db_bytes: int
    backend: str
    notes: dict[str, int]
    passages: int
    synced_at: str | None
    skipped: list[tuple[str, str]]
    problems: list[tuple[str, str]]
    trashed: int
    space: str | None
    """The active space, as provider:model:dimensions:prompts."""
    building: str | None
    """The space that is being built to replace it."""
    unembedded: int
    """Passages that wait for a vector of the chosen model, also those of what is searched with the vault."""
    unembedded_seconds: float | None
    """About how long making those takes; None if nobody knows."""
    cache_entries: int
    cache_bytes: int
    cache_hit_rate: float | None
    linked: dict[str, int]
    """How many notes each linked source has, by its label."""
    trashed_in_tiers: dict[str, int]
    """How many notes are in the trash of the other tiers' vaults."""
    tier: str | None
    """`user` or `project`, if the vault is searched together with others."""
    missing: int = 0
    """Notes that are still indexed although their files are gone."""
    unread: tuple[tuple[str, str], ...] = ()
    """Entries of the vault that are not read, each with the reason: links, pipes, devices, undecodable names."""
    unindexed: str | None = None
    """Why searches by meaning are slow: many vectors without an index."""
    moved_aside: tuple[str, ...] = ()
    """Files that were search.db or activity.db, were damaged or replaced, and are kept under another name."""
