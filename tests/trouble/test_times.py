"""Clocks that jump, times that are kept or coarse, backups that come back: an edit is found all the same."""

from __future__ import annotations

import os
import shutil
import time
from pathlib import Path

import pytest

from co_cli.knowledge_base import KnowledgeBase
from tests.vault import Vault

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
    monkeypatch.setattr(time, "time_ns", lambda: real() + 86_400 * 10**9)
    file = vault.write("memories/oak.md", "The ash stands here.")
    assert settled.sync().changed == ["memories/oak.md"]
    monkeypatch.undo()

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
