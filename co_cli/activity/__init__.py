"""Activity: records what happens in a vault. Recording never raises, never waits and opens no database by itself.

A long-lived process hands events to a thread. One that ends at once (`brief`) keeps them until it closes and appends
them to the spool; only if it indexed something does it open activity.db, after it has printed its answer. What cannot
be written is counted, not raised: no search and no save fails because of it.
"""

from __future__ import annotations

import os
import time
from typing import TYPE_CHECKING

from co_cli.activity.events import FULL, Cited, Head, Indexed, Opened, SearchEvent, append, place_of, search_event
from co_cli.errors import KnowledgeError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from types import TracebackType
    from typing import Protocol, Self

    from co_cli.activity.database import ActivityDatabase
    from co_cli.activity.event_writer import EventWriter
    from co_cli.activity.events import Event
    from co_cli.index.engine import StoredNote
    from co_cli.settings import Settings
    from co_cli.values import SearchResult, SyncReport

    class Index(Protocol):
        """The notes of one vault or source."""

        @property
        def root(self) -> str: ...
        def notes_here(self) -> Iterable[StoredNote]: ...
        def own_notes(self, key: str, *values: str) -> Iterable[StoredNote]: ...


class Activity:
    """What happens in one vault. Safe to share between threads."""

    def __init__(self, settings: Settings, root: str, front_end: str = "python", brief: bool = False) -> None:
        self.data_dir, self.root, self.front_end, self.brief = settings.data_dir, root, front_end, brief
        self.query_log, self.count_use = settings.query_log, settings.count_use == "on"
        self.clock: Callable[[], float] = time.time
        self.dropped = 0
        """Events that could not be written."""
        self.problem: str | None = None
        """Why, the last time."""
        self.on_set_aside: Callable[[str], None] | None = None
        """Called once with a message when a damaged activity.db was moved aside."""
        self._kept: list[Event] = []
        self._writer: EventWriter | None = None

    @property
    def writer(self) -> EventWriter:
        if self._writer is None:
            from co_cli.activity.event_writer import EventWriter  # the database: a cold search does without

            self._writer = EventWriter(self)
        return self._writer

    @property
    def database(self) -> ActivityDatabase:
        """activity.db, which may not have the latest events yet."""
        return self.writer.database

    def written(self) -> ActivityDatabase:
        """activity.db with everything that was recorded so far. Raises ActivityUnavailableError."""
        self.flush()
        self.writer.read_spool()
        return self.database

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    def searched(self, found: SearchResult, sources: Sequence[str] = ()) -> None:
        """An answer was given: log the search and count each hit that is shown as a recall of its note.

        `sources` are the folders that were searched along with the vault.
        """
        event = search_event(found, (self.root, *sources), self.query_log, self.count_use)
        if event is not None:
            self._record(event._replace(at=self.clock(), front_end=self.front_end))

    def opened(self, file: str, sources: Sequence[str] = ()) -> None:
        """Somebody opened a document to read it."""
        if self.count_use:
            root, path = place_of(file, (self.root, *sources))
            self._record(Opened(root, self.clock(), path))

    def cited(self, text: str) -> None:
        """An agent answered. Notes that it names were useful, if a search found them shortly before."""
        if self.count_use and not self.brief:
            self._record(Cited(self.root, self.clock(), text))

    def indexed(self, index: Index, report: SyncReport, saved: bool = False) -> None:
        """A sync or, with `saved`, a save changed the index. A sync that changed nothing records nothing."""
        if not report.touched:
            return
        paths = [*report.added, *report.changed, *(path for _, path in report.moved)]
        try:
            heads = heads_of(index, paths)
        except KnowledgeError as error:
            self.drop(1, error)
            return
        everything = None if saved else lambda: heads_of(index)
        self._record(Indexed(index.root, self.clock(), heads, report.moved, report.removed, saved, everything))

    def flush(self, seconds: float = 10.0) -> bool:
        """Wait until everything is written. False if that took too long or failed."""
        self._write_kept()
        return self._writer.flush(seconds) if self._writer else not self.dropped

    def close(self) -> None:
        """Write what is left and close activity.db."""
        self._write_kept()
        if self._writer is not None:
            self._writer.close()
            self._writer = None

    def drop(self, count: int, error: BaseException) -> None:
        """Count what was lost, and remember why."""
        self.dropped += count
        self.problem = str(error)

    def _record(self, event: Event) -> None:
        if self.brief:
            self._kept.append(event)
        else:
            self.writer.put(event)

    def _write_kept(self) -> None:
        """Append what a brief process kept to the spool; write it to activity.db if the index changed."""
        kept, self._kept = self._kept, []
        searches = [event for event in kept if isinstance(event, (SearchEvent, Opened))]
        if len(searches) < len(kept):
            self.writer.write(kept)
        elif searches:
            try:
                if append(self.data_dir, searches) >= FULL:
                    self.writer.write([])
            except OSError as error:
                self.drop(len(kept), error)


def heads_of(index: Index, paths: Sequence[str] | None = None) -> list[Head]:
    """These documents, or all, as the index has them, with the size of the file now."""
    notes = index.notes_here() if paths is None else index.own_notes("path", *paths)
    return [Head(note.path, note.hash, note.title, _size(os.path.join(index.root, note.path))) for note in notes]


def _size(file: str) -> int | None:
    try:
        return os.stat(file).st_size
    except OSError:
        return None
