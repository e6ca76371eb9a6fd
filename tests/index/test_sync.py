"""What a sync sees and says: added, changed, moved, removed, skipped, and nothing at all."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import apsw
import pytest

from co_cli.entrance.knowledge_base import KnowledgeBase
from co_cli.index import sync
from co_cli.index.sqlite.sqlite_engine import SqliteEngine
from co_cli.knowledge_index import IndexSetup, KnowledgeIndex
from co_cli.notes.note import Note
from tests.folder import Vault
from tests.index.contents import contents, contents_from_scratch

LONG_AGO = 1_700_000_000_000_000_000


def found(index: KnowledgeIndex, query: str) -> list[str]:
    return [hit.path.removeprefix(f"{index.root}/") for hit in index.search(query)]


def indexed(index: KnowledgeIndex) -> list[str]:
    return sorted(index.notes.hashes())


def settle(vault: Vault, path: str) -> None:
    """Make a file look as if nobody had touched it for a while."""
    os.utime(vault.path(path), ns=(LONG_AGO, LONG_AGO))


def test_a_file_that_moved_is_neither_added_nor_removed(vault: Vault, index: KnowledgeIndex) -> None:
    vault.write("memories/oak.md", "Oaks live long.")
    index.sync()

    vault.path("articles/trees").mkdir()
    vault.path("memories/oak.md").rename(vault.path("articles/trees/old oak.md"))
    report = index.sync()

    assert report.moved == [("memories/oak.md", "articles/trees/old oak.md")]
    assert (report.added, report.removed, report.changed) == ([], [], [])
    assert found(index, "oaks") == ["articles/trees/old oak.md"]


def test_a_sync_without_changes_writes_nothing(vault: Vault, index: KnowledgeIndex, engine: SqliteEngine) -> None:
    for path in ("memories/oak.md", "articles/deep/elm.md", "articles/broken.md"):
        vault.write(path, "---\ntitle: [\n---\nTrees.")
        settle(vault, path)
    vault.write("memories/blob.md", b"\0\1\2")
    settle(vault, "memories/blob.md")
    first = index.sync()

    watcher = apsw.Connection(engine.path)
    before = watcher.pragma("data_version")
    report = index.sync()

    assert watcher.pragma("data_version") == before
    assert (report.touched, report.unchanged) == (0, 3)
    assert (report.skipped, report.problems) == (first.skipped, first.problems)
    assert [path for path, _ in report.skipped] == ["memories/blob.md"]


def test_an_edit_right_after_a_sync_is_found_though_size_and_time_are_the_same(
    vault: Vault, index: KnowledgeIndex
) -> None:
    file = vault.write("memories/oak.md", "Oaks live long.")
    index.sync()
    before = file.stat()

    with file.open("r+b") as stream:  # in place: the inode stays too
        stream.write(b"Elms")
    os.utime(file, ns=(before.st_atime_ns, before.st_mtime_ns))
    report = index.sync()

    assert file.stat().st_ino == before.st_ino
    assert report.changed == ["memories/oak.md"]
    assert found(index, "elms") == ["memories/oak.md"]


def test_a_binary_file_is_skipped_until_it_becomes_text(vault: Vault, index: KnowledgeIndex) -> None:
    vault.write("memories/blob.md", b"PK\x03\x04\0\0\0\0")
    vault.write("memories/oak.md", "Oaks live long.")

    report = index.sync()

    assert report.skipped == [("memories/blob.md", "not a text file")]
    assert (report.added, report.unchanged) == (["memories/oak.md"], 0)
    vault.write("memories/blob.md", "Text after all.")
    vault.write("memories/oak.md", b"\0\0\0\0")
    report = index.sync()
    assert (report.added, report.skipped) == (["memories/blob.md"], [("memories/oak.md", "not a text file")])
    assert found(index, "long") == []


def test_a_file_that_vanishes_between_the_listing_and_the_reading_is_tried_again(
    vault: Vault, index: KnowledgeIndex, engine: SqliteEngine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sync, "BATCH", 10)
    for number in range(12):
        vault.write(f"memories/{number}.md", f"Note {number}.")
    moved: list[Path] = []

    def move_the_last(done: int, total: int) -> None:
        if not moved:
            moved.append(vault.path("memories/9.md").rename(tmp_path / "kept.md"))

    report = index.sync(progress=move_the_last)

    assert [path for path, _ in report.skipped] == ["memories/9.md"]
    moved[0].rename(vault.path("memories/9.md"))
    assert index.sync().added == ["memories/9.md"]
    assert contents(engine, vault.root) == contents_from_scratch(vault, tmp_path / "other")


def test_a_sync_that_ends_after_another_one_does_not_hide_what_that_one_saw(
    vault: Vault, index: KnowledgeIndex
) -> None:
    vault.write("memories/oak.md", "Oaks live long.")

    def sync_meanwhile(files: int, of: int) -> None:
        vault.write("memories/elm.md", "Elms are rare.")
        KnowledgeIndex(index.engine, vault.root, embedders=index.embedders).sync()

    index.sync(progress=sync_meanwhile)
    vault.delete("memories/elm.md")

    assert index.sync().removed == ["memories/elm.md"]
    assert indexed(index) == ["memories/oak.md"]


def test_a_sync_that_writes_an_older_text_after_another_one_reads_the_file_again(
    vault: Vault, index: KnowledgeIndex, engine: SqliteEngine, tmp_path: Path
) -> None:
    vault.write("articles/oak.md", "Oaks live long.")
    settle(vault, "articles/oak.md")

    def sync_meanwhile(note: Note) -> None:
        """Called when a file has been read and is not indexed yet."""
        vault.write("articles/oak.md", "Oaks live for a thousand years.")
        os.utime(vault.path("articles/oak.md"), ns=(LONG_AGO + 1, LONG_AGO + 1))
        KnowledgeIndex(engine, vault.root, embedders=index.embedders).sync()

    index.within(IndexSetup(boundaries=sync_meanwhile)).sync()

    assert index.sync().changed == ["articles/oak.md"]
    assert contents(engine, vault.root) == contents_from_scratch(vault, tmp_path / "other")


def test_a_search_db_that_is_deleted_during_a_sync_is_complete_after_the_next_one(
    vault: Vault, index: KnowledgeIndex, engine: SqliteEngine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def delete(done: int, total: int) -> None:
        for ending in ("", "-wal", "-shm"):
            Path(engine.path + ending).unlink(missing_ok=True)

    monkeypatch.setattr(sync, "BATCH", 10)
    for number in range(11):
        os.utime(vault.write(f"memories/{number}.md", f"Note {number}\n"), (1e9, 1e9))  # too old to be read again
    for round_ in range(2):
        index.sync(progress=delete)
        index.sync()

        assert contents(engine, vault.root) == contents_from_scratch(vault, tmp_path / str(round_))
        vault.write("memories/10.md", "Another text\n")


def test_a_file_name_that_is_not_utf_8_is_reported_and_the_others_are_indexed(
    vault: Vault, index: KnowledgeIndex
) -> None:
    bad_file = os.path.join(os.fsencode(vault.root), b"memories", b"caf\xe9.md")
    bad_folder = os.path.join(os.fsencode(vault.root), b"d\xe9j\xe0")
    try:
        os.mkdir(bad_folder)
    except OSError:
        pytest.skip("this file system only has names that are valid UTF-8")
    for path in (bad_file, os.path.join(bad_folder, b"vu.md")):
        with open(path, "wb") as stream:
            stream.write(b"Oaks live long.")
    vault.write("memories/elm.md", "Elms fall ill.")

    for _ in range(2):
        report = index.sync()

        assert indexed(index) == ["memories/elm.md"]
        assert [os.fsencode(path) for path, _ in report.skipped] == [b"d\xe9j\xe0", b"memories/caf\xe9.md"]
        assert all("UTF-8" in reason for _, reason in report.skipped)

    os.rename(bad_file, os.path.join(os.fsencode(vault.root), b"memories", b"cafe.md"))
    shutil.rmtree(bad_folder)
    report = index.sync()
    assert (report.added, report.skipped) == (["memories/cafe.md"], [])


def test_a_damaged_listing_hides_no_deletion(vault: Vault, index: KnowledgeIndex, engine: SqliteEngine) -> None:
    for name in ("oak", "elm", "ash"):
        vault.write(f"memories/{name}.md", f"The {name} is a tree.")
    index.sync()
    with engine.database.writing() as connection:
        connection.execute("update folders set listing = x'0102030405060708090a'")
    vault.delete("memories/elm.md")

    index.sync()

    assert indexed(index) == ["memories/ash.md", "memories/oak.md"]
    assert index.sync().touched == 0


def test_progress_counts_every_file_once_and_vectors_are_made_meanwhile(vault: Vault, kb: KnowledgeBase) -> None:
    for number in range(30):
        vault.write(f"memories/oak{number}.md", f"Oak number {number} lives long.")
    calls: list[tuple[int, int]] = []

    kb.sync(lambda done, total: calls.append((done, total)))

    assert calls == [(done, 30) for done in range(31)]
    assert kb.status().unembedded == 0
