"""Doors that stay open watch the files, and who searches beside a watcher need not look at them."""

from __future__ import annotations

import threading
import time
from pathlib import Path

import pytest

from co_cli.knowledge_base import KnowledgeBase
from co_cli.service import watching
from co_cli.service.freshness import Freshener
from tests.chat.terminal import Terminal
from tests.command import Co
from tests.mcp_server.talking import Place
from tests.vault import Vault
from tests.watching.conftest import PATIENCE


def test_an_mcp_server_indexes_what_is_saved_without_being_asked(tmp_path: Path) -> None:
    place = Place(tmp_path)
    server = place.start()
    server.initialise()
    with KnowledgeBase.open(place.vault.root, tmp_path / "data") as kb:  # which never syncs
        for word in ("oaks", "elms"):  # the first sync finds the one, and only who watches the other
            place.vault.write(f"memories/{word}.md", f"There are {word}.")
            end = time.monotonic() + PATIENCE
            while not kb.search(word, backend="fts5").hits:
                assert time.monotonic() < end
                time.sleep(0.05)
    assert server.end() == (0, "", "")


def test_a_chat_indexes_what_is_saved_while_nobody_types(vault: Vault, data_dir: Path, co: Co) -> None:
    vault.write("memories/oak.md", "There are oaks.")
    with Terminal(co.folder) as chat, KnowledgeBase.open(vault.root, data_dir) as kb:  # which never syncs
        chat.prompt()
        for word in ("elms", "firs"):
            vault.write(f"memories/{word}.md", f"There are {word}.")
            end = time.monotonic() + PATIENCE
            while not kb.search(word, backend="fts5").hits:
                assert time.monotonic() < end
                time.sleep(0.05)


def watching_thread(freshener: Freshener) -> watching.Watcher:
    assert freshener._starter
    freshener._starter.join()
    assert freshener._watcher
    assert freshener._watcher.caught_up(PATIENCE)
    return freshener._watcher


def test_beside_a_watcher_a_large_vault_is_not_walked_by_who_searches(
    vault: Vault, kb: KnowledgeBase, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(watching, "LARGE", 1)
    vault.write("memories/oak.md", "Oaks.")
    freshener = Freshener(kb, every=0)
    freshener.watch(after=0)
    watcher = watching_thread(freshener)
    walked = kb.index.fresh_as_of

    assert freshener.ensure(PATIENCE) == []
    assert kb.index.fresh_as_of == walked
    vault.write("memories/elm.md", "Elms.")
    while not kb.search("elms", backend="fts5").hits:
        assert freshener.ensure(PATIENCE) == []
    freshener.close()

    assert not watcher.alive
    assert not any(thread.name.startswith("co-watch") for thread in threading.enumerate())
    assert freshener.ensure(PATIENCE) == []
    assert kb.index.fresh_as_of != walked, "without a watcher the files are looked at as ever"


def test_a_small_vault_is_sooner_walked_than_told_of(vault: Vault, kb: KnowledgeBase) -> None:
    freshener = Freshener(kb, every=0)
    freshener.watch(after=0)
    watching_thread(freshener)
    vault.write("memories/oak.md", "Oaks.")

    assert freshener.ensure(PATIENCE) == []
    assert kb.search("oaks", backend="fts5").hits
    freshener.close()


def test_who_searches_is_told_that_the_vault_is_away(vault: Vault, kb: KnowledgeBase) -> None:
    vault.write("memories/oak.md", "Oaks.")
    freshener = Freshener(kb)
    freshener.watch(after=0)
    watching_thread(freshener)
    vault.root.rename(vault.root.with_name("away"))
    while not any("is not there" in problem for problem in freshener.ensure(PATIENCE)):
        pass
    freshener.close()

    assert kb.search("oaks", backend="fts5").hits


def test_one_that_is_closed_before_it_began_never_begins(kb: KnowledgeBase) -> None:
    freshener = Freshener(kb)
    freshener.watch(after=60)
    freshener.close()

    assert freshener._watcher is None
