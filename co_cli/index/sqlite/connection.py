"""A SQLite file as this process uses it: a pool of connections, and the two kinds of transaction.

A thread borrows a connection to read; one writer at a time writes in an immediate transaction. A file that turns out
to be damaged is moved aside, and the next transaction makes a new one. search.db and activity.db are both such files.
Never open them with the standard library's sqlite3 in this process: closing it drops our locks.
"""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable
from types import TracebackType
from typing import Any

import apsw

from co_cli.errors import IndexDamagedError, IndexUnavailableError
from co_cli.index.sqlite.files import (
    BUSY_MS,
    DAMAGE,
    NO_PLACE,
    WRONG_FILE,
    create,
    explain,
    finish_swap,
    fresh_path,
    inode_of,
    is_ours,
    keep_cache,
    opening,
    put_aside,
    remove_unfinished,
    swap,
    sweep_unfinished,
)

DERIVATION = 10
"""Raise it when the same files would give other rows."""
APPLICATION = 0x636F6B62
"""Tells our file from somebody else's (`cokb`)."""
SCHEMA_FILE = os.path.join(os.path.dirname(__file__), "schema.sql")
with open(SCHEMA_FILE, "rb") as _stream:
    SCHEMA = _stream.read()
SCHEMA_VERSION = (int.from_bytes(SCHEMA, "big") + DERIVATION) % 0x7FFFFFFF
"""Another schema has another version by itself."""
OLDEST_SQLITE = 3_051_003
"""Older ones can lose acknowledged writes when a write-ahead log is reset."""
CACHE_KB = 64_000
MMAP_BYTES = 1 << 30
MOST_IDLE = 8
HAS_VEC0 = "select 1 from sqlite_master where sql like 'create virtual table % using vec0%' limit 1"
UNLIKELY = (apsw.Error, ValueError, TypeError, LookupError, ArithmeticError, AttributeError, MemoryError)
"""What reading rows of a damaged file may raise."""
READERS_OF_ROWS = tuple(
    os.path.join(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))), folder)
    for folder in ("index", "activity", "knowledge_index")
)

_left_open: list[apsw.Connection] = []
"""Connections that nobody closes: the process is about to end."""


class FileConnection(apsw.Connection):
    """Knows which file it was opened on: one that was deleted or swapped since is of no use."""

    inode = 0


