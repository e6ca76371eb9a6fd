"""What a sync, a listing and a status report."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NamedTuple

Progress = Callable[[int, int], None]
"""How much is done, and of how much."""
BINARY = "binary"
"""The reason for a skipped file that is not a problem."""


@dataclass(frozen=True)
class SyncReport:
    """The result of a sync. Paths are relative to the vault. `int(report)` is how many notes it indexed."""

    added: list[str] = field(default_factory=list[str])
    changed: list[str] = field(default_factory=list[str])
    moved: list[tuple[str, str]] = field(default_factory=list[tuple[str, str]])
    removed: list[str] = field(default_factory=list[str])
    unchanged: int = 0
    skipped: list[tuple[str, str]] = field(default_factory=list[tuple[str, str]])
    """Files that are not indexed, each with the reason."""
    problems: list[tuple[str, str]] = field(default_factory=list[tuple[str, str]])
    """Notes that are indexed although something is wrong, each with the problem."""
    linked: tuple[tuple[str, SyncReport], ...] = ()
    """The reports of sources searched together with the vault, each with its label, such as `folder:handbook`."""
    kept: tuple[str, ...] = ()
    """Notes that stay in the index although most files of the vault are gone at once, as on an unmounted drive."""
    excluded: tuple[str, ...] = ()
    """Of `removed`: those whose files exist and are excluded now."""

    def __int__(self) -> int:
        return len(self.added) + len(self.changed) + len(self.moved)

    @property
    def gone(self) -> list[str]:
        """Of `removed`: those whose files are gone."""
        return [path for path in self.removed if path not in self.excluded]

    @property
    def touched(self) -> int:
        return int(self) + len(self.removed)


class NoteSummary(NamedTuple):
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


class Status(NamedTuple):
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
    """Passages without a vector yet."""
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
    moved_aside: tuple[str, ...] = ()
    """Files that were search.db or activity.db, were damaged or replaced, and are kept under another name."""
