"""search.db as this process uses it: a pool of connections, and the two kinds of transaction.

A thread borrows a connection to read, and one writer at a time writes in an immediate transaction. What makes and swaps
the file is in making.py: a search of a vault that is there needs none of it.
Never open the same file with the standard library's sqlite3 in this process: closing it drops our locks.
"""

from __future__ import annotations

import os
import sys
from _thread import RLock, allocate_lock

import apsw

from co_cli.errors import IndexUnavailableError
from co_cli.index.filters import fold

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from types import TracebackType
    from typing import Any

DERIVATION = 9
"""Raise it when the same files would give other rows: passages cut elsewhere, other text embedded, other listings."""
APPLICATION = 0x636F6B62
"""Tells our file from somebody else's (`cokb`)."""
SCHEMA_FILE = os.path.join(os.path.dirname(__file__), "schema.sql")
with open(SCHEMA_FILE, "rb") as _stream:
    SCHEMA = _stream.read()
SCHEMA_VERSION = (int.from_bytes(SCHEMA, "big") + DERIVATION) % 0x7FFFFFFF
"""Nobody can forget to raise it: another schema has another version."""
OLDEST_SQLITE = 3_051_003
"""Older ones can lose acknowledged writes when a write-ahead log is reset."""
BUSY_MS = 10_000
CACHE_KB = 64_000
MMAP_BYTES = 1 << 30

MOST_IDLE = 8
WRONG_FILE = (apsw.NotADBError, apsw.CorruptError)
DAMAGE = (*WRONG_FILE, UnicodeDecodeError)
"""What a read of a damaged file raises: SQLite does not look whether a text is one, and we only write such that are."""
NO_PLACE = (apsw.CantOpenError, apsw.PermissionsError, apsw.ReadOnlyError, apsw.IOError, apsw.FullError, OSError)
HAS_VEC0 = "select 1 from sqlite_master where sql like 'create virtual table % using vec0%' limit 1"


_left: list[apsw.Connection] = []
"""Connections that nobody closes: the process is about to end."""


class FileConnection(apsw.Connection):
    """Knows which file it was opened on: one that was deleted or swapped since is of no use."""

    inode = 0
    counted: dict[str, int] | None = None
    """Words that were counted in this read transaction: index/words.py asks for each more than once."""


class Database:
    """One search.db, shared by threads and processes."""

    derived = True
    """Does everything in it come back from the files?"""

    def __init__(self, path: str, extension: str | None = None) -> None:
        """`extension` is where sqlite-vec's library is; None does without."""
        if apsw.SQLITE_VERSION_NUMBER < OLDEST_SQLITE:
            raise IndexUnavailableError(f"SQLite {apsw.sqlite_lib_version()} can lose writes: `pip install -U apsw`")
        self.path, self.extension = path, extension
        self.set_aside: str | None = None
        """Where a file that was not usable went, if one was found."""
        self.told: Callable[[str], None] | None = None
        """Hears it once, in words, when that happens; None: the log does."""
        self.writer = RLock()
        self._idle: list[FileConnection] = []
        self._pool = allocate_lock()
        self._inode = 0
        self.wrote = False
        """Was there a transaction that could write?"""

    def close(self) -> None:
        with self._pool:
            idle, self._idle = self._idle, []
        for connection in idle:
            connection.close()

    def leave(self) -> None:
        """Instead of `close`, right before the process ends: if it only read, the system puts away what it used.

        Closing takes the files of the log away, and the next search makes them again: together a tenth of a search.
        """
        if self.wrote:
            self.close()
            return
        with self._pool:
            idle, self._idle = self._idle, []
        _left.extend(idle)

    def reading(self) -> Reading:
        """A connection in one read transaction: everything it reads is of one moment."""
        return Reading(self)

    def writing(self) -> Writing:
        """A connection in one immediate transaction, committed at the end or undone by an error."""
        return Writing(self)

    def rebuild(self, fill: Callable[[Database], None]) -> None:
        """Fill a new database beside this one, then put it in its place. Readers keep the old one until then."""
        from co_cli.index.making import rebuild

        rebuild(self, fill)

    def borrow(self) -> FileConnection:
        """An idle connection, or a new one; none of them if the file was deleted or swapped meanwhile."""
        inode = inode_of(self.path)
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

    def give_back(self, connection: FileConnection) -> None:
        """Keep it for the next borrower, unless the file was swapped while it was out."""
        with self._pool:
            if len(self._idle) < MOST_IDLE and connection.inode == self._inode:
                self._idle.append(connection)
                return
        connection.close()

    def _open(self) -> FileConnection:
        """A usable connection to a database of our version, making one if there is none."""
        try:
            connection = connect(self.path, self.extension)
        except apsw.ExtensionLoadingError:
            self.extension = None  # there, but not for this machine: do without, as where there is none
            return self._open()
        except (apsw.CantOpenError, apsw.IOError):
            connection = None  # perhaps in the middle of a swap: the lock will tell
        except (apsw.BusyError, *NO_PLACE) as error:
            raise clear(self.path, error) from error
        if connection is not None:
            if os.path.exists(fresh_path(self.path)):
                from co_cli.index.making import sweep_unfinished

                sweep_unfinished(self.path)
            return connection
        from co_cli.index.making import open_or_make

        return open_or_make(self)