class Database:
    """One search.db, shared by threads and processes. activity.db overrides how it is opened."""

    derived = True
    """Whether everything in it comes back from the files."""

    def __init__(self, path: str, extension: str | None = None) -> None:
        """`extension` is the path of sqlite-vec's library; None does without."""
        if apsw.SQLITE_VERSION_NUMBER < OLDEST_SQLITE:
            raise IndexUnavailableError(f"SQLite {apsw.sqlite_lib_version()} can lose writes: `pip install -U apsw`")
        self.path, self.extension = path, extension
        self.set_aside: str | None = None
        """Where a file that was not usable was moved, if one was found."""
        self.on_set_aside: Callable[[str], None] | None = None
        """Called with one line of text when that happens; the log always has it."""
        self.writer = threading.RLock()
        self._idle: list[FileConnection] = []
        self._pool = threading.Lock()
        self._inode = 0
        self._wrote = False

    def close(self) -> None:
        with self._pool:
            idle, self._idle = self._idle, []
        for connection in idle:
            connection.close()

    def leave(self) -> None:
        """Instead of `close`, right before the process ends: closing removes the log files, which the next search
        would have to make again."""
        if self._wrote:
            self.close()
            return
        with self._pool:
            idle, self._idle = self._idle, []
        _left_open.extend(idle)

    def reading(self) -> Reading:
        """A connection in one read transaction."""
        return Reading(self)

    def writing(self) -> Writing:
        """A connection in one immediate transaction, committed at the end or undone by an error."""
        return Writing(self)

    def rebuild(self, fill: Callable[[Database], None]) -> None:
        """Fill a new database, then put it in place of this one. Readers keep the old one until then."""
        with opening(self.path):
            fresh = Database(_make_fresh(self.path), self.extension)
            try:
                fill(fresh)
                with fresh.writing() as connection:
                    connection.execute("pragma optimize")
                fresh.checkpoint()
            finally:
                fresh.close()
            self.close()
            swap(fresh.path, self.path)

    def checkpoint(self) -> None:
        connection = self.borrow()
        connection.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_TRUNCATE)
        self.give_back(connection)

    def borrow(self) -> FileConnection:
        """An idle connection, or a new one; none of them if the file was deleted or swapped meanwhile."""
        inode = inode_of(self.path)
        with self._pool:
            if inode == self._inode and inode and self._idle:
                return self._idle.pop()
            stale, self._idle = ([], self._idle) if inode == self._inode and inode else (self._idle, [])
        for connection in stale:
            connection.close()
        connection = self._open()
        with self._pool:
            self._inode = connection.inode
        return connection

    def give_back(self, connection: FileConnection) -> None:
        """Keep it for the next borrower, unless the file was swapped while it was out."""
        with self._pool:
            if len(self._idle) < MOST_IDLE and connection.inode == self._inode:
                self._idle.append(connection)
                return
        connection.close()

    def wrote(self) -> None:
        self._wrote = True

    def retire(self, inode: int, failure: BaseException) -> IndexDamagedError:
        """Move a damaged file aside, unless another process did so already. Returns the error to raise."""
        why = " ".join((str(failure) or type(failure).__name__).split())[:200]
        try:
            with opening(self.path):
                kept = put_aside(self, f"is damaged ({why})") if inode_of(self.path) == inode else None
        except IndexUnavailableError as error:  # the folder cannot be written, or another program holds the file
            return IndexDamagedError(f"{self.path} is damaged ({why}) and cannot be moved aside: {error}")
        where = f"it is kept as {kept}" if kept else "it was moved aside"
        return IndexDamagedError(f"{self.path} was damaged ({why}): {where}, and the next try makes a new one")

    def damage_behind(self, failure: Exception) -> IndexDamagedError | None:
        """Whether an unexpected failure is the file's fault. Then the file is moved aside.

        A damaged page may hold anything: a number where a text should be, a listing that cannot be read.
        """
        if isinstance(failure, IndexDamagedError):
            return failure
        if not isinstance(failure, UNLIKELY):
            return None
        inode = inode_of(self.path)
        problem = self.problem()
        return None if problem is None else self.retire(inode, apsw.CorruptError(problem))

    def problem(self) -> str | None:
        """What SQLite finds wrong when it checks the whole file; None if nothing."""
        try:
            connection = self.borrow()
        except IndexUnavailableError:
            return None  # not damaged, but out of reach
        try:
            broken = [str(row[0]) for row in connection.execute("pragma quick_check(3)") if row[0] != "ok"]
            return "; ".join(broken) or None
        except (apsw.BusyError, apsw.ReadOnlyError):
            return None
        except (apsw.Error, *DAMAGE) as error:
            return str(error)
        finally:
            connection.close()

    def _open(self) -> FileConnection:
        """A usable connection to a database of our version, making one if there is none."""
        try:
            connection = self._connect()
        except (apsw.CantOpenError, apsw.IOError):
            connection = None  # perhaps in the middle of a swap: the lock will tell
        except (apsw.BusyError, *NO_PLACE) as error:
            raise explain(self.path, error) from error
        if connection is not None:
            if os.path.exists(fresh_path(self.path)):
                sweep_unfinished(self.path)
            return connection
        with opening(self.path):
            connection = self._connect()
            if connection is not None:
                return connection  # another process made it while we waited
            if os.path.exists(self.path) or not finish_swap(self.path, SCHEMA_VERSION, APPLICATION):
                if not is_ours(self.path, APPLICATION):
                    put_aside(self, "is not a search.db of ours")
                swap(_make_fresh(self.path), self.path)
            connection = self._connect()
        if connection is None:
            raise IndexUnavailableError(f"{self.path} cannot be made: delete it and try again")
        return connection

    def _connect(self) -> FileConnection | None:
        try:
            return connect(self.path, self.extension)
        except apsw.ExtensionLoadingError:
            self.extension = None  # not built for this machine: do without, as where there is none
            return connect(self.path, None)


