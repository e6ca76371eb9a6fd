"""What a sync sees and says: added, changed, moved, removed, and nothing at all."""

from __future__ import annotations

import os
import time
from pathlib import Path

import apsw
import pytest

from co_cli.index import knowledge_index, sync
from co_cli.index.connection import Database
from co_cli.index.knowledge_index import KnowledgeIndex
from tests.index.contents import contents, contents_from_scratch
from tests.vault import Vault

LONG_AGO = 1_700_000_000_000_000_000


def found(index: KnowledgeIndex, query: str) -> list[str]:
    return [passage.path for passage in index.passages([match.passage_id for match in index.search(query)])]


def settle(vault: Vault, path: str, moment: int = LONG_AGO) -> None:
    """Make a file look as if nobody had touched it for a while."""
    os.utime(vault.path(path), ns=(moment, moment))


def test_a_new_file_is_added(vault: Vault, index: KnowledgeIndex) -> None:
    vault.write("memories/oak.md", "Oaks live long.")

    report = index.sync()

    assert report.added == ["memories/oak.md"]
    assert found(index, "oaks") == ["memories/oak.md"]


def test_an_edited_file_is_changed_and_its_old_words_are_forgotten(vault: Vault, index: KnowledgeIndex) -> None:
    vault.write("memories/oak.md", "Oaks live long.")
    index.sync()

    vault.write("memories/oak.md", "Birches do not.")
    report = index.sync()

    assert (report.added, report.changed) == ([], ["memories/oak.md"])
    assert found(index, "birches") == ["memories/oak.md"]
    assert found(index, "long") == []


def test_a_deleted_file_is_forgotten(vault: Vault, index: KnowledgeIndex) -> None:
    vault.write("memories/oak.md", "Oaks live long.")
    vault.write("memories/elm.md", "Elms fall ill.")
    index.sync()

    vault.delete("memories/oak.md")
    report = index.sync()

    assert (report.removed, report.unchanged) == (["memories/oak.md"], 1)
    assert found(index, "oaks") == []


def test_a_file_that_moved_is_neither_added_nor_removed(vault: Vault, index: KnowledgeIndex) -> None:
    vault.write("memories/oak.md", "Oaks live long.")
    index.sync()

    vault.path("articles/trees").mkdir()
    vault.path("memories/oak.md").rename(vault.path("articles/trees/old oak.md"))
    report = index.sync()

    assert report.moved == [("memories/oak.md", "articles/trees/old oak.md")]
    assert (report.added, report.removed, report.changed) == ([], [], [])
    assert found(index, "oaks") == ["articles/trees/old oak.md"]


def test_two_files_that_swapped_their_names_are_both_changed(vault: Vault, index: KnowledgeIndex) -> None:
    vault.write("memories/a.md", "Oaks live long.")
    vault.write("memories/b.md", "Elms fall ill.")
    index.sync()

    vault.path("memories/a.md").rename(vault.path("memories/c.md"))
    vault.path("memories/b.md").rename(vault.path("memories/a.md"))
    vault.path("memories/c.md").rename(vault.path("memories/b.md"))
    report = index.sync()

    assert report.changed == ["memories/a.md", "memories/b.md"]
    assert found(index, "oaks") == ["memories/b.md"]


def test_copies_of_one_text_are_notes_of_their_own(vault: Vault, index: KnowledgeIndex) -> None:
    vault.write("memories/a.md", "Oaks live long.")
    vault.write("memories/b.md", "Oaks live long.")
    index.sync()

    vault.delete("memories/a.md")
    index.sync()

    assert found(index, "oaks") == ["memories/b.md"]


def test_a_file_that_was_only_touched_is_unchanged(vault: Vault, index: KnowledgeIndex) -> None:
    vault.write("memories/oak.md", "Oaks live long.")
    index.sync()

    settle(vault, "memories/oak.md")
    report = index.sync()

    assert (report.touched, report.unchanged) == (0, 1)


def test_a_sync_without_changes_writes_nothing(vault: Vault, index: KnowledgeIndex, database: Database) -> None:
    for path in ("memories/oak.md", "articles/deep/elm.md", "articles/broken.md"):
        vault.write(path, "---\ntitle: [\n---\nTrees.")
        settle(vault, path)
    vault.write("memories/blob.md", b"\0\1\2")
    settle(vault, "memories/blob.md")
    first = index.sync()

    watcher = apsw.Connection(database.path)
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


def test_a_file_replaced_by_one_of_the_same_size_and_time_is_found(vault: Vault, index: KnowledgeIndex) -> None:
    vault.write("memories/oak.md", "Oaks live long.")
    settle(vault, "memories/oak.md")
    index.sync()

    vault.write("memories/new", "Elms live long.")
    settle(vault, "memories/new")
    vault.path("memories/new").replace(vault.path("memories/oak.md"))

    assert index.sync().changed == ["memories/oak.md"]


def test_a_recent_file_is_not_read_forever(vault: Vault, index: KnowledgeIndex, database: Database) -> None:
    vault.write("memories/oak.md", "Oaks live long.")
    settle(vault, "memories/oak.md", time.time_ns() - 1_800_000_000)
    index.sync()
    time.sleep(0.3)
    index.sync()

    watcher = apsw.Connection(database.path)
    before = watcher.pragma("data_version")
    index.sync()

    assert watcher.pragma("data_version") == before


def test_a_watcher_sees_a_sync_that_writes(vault: Vault, index: KnowledgeIndex, database: Database) -> None:
    index.sync()
    watcher = apsw.Connection(database.path)
    before = watcher.pragma("data_version")

    vault.write("memories/oak.md", "Oaks live long.")
    index.sync()

    assert watcher.pragma("data_version") != before


