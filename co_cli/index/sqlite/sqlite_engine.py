"""The SQLite engine: one search.db for all vaults, with FTS5 for words and sqlite-vec for vectors."""

from __future__ import annotations

import contextlib
import os
import threading
from collections.abc import Callable, Generator

import apsw

from co_cli.errors import IndexDamagedError, IndexUnavailableError
from co_cli.index.engine import Engine, Reader, Writer
from co_cli.index.sqlite.connection import OLDEST_SQLITE, Database, fetch, vector_extension
from co_cli.index.sqlite.database_files import inode_of
from co_cli.index.sqlite.note_rows import NoteReader, NoteWriter
from co_cli.index.sqlite.resident import ResidentVectors
from co_cli.index.sqlite.words import MERGE, WordReader, words_table

COUNTED = "select id, notes, passages from vaults"
EXISTING = """
select count(distinct docs.id), count(passages.id) from docs left join passages on passages.doc_id = docs.id
where docs.vault_id = :vault
"""


class SqliteReader(WordReader, NoteReader):
    """One read transaction of search.db."""

    def __init__(self, connection: apsw.Connection, resident: ResidentVectors) -> None:
        self.connection, self.resident = connection, resident


class SqliteWriter(WordReader, NoteWriter):
    """One write transaction of search.db."""

    def __init__(self, connection: apsw.Connection, resident: ResidentVectors, with_vec0: bool) -> None:
        self.connection, self.resident, self.with_vec0 = connection, resident, with_vec0


class SqliteEngine:
    """One search.db."""

    def __init__(self, path: str, extension: str | None = None) -> None:
        self.database = Database(path, extension)
        self.path = path
        self._open = threading.local()
        self._resident = ResidentVectors()

    @classmethod
    def at(cls, path: str) -> SqliteEngine:
        return cls(path, vector_extension())

    @contextlib.contextmanager
    def reading(self) -> Generator[Reader]:
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
    def writing(self) -> Generator[Writer]:
        with self.database.writing() as connection:
            yield SqliteWriter(connection, self._resident, self.database.extension is not None)

    def rebuild(self, fill: Callable[[Engine], None], catch_up: Callable[[Engine], None]) -> None:
        def on_engine(step: Callable[[Engine], None]) -> Callable[[Database], None]:
            def take(fresh: Database) -> None:
                engine = SqliteEngine(fresh.path, fresh.extension)
                engine.database = fresh
                step(engine)

            return take

        self.database.rebuild(on_engine(fill), on_engine(catch_up))

    @property
    def set_aside(self) -> str | None:
        return self.database.set_aside

    @property
    def on_set_aside(self) -> Callable[[str], None] | None:
        return self.database.on_set_aside

    @on_set_aside.setter
    def on_set_aside(self, tell: Callable[[str], None] | None) -> None:
        self.database.on_set_aside = tell

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
        """How the counts, the word index or the vectors differ from the notes and passages that exist."""
        try:
            with self.database.reading() as connection:
                for vault, *counted in fetch(connection, COUNTED):
                    words = int(connection.execute(f"select count(*) from {words_table(vault)}").get or 0)
                    notes, passages = fetch(connection, EXISTING, {"vault": vault})[0]
                    if counted != [notes, passages] or words != passages:
                        found = f"{notes:,} notes and {passages:,} passages exist"
                        return f"{found}, {counted[0]:,} and {counted[1]:,} are counted, {words:,} have words"
                    lost = SqliteReader(connection, self._resident).lost_vectors(vault)
                    if lost:
                        return f"{lost:,} of {passages:,} passages have no vector"
        except IndexDamagedError as error:
            return str(error)
        except IndexUnavailableError:
            return None
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
