"""The SQLite engine: one search.db for all vaults, with FTS5 for words and sqlite-vec for vectors."""

from __future__ import annotations

import contextlib
import functools
import os
import re
import threading
from collections.abc import Callable, Generator, Mapping, Sequence
from typing import Any

import apsw

from co_cli.errors import IndexDamagedError, IndexUnavailableError
from co_cli.index.derivation import Row, stored_json
from co_cli.index.engine import Engine, ReadTransaction, WriteTransaction
from co_cli.index.sqlite.connection import OLDEST_SQLITE, Database, fetch, vector_extension
from co_cli.index.sqlite.database_files import inode_of
from co_cli.index.sqlite.resident import ResidentVectors
from co_cli.index.sqlite.vectors import VectorReader, VectorWriter
from co_cli.index.sqlite.words import MERGE, WordReader, WordWriter, words_table
from co_cli.index.tables.statements import Statements


class SqliteStatements(Statements):
    """Statements on a connection to search.db; lists are bound as JSON."""

    connection: apsw.Connection

    def fetch(self, statement: str, values: Mapping[str, Any] | None = None) -> list[Any]:
        bound = {name: _bound(value) for name, value in (values or {}).items()}
        return fetch(self.connection, translated(statement), bound)

    def run_many(self, statement: str, rows: Sequence[Row]) -> None:
        self.connection.executemany(statement, rows)

    def add_rows(self, table: str, rows: Sequence[Row]) -> None:
        if rows:
            marks = ", ".join(f":{name}" for name in rows[0])
            self.run_many(f"insert into {table} ({', '.join(rows[0])}) values ({marks})", rows)

    def take_ids(self, table: str, count: int) -> Sequence[int]:
        ((last,),) = self.fetch(f"select coalesce(max(id), 0) from {table}")
        return range(last + 1, last + 1 + count)


class SqliteReader(SqliteStatements, WordReader, VectorReader):
    """One read transaction of search.db."""

    def __init__(self, connection: apsw.Connection, resident: ResidentVectors) -> None:
        self.connection, self.resident, self.known = connection, resident, {}


class SqliteWriter(SqliteStatements, WordReader, WordWriter, VectorWriter):
    """One write transaction of search.db."""

    def __init__(self, connection: apsw.Connection, resident: ResidentVectors, with_vec0: bool) -> None:
        self.connection, self.resident, self.with_vec0 = connection, resident, with_vec0


class SqliteEngine:
    """One search.db."""

    def __init__(
        self,
        path: str,
        extension: str | None = None,
        on_set_aside: Callable[[str], None] | None = None,
        database: Database | None = None,
    ) -> None:
        """`on_set_aside` is called with one line of text when an unusable file was moved aside."""
        self.database = database or Database(path, extension, on_set_aside)
        self.path = path
        self._open = threading.local()
        self._resident = ResidentVectors()

    @classmethod
    def at(cls, path: str, on_set_aside: Callable[[str], None] | None = None) -> SqliteEngine:
        return cls(path, vector_extension(), on_set_aside)

    @contextlib.contextmanager
    def reading(self) -> Generator[ReadTransaction]:
        current: SqliteReader | None = getattr(self._open, "reader", None)
        if current is not None:
            yield current
            return
        with self.database.reading() as connection:
            self._open.reader = SqliteReader(connection, self._resident)
            try:
                yield self._open.reader
            finally:
                self._open.reader = None

    @contextlib.contextmanager
    def writing(self) -> Generator[WriteTransaction]:
        with self.database.writing() as connection:
            yield SqliteWriter(connection, self._resident, self.database.extension is not None)

    def rebuild(self, fill: Callable[[Engine], None], catch_up: Callable[[Engine], None]) -> None:
        def on_engine(step: Callable[[Engine], None]) -> Callable[[Database], None]:
            def take(fresh: Database) -> None:
                step(SqliteEngine(fresh.path, fresh.extension, database=fresh))

            return take

        self.database.rebuild(on_engine(fill), on_engine(catch_up))

    @property
    def set_aside(self) -> str | None:
        return self.database.set_aside

    def size(self) -> int:
        return os.path.getsize(self.path)

    def compact(self) -> None:
        """Merge the word indexes' segments and return free pages to the disk."""
        with self.database.reading() as connection:
            tables = [words_table(vault) for (vault,) in fetch(connection, "select id from vaults")]
        for table in tables:
            with self.database.writing() as connection:
                if connection.table_exists("main", table):
                    connection.execute(MERGE.format(table=table))
        with self.database.writing() as connection:
            connection.execute("pragma incremental_vacuum").fetchall()

    def problem(self, discard: bool = False) -> str | None:
        inode = inode_of(self.path)
        problem = self.database.problem() or self._miscounted()
        if problem and discard:
            self.database.retire(inode, problem)
        return problem

    def _miscounted(self) -> str | None:
        try:
            with self.reading() as reader:
                assert isinstance(reader, SqliteReader)
                return reader.miscounted()
        except IndexDamagedError as error:
            return str(error)
        except IndexUnavailableError:
            return None

    def close(self) -> None:
        self.database.close()


def library_problems() -> list[tuple[str, str, str]]:
    """What is wrong with SQLite and sqlite-vec on this machine: library, problem and fix."""
    found: list[tuple[str, str, str]] = []
    if apsw.SQLITE_VERSION_NUMBER < OLDEST_SQLITE:
        found.append(("sqlite", f"SQLite {apsw.sqlite_lib_version()} can lose writes", "pip install -U apsw"))
    extension = vector_extension()
    if extension is None:
        text = "sqlite-vec is not installed: vectors are scanned without it"
        return [*found, ("sqlite-vec", text, "pip install sqlite-vec")]
    connection = apsw.Connection(":memory:")
    try:
        connection.enable_load_extension(True)
        connection.load_extension(extension, "sqlite3_vec_init")
    except apsw.Error as error:
        text = f"sqlite-vec does not load: {error}"
        found.append(("sqlite-vec", text, "pip install --force-reinstall sqlite-vec"))
    finally:
        connection.close()
    return found


@functools.lru_cache(500)
def translated(statement: str) -> str:
    """Lists are compared as JSON."""
    statement = re.sub(r"among blobs \(:(\w+)\)", r"in (select unhex(value) from json_each(:\1))", statement)
    return re.sub(r"among \(:(\w+)\)", r"in (select value from json_each(:\1))", statement)


def _bound(value: Any) -> Any:
    if not isinstance(value, list):
        return value
    members: list[Any] = value  # pyright: ignore[reportUnknownVariableType]
    return stored_json([one.hex() if isinstance(one, bytes) else one for one in members])
