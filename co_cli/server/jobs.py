"""Work that takes longer than a request: run a function as a job in a thread of its own, with progress."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Generic, Literal, NamedTuple, TypeVar
from weakref import WeakKeyDictionary

from co_cli.entrance.local import LocalKnowledgeBase
from co_cli.ground.errors import KnowledgeError
from co_cli.ground.values import moment_text
from co_cli.notes.logbook import crashed

T = TypeVar("T")


class Progress(NamedTuple):
    """How far a job is."""

    step: str
    done: int
    total: int


class JobState(NamedTuple):
    """What a page sees of a job."""

    state: Literal["none", "running", "done", "failed"] = "none"
    progress: Progress | None = None
    problem: str | None = None
    """Why it failed."""
    finished: str | None = None


Report = Callable[[str, int, int], None]


class Job(Generic[T]):
    """One run of a function that reports its progress."""

    def __init__(self, work: Callable[[Report], T]) -> None:
        self.state = JobState("running")
        self.result: T | None = None
        self._work = work
        threading.Thread(target=self._run, daemon=True).start()

    def _run(self) -> None:
        try:
            self.result = self._work(self._report)
            self.state = JobState("done", finished=moment_text(time.time()))
        except Exception as error:
            problem = str(error) if isinstance(error, KnowledgeError) else crashed(error)
            self.state = JobState("failed", problem=problem, finished=moment_text(time.time()))

    def _report(self, step: str, done: int, total: int) -> None:
        self.state = JobState("running", Progress(step, done, total))


class Jobs(Generic[T]):
    """The last job of one kind for each knowledge base."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._jobs: WeakKeyDictionary[LocalKnowledgeBase, Job[T]] = WeakKeyDictionary()

    def start(self, kb: LocalKnowledgeBase, work: Callable[[Report], T]) -> Job[T]:
        """A new job; while one runs, that one."""
        with self._lock:
            job = self._jobs.get(kb)
            if job is None or job.state.state != "running":
                job = self._jobs[kb] = Job(work)
            return job

    def last(self, kb: LocalKnowledgeBase) -> Job[T] | None:
        return self._jobs.get(kb)
