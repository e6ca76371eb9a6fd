"""Make sure that a process that runs for long answers from a fresh index.

A search should see a file saved a moment ago, but not wait for ten thousand new ones. So syncs run in a thread of their
own, at most every few seconds, and callers say how long they can wait. In a large vault the watcher replaces the walk.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

from co_cli.errors import IndexUnavailableError, KnowledgeError
from co_cli.knowledge_base import KnowledgeBase
from co_cli.service.watching import EMBEDDING, SAFETY, Watcher

EVERY = 2.0
"""Seconds after a sync in which there is no other. A walk of 100,000 files takes a quarter of that."""
BEHIND = "files changed and are still being indexed: the newest ones may be missing"


class Freshener:
    """Syncs a knowledge base in the background. Safe to share between threads."""

    def __init__(self, kb: KnowledgeBase, every: float = EVERY, clock: Callable[[], float] = time.monotonic) -> None:
        self._kb, self._every, self._clock = kb, every, clock
        self._lock = threading.Lock()
        self._running: threading.Event | None = None
        self._synced_at: float | None = None
        self._problem: BaseException | None = None
        self.watcher: Watcher | None = None

    def watch(self, after: float = 1.0) -> None:
        """Watch the files, starting after this many seconds: the first caller should not wait for imports."""
        # callers check the files themselves where they cannot be watched, so the watcher need not do it often
        self.watcher = Watcher(self._kb, polling_every=SAFETY, delay=after).start()

    def close(self) -> None:
        """Stop watching. Call this before the knowledge base is closed."""
        if self.watcher:
            self.watcher.close()

    def ensure(self, seconds: float) -> list[str]:
        """Wait for a fresh index, at most this long. Returns what is not up to date, in words."""
        if self.watcher and self.watcher.replaces_walk:
            if self.watcher.caught_up(seconds):
                return []
            if self.watcher.replaces_walk:
                return [BEHIND]
        with self._lock:
            done = self._running
            if done is None and (self._synced_at is None or self._clock() - self._synced_at >= self._every):
                done = threading.Event()
                threading.Thread(target=self._sync, args=(done,), name="co-sync", daemon=True).start()
                self._running = done  # only now: if the thread could not start, nobody may wait for it
        if done is not None and not done.wait(seconds):
            return [BEHIND]
        problem = self._problem
        if problem is None or isinstance(problem, IndexUnavailableError):
            return []  # the search meets the same error, answers from the files and says so
        if isinstance(problem, KnowledgeError):
            return [str(problem)]
        raise problem

    def _sync(self, done: threading.Event) -> None:
        problem: BaseException | None = None
        try:
            self._kb.sync(seconds=EMBEDDING)
        except BaseException as error:  # raised again by whoever waits for this sync
            problem = error
        with self._lock:
            self._problem, self._synced_at, self._running = problem, self._clock(), None
        done.set()
