"""An index that keeps up with its files in the background."""

from __future__ import annotations

import threading

from co_cli.knowledge_base import KnowledgeBase
from co_cli.searching.freshness import BEHIND, Freshener
from tests.vault import Vault


class SlowlySynced:
    """A knowledge base whose sync waits until the test lets it go on."""

    def __init__(self, kb: KnowledgeBase) -> None:
        self.kb, self.go, self.syncs = kb, threading.Event(), 0

    def catch_up(self) -> None:
        """Nobody else writes."""

    def sync(self, seconds: float | None = None) -> object:
        self.syncs += 1
        assert self.go.wait(120)
        return self.kb.sync(seconds=seconds)


def test_a_slow_sync_is_reported_and_goes_on(vault: Vault, kb: KnowledgeBase) -> None:
    vault.write("memories/oak.md", "Oaks live long.")
    slow = SlowlySynced(kb)
    freshener = Freshener(slow)  # type: ignore[arg-type]

    assert freshener.ensure(0.01) == [BEHIND]
    slow.go.set()
    assert freshener.ensure(120) == []
    assert kb.search("oaks").hits
    assert slow.syncs == 1


def test_a_sync_is_not_repeated_within_a_moment(kb: KnowledgeBase) -> None:
    now = [100.0]
    slow = SlowlySynced(kb)
    slow.go.set()
    freshener = Freshener(slow, every=2, clock=lambda: now[0])  # type: ignore[arg-type]

    for later in (0, 1.9, 0.2):
        now[0] += later
        freshener.ensure(120)

    assert slow.syncs == 2


def test_a_vault_that_is_gone_is_reported(vault: Vault, kb: KnowledgeBase) -> None:
    vault.root.rename(vault.root.with_name("elsewhere"))

    problems = Freshener(kb).ensure(120)

    assert problems
    assert "vault" in problems[0]
