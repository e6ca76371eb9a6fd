"""What a watcher tells whoever listens to it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

from co_cli.record import Record
from co_cli.sources.origin import Origin
from co_cli.values import SyncReport


class Batch(Record):
    """What one round of syncs changed."""

    reports: tuple[tuple[Origin, SyncReport], ...]
    seconds: float


class Notice(Record):
    """Something about the watching itself that a person should know."""

    event: Literal["polling", "watching", "missing", "back", "sources", "failed"]
    text: str


News = Batch | Notice
Listener = Callable[[News], None]
Progress = Callable[[int, int], None]
