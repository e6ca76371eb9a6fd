"""Open search.db: create it, notice that it is another version or not a database, and swap a new one in.

Connections are pooled: a thread borrows one to read, and one writer at a time writes in an immediate transaction.
Never open the same file with the standard library's sqlite3 in this process: closing it drops our locks.
"""

from __future__ import annotations

import contextlib
import os
import threading
import time
import zlib
from collections.abc import Callable, Generator

import apsw

from co_cli.errors import IndexUnavailableError
from co_cli.index.filters import fold

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

DERIVATION = 2
"""Raise it when the same files would give other rows: passages cut elsewhere, other text embedded, other listings."""
APPLICATION = 0x636F6B62
"""Tells our file from somebody else's (`cokb`)."""
SCHEMA_FILE = os.path.join(os.path.dirname(__file__), "schema.sql")
with open(SCHEMA_FILE, encoding="utf-8") as _stream:
    SCHEMA = _stream.read()
SCHEMA_VERSION = (zlib.crc32(SCHEMA.encode()) + DERIVATION) & 0x7FFFFFFF
"""Nobody can forget to raise it: another schema has another version."""
OLDEST_SQLITE = 3_051_003
"""Older ones can lose acknowledged writes when a write-ahead log is reset."""
BUSY_MS = 10_000
CACHE_KB = 64_000
MMAP_BYTES = 1 << 30

MOST_IDLE = 8
DATABASE_FILES = ("", "-wal", "-shm", "-journal")
WRONG_FILE = (apsw.NotADBError, apsw.CorruptError)
HAS_VEC0 = "select 1 from sqlite_master where sql like 'create virtual table % using vec0%' limit 1"
NO_PLACE = (apsw.CantOpenError, apsw.PermissionsError, apsw.ReadOnlyError, apsw.IOError, apsw.FullError)


class _Connection(apsw.Connection):
    """Knows which file it was opened on: one that was deleted or swapped since is of no use."""

    inode = 0