class Reading:
    """One read transaction. An error inside closes the connection instead of giving it back."""

    def __init__(self, database: Database) -> None:
        self.database = database

    def __enter__(self) -> FileConnection:
        self.connection = self.database.borrow()
        try:
            self.begin()
        except BaseException:
            self.__exit__(*sys.exc_info())
            raise
        return self.connection

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        failure = error
        try:
            self.end(error)
        except (apsw.Error, OSError) as problem:
            failure = error or problem
        if failure is None:
            self.database.give_back(self.connection)
            return
        self.connection.close()
        if isinstance(failure, DAMAGE):
            if not _is_of_sqlite(failure):
                return  # a text of somebody who was called in between, as an embedder is
            raise self.database.retire(self.connection.inode, failure) from failure
        if isinstance(failure, (apsw.BusyError, *NO_PLACE)) and (error is None or isinstance(error, apsw.Error)):
            raise explain(self.database.path, failure) from failure
        if error is None:
            raise failure

    def begin(self) -> None:
        self.connection.execute("begin")

    def end(self, error: BaseException | None) -> None:
        if self.connection.in_transaction:
            self.connection.execute("rollback")


class Writing(Reading):
    """One immediate transaction, and the only one of this process."""

    held = False

    def __enter__(self) -> FileConnection:
        self.database.writer.acquire()
        try:
            connection = super().__enter__()
        except BaseException:
            self.database.writer.release()
            raise
        self.held = True
        self.database.wrote()
        return connection

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        try:
            super().__exit__(kind, error, traceback)
        finally:
            if self.held:  # not while __enter__ fails: it releases the lock itself
                self.held = False
                self.database.writer.release()

    def begin(self) -> None:
        self.connection.execute("begin immediate")

    def end(self, error: BaseException | None) -> None:
        if self.connection.in_transaction:
            self.connection.execute("commit" if error is None else "rollback")


def fetch(connection: apsw.Connection, statement: str, values: dict[str, Any] | None = None) -> list[Any]:
    """Every row; the statement says what is in it."""
    return connection.execute(statement, values or {}).fetchall()


def vector_extension() -> str | None:
    """The path of sqlite-vec's library, without its ending; None where there is no wheel (musl, Windows on ARM).

    Found along sys.path by hand: importing its package would import numpy.
    """
    for folder in (os.path.dirname(os.path.dirname(apsw.__file__)), *sys.path):
        for name in ("vec0.so", "vec0.dylib", "vec0.dll"):
            if os.path.exists(os.path.join(folder, "sqlite_vec", name)):
                return os.path.join(folder, "sqlite_vec", "vec0")
    return None


def connect(path: str, extension: str | None) -> FileConnection | None:
    """A connection, or None if the file is missing, empty, not a database, of another version, or swapped meanwhile."""
    inode = inode_of(path)
    try:
        connection = FileConnection(path, flags=apsw.SQLITE_OPEN_READWRITE)
    except apsw.CantOpenError:
        if os.path.exists(path):
            raise
        return None
    try:
        connection.set_busy_timeout(BUSY_MS)
        known = connection.pragma("user_version"), connection.pragma("application_id")
        # a swap removes the file before its log: if it is still the same now, the log that was opened is its own
        if known != (SCHEMA_VERSION, APPLICATION) or inode_of(path) != inode:
            connection.close()
            return None
        if extension is None and connection.execute(HAS_VEC0).get is not None:
            connection.close()  # made with sqlite-vec, and not readable without
            return None
        connection.inode = inode
        connection.pragma("synchronous", "normal")  # derived data: a power cut costs the last commits, never the file
        connection.pragma("cache_size", -CACHE_KB)
        connection.pragma("mmap_size", MMAP_BYTES)
        connection.pragma("foreign_keys", 0)
        if extension is not None:
            connection.enable_load_extension(True)
            connection.load_extension(extension, "sqlite3_vec_init")
            connection.enable_load_extension(False)
    except (apsw.SQLError, *WRONG_FILE):  # SQLite calls a wrong number in the header an unsupported format
        connection.close()
        return None
    except BaseException:
        connection.close()
        raise
    return connection


def _make_fresh(path: str) -> str:
    """An empty database beside `path`, with the embedding cache of the one that is there."""
    fresh = fresh_path(path)
    remove_unfinished(fresh)
    create(fresh, SCHEMA.decode(), SCHEMA_VERSION, APPLICATION)
    if os.path.exists(path):
        keep_cache(path, fresh)
    return fresh


def _is_of_sqlite(failure: BaseException) -> bool:
    """A text that cannot be decoded may be somebody else's: only those who read rows get one from SQLite."""
    if not isinstance(failure, UnicodeDecodeError):
        return True
    step = failure.__traceback__
    while step is not None and step.tb_next is not None:
        step = step.tb_next
    return step is not None and step.tb_frame.f_code.co_filename.startswith(READERS_OF_ROWS)
