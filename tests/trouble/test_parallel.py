"""One KnowledgeBase may be shared between threads, and one vault between processes."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from co_cli.entrance.knowledge_base import KnowledgeBase
from tests.command import run_together
from tests.folder import Vault

pytestmark = pytest.mark.slow

SUBJECTS = ("harbour", "kettle", "invoice", "lantern", "orchard", "compass", "violin", "glacier")


def run_all(*works: Callable[[], None]) -> list[BaseException]:
    errors: list[BaseException] = []

    def guarded(work: Callable[[], None]) -> None:
        try:
            work()
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=guarded, args=(work,)) for work in works]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=60)
    assert not any(thread.is_alive() for thread in threads)
    return errors


def test_threads_save_search_sync_and_list_at_once(kb: KnowledgeBase, vault: Vault) -> None:
    vault.write("memories/oak.md", "Oaks live long.")
    kb.sync()

    def save(subject: str) -> Callable[[], None]:
        def work() -> None:
            for number in range(6):
                saved = kb.remember(f"The {subject} has {number} secrets.")
                assert saved.outcome == "created"
                assert any(
                    hit.ref == saved.ref for hit in kb.search(f"{subject} {number} secrets", backend="fts5").hits
                )

        return work

    def look() -> None:
        for _ in range(25):
            assert kb.search("oaks live", backend="fts5").hits[0].ref == "memory:oak"
            assert kb.notes(limit=1)

    def sync() -> None:
        for _ in range(15):
            kb.sync()

    errors = run_all(*(save(subject) for subject in SUBJECTS[:4]), look, look, sync)

    assert errors == []
    assert len(vault.notes()) == 25
    kb.sync()
    assert kb.status().notes == {"memory": 25}
    assert [finding for finding in kb.doctor() if finding.level != "ok"] == []


def test_threads_go_on_searching_through_rebuilds(kb: KnowledgeBase, vault: Vault) -> None:
    for number in range(50):
        vault.write(f"memories/{number}.md", f"Oak number {number}.")
    kb.sync()
    done = threading.Event()

    def look() -> None:
        while not done.is_set():
            found = kb.search("oak", backend="fts5", limit=50)
            assert (len(found.hits), found.degraded) == (50, [])

    def rebuild() -> None:
        try:
            for _ in range(3):
                kb.rebuild()
        finally:
            done.set()

    assert run_all(look, look, rebuild) == []


def test_a_note_saved_during_a_rebuild_is_found_from_then_on(kb: KnowledgeBase, vault: Vault, data_dir: Path) -> None:
    for number in range(200):
        vault.write(f"memories/{number}.md", f"Oak number {number}.")
    kb.sync()
    saved, done = threading.Event(), threading.Event()
    with KnowledgeBase.open(vault.root, data_dir) as server:

        def save(files: int, of: int) -> None:
            if not saved.is_set():
                server.remember("The dentist is on Elm Street.", title="Dentist")
                saved.set()

        def look() -> None:
            saved.wait(60)
            while not done.is_set():
                found = server.search("dentist", backend="fts5")
                assert [hit.ref for hit in found.hits] == ["memory:dentist"]

        def rebuild() -> None:
            try:
                kb.rebuild(save)
            finally:
                done.set()

        assert run_all(look, rebuild) == []


WORK = """
import sys
from co_cli.entrance.knowledge_base import KnowledgeBase
vault, data, subject = sys.argv[1:]
with KnowledgeBase.open(vault, data) as kb:
    for number in range(10):
        saved = kb.remember(f"The {subject} has {number} secrets.")
        assert saved.outcome == "created", saved
        kb.sync()
        found = kb.search(f"{subject} {number}", backend="fts5")
        assert found.degraded == [] and saved.ref in [hit.ref for hit in found.hits], found
        if number % 3 == 0:
            kb.forget(saved.ref)
"""


def test_processes_save_forget_and_search_in_one_vault(kb: KnowledgeBase, vault: Vault, data_dir: Path) -> None:
    run_together(WORK, *((vault.root, data_dir, subject) for subject in SUBJECTS[:3]))

    assert len(vault.notes()) == 3 * 6
    kb.sync()
    assert kb.status().notes == {"memory": 18}
    assert [finding for finding in kb.doctor() if finding.level != "ok"] == []
