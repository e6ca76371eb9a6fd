"""An index that keeps up with its files in a process that lives long.

A search should see a file saved in an editor a moment ago, and must not wait for ten thousand new ones. So a sync runs
in a thread of its own, at most every few seconds, and whoever asks waits as long as they can afford. Where the files
are watched, a large vault is not even walked.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

from co_cli.errors import IndexUnavailableError, KnowledgeError
from co_cli.knowledge_base import KnowledgeBase

TYPE_CHECKING = False
if TYPE_CHECKING:
    from co_cli.service.watching import Watcher

EVERY = 2.0
"""Seconds after a sync in which its answer is fresh enough. A walk of 100,000 files takes a quarter of that."""
EMBEDDING = 10.0
"""Seconds that one sync may spend with a slow embedding provider; the next one goes on from there."""
BEHIND = "files changed and are still being indexed: the newest ones may be missing"


class Freshener:
    """Syncs a knowledge base in the background. Safe to share between threads; one a knowledge base is enough."""

    def __init__(self, kb: KnowledgeBase, every: float = EVERY, clock: Callable[[], float] = time.monotonic) -> None:
        self._kb, self._every, self._clock = kb, every, clock
        self._lock = threading.Lock()
        self._running: threading.Event | None = None
        self._synced_at: float | None = None
        self._problem: BaseException | None = None
        self._watcher: Watcher | None = None
        self._starter: threading.Thread | None = None
        self._closing = threading.Event()

    def watch(self, after: float = 1.0) -> None:
        """Have the files watched from now on, or rather after so many seconds: whoever asks first should not wait for
        what that needs to import.
        """
        self._starter = threading.Thread(target=self._begin_watching, args=(after,), name="co-watch-later", daemon=True)
        self._starter.start()

    def close(self) -> None:
        """End the watching, if there is any. To be called before the knowledge base is closed."""
        self._closing.set()
        if self._starter:
            self._starter.join()
        if self._watcher:
            self._watcher.close()

    def _begin_watching(self, after: float) -> None:
        if self._closing.wait(after):
            return
        from co_cli.service.watching import SAFETY, Watcher

        # where the system does not tell of changes, whoever asks looks at the files anyhow
        self._watcher = Watcher(self._kb, polling_every=SAFETY).start()

    def ensure(self, seconds: float) -> list[str]:
        """Wait for a fresh index, no longer than this. What is not fresh then, in words; nothing if it is."""
        watcher = self._watcher
        if watcher and (trouble := watcher.vault_trouble):
            return [trouble]
        if watcher and watcher.spares_a_walk():
            return [] if watcher.caught_up(seconds) else [BEHIND]
        with self._lock:
            done = self._running
            if done is None and (self._synced_at is None or self._clock() - self._synced_at >= self._every):
                done = threading.Event()
                threading.Thread(target=self._sync, args=(done,), name="co-sync", daemon=True).start()
                self._running = done  # only once it runs: nobody would wait for a thread that could not start
        if done is not None and not done.wait(seconds):
            return [BEHIND]
        problem = self._problem
        if problem is None or isinstance(problem, IndexUnavailableError):
            return []  # a search meets that error itself, answers from the files and says so
        if isinstance(problem, KnowledgeError):
            return [str(problem)]
        raise problem

    def _sync(self, done: threading.Event) -> None:
        problem: BaseException | None = None
        try:
            if self._watcher:
                self._kb.sync(seconds=EMBEDDING, hold=self._watcher.is_being_written)
            else:
                self._kb.sync(seconds=EMBEDDING)
        except BaseException as error:  # raised again by whoever waits for this sync
            problem = error
        with self._lock:
            self._problem, self._synced_at, self._running = problem, self._clock(), None
        done.set()
