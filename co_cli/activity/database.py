"""activity.db: the history of notes, their use and feedback. Opened like search.db, but it cannot be rebuilt.

A file of another version is left alone; one that is damaged or not ours is moved aside under a dated name. No search
needs it.
"""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Callable, Generator, Sequence

import apsw

from co_cli.activity.events import SPOOL, AgentTurn, Cited, Event, Indexed, Opened, SearchEvent, read_lines
from co_cli.activity.judgements import infer_judgements
from co_cli.activity.query_log import count_uses, log_searches, log_turns
from co_cli.activity.versions import put_heads
from co_cli.ground.errors import ActivityUnavailableError, IndexDamagedError, IndexUnavailableError, KnowledgeError
from co_cli.index.sqlite.connection import Database, FileConnection
from co_cli.index.sqlite.database_files import (
    BUSY_MS,
    NO_PLACE,
    WRONG_FILE,
    create,
    inode_of,
    is_ours,
    no_room,
)
from co_cli.notes.files import locked, make_folders, patiently

FILE_NAME = "activity.db"
APPLICATION = 0x636F6163
"""Marks our files (`coac`)."""
MIGRATIONS = os.path.join(os.path.dirname(__file__), "migrations")
"""Numbered SQL files. The first makes the tables of a new file; each other one makes the next version of it."""
CACHE_KB = 16_000
SPOOL_SECONDS = 1.0
"""How long a save may wait for a process that reads the spool."""
WAS_READ = "select 1 from spool where name = :name"
SET_READ = "insert or replace into spool (id, name) values (1, :name)"


class SpoolHeldError(ActivityUnavailableError):
    """Another process reads the spool, or was stopped while it did."""


class ActivityDatabase(Database):
    """One activity.db, shared by threads and processes. Transactions raise ActivityUnavailableError."""

    derived = False

    def __init__(self, data_dir: str, on_set_aside: Callable[[str], None] | None = None) -> None:
        super().__init__(os.path.join(data_dir, FILE_NAME), on_set_aside=on_set_aside)
        self._patience = SPOOL_SECONDS

    @contextlib.contextmanager
    def reading(self) -> Generator[FileConnection]:  # pyright: ignore[reportIncompatibleMethodOverride]
        with explained(self.path), super().reading() as connection:
            yield connection

    @contextlib.contextmanager
    def writing(self) -> Generator[FileConnection]:  # pyright: ignore[reportIncompatibleMethodOverride]
        with explained(self.path), super().writing() as connection:
            yield connection

    def write(self, events: Sequence[Event]) -> Exception | None:
        """Write the spool and these events. Returns why that failed, if it did."""
        for last in (False, True):
            try:
                with contextlib.suppress(SpoolHeldError):  # the next process reads it
                    self.read_spool()
                if events:
                    with self.writing() as connection:
                        _write_events(connection, events)
                break
            except (KnowledgeError, apsw.Error, OSError) as error:
                if last or not isinstance(error.__cause__, IndexDamagedError):
                    return error
                # else it was moved aside, and the second attempt makes a new one
        return None

    def read_spool(self) -> None:
        """Write the events of the spool. It is renamed first, so that nobody appends to what is read.

        Waits a second for a process that does so now, and only once for one that goes on. Raises SpoolHeldError.
        """
        data_dir = os.path.dirname(self.path)
        spool = os.path.join(data_dir, SPOOL)
        if not os.path.isdir(data_dir):
            return
        with contextlib.ExitStack() as held:
            try:
                held.enter_context(locked(f"{spool}.lock", self._patience))
            except BlockingIOError:
                self._patience = 0.0
                raise SpoolHeldError(f"another process has held {spool}.lock for over a second: end it") from None
            self._patience = SPOOL_SECONDS
            with contextlib.suppress(FileNotFoundError):
                patiently(os.replace, spool, f"{spool}.{time.time_ns():x}")
            for name in sorted(os.listdir(data_dir)):
                if name.startswith(f"{SPOOL}.") and not name.endswith(".lock"):
                    file = os.path.join(data_dir, name)
                    with open(file, "rb") as stream, self.writing() as connection:
                        _write_spool(connection, name, stream.read())
                    patiently(os.unlink, file)

    def check(self, fix: bool = False) -> str | None:
        """What is wrong with the file; None if nothing is, or it does not exist. `fix` moves a damaged one aside."""
        if not os.path.exists(self.path):
            return None
        inode = inode_of(self.path)
        try:
            with self.reading():  # opens it, which may move it aside
                broken = self.problem()
        except ActivityUnavailableError as error:
            return str(error)
        if broken and fix:
            self.close()
            self.retire(inode, ValueError(broken))
            return None
        return f"{self.path} is damaged: {broken}; `co doctor --fix` starts a new one" if broken else None

    def _open(self) -> FileConnection:
        with explained(self.path):
            connection = _connect(self.path)
            if connection is not None:
                return connection
            make_folders(os.path.dirname(self.path), private=True)
            with locked(f"{self.path}.lock"):
                connection = _connect(self.path)  # another process may have created it
                if connection is None:
                    if not is_ours(self.path, APPLICATION, or_empty=True):
                        self.put_aside("is damaged, or was not created by co-cli")
                    create_activity(self.path)
                    connection = _connect(self.path)
        if connection is None:
            raise ActivityUnavailableError(f"{self.path} cannot be created: move it away and try again")
        return connection


