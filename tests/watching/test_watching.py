"""Changed files are found without anybody asking for a sync."""

from __future__ import annotations

import mmap
import os
import shutil
import threading
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median

import pytest

from co_cli.knowledge_base import KnowledgeBase
from co_cli.service import watching
from co_cli.sources.origin import Origin
from co_cli.sources.walk import folders_of
from tests.vault import Vault
from tests.watching.conftest import PATIENCE, Heard, Watch


def until(true: Callable[[], object]) -> float:
    """Seconds until it holds."""
    started = time.monotonic()
    while not true():
        assert time.monotonic() - started < PATIENCE
        time.sleep(0.01)
    return time.monotonic() - started


def handles() -> int:
    return len(os.listdir("/proc/self/fd")) if os.path.isdir("/proc/self/fd") else 0


def test_a_saved_file_is_found_soon(vault: Vault, kb: KnowledgeBase, watch: Watch) -> None:
    watch(kb)
    waited: list[float] = []
    for number in range(3):
        vault.write(f"memories/tree-{number}.md", f"Tree zqx{number} lives long.")
        waited.append(until(lambda number=number: kb.search(f"zqx{number}", backend="fts5").hits))

    assert median(waited) < 5  # about a third of a second on a machine that has nothing else to do


def plainly(path: Path, text: str) -> None:
    path.write_text(text)


def renaming_over(path: Path, text: str) -> None:
    new = path.with_name(".oak.md.tmp")
    new.write_text(text)
    new.rename(path)


def as_vim_does(path: Path, text: str) -> None:
    probe = path.with_name("4913")
    probe.touch()
    probe.unlink()
    swap = path.with_name(".oak.md.swp")
    swap.write_text("b0VIM")
    backup = path.with_name("oak.md~")
    path.rename(backup)
    path.write_text(text)
    backup.unlink()
    swap.unlink()


def as_emacs_does(path: Path, text: str) -> None:
    lock = path.with_name(".#oak.md")
    lock.symlink_to("somebody@somewhere")
    path.with_name("#oak.md#").write_text("autosave")
    shutil.copy2(path, path.with_name("oak.md~"))
    path.write_text(text)
    path.with_name("#oak.md#").unlink()
    lock.unlink()


def with_a_visible_temporary_file(path: Path, text: str) -> None:
    new = path.with_name("oak.md.sb-1234")
    new.write_text(text)
    new.replace(path)


DANCES = (plainly, renaming_over, as_vim_does, as_emacs_does, with_a_visible_temporary_file)


def test_whatever_way_an_editor_saves_one_note_changes_and_no_other_appears(
    vault: Vault, kb: KnowledgeBase, watch: Watch, heard: Heard
) -> None:
    path = vault.write("memories/oak.md", "Oaks live long.")
    watch(kb, heard)
    for number, save in enumerate(DANCES):
        told = len(heard.batches)
        save(path, f"Oaks are {save.__name__} zqx{number}.")
        heard.until(lambda told=told: len(heard.batches) > told)

        assert [hit.ref for hit in kb.search(f"zqx{number}", backend="fts5").hits] == ["memory:oak"], save.__name__

    assert heard.touched("changed") == ["memories/oak.md"] * len(DANCES)
    assert heard.touched("added", "moved", "removed") == ["memories/oak.md"]  # as it was at first
    assert [note.ref for note in kb.notes()] == ["memory:oak"]


def test_a_burst_of_a_thousand_files_is_one_sync_or_two(
    vault: Vault, kb: KnowledgeBase, watch: Watch, heard: Heard
) -> None:
    watcher = watch(kb, heard)
    before = watcher.syncs
    for number in range(1_000):
        vault.path(f"memories/burst-{number}.md").write_text(f"Burst {number}.")

    heard.until(lambda: len(heard.touched("added")) == 1_000)

    assert len(heard.batches) <= 3
    assert watcher.syncs - before <= 12  # a busy machine writes them over several seconds
    assert len({*heard.touched("added")}) == 1_000


