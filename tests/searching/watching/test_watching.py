"""Changed files are indexed without anybody asking for a sync."""

from __future__ import annotations

import shutil
import threading
import time
from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path

import pytest

from co_cli.entrance.knowledge_base import KnowledgeBase
from co_cli.searching import freshness
from co_cli.searching.freshness import Batch, Notice, Watcher
from tests.folder import Vault

PATIENCE = 120.0
"""Seconds, for busy machines."""


class Heard:
    """The news of a watcher, for tests to wait for."""

    def __init__(self) -> None:
        self.news: list[Batch | Notice] = []
        self._more = threading.Condition()

    def __call__(self, news: Batch | Notice) -> None:
        with self._more:
            self.news.append(news)
            self._more.notify_all()

    def until(self, true: Callable[[], object]) -> None:
        """Wait for news after which this holds."""
        with self._more:
            assert self._more.wait_for(true, PATIENCE), self.news

    @property
    def events(self) -> list[str]:
        return [one.event for one in self.news if isinstance(one, Notice)]

    def touched(self, *kinds: str) -> list[str]:
        """Paths that were reported as `added`, `changed`, `removed` or (with their new path) `moved`, in order."""
        found: list[str] = []
        for batch in (one for one in self.news if isinstance(one, Batch)):
            for _, report in batch.reports:
                for kind in kinds or ("added", "changed", "moved", "removed"):
                    found += [path[1] if isinstance(path, tuple) else path for path in getattr(report, kind)]
        return found


Watch = Callable[..., Watcher]


@pytest.fixture
def heard() -> Heard:
    return Heard()


@pytest.fixture
def watch(kb: KnowledgeBase, heard: Heard, monkeypatch: pytest.MonkeyPatch) -> Iterator[Watch]:
    """Starts watchers, waits for their first sync, and closes them when the test ends. No sync comes by itself."""
    monkeypatch.setattr(freshness, "SAFETY", 3600.0)
    started: list[Watcher] = []

    def start(watched: KnowledgeBase = kb, **options: bool) -> Watcher:
        started.append(Watcher(watched, heard, **options).start())  # type: ignore[arg-type]
        assert started[-1].synced.wait(PATIENCE)
        return started[-1]

    yield start
    for watcher in started:
        watcher.close()


def until(true: Callable[[], object]) -> None:
    end = time.monotonic() + PATIENCE
    while not true():
        assert time.monotonic() < end
        time.sleep(0.02)


def plainly(path: Path, text: str) -> None:
    path.write_text(text)


def renaming_over(path: Path, text: str) -> None:
    new = path.with_name(".oak.md.tmp")
    new.write_text(text)
    new.rename(path)


def as_vim_does(path: Path, text: str) -> None:
    path.with_name("4913").touch()
    path.with_name("4913").unlink()
    swap = path.with_name(".oak.md.swp")
    swap.write_text("b0VIM")
    backup = path.with_name("oak.md~")
    path.rename(backup)
    path.write_text(text)
    backup.unlink()
    swap.unlink()


def with_a_visible_temporary_file(path: Path, text: str) -> None:
    new = path.with_name("oak.md.sb-1234")
    new.write_text(text)
    new.replace(path)


@pytest.mark.medium
def test_whatever_way_an_editor_saves_one_note_changes_and_no_other_appears(
    vault: Vault, kb: KnowledgeBase, watch: Watch, heard: Heard
) -> None:
    path = vault.write("memories/oak.md", "Oaks live long.")
    watch()
    saves = (plainly, renaming_over, as_vim_does, with_a_visible_temporary_file)
    for number, save in enumerate(saves):
        save(path, f"Oaks are {save.__name__} zqx{number}.")
        until(lambda number=number: kb.search(f"zqx{number}", backend="fts5").hits)
        assert [hit.ref for hit in kb.search(f"zqx{number}", backend="fts5").hits] == ["memory:oak"], save.__name__

    heard.until(lambda: len(heard.touched()) > len(saves))
    assert {*heard.touched()} == {"memories/oak.md"}


def test_a_burst_of_files_is_a_few_syncs(vault: Vault, watch: Watch, heard: Heard) -> None:
    watcher = watch()
    before = watcher.syncs
    for number in range(200):
        vault.path(f"memories/burst-{number}.md").write_text(f"Burst {number}.")

    heard.until(lambda: len(heard.touched("added")) == 200)

    assert watcher.syncs - before < 20


def test_a_file_that_is_written_slowly_is_indexed_when_it_is_complete(
    vault: Vault, kb: KnowledgeBase, watch: Watch, heard: Heard
) -> None:
    watch()
    moments: list[float] = []
    with vault.path("memories/book.md").open("w") as stream:
        for number in range(8):
            stream.write(f"Chapter zqx{number}.\n")
            stream.flush()
            moments.append(time.monotonic())
            time.sleep(freshness.QUIET_MS / 5_000)
    heard.until(lambda: kb.search("zqx7", backend="fts5").hits)

    pauses = sum(after - before > freshness.QUIET_MS / 1_000 for before, after in pairwise(moments))
    assert len(heard.touched()) < 4 + pauses, "it was written eight times, slowly only on a busy machine"


