"""A SQLite file as this process uses it: a pool of connections, and the two kinds of transaction.

A thread borrows a connection to read; one writer at a time writes in an immediate transaction. A damaged file is moved
aside, and the next transaction makes a new one. search.db and activity.db are both opened this way.
Never open them with the standard library's sqlite3 in this process: closing it drops our locks.
"""

from __future__ import annotations

import contextlib
import os
import sys
import threading
from collections.abc import Callable, Generator
from typing import Any

import apsw

from co_cli.ground.errors import IndexDamagedError, IndexUnavailableError
from co_cli.index.engine import DERIVATION
from co_cli.index.sqlite.database_files import (
    BUSY_MS,
    NO_PLACE,
    WRONG_FILE,
    create,
    explain,
    find_damage,
    fresh_path,
    inode_of,
    is_ours,
    keep_cache,
    no_room,
    opening,
    remove_database,
    remove_old_copies,
    remove_unfinished,
    set_aside,
    swap,
    sweep_unfinished,
)
from co_cli.notes.files import patiently

APPLICATION = 0x636F6B62
"""Marks our files (`cokb`)."""
SCHEMA_FILE = os.path.join(os.path.dirname(__file__), "schema.sql")
with open(SCHEMA_FILE, "rb") as _stream:
    SCHEMA = _stream.read()
SCHEMA_VERSION = (int.from_bytes(SCHEMA, "big") + DERIVATION) % 0x7FFFFFFF
"""Any change of the schema changes the version."""
OLDEST_SQLITE = 3_051_003
"""Older ones can lose acknowledged writes when a write-ahead log is reset."""
CACHE_KB = 64_000
MOST_IDLE = 8
HAS_VEC0 = "select 1 from sqlite_master where sql like 'create virtual table % using vec0%' limit 1"
DAMAGE = (*WRONG_FILE, UnicodeDecodeError)
"""What reading a damaged file raises. SQLite does not check that a text is UTF-8."""
SUSPICIOUS = (apsw.SQLError, TypeError, ValueError)
"""What it may raise, too: sqlite-vec calls what it cannot read an error of SQL, or finds a distance of null."""


class FileConnection(apsw.Connection):
    """Knows which file it was opened on: it is of no use once that was deleted or swapped."""

    inode = 0


