"""Clocks that jump, times that are kept or coarse, backups that come back: an edit is found all the same."""

from __future__ import annotations

import os
import shutil
import time
from pathlib import Path

import pytest

from co_cli.index.changes import settled as settled_listing
from co_cli.index.engine import SyncState
from co_cli.knowledge_base import KnowledgeBase
from co_cli.sources.walk import entries_of, scan_origin
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


@pytest.mark.parametrize("way", ["copied over", "moved over", "folder swapped"])
def test_a_backup_that_is_restored_with_its_old_times_is_found(
    settled: KnowledgeBase, vault: Vault, tmp_path: Path, way: str
) -> None:
    backup = tmp_path / "backup"
    shutil.copytree(vault.path("memories"), backup, copy_function=shutil.copy2)
    vault.write("memories/oak.md", "The ash stands here.")
    assert settled.sync().changed == ["memories/oak.md"]

    if way == "copied over":
        shutil.copy2(backup / "oak.md", vault.path("memories/oak.md"))
    elif way == "moved over":
        (backup / "oak.md").rename(vault.path("memories/oak.md"))
    else:
        shutil.rmtree(vault.path("memories"))
        backup.rename(vault.path("memories"))

    assert settled.sync().changed == ["memories/oak.md"]
    assert says(settled, "oak") == ["memory:oak"]
    assert says(settled, "ash") == []


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


def test_where_times_are_coarse_a_young_file_is_read_again(vault: Vault, kb: KnowledgeBase) -> None:
    """FAT counts in steps of two seconds: what is written twice in one of them has one time.

    So the listing that is stored is made to look as it would there; only the mark of a young file can tell then.
    """
    file = vault.write("memories/oak.md", "The oak stands here.")
    kb.sync()
    with kb.engine.reading() as reader:
        number = reader.vault(kb.index.origin)
        assert number is not None
        stored = entries_of(reader.listings(number)[0]["memories"])
    young = [name for name, now in entries_of(listing_of(vault)).items() if stored[name] == ~now]
    file.write_text("The ash stands here.")
    with kb.engine.writing() as writer:
        listings = {"memories": settled_listing(listing_of(vault), young)}
        writer.finish_sync(number, SyncState(time.time(), listings, {}, {}, ()))

    assert kb.sync().changed == ["memories/oak.md"]
    assert says(kb, "ash") == ["memory:oak"]


def listing_of(vault: Vault) -> bytes:
    return scan_origin(str(vault.root)).listings["memories"]