class Database:
    """One search.db, shared by threads and processes."""

    def __init__(self, path: str, extension: str | None = None) -> None:
        """`extension` is where sqlite-vec's library is; None does without."""
        if apsw.SQLITE_VERSION_NUMBER < OLDEST_SQLITE:
            raise IndexUnavailableError(f"SQLite {apsw.sqlite_lib_version()} can lose writes: `pip install -U apsw`")
        self.path, self.extension = path, extension
        self.set_aside: str | None = None
        """Where a file that was not usable went, if one was found."""
        self._idle: list[_Connection] = []
        self._pool = threading.Lock()
        self._writer = threading.RLock()
        self._inode = 0

    def close(self) -> None:
        with self._pool:
            idle, self._idle = self._idle, []
        for connection in idle:
            connection.close()

    @contextlib.contextmanager
    def reading(self) -> Generator[apsw.Connection]:
        """A connection in one read transaction: everything it reads is of one moment."""
        connection = self._borrow()
        try:
            connection.execute("begin")
            try:
                yield connection
            finally:
                connection.execute("rollback")
        except WRONG_FILE as error:
            connection.close()
            raise _damaged(self.path, error) from error
        except BaseException:
            connection.close()
            raise
        self._give_back(connection)

    @contextlib.contextmanager
    def writing(self) -> Generator[apsw.Connection]:
        """A connection in one immediate transaction, committed at the end or undone by an error."""
        with self._writer:
            connection = self._borrow()
            try:
                with _clear_errors(self.path):
                    connection.execute("begin immediate")
                try:
                    yield connection
                except BaseException:
                    connection.execute("rollback")
                    raise
                with _clear_errors(self.path):
                    connection.execute("commit")
            except WRONG_FILE as error:
                connection.close()
                raise _damaged(self.path, error) from error
            except BaseException:
                connection.close()
                raise
            self._give_back(connection)

    def rebuild(self, fill: Callable[[Database], None]) -> None:
        """Fill a new database beside this one, then put it in its place. Readers keep the old one until then."""
        with _clear_errors(self.path), opening_lock(self.path):
            fresh_path = f"{self.path}.new"
            remove_database(fresh_path)
            create(fresh_path)
            if os.path.exists(self.path):
                carry_cache(self.path, fresh_path)
            fresh = Database(fresh_path, self.extension)
            try:
                fill(fresh)
                with fresh.writing() as connection:
                    connection.execute("pragma optimize")
                with fresh._borrowed() as connection:
                    connection.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_TRUNCATE)
            finally:
                fresh.close()
            self.close()
            swap(fresh_path, self.path)

    @contextlib.contextmanager
    def _borrowed(self) -> Generator[apsw.Connection]:
        connection = self._borrow()
        try:
            yield connection
        finally:
            self._give_back(connection)

    def _borrow(self) -> _Connection:
        """An idle connection, or a new one; none of them if the file was deleted or swapped meanwhile."""
        inode = _inode(self.path)
        with self._pool:
            if inode != self._inode or not inode:
                stale, self._idle = self._idle, []
            else:
                stale = []
                if self._idle:
                    return self._idle.pop()
        for connection in stale:
            connection.close()
        connection = self._open()
        with self._pool:
            self._inode = connection.inode
        return connection

    def _give_back(self, connection: _Connection) -> None:
        """Keep it for the next borrower, unless the file was swapped while it was out."""
        with self._pool:
            if len(self._idle) < MOST_IDLE and connection.inode == self._inode:
                self._idle.append(connection)
                return
        connection.close()

    def _open(self) -> _Connection:
        """A usable connection to a database of our version, making one if there is none."""
        with _clear_errors(self.path):
            with contextlib.suppress(apsw.CantOpenError):  # perhaps in the middle of a swap: the lock will tell
                connection = _connect_to_ours(self.path, self.extension)
                if connection is not None:
                    return connection
            with opening_lock(self.path):
                connection = _connect_to_ours(self.path, self.extension)
                if connection is not None:
                    return connection
                if not _is_ours(self.path):
                    self.set_aside = set_aside(self.path) or self.set_aside
                fresh = f"{self.path}.new"
                remove_database(fresh)
                create(fresh)
                if os.path.exists(self.path):
                    carry_cache(self.path, fresh)
                swap(fresh, self.path)
                connection = _connect_to_ours(self.path, self.extension)
            if connection is None:
                raise IndexUnavailableError(f"{self.path} cannot be made: delete it and try again")
            return connection


def _inode(path: str) -> int:
    """0 if there is no such file, or no way to it."""
    try:
        return os.stat(path).st_ino
    except OSError:
        return 0


def fetch(connection: apsw.Connection, statement: str, values: dict[str, Any] | None = None) -> list[Any]:
    """Every row; the statement says what is in it."""
    return connection.execute(statement, values or {}).fetchall()


def _connect_to_ours(path: str, extension: str | None) -> _Connection | None:
    """A connection, or None if the file is missing, empty, not a database, of another version, or swapped meanwhile."""
    inode = _inode(path)
    try:
        connection = _Connection(path, flags=apsw.SQLITE_OPEN_READWRITE)
    except apsw.CantOpenError:
        if os.path.exists(path):
            raise
        return None
    try:
        connection.set_busy_timeout(BUSY_MS)
        known = connection.pragma("user_version"), connection.pragma("application_id")
        # a swap removes the file before its log: if it is still the same now, the log that was opened is its own
        if known != (SCHEMA_VERSION, APPLICATION) or _inode(path) != inode:
            connection.close()
            return None
        if extension is None and connection.execute(HAS_VEC0).get is not None:
            connection.close()  # made with sqlite-vec, and not to be read without
            return None
        connection.inode = inode
        _tune(connection)
        if extension is not None:
            connection.enable_load_extension(True)
            connection.load_extension(extension, "sqlite3_vec_init")
            connection.enable_load_extension(False)
    except WRONG_FILE:
        connection.close()
        return None
    return connection


def _tune(connection: apsw.Connection) -> None:
    connection.pragma("synchronous", "normal")  # derived data: a power cut costs the last commits, never the file
    connection.pragma("cache_size", -CACHE_KB)
    connection.pragma("mmap_size", MMAP_BYTES)
    connection.pragma("foreign_keys", 0)
    connection.create_scalar_function("fold", _fold, 1, deterministic=True)


