"""Clocks that jump, times that are kept or coarse, backups that come back: an edit is found all the same."""

from __future__ import annotations

import os
import shutil
import time
from pathlib import Path

import pytest

from co_cli.entrance.knowledge_base import KnowledgeBase
from co_cli.ground.values import moment_text
from tests.command import Co
from tests.folder import Vault

LONG_AGO = 1_700_000_000


@pytest.fixture
def settled(vault: Vault, kb: KnowledgeBase) -> KnowledgeBase:
    """A vault whose notes are old, and that a sync does not look at again."""
    for name in ("oak", "elm"):
        os.utime(vault.write(f"memories/{name}.md", f"The {name} stands here."), (LONG_AGO, LONG_AGO))
    kb.sync()
    kb.sync()
    return kb


def says(kb: KnowledgeBase, word: str) -> list[str]:
    return [hit.ref for hit in kb.search(word, backend="fts5").hits]


def test_an_edit_that_keeps_size_and_mtime_is_found_by_the_next_sync(settled: KnowledgeBase, vault: Vault) -> None:
    file = vault.path("memories/oak.md")
    with file.open("r+b") as stream:  # in place: the inode stays too
        stream.write(b"One")
    os.utime(file, (LONG_AGO, LONG_AGO))

    assert settled.sync().changed == ["memories/oak.md"]
    assert says(settled, "one") == ["memory:oak"]


def test_a_backup_that_is_restored_with_its_old_times_is_found(
    settled: KnowledgeBase, vault: Vault, tmp_path: Path
) -> None:
    note, backup = vault.path("memories/oak.md"), tmp_path / "backup"
    ways = {
        "copied over": lambda: shutil.copy2(backup / "oak.md", note),
        "moved over": lambda: (backup / "oak.md").rename(note),
        "folder swapped": lambda: (shutil.rmtree(note.parent), backup.rename(note.parent)),
    }
    for way, restore in ways.items():
        shutil.copytree(note.parent, backup, copy_function=shutil.copy2, dirs_exist_ok=True)
        note.write_text("The ash stands here.")
        assert settled.sync().changed == ["memories/oak.md"]

        restore()

        assert settled.sync().changed == ["memories/oak.md"], way
        assert (says(settled, "oak"), says(settled, "ash")) == (["memory:oak"], [])


def test_notes_written_while_the_clock_was_wrong_are_found_and_so_are_their_edits(
    settled: KnowledgeBase, vault: Vault
) -> None:
    for number, jump in enumerate((-10 * 365 * 86_400, 3_600, 30 * 365 * 86_400)):
        then = time.time() + jump
        file = vault.write(f"memories/ash{number}.md", f"The ash{number} stands here.")
        os.utime(file, (then, then))
        assert settled.sync().added == [f"memories/ash{number}.md"]

        file.write_text(f"The fir{number} stands here.")
        os.utime(file, (then, then))

        assert settled.sync().changed == [f"memories/ash{number}.md"]
        assert says(settled, f"fir{number}") == [f"memory:ash{number}"]
        assert settled.sync().touched == 0


def test_a_clock_that_jumps_back_between_two_syncs_hides_no_edit(
    settled: KnowledgeBase, vault: Vault, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = time.time_ns
    file = vault.write("memories/oak.md", "The ash stands here.")
    with monkeypatch.context() as tomorrow:
        tomorrow.setattr(time, "time_ns", lambda: real() + 86_400 * 10**9)
        assert settled.sync().changed == ["memories/oak.md"]

    file.write_text("The fir stands here.")

    assert settled.sync().changed == ["memories/oak.md"]


def test_a_sync_in_the_middle_of_somebody_s_save_is_put_right_by_the_next(settled: KnowledgeBase, vault: Vault) -> None:
    path, new = vault.path("memories/oak.md"), b"The ash stands here, and it stands alone."
    for half in (b"", new[:10], bytes(len(new))):
        path.write_bytes(half)
        settled.sync()
        assert path.read_bytes() == half, "it was touched"
    path.unlink()
    settled.sync()
    path.write_bytes(new)
    settled.sync()

    assert says(settled, "alone") == ["memory:oak"]


def test_a_restore_brings_back_what_was_forgotten_last_whatever_the_clock_said_and_names_it(
    co: Co, vault: Vault, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = time.time()
    vault.write(".trash/99991231T235959Z-999999999999999999/memories/oak.md", "A planted oak.")
    for days, text in ((0, "first"), (-400, "second"), (-1, "third")):
        vault.write("memories/oak.md", f"The {text} oak.")
        monkeypatch.setattr(time, "time", lambda moved=days * 86400: now + moved)
        assert co("forget", "oak").code == 0
    monkeypatch.setattr(time, "time", lambda: now)

    ran = co("note", "restore", "oak")

    assert vault.read("memories/oak.md") == "The third oak."
    assert ran.out == f"restored memory:oak, forgotten {moment_text(now - 86400)}; copies left in the trash: 3\n"
    assert [vault.read(one["trash"]) for one in co("list", "--trash", "--json").json] == [
        "The second oak.",
        "The first oak.",
        "A planted oak.",
    ]


def test_the_trash_tells_a_forgotten_note_from_an_earlier_text_and_restores_the_one_that_is_named(
    co: Co, vault: Vault
) -> None:
    vault.write("memories/oak.md", "The oak stands here.")
    assert co("edit", "oak", "--body", "It fell.").code == 0
    assert co("list", "--trash").out.startswith("memory:oak  Oak  copy kept today  (.trash/")
    assert co("forget", "oak").code == 0

    forgotten, copy, hint = co("list", "--trash").out.splitlines()

    assert forgotten.startswith("memory:oak  Oak  forgotten today  (.trash/")
    assert copy.startswith("memory:oak  Oak  copy kept today  (.trash/")
    assert hint.startswith("`co note restore REF` restores the first")
    assert [one["copy"] for one in co("list", "--trash", "--json").json] == [False, True]
    assert co("note", "restore", copy.partition("(")[2][:-1]).out.startswith("restored memory:oak, a copy kept 20")
    assert vault.read("memories/oak.md") == "The oak stands here."