def test_folders_that_come_and_move_are_followed(vault: Vault, kb: KnowledgeBase, watch: Watch, heard: Heard) -> None:
    watch(kb, heard)

    vault.write("articles/a/b/c/park.md", "# Park\n\nElms.")
    heard.until(lambda: heard.touched() == ["articles/a/b/c/park.md"])
    vault.write("articles/a/b/c/park.md", "# Park\n\nElms and oaks.")
    heard.until(lambda: heard.touched("changed") == ["articles/a/b/c/park.md"])
    vault.path("articles/a").rename(vault.path("articles/z"))
    heard.until(lambda: heard.touched("moved") == ["articles/z/b/c/park.md"])
    vault.write("articles/z/b/c/park.md", "# Park\n\nBirches.")
    heard.until(lambda: heard.touched("changed")[1:] == ["articles/z/b/c/park.md"])
    shutil.rmtree(vault.path("articles/z"))
    heard.until(lambda: heard.touched("removed") == ["articles/z/b/c/park.md"])


def test_what_is_hidden_or_excluded_or_no_note_wakes_nobody(
    vault: Vault, kb: KnowledgeBase, watch: Watch, heard: Heard
) -> None:
    vault.write(".coignore", "drafts/\n")
    vault.write("drafts/oak.md", "Oaks.")
    vault.write(".git/objects/a", "x")
    watcher = watch(kb, heard)
    before = watcher.syncs

    vault.write("drafts/elm.md", "Elms.")
    vault.write(".git/objects/b", "y")
    vault.write("memories/picture.png", "z")
    vault.write("memories/.oak.md.swp", "z")
    time.sleep(0.5)  # that nothing happens can only be waited for

    assert watcher.syncs == before
    assert heard.news == []
    vault.write(".coignore", "")
    heard.until(lambda: sorted(heard.touched("added")) == ["drafts/elm.md", "drafts/oak.md"])


def test_only_folders_that_are_searched_are_watched(vault: Vault, tmp_path: Path) -> None:
    for path in (".git/objects/a", "articles/deep/park.md", "drafts/elm.md", "empty/.keep"):
        vault.write(path, "x")
    vault.write(".coignore", "drafts/\n")
    (tmp_path / "elsewhere").mkdir()
    vault.path("link").symlink_to(tmp_path / "elsewhere")
    root = str(vault.root)

    folders, excluded = folders_of(Origin("vault", root))

    inside = ("", "/articles", "/articles/deep", "/empty", "/memories")
    assert sorted(folders) == [root + folder for folder in inside]
    assert excluded
    assert excluded("drafts", True)
    assert folders_of(Origin("folder", root, "one", "park.md"))[0] == [root], "of one file, its folder"


def test_a_vault_that_went_away_is_said_once_and_synced_when_it_is_back(
    vault: Vault, kb: KnowledgeBase, watch: Watch, heard: Heard, monkeypatch: pytest.MonkeyPatch
) -> None:
    vault.write("memories/oak.md", "Oaks live long.")
    monkeypatch.setattr(watching, "SAFETY", 0.3)
    watch(kb, heard)
    away = vault.root.with_name("away")

    vault.root.rename(away)
    heard.until(lambda: heard.events == ["missing"])
    time.sleep(0.7)  # two checks of all files
    assert heard.events == ["missing"]
    assert kb.search("oaks", backend="fts5").hits, "what was indexed is kept"
    (away / "memories" / "elm.md").write_text("Elms.")
    away.rename(vault.root)

    heard.until(lambda: heard.touched("added")[1:] == ["memories/elm.md"])
    assert heard.events == ["missing", "back"]
    assert heard.touched("removed") == []
    vault.write("memories/birch.md", "Birches.")
    heard.until(lambda: heard.touched("added")[2:] == ["memories/birch.md"])


def test_a_folder_that_another_process_adds_or_removes_is_noticed(
    vault: Vault, kb: KnowledgeBase, data_dir: Path, tmp_path: Path, watch: Watch, heard: Heard
) -> None:
    watch(kb, heard)
    handbook = tmp_path / "handbook"
    handbook.mkdir()
    (handbook / "deploy.txt").write_text("Blue first.")
    with KnowledgeBase.open(vault.root, data_dir) as other:
        other.origins.add(str(handbook))
        heard.until(lambda: heard.events == ["sources"])
        assert "is now watched" in heard.texts[0]
        (handbook / "rollback.txt").write_text("Green goes back.")
        heard.until(lambda: "rollback.txt" in heard.touched("added"))
        assert kb.search("green", backend="fts5").hits[0].path == str(handbook / "rollback.txt")

        other.origins.remove("handbook")
        heard.until(lambda: heard.events == ["sources", "sources"])
    assert kb.search("green", backend="fts5").hits == []


