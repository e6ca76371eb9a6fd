"""A watcher of the test's vault, and a listener that records its news."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator

import pytest

from co_cli.knowledge_base import KnowledgeBase
from co_cli.service.watching import Batch, Notice, Watcher

PATIENCE = 120.0
"""Seconds, for busy machines."""
News = Batch | Notice


class Heard:
    """The news of a watcher, for tests to wait for."""

    def __init__(self) -> None:
        self.news: list[News] = []
        self._more = threading.Condition()

    def __call__(self, news: News) -> None:
        with self._more:
            self.news.append(news)
            self._more.notify_all()

    def until(self, true: Callable[[], object]) -> None:
        """Wait for news after which this holds."""
        with self._more:
            assert self._more.wait_for(true, PATIENCE), self.news

    @property
    def batches(self) -> list[Batch]:
        return [one for one in self.news if isinstance(one, Batch)]

    @property
    def events(self) -> list[str]:
        return [one.event for one in self.news if isinstance(one, Notice)]

    @property
    def texts(self) -> list[str]:
        return [one.text for one in self.news if isinstance(one, Notice)]

    def touched(self, *kinds: str) -> list[str]:
        """Paths that were reported as `added`, `changed`, `removed` or (with their new path) `moved`, in order."""
        found: list[str] = []
        for batch in self.batches:
            for _, report in batch.reports:
                for kind in kinds or ("added", "changed", "moved", "removed"):
                    found += [path[1] if isinstance(path, tuple) else path for path in getattr(report, kind)]
        return found


class Watch:
    """Starts watchers, waits for their first sync, and closes them when the test ends."""

    def __init__(self) -> None:
        self.started: list[Watcher] = []

    def __call__(self, kb: KnowledgeBase, heard: Heard | None = None, **options: float) -> Watcher:
        watcher = Watcher(kb, heard, **options)  # type: ignore[arg-type]
        self.started.append(watcher)
        watcher.start()
        assert watcher.caught_up(PATIENCE)
        return watcher


@pytest.fixture
def heard() -> Heard:
    return Heard()


@pytest.fixture
def watch(kb: KnowledgeBase) -> Iterator[Watch]:
    watch = Watch()
    yield watch
    for watcher in watch.started:
        watcher.close()
