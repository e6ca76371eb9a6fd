"""An index that keeps up with its files in the background."""

from __future__ import annotations

import sys
import threading

from co_cli.entrance.knowledge_base import KnowledgeBase
from co_cli.searching.freshness import BEHIND, UNCHECKED, Freshener, VectorThread
from tests.folder import Vault
from tests.server.browser import wait_for


class SlowlySynced:
    """A knowledge base whose sync waits until the test lets it go on."""

    def __init__(self, kb: KnowledgeBase) -> None:
        self.kb, self.go, self.syncs = kb, threading.Event(), 0
        self.takes, self.during = 0.0, lambda: None
        self.callers: list[str] = []

    def catch_up(self) -> None:
        """Nobody else writes."""
        self.callers.append(threading.current_thread().name)

    def embed(self, seconds: float | None = None, progress: object = None) -> bool:
        return False

    def sync(self, seconds: float | None = None) -> object:
        self.syncs += 1
        assert self.go.wait(120)
        self.during()
        return self.kb.sync(seconds=seconds)


def test_a_slow_sync_is_reported_and_goes_on(vault: Vault, kb: KnowledgeBase) -> None:
    vault.write("memories/oak.md", "Oaks live long.")
    slow = SlowlySynced(kb)
    freshener = Freshener(slow)  # type: ignore[arg-type]

    assert freshener.ensure(0.01) == [BEHIND]
    slow.go.set()
    assert freshener.ensure(120) == []
    assert kb.search("oaks").hits
    assert slow.syncs == 2, "the first may have passed a file that changed since"


def test_callers_who_wait_share_the_sync_that_begins_after_the_one_that_runs(kb: KnowledgeBase) -> None:
    slow = SlowlySynced(kb)
    freshener = Freshener(slow)  # type: ignore[arg-type]
    freshener.ensure(0.01)
    waiting = [threading.Thread(target=freshener.ensure, args=(120,)) for _ in range(8)]
    for thread in waiting:
        thread.start()

    wait_for(lambda: len(slow.callers) > len(waiting))
    slow.go.set()
    for thread in waiting:
        thread.join(120)

    assert 2 <= slow.syncs <= 3, "one of them may have come a moment later"


def test_a_vault_that_takes_long_to_check_is_checked_now_and_then_and_the_answer_says_so(kb: KnowledgeBase) -> None:
    now = [100.0]
    slow = SlowlySynced(kb)
    slow.go.set()
    slow.during = lambda: now.append(now.pop() + slow.takes)
    freshener = Freshener(slow, clock=lambda: now[0])  # type: ignore[arg-type]

    for takes, later, answer, syncs in (
        (0.1, 0.0, [], 1),
        (0.1, 0.0, [], 2),
        (0.9, 0.0, [], 3),
        (0.9, 1.9, [UNCHECKED], 3),
        (0.1, 0.2, [], 4),
        (0.1, 0.0, [], 5),
    ):
        slow.takes = takes
        now[0] += later
        assert (freshener.ensure(120), slow.syncs) == (answer, syncs)


def test_a_vault_that_is_gone_is_reported(vault: Vault, kb: KnowledgeBase) -> None:
    vault.root.rename(vault.root.with_name("elsewhere"))

    problems = Freshener(kb).ensure(120)

    assert problems
    assert "vault" in problems[0]


def test_a_thread_that_is_just_being_started_can_be_closed() -> None:
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        for _ in range(100):
            vectors = VectorThread(lambda *_: False)
            starter = threading.Thread(target=vectors.wake)
            starter.start()
            while vectors._thread is None:
                pass
            vectors.close()
            starter.join()
    finally:
        sys.setswitchinterval(interval)
