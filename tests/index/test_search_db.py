"""search.db may be deleted, swapped, of another version, or not a database at all: it comes back from the files."""

from __future__ import annotations

import os
import shutil
import threading
from pathlib import Path

import apsw
import pytest

from co_cli.errors import IndexUnavailableError
from co_cli.index.connection import APPLICATION, SCHEMA_VERSION, Database
from co_cli.index.knowledge_index import KnowledgeIndex
from co_cli.index.making import create, is_ours
from tests.index.contents import contents, contents_from_scratch
from tests.vault import Vault


@pytest.fixture(autouse=True)
def notes(vault: Vault) -> None:
    vault.write("memories/oak.md", "Oaks live long.")
    vault.write("articles/elm.md", "# Elms\n\nElms fall ill.\n\n## Cure\n\nNone.")


def aside(data_dir: Path) -> list[Path]:
    return sorted(path for path in data_dir.iterdir() if path.name.startswith("search.db.2"))


def test_a_search_db_that_is_deleted_under_a_running_process_is_rebuilt(
    vault: Vault, index: KnowledgeIndex, database: Database, data_dir: Path, tmp_path: Path
) -> None:
    index.sync()
    assert index.search("oaks")

    for file in data_dir.iterdir():
        file.unlink()

    assert index.search("oaks") == []
    assert sorted(index.sync().added) == ["articles/elm.md", "memories/oak.md"]
    assert contents(database, vault.root) == contents_from_scratch(vault, tmp_path / "other")


def test_a_data_folder_that_is_deleted_under_a_running_process_is_made_again(
    index: KnowledgeIndex, data_dir: Path
) -> None:
    index.sync()

    shutil.rmtree(data_dir)
    index.sync()

    assert len(index.search("oaks")) == 1


def test_a_log_that_is_deleted_alone_does_no_harm(index: KnowledgeIndex, database: Database, data_dir: Path) -> None:
    index.sync()
    database.close()

    for ending in ("-wal", "-shm"):
        (data_dir / f"search.db{ending}").unlink(missing_ok=True)
    index.sync()

    assert len(index.search("oaks")) == 1


@pytest.mark.parametrize("version", [0, SCHEMA_VERSION - 1, SCHEMA_VERSION + 1])
def test_another_version_is_replaced_while_its_readers_go_on(
    index: KnowledgeIndex, database: Database, data_dir: Path, version: int
) -> None:
    index.sync()
    database.close()
    older = apsw.Connection(str(data_dir / "search.db"))
    older.pragma("user_version", version)
    cursor = older.execute("select path from docs order by path")
    first = next(cursor)

    index.sync()

    assert (first, list(cursor)) == (("articles/elm.md",), [("memories/oak.md",)])
    assert len(index.search("oaks")) == 1
    assert apsw.Connection(str(data_dir / "search.db")).pragma("user_version") == SCHEMA_VERSION
    assert aside(data_dir) == []  # it was ours: nothing in it is worth keeping
    older.close()
    assert len(index.search("oaks")) == 1


def test_whether_a_file_is_ours_waits_for_whoever_holds_it(tmp_path: Path) -> None:
    create(path := str(tmp_path / "search.db"))
    holder = apsw.Connection(path)
    holder.pragma("locking_mode", "exclusive")
    holder.execute("begin immediate")
    letting_go = threading.Timer(0.2, holder.close)
    letting_go.start()

    assert is_ours(path, APPLICATION)
    letting_go.join()


def test_a_rebuild_swaps_a_complete_index_in(
    vault: Vault, index: KnowledgeIndex, database: Database, tmp_path: Path
) -> None:
    index.sync()
    inode = os.stat(database.path).st_ino
    with database.reading() as reader:
        report = index.rebuild()
        assert reader.execute("select count(*) from docs").get == 2  # still reads the old one

    assert sorted(report.added) == ["articles/elm.md", "memories/oak.md"]
    assert os.stat(database.path).st_ino != inode
    assert contents(database, vault.root) == contents_from_scratch(vault, tmp_path / "other")
    assert not Path(f"{database.path}.new").exists()


