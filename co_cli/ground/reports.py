"""What a sync reports."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NamedTuple

from co_cli.ground.values import about

Progress = Callable[[int, int], None]
"""How much is done, and of how much."""


class Waiting(NamedTuple):
    """Passages without a vector of the chosen model, and about how long making those takes."""

    passages: int = 0
    seconds: float | None = None
    """None: nobody knows, as of a server."""

    def __str__(self) -> str:
        counted = "1 passage" if self.passages == 1 else f"{self.passages:,} passages"
        return counted if self.seconds is None else f"{counted}, {about(self.seconds)}"


def counting_passages(progress: Progress) -> Progress:
    """The same for the second stage of a sync. A bar says what it counts."""
    return getattr(progress, "passages", progress)


BINARY = "binary"
"""The reason for a skipped file that is not a problem."""


@dataclass(frozen=True, slots=True)
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