class Database:
    """One search.db, shared by threads and processes. activity.db overrides how it is opened."""

    derived = True
    """Whether everything in it comes back from the files."""

    def __init__(
        self, path: str, extension: str | None = None, on_set_aside: Callable[[str], None] | None = None
    ) -> None:
        """`extension` is the path of sqlite-vec's library; None does without."""
        if apsw.SQLITE_VERSION_NUMBER < OLDEST_SQLITE:
            raise IndexUnavailableError(f"SQLite {apsw.sqlite_lib_version()} can lose writes: `pip install -U apsw`")
        self.path, self.extension = path, extension
        self.set_aside: str | None = None
        """Where an unusable file was moved, if one was found."""
        self.was_other = False
        """Whether the file was of another version, and was made anew."""
        self.on_set_aside = on_set_aside
        """Called with one line of text when that happens; it is always logged."""
        self._writer = threading.RLock()
        self._idle: list[FileConnection] = []
        self._pool = threading.Lock()
        self._inode = 0

    def close(self) -> None:
        with self._pool:
            idle, self._idle = self._idle, []
        for connection in idle:
            connection.close()

    def put_aside(self, why: str) -> str | None:
        """Move the file aside, and log it once."""
        kept = set_aside(self.path)
        if kept is None:
            return None
        self.set_aside = kept
        message = f"{self.path} {why}: it is kept as {kept}, and a new one takes its place"
        if self.on_set_aside:
            self.on_set_aside(message)
        from co_cli.notes.logbook import logger  # imports logging, 20 ms, which a search does not need

        logger("index").warning(message)
        if self.derived:
            remove_old_copies(self.path)
        return kept

    @contextlib.contextmanager
    def reading(self) -> Generator[FileConnection]:
        """A connection in one read transaction. Needs no room on the disk."""
        with self._transaction("begin", "rollback") as connection:
            yield connection

    @contextlib.contextmanager
    def writing(self) -> Generator[FileConnection]:
        """A connection in one immediate transaction, committed at the end or rolled back by an error."""
        with self._writer, self._transaction("begin immediate", "commit") as connection:
            yield connection

    @contextlib.contextmanager
    def _transaction(self, begin: str, end: str) -> Generator[FileConnection]:
        """An error closes the connection, which rolls back, instead of returning it to the pool."""
        reads = begin == "begin"
        connection = self.borrow(reads)
        try:
            connection.execute(begin)
            while connection.inode != inode_of(self.path):  # swapped while we waited for the lock
                connection.close()
                connection = self.borrow(reads)
                connection.execute(begin)
            yield connection
            if connection.in_transaction:
                connection.execute(end)
        except BaseException as error:
            damaged = isinstance(error, DAMAGE) or (isinstance(error, SUSPICIOUS) and bool(find_damage(connection)))
            connection.close()
            if damaged:
                raise self.retire(connection.inode, error) from error
            if isinstance(error, (apsw.BusyError, *NO_PLACE)) and isinstance(error, apsw.Error):
                raise explain(self.path, error) from error
            raise
        self.give_back(connection)

    def rebuild(self, fill: Callable[[Database], None], catch_up: Callable[[Database], None]) -> None:
        """Fill a new database, then put it in place of this one. Readers keep the old one until then.

        Writers wait during `catch_up`, so that the new one has everything that was ever acknowledged.
        """
        with opening(self.path):
            fresh = Database(_make_fresh(self.path), self.extension)
            try:
                fill(fresh)
                with fresh.writing() as connection:
                    connection.execute("pragma optimize")
                with self._writers_waiting():
                    catch_up(fresh)
                    connection = fresh.borrow()
                    connection.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_TRUNCATE)
                    connection.close()
                    fresh.close()
                    self.close()
                    swap(fresh.path, self.path)
            finally:
                fresh.close()
                if fresh.set_aside:  # damaged while it was made: nobody ever used it
                    remove_database(fresh.set_aside)

    @contextlib.contextmanager
    def _writers_waiting(self) -> Generator[None]:
        """Hold the write lock of the file that is about to be swapped. A file that cannot be locked has no writers."""
        if sys.platform == "win32":  # a file that is open cannot be swapped there
            yield
            return
        with contextlib.ExitStack() as held:
            try:
                connection = self._connect()
                if connection is not None:
                    held.callback(connection.close)
                    connection.execute("begin immediate")
            except apsw.BusyError:
                raise
            except apsw.Error:
                pass
            yield

    def borrow(self, reads: bool = False) -> FileConnection:
        """An idle connection, or a new one if there is none or the file was deleted or swapped meanwhile.

        One that only `reads` can be had on a full disk, too.
        """
        inode = inode_of(self.path)
        with self._pool:
            current = inode != 0 and inode == self._inode
            if current and self._idle:
                return self._idle.pop()
        if not current:
            self.close()
        try:
            connection = self._open()
        except IndexUnavailableError as error:
            alone = self._connect(alone=True) if reads and no_room(self.path, error.__cause__) else None
            if alone is None:
                raise
            with self._pool:
                self._inode = 0  # so that it is not kept: as long as it is open, nobody else can read
            return alone
        with self._pool:
            self._inode = connection.inode
        return connection

    def give_back(self, connection: FileConnection) -> None:
        """Keep it for the next borrower, unless the file was swapped meanwhile."""
        with self._pool:
            if len(self._idle) < MOST_IDLE and connection.inode == self._inode:
                self._idle.append(connection)
                return
        connection.close()

    def retire(self, inode: int, failure: BaseException | str) -> IndexDamagedError:
        """Move a damaged file aside, unless another process did so already. Returns the error to raise."""
        why = " ".join((str(failure) or type(failure).__name__).split())[:200]
        try:
            with opening(self.path):
                kept = self.put_aside(f"is damaged ({why})") if inode_of(self.path) == inode else None
        except IndexUnavailableError as error:  # the folder cannot be written, or another program holds the file
            return IndexDamagedError(f"{self.path} is damaged ({why}) and cannot be moved aside: {error}")
        where = f"it is kept as {kept}" if kept else "it was moved aside"
        return IndexDamagedError(f"{self.path} was damaged ({why}): {where}, and the next try makes a new one")

    def shrink(self) -> str | None:
        """Write the file anew, so that nothing that was deleted is left in it. Returns what was in the way."""
        connection = self.borrow()
        try:
            connection.execute("vacuum")
            connection.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_TRUNCATE)
        except apsw.BusyError:
            return f"{self.path} is in use: deleted text is in it until every other program that uses it has ended"
        finally:
            connection.close()
        return None

    def problem(self) -> str | None:
        """What is wrong with the file, all of which is read; None if nothing."""
        try:
            connection = self.borrow(reads=True)
        except IndexUnavailableError:
            return None  # not damaged, but out of reach
        try:
            return find_damage(connection)
        finally:
            connection.close()

    def _open(self) -> FileConnection:
        """A usable connection to a database of our version, making one if there is none."""
        try:
            connection = self._connect()
        except (apsw.CantOpenError, apsw.IOError):
            connection = None  # perhaps in the middle of a swap: try again with the lock
        except (apsw.BusyError, *NO_PLACE) as error:
            raise explain(self.path, error) from error
        fresh = fresh_path(self.path)
        if connection is not None:
            if os.path.exists(fresh):
                sweep_unfinished(self.path)
            return connection
        with opening(self.path):
            complete = os.path.exists(fresh) and not os.path.exists(f"{fresh}-wal") and is_ours(fresh, APPLICATION)
            if complete and not os.path.exists(self.path):
                patiently(os.replace, fresh, self.path)  # a process was killed between the two steps of a swap
            connection = self._connect()
            if connection is not None:
                return connection  # another process made it while we waited
            if not is_ours(self.path, APPLICATION):
                self.put_aside("was not created by co-cli")
            self.was_other = os.path.exists(self.path)
            swap(_make_fresh(self.path), self.path)
            connection = self._connect()
        if connection is None:
            raise IndexUnavailableError(f"{self.path} cannot be made: delete it and try again")
        return connection

    def _connect(self, alone: bool = False) -> FileConnection | None:
        try:
            return connect(self.path, self.extension, alone)
        except apsw.ExtensionLoadingError:
            self.extension = None  # not built for this machine: do without, as where there is none
            return connect(self.path, None, alone)


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