def test_a_connection_that_was_out_during_a_swap_is_not_used_again(
    vault: Vault, index: KnowledgeIndex, database: Database
) -> None:
    index.sync()
    with database.reading():
        index.rebuild()
        assert index.search("oaks")  # opens the new file while the old one is still lent

    vault.write("memories/ash.md", "Ashes are tough.")
    index.sync()

    with database.reading(), database.reading(), database.reading():
        assert len(index.search("ashes")) == 1
    database.close()
    assert len(index.search("ashes")) == 1


def test_a_rebuild_does_not_wait_for_a_writer(index: KnowledgeIndex, database: Database) -> None:
    index.sync()
    writer = apsw.Connection(database.path)
    writer.execute("begin immediate")

    index.rebuild()

    assert len(index.search("oaks")) == 1
    writer.execute("rollback")
    writer.close()
    assert len(index.search("oaks")) == 1


def test_a_rebuild_needs_no_search_db(index: KnowledgeIndex, data_dir: Path) -> None:
    assert not data_dir.exists()

    index.rebuild()

    assert len(index.search("oaks")) == 1


def foreign_database(path: Path) -> None:
    connection = apsw.Connection(str(path))
    connection.pragma("journal_mode", "wal")
    connection.execute("create table bees (name text); insert into bees values ('Maja')")
    connection.close()


@pytest.mark.parametrize(
    "content",
    [b"not a database, just text" * 100, os.urandom(20_000), b"SQLite format 3\0" + os.urandom(9_000)],
    ids=["text", "noise", "header"],
)
def test_a_file_that_is_no_database_is_set_aside(
    index: KnowledgeIndex, database: Database, data_dir: Path, content: bytes
) -> None:
    data_dir.mkdir()
    (data_dir / "search.db").write_bytes(content)

    index.sync()

    (kept,) = aside(data_dir)
    assert kept.read_bytes() == content
    assert database.set_aside == str(kept)
    assert len(index.search("oaks")) == 1


def test_somebody_elses_database_is_set_aside_unharmed_each_time(index: KnowledgeIndex, data_dir: Path) -> None:
    data_dir.mkdir()
    for _ in range(3):
        foreign_database(data_dir / "search.db")
        index.sync()
        for ending in ("", "-wal", "-shm"):
            (data_dir / f"search.db{ending}").unlink(missing_ok=True)

    kept = [path for path in aside(data_dir) if not path.name.endswith(("-wal", "-shm"))]
    assert len(kept) == 3
    for path in kept:
        assert apsw.Connection(str(path)).execute("select name from bees").get == "Maja"


def test_the_log_of_somebody_elses_open_database_goes_with_it(index: KnowledgeIndex, data_dir: Path) -> None:
    data_dir.mkdir()
    foreign_database(data_dir / "search.db")
    owner = apsw.Connection(str(data_dir / "search.db"))
    owner.execute("insert into bees values ('Willi')")

    index.sync()
    owner.execute("insert into bees values ('Flip')")

    names = apsw.Connection(str(aside(data_dir)[0])).execute("select name from bees").fetchall()
    assert names == [("Maja",), ("Willi",), ("Flip",)]
    owner.close()
    assert len(index.search("oaks")) == 1


def test_an_empty_file_is_simply_replaced(index: KnowledgeIndex, data_dir: Path) -> None:
    data_dir.mkdir()
    (data_dir / "search.db").touch()

    index.sync()

    assert len(index.search("oaks")) == 1
    assert aside(data_dir) == []


@pytest.mark.parametrize("fault", ["a file in place of the data folder", "a folder in place of search.db"])
def test_a_search_db_that_cannot_be_made_is_one_clear_error(index: KnowledgeIndex, data_dir: Path, fault: str) -> None:
    if fault == "a file in place of the data folder":
        data_dir.write_text("in the way")
    else:
        (data_dir / "search.db").mkdir(parents=True)

    with pytest.raises(IndexUnavailableError, match=r"search\.db"):
        index.sync()
    with pytest.raises(IndexUnavailableError, match=r"search\.db"):
        index.search("oaks")


def test_our_files_can_be_told_from_other_databases(index: KnowledgeIndex, database: Database) -> None:
    index.sync()

    connection = apsw.Connection(database.path)

    assert connection.pragma("application_id") == APPLICATION
    assert connection.pragma("journal_mode") == "wal"
