"""`co mcp` and `co chat` watch the files; in a large vault their searches do not walk it."""

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


def started_watcher(freshener: Freshener) -> watching.Watcher:
    freshener.watch(after=0)
    assert freshener.watcher
    assert freshener.watcher.caught_up(PATIENCE)
    return freshener.watcher


def test_in_a_large_vault_a_search_waits_for_the_watcher_instead_of_walking(
    vault: Vault, kb: KnowledgeBase, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(watching, "LARGE", 1)
    vault.write("memories/oak.md", "Oaks.")
    freshener = Freshener(kb, every=0)
    watcher = started_watcher(freshener)
    walked = kb.index.fresh_as_of

    assert freshener.ensure(PATIENCE) == []
    assert kb.index.fresh_as_of == walked
    for word in ("elms", "firs", "yews"):
        vault.write(f"memories/{word}.md", f"There are {word}.")
        assert freshener.ensure(PATIENCE) == []
        assert kb.search(word, backend="fts5").hits, "what was saved before the call is found"
    walked = kb.index.fresh_as_of
    freshener.close()

    assert not watcher.alive
    assert not any(thread.name.startswith("co-watch") for thread in threading.enumerate())
    assert freshener.ensure(PATIENCE) == []
    assert kb.index.fresh_as_of != walked, "without a watcher the vault is walked"


def test_a_small_vault_is_walked_before_each_search(vault: Vault, kb: KnowledgeBase) -> None:
    freshener = Freshener(kb, every=0)
    started_watcher(freshener)
    vault.write("memories/oak.md", "Oaks.")

    assert freshener.ensure(PATIENCE) == []
    assert kb.search("oaks", backend="fts5").hits
    freshener.close()


def test_where_folders_cannot_be_watched_every_search_walks_the_vault(
    vault: Vault, kb: KnowledgeBase, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(watching, "LARGE", 1)
    monkeypatch.setenv("WATCHFILES_FORCE_POLLING", "1")
    freshener = Freshener(kb, every=0)
    assert started_watcher(freshener).state == "polling"
    for word in ("oaks", "elms"):
        vault.write(f"memories/{word}.md", f"There are {word}.")
        assert freshener.ensure(PATIENCE) == []
        assert kb.search(word, backend="fts5").hits
    freshener.close()


def test_a_search_says_that_the_vault_is_not_there(
    vault: Vault, kb: KnowledgeBase, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(watching, "LARGE", 1)
    vault.write("memories/oak.md", "Oaks.")
    freshener = Freshener(kb, every=0)
    started_watcher(freshener)
    vault.root.rename(vault.root.with_name("away"))
    end = time.monotonic() + PATIENCE
    while not any("cannot be read" in problem for problem in freshener.ensure(PATIENCE)):
        assert time.monotonic() < end
    freshener.close()

    assert kb.search("oaks", backend="fts5").hits


def test_a_watcher_that_is_closed_before_it_started_never_syncs(kb: KnowledgeBase) -> None:
    freshener = Freshener(kb)
    freshener.watch(after=60)
    freshener.close()

    assert freshener.watcher
    assert freshener.watcher.syncs == 0
