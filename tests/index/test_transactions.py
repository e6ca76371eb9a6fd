"""Transactions give back what they took, however they end."""

from __future__ import annotations

import threading
from pathlib import Path

import apsw
import pytest

from co_cli.errors import IndexUnavailableError
from co_cli.index.connection import Database


@pytest.fixture
def database(tmp_path: Path) -> Database:
    return Database(str(tmp_path / "data" / "search.db"))


def another_thread_can_write(database: Database) -> bool:
    done: list[bool] = []

    def write() -> None:
        with database.writing() as connection:
            connection.execute("insert into vaults (root) values ('/elsewhere')")
        done.append(True)

    thread = threading.Thread(target=write, daemon=True)
    thread.start()
    thread.join(10)
    return bool(done)


def roots(database: Database) -> list[object]:
    with database.reading() as connection:
        return [row[0] for row in connection.execute("select root from vaults order by root")]


def test_what_is_written_is_there_and_what_fails_is_undone(database: Database) -> None:
    with database.writing() as connection:
        connection.execute("insert into vaults (root) values ('/kept')")
    with pytest.raises(ZeroDivisionError), database.writing() as connection:
        connection.execute("insert into vaults (root) values ('/undone')")
        _ = 1 / 0

    assert roots(database) == ["/kept"]
    assert another_thread_can_write(database)


def test_a_transaction_that_sqlite_ended_itself_does_not_keep_the_lock(database: Database) -> None:
    """As a full disk does: the statement fails, and nothing is left to roll back."""
    with pytest.raises(IndexUnavailableError), database.writing() as connection:
        connection.execute("rollback")
        raise apsw.FullError("database or disk is full")

    assert another_thread_can_write(database)


def test_a_commit_that_fails_does_not_keep_the_lock(database: Database) -> None:
    with pytest.raises(apsw.SQLError), database.writing() as connection:
        connection.execute("rollback")
        connection.execute("begin")
        connection.execute("nonsense")

    assert another_thread_can_write(database)


def test_a_file_locked_by_somebody_else_is_said_and_does_not_keep_our_lock(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("co_cli.index.connection.BUSY_MS", 50)
    with database.writing() as connection:
        connection.execute("insert into vaults (root) values ('/first')")
    database.close()
    somebody = apsw.Connection(database.path)
    somebody.execute("begin immediate")
    with pytest.raises(IndexUnavailableError, match="locked by another program"), database.writing():
        pass
    somebody.execute("rollback")
    somebody.close()

    assert another_thread_can_write(database)


def test_reading_and_writing_nest_in_one_thread(database: Database) -> None:
    with database.writing() as outer:
        outer.execute("insert into vaults (root) values ('/outer')")
        assert roots(database) == []

    assert roots(database) == ["/outer"]
