"""Keep the index up to its files while somebody works on them: a thread that syncs when changes have settled.

The system tells of changes (`watched.py`); they are waited out for a moment, so that an editor's save dance or a
checkout of a thousand files is one sync. Where the system does not tell, files are looked at every few seconds; and
because some file systems promise to tell and do not, everything is looked at now and then anyhow. A file that is still
being written is left to the next round (`settling.py`). A folder that is not there, as on a drive that is not mounted,
keeps its rows and is synced when it is back.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Sequence
from types import TracebackType
from typing import Literal, Self

from co_cli.errors import KnowledgeError, VaultError
from co_cli.index.sync import BEING_WRITTEN
from co_cli.knowledge_base import KnowledgeBase
from co_cli.logbook import logger
from co_cli.service.listening import Listening, Unwatchable
from co_cli.service.news import Batch, Listener, News, Notice, Progress
from co_cli.service.settling import QUIET, Settling, is_open_for_writing
from co_cli.service.vouching import VOUCHES_FROM, Vouching
from co_cli.service.watched import Presence, Watched, state_of
from co_cli.sources.origin import Origin
from co_cli.sources.registry import registry_file
from co_cli.values import SyncReport

LONGEST = 2.0
"""Seconds after which changes are synced although more of them keep coming."""
LOOK = 1.0
"""Seconds between two looks at what the system does not tell of: are the folders there, were others added."""
POLL = 2.0
"""Seconds between two walks where the system does not tell of changes."""
SAFETY = 30.0
"""The same where it does."""
IDLE, BUSY = 50, 4
"""A walk is followed by so many times its length without one, when nothing happens and when files change."""
RETRY = 5.0
EMBEDDING = 10.0
"""Seconds that one sync may spend with a slow embedding provider; the next one goes on from there."""
LARGE = 2_000
"""Files from which on a walk is worth sparing."""
STALLED = 0.5
"""Seconds that a wait may take longer than it should. If it does, this process stood still, as one that was suspended,
and more may have changed meanwhile than the system keeps: it drops what is too much and nobody hears of that."""
DEAF = 2
"""After so many walks that found what the system had not told of, it is not relied upon."""
NO_POLLING = ("", "0", "false", "disable", "disabled")
"""What watchfiles takes WATCHFILES_FORCE_POLLING to mean, and 0."""

State = Literal["starting", "watching", "polling", "stopped"]
log = logger("watching")


class Stopped(Exception):
    """Raised inside a sync to end it; the next one goes on from there."""


class Watcher:
    """Watches a knowledge base until it is closed. Safe to share between threads; close it before its base.

    `listener` hears what happened, in the watcher's own thread; `progress` shows how far the first sync is. `poll`
    looks at the files every few seconds even where the system would tell.
    """

    def __init__(
        self,
        kb: KnowledgeBase,
        listener: Listener | None = None,
        *,
        poll: bool = False,
        progress: Progress | None = None,
        safety: float = SAFETY,
        polling_every: float = POLL,
        vouches_from: int = VOUCHES_FROM,
    ) -> None:
        self._kb, self._listener, self._progress = kb, listener, progress
        self._safety, self._polling_every = safety, polling_every
        self._wants_poll = poll or os.environ.get("WATCHFILES_FORCE_POLLING", "").lower() not in NO_POLLING
        self._stop = threading.Event()
        self._changed = threading.Condition()
        self._thread = threading.Thread(target=self._run, name="co-watch", daemon=True)
        self._settling = Settling()
        self._listening = Listening()
        self._presence = Presence()
        self._vouching = Vouching(kb, vouches_from)
        self._trouble: dict[Origin, str] = {}
        self._sizes: dict[Origin, int] = {}
        self._dirty: set[Origin] = set()
        self._again: dict[Origin, float] = {}
        self._first = self._last = 0.0
        self._arm_wanted = self._heard = self._syncing = self._began = False
        self._deaf = 0
        self._awake = 0.0
        """When it last did something that may take long, or began to wait."""
        self._next_look = self._next_walk = self._next_round = self._next_arming = self._walk_seconds = 0.0
        self._registry: object = None
        self.state: State = "starting"
        self.syncs = 0
        """How many times an origin was synced."""

    # -- for whoever has one ----------------------------------------------------------------------------------------

    def start(self) -> Self:
        self._thread.start()
        return self

    def close(self) -> None:
        """End it; a sync in progress is stopped where that does no harm. Returns when the thread is gone."""
        self._stop.set()
        if self._thread.is_alive() and self._thread is not threading.current_thread():
            self._thread.join()

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    @property
    def alive(self) -> bool:
        return self._thread.is_alive()

    @property
    def vault_trouble(self) -> str | None:
        """Why the vault cannot be synced now; None if it can."""
        with self._changed:
            return self._trouble.get(self._kb.index.origin) if self.alive else None

    def spares_a_walk(self) -> bool:
        """May a search trust that changes were told of? Few files are sooner looked at than the system tells."""
        with self._changed:
            return self.state == "watching" and not self._trouble and sum(self._sizes.values()) >= LARGE

    def caught_up(self, seconds: float) -> bool:
        """Wait until what is known to have changed is indexed, no longer than this."""
        with self._changed:
            return self._changed.wait_for(lambda: not self._pending() or self.state == "stopped", seconds)

    def is_being_written(self, path: str) -> bool:
        """For syncs that others begin: what somebody holds open is left to this watcher."""
        return self.alive and is_open_for_writing(path)

    def _pending(self) -> bool:
        held = any(origin not in self._trouble for origin in self._again)
        return not self._began or self._syncing or bool(self._dirty) or held

    # -- the thread -------------------------------------------------------------------------------------------------

    def _run(self) -> None:
        try:
            self._begin()
            while not self._stop.is_set():
                self._turn()
        except Stopped:
            pass
        except Exception as error:
            log.exception("watching ended")
            self._tell(Notice("failed", f"watching ended unexpectedly ({type(error).__name__}: {error})"))
        finally:
            self._listening.stop()
            self._vouching.close()
            with self._changed:
                self.state = "stopped"
                self._changed.notify_all()

    def _begin(self) -> None:
        self._registry = state_of(registry_file(self._kb.settings.data_dir))
        self._arm()
        with self._changed:
            self._dirty |= set(self._origins())
        self._sync_dirty(everything=True)
        with self._changed:
            self._began = True
            if self.state == "starting":
                self.state = "watching"
            self._changed.notify_all()

    def _turn(self) -> None:
        """Listen for a moment, then do what is due."""
        self._listen(QUIET / 4 if self._dirty else LOOK / 2)
        if self._vouching.asked:
            self._answer()
        now = time.monotonic()
        if now >= self._next_look:
            self._next_look = now + LOOK
            self._look_around()
        settled = now - self._last >= QUIET or now - self._first >= LONGEST
        if self._dirty and settled and now >= self._next_round:
            if self._arm_wanted:
                self._arm()
            self._sync_dirty()
        elif any(now >= due for due in self._again.values()):
            with self._changed:
                self._dirty |= {origin for origin, due in self._again.items() if now >= due}
            self._sync_dirty()
        elif now >= self._next_walk:
            self._walk()

    def _listen(self, seconds: float) -> None:
        due = min((*self._again.values(), self._next_walk, self._next_look)) - time.monotonic()
        seconds = max(0.01, min(seconds, due))
        told = self._listening.wait(seconds, self._stop)
        stalled, self._awake = time.monotonic() - self._awake > seconds + STALLED, time.monotonic()
        self._heard |= told.anything
        if stalled and self._vouching.vouches:
            self._mark(self._origins(), arm=True)
        self._vouching.hear(told.beside)
        if told.folders and not told.origins:  # lost
            self._mark(self._origins(), arm=True)
        self._mark(told.origins, arm=told.folders)

    def _mark(self, origins: Sequence[Origin], arm: bool = False) -> None:
        """These changed just now."""
        if not origins:
            return
        with self._changed:
            self._last = time.monotonic()
            self._first = self._first if self._dirty else self._last
            self._dirty.update(origins)
            self._arm_wanted |= arm

    # -- watching ---------------------------------------------------------------------------------------------------

    def _origins(self) -> list[Origin]:
        return [self._kb.index.origin, *self._kb.index.beside]

    def _arm(self) -> None:
        """Watch every folder as it is now. What changed meanwhile is seen by the sync that follows."""
        self._arm_wanted = False
        self._next_arming = time.monotonic() + SAFETY
        if self._wants_poll:
            self._begin_polling("")
            return
        try:
            steady = self._listening.renew(self._look, self._vouching.open())
        except Unwatchable as reason:
            self._begin_polling(str(reason))
            return
        self._mark(self._origins(), arm=not steady)  # what the old events had still to tell
        if self.state == "polling":
            self.state = "watching"
            self._tell(Notice("watching", "the system tells of changes again"))

    def _look(self) -> dict[Origin, Watched]:
        self._look_for_roots()
        return {origin: one for origin in self._origins() if (one := self._look_at(origin))}

    def _look_at(self, origin: Origin) -> Watched | None:
        if origin in self._trouble:
            return None
        index = self._kb.index if origin == self._kb.index.origin else self._kb.index.of(origin)
        try:
            return Watched(origin, index, self._kb.settings.data_dir)
        except KnowledgeError as error:
            self._lose(origin, str(error), retry=True)
            return None

    def _begin_polling(self, reason: str) -> None:
        self._listening.stop()
        told, self.state = self.state == "polling", "polling"
        self._next_walk = min(self._next_walk, time.monotonic() + self._polling_every)
        if not told:
            every = f"looking at the files every {self._polling_every:g} s instead"
            self._tell(Notice("polling", f"{reason}: {every}" if reason else every.removesuffix(" instead")))

    def _look_around(self) -> None:
        """Notice what no event tells: other origins, and folders that went away or came back; another search.db."""
        state = state_of(registry_file(self._kb.settings.data_dir))
        if state != self._registry:
            self._registry = state
            self._look_beside()
        self._look_for_others()
        if self._may_vouch() and not self._vouching.say():
            self._mark(self._origins())

    def _look_for_others(self) -> None:
        """Is every origin still the folder that was synced, with the same drives in it?"""
        was = dict(self._trouble)
        self._look_for_roots()
        back = [origin for origin in was if origin not in self._trouble]
        other = [one for one in self._origins() if one not in self._trouble and self._presence.is_another(one)]
        if back or other:
            self._listening.stop()  # they are of a folder that is no longer the one of this name
            self._mark([*back, *other], arm=True)
        if self._vouching.is_remounted():
            self._mark(self._origins(), arm=True)

    def _look_beside(self) -> None:
        before = self._origins()
        try:
            self._kb.look_beside()
        except KnowledgeError as error:  # somebody edits the file by hand: what was known goes on
            self._tell(Notice("sources", str(error)))
            return
        now = self._origins()
        gone, new = [one for one in before if one not in now], [one for one in now if one not in before]
        with self._changed:
            for origin in gone:
                for known in (self._trouble, self._sizes, self._again):
                    known.pop(origin, None)
                self._dirty.discard(origin)
        for origin in gone:
            self._tell(Notice("sources", f"{origin.label} is not watched any more"))
        for origin in new:
            self._tell(Notice("sources", f"{origin.label} is watched too"))
        if gone or new:
            self._arm_wanted = True
            self._mark(new or now[:1], arm=True)

    def _look_for_roots(self) -> None:
        """Which origins are there?"""
        for origin in self._origins():
            reason = self._presence.missing(origin)
            if reason:
                self._lose(origin, reason)
            elif origin in self._trouble and origin not in self._again:  # it is no error that is tried again
                with self._changed:
                    del self._trouble[origin]
                self._tell(Notice("back", f"{origin.path} is back"))

    def _lose(self, origin: Origin, text: str, retry: bool = False) -> None:
        with self._changed:
            known = self._trouble.get(origin)
            self._trouble[origin] = text
            self._dirty.discard(origin)
            self._again.pop(origin, None)
            if retry:
                self._again[origin] = time.monotonic() + RETRY
        if known is None:
            self._arm_wanted = True
            self._tell(Notice("failed" if retry else "missing", text))

    # -- vouching ---------------------------------------------------------------------------------------------------

    def _may_vouch(self) -> bool:
        """Is the index as the files are, as far as it can be known? If not, nobody may rely on it."""
        sound = self.state == "watching" and not self._trouble and not self._arm_wanted
        return self._vouching.may(sound, sum(self._sizes.values()))

    def _answer(self) -> None:
        """Index what changed before somebody asked, settled or not, and say that it is done."""
        asked, self._vouching.asked = self._vouching.asked, set()
        self._look_for_others()
        if self._arm_wanted:
            self._arm()
        with self._changed:
            self._dirty |= self._again.keys()
        if self._dirty:
            self._sync_dirty(settled=True)
        if self._may_vouch() and not self._again and self._vouching.say():
            self._vouching.answer(asked)
        else:
            self._vouching.refuse()

    # -- syncing ----------------------------------------------------------------------------------------------------

    def _walk(self) -> None:
        """Look at everything, told or not."""
        heard, self._heard = self._heard, False
        if self._arm_wanted or (self._may_listen() and time.monotonic() >= self._next_arming):
            self._arm()
        with self._changed:
            self._dirty.update(origin for origin in self._origins() if origin not in self._trouble)
        touched = self._sync_dirty(everything=True)
        if self.state == "watching":
            self._deaf = self._deaf + 1 if touched and not heard and not self._heard else 0
            if self._deaf >= DEAF:
                self._begin_polling("files change here and the system does not tell")

    def _may_listen(self) -> bool:
        """Is it only for want of room that the system does not tell? There may be some now."""
        return self.state == "polling" and not self._wants_poll and self._deaf < DEAF

    def _sync_dirty(self, everything: bool = False, settled: bool = False) -> int:
        """Sync what changed, which may be everything. Returns how many files were touched.

        `settled`: what is still being written is read as it is.
        """
        with self._changed:
            lost = self._trouble.keys() - self._again.keys()
            dirty = [origin for origin in self._origins() if origin in self._dirty and origin not in lost]
            self._dirty.clear()
            self._syncing = True
        self._vouching.begin(set(dirty).issuperset(self._origins()))
        started, used = time.monotonic(), time.thread_time()
        reports: list[tuple[Origin, SyncReport]] = []
        try:
            for origin in dirty:
                report = self._sync(origin, settled)
                if report:
                    reports.append((origin, report))
        finally:
            with self._changed:
                self._syncing = False
                self._changed.notify_all()
        self._awake = time.monotonic()
        took = self._awake - started
        touched = [(origin, report) for origin, report in reports if report.touched]
        if touched:
            self._tell(Batch(tuple(touched), took))
        elif took < EMBEDDING:
            self._walk_seconds = time.thread_time() - used
        self._plan(took >= EMBEDDING, everything)
        return sum(report.touched for _, report in touched)

    def _plan(self, unfinished: bool, everything: bool) -> None:
        """When to look at the files again. `unfinished`: what is slow to embed took all the time that it has."""
        now = time.monotonic()
        self._next_round = now + BUSY * self._walk_seconds
        if everything:
            every = self._polling_every if self.state == "polling" else self._safety
            self._next_walk = now + max(every, min(IDLE * self._walk_seconds, SAFETY))
        if unfinished or self._arm_wanted:
            self._next_walk = min(self._next_walk, now + LOOK)

    def _sync(self, origin: Origin, settled: bool = False) -> SyncReport | None:
        identity, reason = self._presence.identity(origin), self._presence.missing(origin)
        if reason:
            self._lose(origin, reason)
            return None
        self.syncs += 1
        try:
            report = self._kb.sync_origin(origin, self._go_on, EMBEDDING, None if settled else self._settling.waits)
        except KnowledgeError as error:
            self._lose(origin, str(error), retry=not isinstance(error, VaultError) or identity is not None)
            return None
        seen = report.unchanged + len(report.added) + len(report.changed) + len(report.moved)
        with self._changed:
            self._sizes[origin] = seen
            mended = self._trouble.pop(origin, None)
            self._again.pop(origin, None)
            if any(reason == BEING_WRITTEN for _, reason in report.skipped):
                self._again[origin] = time.monotonic() + max(QUIET, BUSY * self._walk_seconds)
        self._presence.saw(origin, identity)
        self._vouching.saw(origin, report)
        if mended:
            self._arm_wanted = True
            self._tell(Notice("back", f"{origin.path} can be read again"))
        return report

    def _go_on(self, done: int, total: int) -> None:
        if self._stop.is_set():
            raise Stopped
        if self._progress and not self._began:
            self._progress(done, total)

    def _tell(self, news: News) -> None:
        if self._listener:
            self._listener(news)
        elif isinstance(news, Notice):
            log.info("%s", news.text)