def versions() -> dict[int, str]:
    """Each version of the file, oldest first, and the SQL file that makes it from the one before."""
    names = sorted(name for name in os.listdir(MIGRATIONS) if name.endswith(".sql"))
    return {int(name[:3]): os.path.join(MIGRATIONS, name) for name in names}


def create_activity(path: str) -> None:
    """Write an empty activity.db."""
    known = versions()
    create(path, "".join(map(_read, known.values())), max(known), APPLICATION)


def refuse_version(path: str, version: int) -> None:
    known = versions()
    if version > max(known):
        raise ActivityUnavailableError(
            f"{path} is of a newer co-cli (version {version}, this one knows {max(known)}): "
            "update co-cli; until then use and history are not recorded"
        )
    if 0 < version < min(known):
        raise ActivityUnavailableError(f"{path} was made before the first release: move it away to start a new one")


def _connect(path: str) -> FileConnection | None:
    """A connection; None if the file is missing, empty, damaged, not ours, or replaced meanwhile."""
    inode = inode_of(path)
    if not inode:
        return None
    connection = FileConnection(path, flags=apsw.SQLITE_OPEN_READWRITE)
    usable = False
    try:
        connection.set_busy_timeout(BUSY_MS)
        if connection.pragma("application_id") == APPLICATION:
            refuse_version(path, int(connection.pragma("user_version") or 0))
            _convert(connection, path)
            connection.pragma("synchronous", "full")  # what is lost here cannot be rebuilt
            connection.pragma("cache_size", -CACHE_KB)
            connection.inode = inode
            # if it was restored or moved aside meanwhile, the log that was opened may belong to another file
            usable = inode_of(path) == inode
    except (apsw.SQLError, *WRONG_FILE):
        pass
    finally:
        if not usable:
            connection.close()
    return connection if usable else None


def _convert(connection: FileConnection, path: str) -> None:
    """Give a file of an older version the tables of this one, in one transaction.

    After an error the caller closes the connection, which rolls back: the file is as it was.
    """
    known = versions()
    if not 0 < int(connection.pragma("user_version") or 0) < max(known):
        return
    connection.execute("begin immediate")
    version = int(connection.pragma("user_version"))  # another process may have done it
    try:
        for missing in (number for number in known if number > version):
            connection.execute(_read(known[missing]))
            connection.pragma("user_version", missing)
        connection.execute("commit")
    except (apsw.SQLError, apsw.ConstraintError) as error:
        raise ActivityUnavailableError(
            f"{path} of version {version} cannot be converted to version {max(known)} ({error}); it is unchanged: "
            "go back to the co-cli that you had, and report this"
        ) from error


def _read(file: str) -> str:
    with open(file, encoding="utf-8") as stream:
        return stream.read()


@contextlib.contextmanager
def explained(path: str, fix: str = "check its folder, or move it away to start a new one") -> Generator[None]:
    """Turn errors into ActivityUnavailableError with the fix, so that nobody rebuilds search.db because of them."""
    try:
        yield
    except IndexDamagedError as error:
        raise ActivityUnavailableError(f"{error}; `co data restore` restores a backup") from error
    except (IndexUnavailableError, apsw.BusyError, apsw.SQLError, *NO_PLACE, *WRONG_FILE) as error:
        cause = error.__cause__ if isinstance(error, IndexUnavailableError) else error
        full = no_room(path, cause)
        if full:
            text = f"{path} cannot be written: {full}; free some space"
        elif isinstance(cause, apsw.BusyError):
            text = f"{path} was locked by another program for {BUSY_MS // 1000} s; try again"
        else:
            text = f"{path} cannot be used ({getattr(cause, 'strerror', None) or cause or error}): {fix}"
        raise ActivityUnavailableError(text) from error


def _write_spool(connection: apsw.Connection, name: str, data: bytes) -> None:
    """Write the events of a spool file, unless that was done before a crash."""
    if not connection.execute(WAS_READ, {"name": name}).get:
        _write_spooled(connection, read_lines(data))
        connection.execute(SET_READ, {"name": name})


def _write_spooled(connection: apsw.Connection, events: Sequence[Event]) -> None:
    """Write these, and skip unknown kinds of events: another version of this program may share the spool."""
    try:
        with connection:  # a savepoint
            _write_events(connection, events)
    except (TypeError, ValueError, apsw.ConstraintError, apsw.MismatchError):
        for event in events if len(events) > 1 else ():
            _write_spooled(connection, [event])


def _write_events(connection: apsw.Connection, events: Sequence[Event]) -> None:
    """Inside the caller's transaction."""
    searches = [event for event in events if isinstance(event, SearchEvent)]
    opened = [event for event in events if isinstance(event, Opened)]
    log_searches(connection, searches)
    log_turns(connection, [event for event in events if isinstance(event, AgentTurn)])
    count_uses(connection, searches, opened)
    infer_judgements(connection, [event for event in events if isinstance(event, (Opened, Cited))])
    for event in events:
        if isinstance(event, Indexed):
            put_heads(connection, event)
