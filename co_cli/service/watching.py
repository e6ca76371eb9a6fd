"""Keep the index fresh while a process runs: watchfiles reports changed files, and a thread syncs them.

A burst of changes is one sync, and a file that is still being written is left to the next one. Where folders cannot be
watched, all files are checked every few seconds; elsewhere every 30, because network drives do not report every change.
"""

from __future__ import annotations

import os
import stat
import sys
import threading
import time
from collections.abc import Callable, Iterator
from typing import Literal, NamedTuple, Self

from co_cli.errors import KnowledgeError
from co_cli.knowledge_base import KnowledgeBase
from co_cli.logbook import logger
from co_cli.sources.origin import GIT_FILE, IGNORE_FILE, Origin, kind_of, registry_file
from co_cli.sources.walk import folders_of
from co_cli.values import SyncReport

QUIET, LONGEST_HOLD = 0.2, 30.0
"""Seconds without a change after which a file counts as complete, and after which it is indexed as it is."""
TICK = 0.1
"""Seconds between two looks at what the system reported, while nothing changes."""
LAG = 0.05
"""Seconds in which the system is sure to have reported a change."""
POLL, SAFETY = 2.0, 30.0
"""Seconds between two checks of all files where folders cannot be watched, and where they can."""
EMBEDDING = 10.0
"""Seconds that one sync may spend with a slow embedding provider; the next one continues."""
LARGE = 20_000
"""From this many files on, waiting for the watcher is faster than a walk."""
RECURSIVE = sys.platform in ("darwin", "win32")
"""Linux needs a watch for each folder, so only those that are searched get one: not `.git`, nothing behind a link."""
IGNORE_FILES = (IGNORE_FILE, GIT_FILE)
OWN_FILES = ("search.db", "activity.db", "sources.toml", "co.log")
log = logger("watching")


class Batch(NamedTuple):
    """The changes that one sync found, by the folder they are in."""

    reports: tuple[tuple[Origin, SyncReport], ...]
    seconds: float


class Notice(NamedTuple):
    """Something about the watcher itself that the user should know."""

    event: Literal["polling", "missing", "back", "sources", "failed"]
    text: str


class Stopped(Exception):
    """Raised inside a sync to end it; the next sync continues."""