class Reading:
    """One read transaction. An error inside closes the connection instead of giving it back."""

    def __init__(self, database: Database) -> None:
        self.database = database

    def __enter__(self) -> apsw.Connection:
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
        path, failure = self.database.path, error
        try:
            self.end(error)
        except (apsw.Error, OSError) as problem:
            failure = error or problem
        if failure is None:
            self.database.give_back(self.connection)
            return
        self.connection.close()
        if isinstance(failure, DAMAGE):
            from co_cli.index.damage import is_of_sqlite, retire

            if not is_of_sqlite(failure):
                return  # somebody's text who is called in between, as an embedder is
            raise retire(self.database, self.connection.inode, failure) from failure
        if isinstance(failure, (apsw.BusyError, *NO_PLACE)) and (error is None or isinstance(error, apsw.Error)):
            raise clear(path, failure) from failure
        if error is None:
            raise failure

    def begin(self) -> None:
        self.connection.counted = {}
        self.connection.execute("begin")

    def end(self, error: BaseException | None) -> None:
        if self.connection.in_transaction:
            self.connection.execute("rollback")


class Writing(Reading):
    """One immediate transaction, and the only one of this process."""

    held = False

    def __enter__(self) -> apsw.Connection:
        self.database.writer.acquire()
        try:
            connection = super().__enter__()
        except BaseException:
            self.database.writer.release()
            raise
        self.held = self.database.wrote = True
        return connection

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        try:
            super().__exit__(kind, error, traceback)
        finally:
            if self.held:  # not while __enter__ fails: it lets go of the lock itself
                self.held = False
                self.database.writer.release()

    def begin(self) -> None:
        self.connection.counted = None  # what it counts may change
        self.connection.execute("begin immediate")

    def end(self, error: BaseException | None) -> None:
        if self.connection.in_transaction:
            self.connection.execute("commit" if error is None else "rollback")


def vector_extension() -> str | None:
    """Where sqlite-vec's library is, without its ending; None where there is no wheel (musl, Windows on ARM).

    Along sys.path by hand: importing its package imports numpy, and importlib.util alone costs half a Python start.
    """
    for folder in (os.path.dirname(os.path.dirname(apsw.__file__)), *sys.path):  # mostly they lie side by side
        for name in ("vec0.so", "vec0.dylib", "vec0.dll"):
            if os.path.exists(os.path.join(folder, "sqlite_vec", name)):
                return os.path.join(folder, "sqlite_vec", "vec0")
    return None


def fetch(connection: apsw.Connection, statement: str, values: dict[str, Any] | None = None) -> list[Any]:
    """Every row; the statement says what is in it."""
    return connection.execute(statement, values or {}).fetchall()


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
            connection.close()  # made with sqlite-vec, and not to be read without
            return None
        connection.inode = inode
        _tune(connection)
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


def fresh_path(path: str) -> str:
    """Where a new search.db is made, beside the one whose place it takes."""
    return f"{path}.new"


def clear(path: str, error: BaseException) -> IndexUnavailableError:
    """SQLite's and the system's refusals as one line with the cure."""
    if isinstance(error, apsw.BusyError):
        return IndexUnavailableError(f"{path} was locked by another program for {BUSY_MS // 1000} s; try again")
    from co_cli.index.room import no_room  # for the day when it happens

    full = no_room(path, error)
    if full:
        return IndexUnavailableError(f"{path} cannot be written: {full}; free some space, or set CO_DATA_DIR")
    return IndexUnavailableError(f"{path} cannot be opened ({error}): check the folder, or set CO_DATA_DIR")


def _tune(connection: apsw.Connection) -> None:
    connection.pragma("synchronous", "normal")  # derived data: a power cut costs the last commits, never the file
    connection.pragma("cache_size", -CACHE_KB)
    connection.pragma("mmap_size", MMAP_BYTES)
    connection.pragma("foreign_keys", 0)
    connection.create_scalar_function("fold", _fold, 1, deterministic=True)


def _fold(*texts: apsw.SQLiteValue) -> apsw.SQLiteValue:
    return fold(texts[0]) if isinstance(texts[0], str) else texts[0]


def inode_of(path: str) -> int:
    """0 if there is no such file, or no way to it."""
    try:
        return os.stat(path).st_ino
    except OSError:
        return 0