def _fold(*texts: apsw.SQLiteValue) -> apsw.SQLiteValue:
    return fold(texts[0]) if isinstance(texts[0], str) else texts[0]


def create(path: str) -> None:
    """Write an empty database of our version; the version is set last, in the same transaction as the tables."""
    connection = apsw.Connection(path)
    try:
        if connection.pragma("journal_mode", "wal") != "wal":
            raise IndexUnavailableError(f"{path}: this file system cannot hold a write-ahead log; set CO_DATA_DIR")
        connection.execute("begin immediate")
        connection.execute(SCHEMA)
        connection.pragma("application_id", APPLICATION)
        connection.pragma("user_version", SCHEMA_VERSION)
        connection.execute("commit")
        connection.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_TRUNCATE)
    finally:
        connection.close()


def _is_ours(path: str) -> bool:
    """A healthy database of this program, whatever its version."""
    try:
        connection = apsw.Connection(path, flags=apsw.SQLITE_OPEN_READWRITE)
    except apsw.CantOpenError:
        return False
    try:
        return connection.pragma("application_id") == APPLICATION
    except WRONG_FILE:
        return False
    finally:
        connection.close()


def swap(fresh: str, path: str) -> None:
    """Put a closed database in place of another. The old log goes first: it must never meet the new file."""
    try:
        remove_database(path)
        os.replace(fresh, path)
    except PermissionError as error:
        raise IndexUnavailableError(f"{path} is in use by another program; close it and try again") from error


def set_aside(path: str) -> str | None:
    """Move an unusable database out of the way under a dated name; an empty file just goes."""
    if not os.path.exists(path):
        return None
    if os.path.getsize(path) == 0:
        remove_database(path)
        return None
    dated = kept = f"{path}.{time.strftime('%Y%m%dT%H%M%SZ', time.gmtime())}"
    number = 1
    while os.path.exists(kept):
        number += 1
        kept = f"{dated}-{number}"
    for ending in DATABASE_FILES:
        with contextlib.suppress(FileNotFoundError):
            os.replace(path + ending, kept + ending)  # its log goes with it: it may be somebody's
    return kept


def remove_database(path: str) -> None:
    for ending in DATABASE_FILES:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(path + ending)


def carry_cache(old: str, fresh: str) -> None:
    """Bring what is expensive to make again from an older search.db into a new one, if it is of the same make."""
    connection = apsw.Connection(fresh)
    try:
        connection.set_busy_timeout(BUSY_MS)
        connection.execute("attach :old as old", {"old": old})
        connection.execute("begin")  # not immediate: that would wait for whoever writes to the old one
        try:
            for table in ("spaces", "embedding_cache"):
                columns = ", ".join(str(row[1]) for row in connection.execute(f"pragma main.table_info({table})"))
                connection.execute(f"insert into main.{table} ({columns}) select {columns} from old.{table}")
        except (apsw.SQLError, apsw.ConstraintError, *WRONG_FILE):
            connection.execute("rollback")  # of another make, or damaged: what it cached is made again
        else:
            connection.execute("commit")
    except WRONG_FILE:
        return
    finally:
        connection.close()


@contextlib.contextmanager
def opening_lock(path: str) -> Generator[None]:
    """One process at a time creates or swaps the file: eight that open it at once would fail each other."""
    from co_cli.notes.files import locked

    os.makedirs(os.path.dirname(path), exist_ok=True)
    with locked(f"{path}.lock"):
        yield


def _damaged(path: str, error: Exception) -> IndexUnavailableError:
    return IndexUnavailableError(f"{path} is damaged ({error}): `co rebuild` makes it anew")


@contextlib.contextmanager
def _clear_errors(path: str) -> Generator[None]:
    try:
        yield
    except apsw.BusyError as error:
        problem = f"{path} was locked by another program for {BUSY_MS // 1000} s; try again"
        raise IndexUnavailableError(problem) from error
    except (*NO_PLACE, OSError) as error:
        problem = f"{path} cannot be opened ({error}): check the folder, or set CO_DATA_DIR"
        raise IndexUnavailableError(problem) from error