class Watcher:
    """Watches a knowledge base until it is closed. Safe to share between threads; close it before the knowledge base.

    `listener` is called in the watcher's thread with each Batch and Notice.
    """

    def __init__(
        self,
        kb: KnowledgeBase,
        listener: Callable[[Batch | Notice], None] | None = None,
        *,
        poll: bool = False,
        progress: Callable[[int, int], None] | None = None,
        polling_every: float = POLL,
        delay: float = 0.0,
    ) -> None:
        self._kb, self._listener, self._progress = kb, listener, progress
        self._polling_every, self._delay = polling_every, delay
        self._poll = poll or os.environ.get("WATCHFILES_FORCE_POLLING", "").lower() not in ("", "0", "false")
        self._stop, self._changed = threading.Event(), threading.Condition()
        self._thread = threading.Thread(target=self._run, name="co-watch", daemon=True)
        self._folders, self._missing, self._held = set[str](), set[Origin](), dict[str, float]()
        self._problem: str | None = None
        self._registry = _identity(registry_file(kb.settings.data_dir))
        self._dirty, self._files = True, 0
        self._fresh_as_of = self._next_sync = self._next_try = self._took = 0.0
        self.state: Literal["starting", "watching", "polling", "stopped"] = "starting"
        self.syncs = 0

    def start(self) -> Self:
        self._thread.start()
        return self

    def close(self) -> None:
        """Stop watching; a running sync ends early without harm. Returns when the thread has ended."""
        self._stop.set()
        if self._thread.is_alive():
            self._thread.join()

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def alive(self) -> bool:
        return self._thread.is_alive()

    @property
    def replaces_walk(self) -> bool:
        """Is waiting for this watcher as good as a walk, and faster?"""
        return self.state == "watching" and not self._problem and self._files >= LARGE

    def caught_up(self, seconds: float) -> bool:
        """Wait until everything saved before this call is indexed. False if that takes longer, or does not work."""
        now = time.monotonic()
        with self._changed:
            self._changed.wait_for(lambda: self._fresh_as_of > now or self._problem or self._stop.is_set(), seconds)
            return self._fresh_as_of > now

    def _run(self) -> None:
        try:
            self._stop.wait(self._delay)
            while not self._stop.is_set():
                self._watch()
        except Stopped:
            pass
        except Exception as error:
            log.exception("watching ended")
            self._tell(Notice("failed", f"watching ended unexpectedly ({type(error).__name__}: {error})"))
        self.state = "stopped"
        self._stop.set()
        with self._changed:
            self._changed.notify_all()

    def _watch(self) -> None:
        """Sync, and again whenever something changes, until there may be other folders to watch."""
        self._find_origins()
        self._dirty, started, roots = True, time.monotonic(), self._roots()
        for paths in self._changes():
            heard, relist = time.monotonic(), any(self._mark(path) for path in paths)
            if self._dirty and heard >= self._next_sync:
                self._sync()
            with self._changed:
                if not self._dirty and not self._problem:
                    self._fresh_as_of = heard - LAG
                self._changed.notify_all()
            unfinished = self._problem or self._took > EMBEDDING
            late = time.monotonic() > started + (POLL if unfinished else SAFETY)
            if relist or late or roots != self._roots():
                return

    def _changes(self) -> Iterator[set[str]]:
        """Changed paths, or an empty set every TICK. Ends when folders have to be listed again."""
        reason, armed = "", False
        if not self._poll and time.monotonic() >= self._next_try:
            from watchfiles import watch  # slow to import

            self._folders = self._list_folders()
            reported = watch(
                *self._folders,
                watch_filter=None,
                stop_event=self._stop,
                rust_timeout=int(TICK * 1000),
                yield_on_timeout=True,
                force_polling=False,
                recursive=RECURSIVE,
            )
            try:
                for changes in reported:
                    complete = armed or self._list_folders() == self._folders
                    self.state, armed = "watching", True
                    yield {path for _, path in changes}
                    if not complete:
                        return  # a folder appeared while the others were put under watch
                return
            except FileNotFoundError:
                return  # a folder was removed since it was listed
            except (OSError, RuntimeError) as error:
                if armed:
                    return  # watchfiles gives up at a file name that is not UTF-8
                reason = f"cannot watch folders ({str(error).partition(' about ')[0]}): "
                self._next_try = time.monotonic() + SAFETY
        if self.state != "polling":
            self._tell(Notice("polling", f"{reason}checking files every {self._polling_every:g} s"))
        self.state = "polling"
        yield set()
        until = time.monotonic() + max(self._polling_every, 20 * self._took)
        while time.monotonic() < until and not self._stop.wait(TICK):
            yield set()

    def _origins(self) -> list[Origin]:
        return [self._kb.index.origin, *self._kb.index.beside]

    def _find_origins(self) -> None:
        """Notice folders that were added or removed as sources, and those that disappeared or came back."""
        before, registry = self._origins(), _identity(registry_file(self._kb.settings.data_dir))
        if registry != self._registry:
            self._registry = registry
            self._kb.look_beside()
        for origin in set(before) ^ set(self._origins()):
            self._tell(Notice("sources", f"{origin.label} is {'no longer' if origin in before else 'now'} watched"))
        missing = {origin for origin in self._origins() if not os.path.exists(origin.root)}
        for origin in missing ^ self._missing:
            gone = Notice("missing", f"{origin.root} is not there; its notes stay in the index")
            self._tell(gone if origin in missing else Notice("back", f"{origin.root} is back"))
        self._missing = missing

    def _roots(self) -> list[tuple[int, int, int] | None]:
        """Differs when `_find_origins` has something to notice, or a folder was replaced by another."""
        paths = [registry_file(self._kb.settings.data_dir), *(origin.root for origin in self._origins())]
        return [_identity(path) for path in paths]

    def _list_folders(self) -> set[str]:
        found = set[str]()
        for origin in self._origins():
            found.update([origin.root] if RECURSIVE else folders_of(origin, self._kb.settings.knowledge_exclude)[0])
        return {path for path in found if os.access(path, os.R_OK) and path.encode(errors="ignore").decode() == path}

    def _mark(self, path: str) -> bool:
        """Remember that the index is out of date, if this change matters. True if folders have to be listed again."""
        parent, name = os.path.split(path)
        if name.startswith(OWN_FILES) and parent == os.path.realpath(self._kb.settings.data_dir):
            return False
        ignores, is_folder = name in IGNORE_FILES, path in self._folders or os.path.isdir(path)
        relist = False
        for origin in self._origins():
            root = os.path.join(origin.root, "")
            hidden = f"{os.sep}." in (parent if ignores else path)[len(root) - 1 :]
            if path.startswith(root) and not hidden and (ignores or is_folder or kind_of(origin).wants(name)):
                self._dirty = True
                relist |= ignores or is_folder
        return relist and not RECURSIVE

    def _sync(self) -> None:
        self._dirty, started = False, time.monotonic()
        self.syncs += 1
        try:
            report = self._kb.sync(self._go_on, EMBEDDING, self._hold)
        except KnowledgeError as error:
            if not self._problem and os.path.isdir(self._kb.root):
                self._tell(Notice("failed", str(error)))
            self._problem = str(error)
            return
        self._problem, self._took = None, time.monotonic() - started
        self._next_sync = time.monotonic() + min(self._took, POLL)  # sync at most half of the time
        reports = list(zip(self._origins(), [report, *(one for _, one in report.beside)], strict=False))
        self._files = sum(one.unchanged + one.touched for _, one in reports)
        changed = tuple((origin, one) for origin, one in reports if one.touched or one.kept)
        if changed:
            self._tell(Batch(changed, self._took))

    def _hold(self, path: str) -> bool:
        """Leave a file to the next sync if it is still being written, but not forever."""
        now = time.monotonic()
        try:
            young = abs(time.time() - os.lstat(path).st_mtime) < QUIET
        except OSError:
            young = False
        if young and now - self._held.setdefault(path, now) < LONGEST_HOLD:
            self._dirty = True
            return True
        self._held.pop(path, None)
        return False

    def _go_on(self, done: int, total: int) -> None:
        if self._stop.is_set():
            raise Stopped
        if self._progress and not self._fresh_as_of:
            self._progress(done, total)

    def _tell(self, news: Batch | Notice) -> None:
        if self._listener:
            self._listener(news)
        elif isinstance(news, Notice):
            log.info("%s", news.text)


def _identity(path: str) -> tuple[int, int, int] | None:
    try:
        found = os.stat(path)
    except OSError:
        return None
    return found.st_dev, found.st_ino, found.st_mtime_ns if stat.S_ISREG(found.st_mode) else 0