def test_progress_reaches_the_total(vault: Vault, index: KnowledgeIndex) -> None:
    for number in range(1_100):
        vault.write(f"memories/{number}.md", f"Note {number}.")
    seen: list[tuple[int, int]] = []

    index.sync(lambda done, total: seen.append((done, total)))

    assert [done for done, _ in seen] == sorted(done for done, _ in seen)
    assert len(seen) > 1
    assert seen[-1] == (1_100, 1_100)


def test_waiting_counts_what_changed_and_not_what_is_only_young(vault: Vault, index: KnowledgeIndex) -> None:
    for name in ("a", "b", "c"):
        vault.write(f"memories/{name}.md", name)
    assert index.waiting() == 3
    index.sync()
    assert index.waiting() == 0

    vault.write("memories/a.md", "changed")
    vault.delete("memories/b.md")
    vault.write("memories/d.md", "new")

    assert index.waiting() == 3


def test_index_file_needs_no_sync_and_the_next_sync_finds_it_done(vault: Vault, index: KnowledgeIndex) -> None:
    index.sync()
    vault.write("memories/oak.md", "Oaks live long.")

    index.index_file("memories/oak.md")

    assert found(index, "oaks") == ["memories/oak.md"]
    report = index.sync()
    assert (report.touched, report.unchanged) == (0, 1)


def test_remove_stale_forgets_only_what_is_gone(vault: Vault, index: KnowledgeIndex) -> None:
    vault.write("memories/oak.md", "Oaks live long.")
    vault.write("memories/elm.md", "Elms fall ill.")
    index.sync()
    vault.delete("memories/oak.md")

    gone = index.remove_stale(["memories/oak.md", "memories/elm.md", "memories/never.md"])

    assert gone == ["memories/oak.md"]
    assert list(index.hashes()) == ["memories/elm.md"]


@pytest.mark.parametrize("kind", ["memory", "article"])
def test_a_note_that_changes_its_kind_keeps_one_row(
    vault: Vault, index: KnowledgeIndex, database: Database, tmp_path: Path, kind: str
) -> None:
    vault.write("inbox/oak.md", "# Oaks\n\nOld.\n\n## Age\n\nVery.")
    index.sync()

    vault.write("inbox/oak.md", f"---\nkind: {kind}\n---\n# Oaks\n\nOld.\n\n## Age\n\nVery.")
    index.sync()

    assert [row.ref for row in index.docs()] == [f"{kind}:/inbox/oak"]
    assert contents(database, vault.root) == contents_from_scratch(vault, tmp_path / "other")


SEGMENTS = "select count(distinct segid) from docs_fts_idx"


def test_a_large_sync_leaves_the_words_in_one_piece(
    vault: Vault, index: KnowledgeIndex, database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("co_cli.index.sync.BATCH", 10)
    monkeypatch.setattr("co_cli.index.sync.MANY", 60)
    for number in range(60):
        vault.write(f"memories/{number}.md", f"Oak number {number} stands beside the gate of house {number * 7}.")

    index.sync()

    with database.reading() as connection:
        assert connection.execute(SEGMENTS).get == 1
    assert found(index, "oak 59") == ["memories/59.md", *found(index, "oak 59")[1:]]
    assert len(index.search("oak", limit=100)) == 60


def pages(index: KnowledgeIndex) -> int:
    with index.rows.reading() as (connection, _):
        return int(connection.pragma("page_count"))


@pytest.mark.parametrize(("many", "smaller"), [(20, True), (1_000, False)])
def test_what_many_notes_took_is_given_back_to_the_disk(
    index: KnowledgeIndex, vault: Vault, monkeypatch: pytest.MonkeyPatch, many: int, smaller: bool
) -> None:
    monkeypatch.setattr(sync, "MANY", many)
    for number in range(60):
        words = " ".join(f"tree{number}x{place}" for place in range(800))
        vault.write(f"articles/{number}.md", f"# Tree {number}\n\n{words}\n")
    index.sync()
    before = pages(index)

    for number in range(25):
        vault.delete(f"articles/{number}.md")
    assert len(index.sync().removed) == 25

    assert (pages(index) < before) is smaller
    assert index.counts().notes == 35


def test_a_source_that_is_taken_out_gives_its_place_back(index: KnowledgeIndex, vault: Vault) -> None:
    for number in range(40):
        vault.write(f"articles/{number}.md", f"# Tree {number}\n\n{'a word of it ' * 400}\n")
    index.sync()
    before = pages(index)

    assert index.drop_all() == 40

    assert pages(index) < 0.6 * before


def test_what_was_saved_through_the_index_does_not_wait_unless_there_is_too_much_of_it_to_read(
    index: KnowledgeIndex, vault: Vault, monkeypatch: pytest.MonkeyPatch
) -> None:
    index.sync()
    for name in ("ash", "oak"):
        vault.write(f"memories/{name}.md", "It lives long.")
        index.index_file(f"memories/{name}.md")

    assert index.waiting() == 0
    monkeypatch.setattr(knowledge_index, "MOST_COMPARED", 1)
    assert index.waiting() == 2


def test_a_file_that_was_never_indexed_is_not_missed_when_it_goes(index: KnowledgeIndex, vault: Vault) -> None:
    vault.write("memories/picture.md", b"\x00\x01" * 100)
    assert [path for path, _ in index.sync().skipped] == ["memories/picture.md"]

    vault.delete("memories/picture.md")

    assert index.waiting() == 0