def test_folders_that_come_and_move_are_followed(vault: Vault, watch: Watch, heard: Heard) -> None:
    watch()

    vault.write("articles/a/b/c/park.md", "# Park\n\nElms.")
    heard.until(lambda: heard.touched() == ["articles/a/b/c/park.md"])
    vault.write("articles/a/b/c/park.md", "# Park\n\nElms and oaks.")
    heard.until(lambda: heard.touched("changed") == ["articles/a/b/c/park.md"])
    vault.path("articles/a").rename(vault.path("articles/z"))
    heard.until(lambda: heard.touched("moved") == ["articles/z/b/c/park.md"])
    shutil.rmtree(vault.path("articles/z"))
    heard.until(lambda: bool(heard.touched("removed")))
    assert heard.touched("removed") == ["articles/z/b/c/park.md"]


def test_changes_of_hidden_and_excluded_files_cause_no_sync(vault: Vault, watch: Watch, heard: Heard) -> None:
    vault.write(".coignore", "drafts/\n")
    vault.write("drafts/oak.md", "Oaks.")
    watcher = watch()
    before = watcher.syncs

    vault.write("drafts/elm.md", "Elms.")
    vault.write(".git/objects/b", "y")
    vault.write("memories/picture.png", "z")
    vault.write("memories/.oak.md.swp", "z")
    time.sleep(0.3)  # that nothing happens can only be waited for

    assert watcher.syncs == before
    vault.write(".coignore", "")
    heard.until(lambda: sorted(heard.touched("added")) == ["drafts/elm.md", "drafts/oak.md"])


def test_a_vault_that_went_away_is_reported_once_and_synced_when_it_is_back(
    vault: Vault, kb: KnowledgeBase, watch: Watch, heard: Heard
) -> None:
    vault.write("memories/oak.md", "Oaks live long.")
    watch()
    away = vault.root.with_name("away")

    vault.root.rename(away)
    heard.until(lambda: heard.events)
    assert kb.search("oaks", backend="fts5").hits, "what was indexed is kept"
    (away / "memories" / "elm.md").write_text("Elms.")
    away.rename(vault.root)

    heard.until(lambda: heard.touched("added")[1:] == ["memories/elm.md"] and heard.events == ["missing", "back"])
    assert heard.touched("removed") == []


def test_a_folder_that_another_process_adds_or_removes_is_noticed(
    vault: Vault, kb: KnowledgeBase, data_dir: Path, tmp_path: Path, watch: Watch, heard: Heard
) -> None:
    watch()
    handbook = tmp_path / "handbook"
    handbook.mkdir()
    (handbook / "deploy.txt").write_text("Blue first.")
    with KnowledgeBase.open(vault.root, data_dir) as other:
        other.sources.add(str(handbook))
        heard.until(lambda: heard.events == ["sources"])
        (handbook / "rollback.txt").write_text("Green goes back.")
        heard.until(lambda: kb.search("green", backend="fts5").hits)
        assert kb.search("green", backend="fts5").hits[0].path == str(handbook / "rollback.txt")

        other.sources.remove("handbook")
        heard.until(lambda: heard.events == ["sources", "sources"])
    assert kb.search("green", backend="fts5").hits == []


def test_changes_are_found_by_polling_or_by_the_regular_sync_if_they_are_not_reported(
    vault: Vault, watch: Watch, heard: Heard, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(freshness, "POLL_MS", 100)
    assert watch(poll=True).polls
    assert heard.events == ["polling"]
    vault.write("memories/oak.md", "Oaks.")
    heard.until(lambda: heard.touched("added") == ["memories/oak.md"])

    monkeypatch.setattr(freshness, "SAFETY", 0.3)
    monkeypatch.setattr(Watcher, "_matters", lambda *_: False)
    vault.write("memories/elm.md", "Elms.")
    watch()
    vault.write("memories/yew.md", "Yews.")
    heard.until(lambda: "memories/yew.md" in heard.touched("added"))


@pytest.mark.medium
def test_nothing_is_left_behind_when_it_is_closed_even_during_a_sync(vault: Vault, kb: KnowledgeBase) -> None:
    for number in range(600):
        vault.path(f"memories/oak-{number}.md").write_text(f"Oak {number}.")
    begun, threads = threading.Event(), set(threading.enumerate())
    watcher = Watcher(kb, progress=lambda done, total: begun.set()).start()
    assert begun.wait(PATIENCE)
    watcher.close()
    watcher.close()  # once more does no harm

    assert set(threading.enumerate()) <= threads
    kb.sync()
    assert kb.index.notes.state().notes == 600