def connect(path: str, extension: str | None, alone: bool = False) -> FileConnection | None:
    """A connection, or None if the file is missing, empty, not a database, of another version, or swapped meanwhile.

    `alone`: it keeps what processes share in its memory, not in a file that needs room, and locks all others out.
    """
    inode = inode_of(path)
    try:
        connection = FileConnection(path, flags=apsw.SQLITE_OPEN_READWRITE)
    except apsw.CantOpenError:
        if os.path.exists(path):
            raise
        return None
    try:
        connection.set_busy_timeout(BUSY_MS)
        if alone:
            connection.pragma("locking_mode", "exclusive")
        known = connection.pragma("user_version"), connection.pragma("application_id")
        # a swap removes the file before its log: if it is still the same now, the log that was opened is its own
        usable = known == (SCHEMA_VERSION, APPLICATION) and inode_of(path) == inode
        if usable and extension is None:
            usable = connection.execute(HAS_VEC0).get is None  # made with sqlite-vec: not readable without
        if not usable:
            connection.close()
            return None
        connection.inode = inode
        connection.pragma("synchronous", "normal")  # derived data: a power cut costs the last commits, never the file
        connection.pragma("cache_size", -CACHE_KB)
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
    """An empty database next to `path`, with the embedding cache of the one that is there."""
    fresh = fresh_path(path)
    remove_unfinished(fresh)
    create(fresh, SCHEMA.decode(), SCHEMA_VERSION, APPLICATION)
    if os.path.exists(path):
        keep_cache(path, fresh)
    return fresh
