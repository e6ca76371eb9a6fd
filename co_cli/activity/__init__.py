"""Activity: where doors and services tell what happened. It never raises, never waits, and opens nothing by itself.

A process that stays hands events to a writer in the background. One that ends at once (`brief`) keeps them until it
closes and leaves them in the spool; only if it indexed something it opens activity.db itself, after its answer is out.
What cannot be written is counted, not raised: no search and no save fails for it.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from co_cli.activity.events import FULL, Cited, Opened, append, place_of, searched
from co_cli.values import worth_showing

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from types import TracebackType
    from typing import Self

    from co_cli.activity.background import BackgroundWriter
    from co_cli.activity.database import ActivityDatabase
    from co_cli.activity.events import Searched
    from co_cli.activity.versions import Head
    from co_cli.activity.writing import Event, Indexed
    from co_cli.settings import Settings
    from co_cli.values import SearchResult


class Activity:
    """What happens in one vault. Safe to share between threads."""

    def __init__(
        self,
        data_dir: str,
        root: str,
        query_log: str = "on",
        use: bool = True,
        *,
        door: str = "python",
        brief: bool = False,
        clock: Callable[[], float] = time.time,
    ) -> None:
        """`query_log` is on, off or no-text; `use` says whether recalls and opens are counted."""
        self.data_dir, self.root, self.query_log, self.use = data_dir, root, query_log, use
        self.door, self.brief = door, brief
        self.dropped = 0
        """Events that could not be written down."""
        self.problem: str | None = None
        """Why, the last time."""
        self.told: Callable[[str], None] | None = None
        """Hears it once when a damaged activity.db was set aside."""
        self._clock = clock
        self._spooled: list[Searched | Opened] = []
        self._indexed: list[Indexed] = []
        self._writer: BackgroundWriter | None = None
        self._database: ActivityDatabase | None = None

    @classmethod
    def of(cls, settings: Settings, root: str, door: str = "python", brief: bool = False) -> Activity:
        """The activity of a vault, as the settings want it."""
        use = settings.count_use == "on"
        return cls(settings.data_dir, root, settings.query_log, use, door=door, brief=brief)

    @property
    def database(self) -> ActivityDatabase:
        """activity.db, for those who read it. Making the object opens nothing."""
        if self._database is None:
            from co_cli.activity.database import ActivityDatabase

            self._database = ActivityDatabase(self.data_dir)
            self._database.on_set_aside = self.told
        return self._database

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    # -- what happened ----------------------------------------------------------------------------------------------

    def searched(self, found: SearchResult, beside: Sequence[str] = ()) -> None:
        """An answer was given: for the log, and as a recall of each hit that a door shows.

        `beside` are the folders of the origins that were searched with the vault.
        """
        roots = self.root, *beside
        event = searched(found, worth_showing(found), roots, self._clock(), self.door, self.query_log, self.use)
        if event is not None:
            self._spool(event)

    def opened(self, file: str, beside: Sequence[str] = ()) -> None:
        """A document was opened, to be read; `file` is its whole path."""
        if self.use:
            root, path = place_of(file, (self.root, *beside))
            self._spool(Opened(root, self._clock(), path))

    def cited(self, text: str) -> None:
        """An agent answered: notes of the vault that it names were of use, if a search found them shortly before."""
        if self.use and not self.brief:
            from co_cli.activity.citing import paths_in

            for path in paths_in(text):
                self._tell(Cited(self.root, self._clock(), path))

    def indexed(
        self,
        heads: Sequence[Head],
        moved: Sequence[tuple[str, str]] = (),
        removed: Sequence[str] = (),
        *,
        root: str | None = None,
        saved: bool = False,
        everything: Callable[[], Sequence[Head]] | None = None,
    ) -> None:
        """The index changed: these are the heads of what came or changed. Nothing changed, nothing is told.

        `root` is the folder of the origin, if not the vault's own.
        """
        if heads or moved or removed:
            from co_cli.activity.writing import Indexed

            event = Indexed(root or self.root, self._clock(), heads, moved, removed, saved, everything)
            if self.brief:
                self._indexed.append(event)
            else:
                self._tell(event)

    # -- writing it down --------------------------------------------------------------------------------------------

    def flush(self, seconds: float = 10.0) -> bool:
        """Wait until everything is written down. False if that took too long or did not work."""
        if self._spooled or self._indexed:
            self._leave()
        return self._writer.flush(seconds) if self._writer else not self.dropped

    def close(self) -> None:
        """Write down what is left and let go of activity.db."""
        if self._spooled or self._indexed:
            self._leave()
        if self._writer is not None:
            self._writer.close()
            self._writer = None
        if self._database is not None:
            self._database.close()

    def _spool(self, event: Searched | Opened) -> None:
        if self.brief:
            self._spooled.append(event)
        else:
            self._tell(event)

    def _tell(self, event: Event) -> None:
        if self._writer is None:
            from co_cli.activity.background import BackgroundWriter  # imports threads

            self._writer = BackgroundWriter(self)
        self._writer.put(event)

    def _leave(self) -> None:
        """What a brief process kept: into the spool, or into activity.db if the index changed or the spool is full."""
        spooled, self._spooled = self._spooled, []
        kept: list[Event] = [*spooled, *self._indexed]
        if not self._indexed:
            try:
                if append(self.data_dir, spooled) < FULL:
                    return
                kept = []  # the spool has them, and is to be folded in now
            except OSError as error:
                self.drop(len(kept), error)
                return
        self._indexed = []
        from co_cli.activity.background import write_now  # opens activity.db: after the answer, and not every time

        write_now(self, kept)

    def drop(self, count: int, error: BaseException) -> None:
        """Count what was lost, and remember why."""
        self.dropped += count
        self.problem = str(error)