def test_polling_sees_the_same(vault: Vault, kb: KnowledgeBase, watch: Watch, heard: Heard) -> None:
    watcher = watch(kb, heard, poll=True, polling_every=0.1)
    assert heard.events == ["polling"]
    assert watcher.state == "polling"

    vault.write("articles/deep/oak.md", "Oaks.")
    heard.until(lambda: heard.touched("added") == ["articles/deep/oak.md"])
    vault.delete("articles/deep/oak.md")
    heard.until(lambda: heard.touched("removed") == ["articles/deep/oak.md"])


@pytest.mark.skipif(os.name == "nt", reason="Windows reports what is written through memory")
def test_a_change_that_the_system_does_not_report_is_found_all_the_same(
    vault: Vault, kb: KnowledgeBase, watch: Watch, heard: Heard, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = vault.write("memories/oak.md", "Oaks live long.")
    os.utime(path, (1e9, 1e9))
    monkeypatch.setattr(watching, "SAFETY", 0.3)
    watch(kb, heard)

    with path.open("r+b") as stream, mmap.mmap(stream.fileno(), 0) as memory:
        memory[:1] = b"A"  # no event reports this

    heard.until(lambda: heard.touched("changed") == ["memories/oak.md"])


def test_a_name_that_is_not_utf_8_does_not_end_it(vault: Vault, kb: KnowledgeBase, watch: Watch, heard: Heard) -> None:
    watch(kb, heard)
    try:
        Path(os.fsdecode(os.fsencode(vault.root) + b"/memories/\xff.md")).write_text("x")
    except OSError:
        pytest.skip("this file system takes UTF-8 names only")

    vault.write("memories/oak.md", "Oaks.")

    heard.until(lambda: heard.touched("added") == ["memories/oak.md"])


def test_two_watchers_of_one_vault_do_no_harm(
    vault: Vault, kb: KnowledgeBase, data_dir: Path, watch: Watch, heard: Heard
) -> None:
    with KnowledgeBase.open(vault.root, data_dir) as other:
        first, second = watch(kb, heard), watch(other, heard)
        for number in range(50):
            vault.write(f"memories/oak-{number}.md", f"Oak zqx{number}.")

        until(lambda: len(kb.notes(limit=100)) == 50)
        assert first.caught_up(PATIENCE)
        assert second.caught_up(PATIENCE)
        assert [one.level for one in kb.doctor() if one.level == "error"] == []
        second.close()


def test_nothing_is_left_behind_when_it_is_closed(vault: Vault, kb: KnowledgeBase, watch: Watch) -> None:
    for number in range(50):
        vault.write(f"articles/{number}/oak.md", "Oaks.")
    kb.sync()
    threads, files = threading.active_count(), handles()

    watcher = watch(kb)
    assert threading.active_count() == threads + 1
    assert handles() - files <= 10, "few file handles, however many folders there are"
    watcher.close()

    assert threading.active_count() == threads
    until(lambda: handles() <= files + 5)  # database connections may stay until the knowledge base is closed
    assert watcher.state == "stopped"
    watcher.close()  # once more does no harm


def test_one_that_is_closed_in_the_middle_of_a_sync_leaves_an_index_that_goes_on(
    vault: Vault, kb: KnowledgeBase, watch: Watch
) -> None:
    for number in range(1_200):
        vault.path(f"memories/oak-{number}.md").write_text(f"Oak {number}.")
    begun = threading.Event()
    watcher = watching.Watcher(kb, progress=lambda done, total: begun.set()).start()
    assert begun.wait(PATIENCE)
    watcher.close()

    assert watcher.state == "stopped"
    kb.sync()
    assert kb.index.counts().notes == 1_200
