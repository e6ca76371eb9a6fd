"""The SQLite engine: one search.db for all vaults, with FTS5 for words and sqlite-vec for vectors."""

from __future__ import annotations

import contextlib
import os
import threading
from collections.abc import Callable, Generator

import apsw

from co_cli.ground.errors import IndexDamagedError, IndexUnavailableError
from co_cli.index.engine import Engine, ReadTransaction, WriteTransaction
from co_cli.index.sqlite.connection import OLDEST_SQLITE, Database, fetch, vector_extension
from co_cli.index.sqlite.database_files import inode_of, remove_old_copies
from co_cli.index.sqlite.resident import ResidentVectors
from co_cli.index.sqlite.vectors import SqliteVectors
from co_cli.index.sqlite.words import MERGE, SqliteWords, words_table
from co_cli.index.tables.note_rows import NoteRows, find_miscounts
from co_cli.notes.files import stamp_of
from co_cli.sources.origin import Origin


class SqliteTransaction(SqliteWords, SqliteVectors, NoteRows):
    """One transaction of search.db."""


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
        current: SqliteTransaction | None = getattr(self._open, "snapshot", None)
        if current is not None:
            yield current
            return
        with self.database.reading() as connection:
            self._open.snapshot = SqliteTransaction(connection, self._resident)
            try:
                yield self._open.snapshot
            finally:
                self._open.snapshot = None

    @contextlib.contextmanager
    def writing(self) -> Generator[WriteTransaction]:
        with self.database.writing() as connection:
            yield SqliteTransaction(connection, self._resident, self.database.extension is not None)

    def rebuild(self, fill: Callable[[Engine], None], catch_up: Callable[[Engine], None]) -> None:
        def on_engine(step: Callable[[Engine], None]) -> Callable[[Database], None]:
            def take(fresh: Database) -> None:
                step(SqliteEngine(fresh.path, fresh.extension, database=fresh))

            return take

        self.database.rebuild(on_engine(fill), on_engine(catch_up))

    @property
    def set_aside(self) -> str | None:
        return self.database.set_aside

    def embedding(self, origin: Origin, wait: float) -> contextlib.AbstractContextManager[None]:
        return contextlib.nullcontext()  # no other machine has it

    def unindexed(self) -> str | None:
        return None  # every vector is compared

    def size(self) -> int:
        return os.path.getsize(self.path)

    def revision(self) -> object:
        return [stamp_of(f"{self.path}{part}") for part in ("", "-wal")]

    def compact(self) -> None:
        """Merge the word indexes' segments and return free pages to the disk."""
        with self.database.reading() as connection:
            tables = [words_table(origin_id) for (origin_id,) in fetch(connection, "select id from vaults")]
        for table in tables:
            with self.database.writing() as connection:
                if connection.table_exists("main", table):
                    connection.execute(MERGE.format(table=table))
        with self.database.writing() as connection:
            connection.execute("pragma incremental_vacuum").fetchall()

    def erase(self) -> str | None:
        with self.writing() as writer:
            writer.drop_unused_cached()
        self.compact()  # a segment of a word index keeps deleted words until it is merged
        remove_old_copies(self.path, 0)
        return self.database.shrink()

    def problem(self, discard: bool = False) -> str | None:
        inode = inode_of(self.path)
        problem = self.database.problem() or self._miscounted()
        if problem and discard:
            self.database.retire(inode, problem)
        return problem

    def _miscounted(self) -> str | None:
        try:
            with self.reading() as snapshot:
                assert isinstance(snapshot, SqliteTransaction)
                return find_miscounts(snapshot)
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
