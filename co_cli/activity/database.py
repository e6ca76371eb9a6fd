"""activity.db: what files cannot tell. Opened as search.db is, but never thrown away: it has numbered migrations.

Forward only, one transaction each. A file that is newer than this program is left alone; one that is damaged or not
ours is set aside under a dated name. Whoever cannot open it goes on without: nothing in it is needed to find a note.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Generator

import apsw

from co_cli.errors import ActivityUnavailableError, IndexDamagedError, IndexUnavailableError
from co_cli.index.sqlite.connection import Database, FileConnection
from co_cli.index.sqlite.files import BUSY_MS, NO_PLACE, WRONG_FILE, inode_of, is_ours, no_room, put_aside
from co_cli.notes.files import locked, make_folders

FILE_NAME = "activity.db"
APPLICATION = 0x636F6163
"""Tells our file from somebody else's (`coac`)."""
FOLDER = os.path.join(os.path.dirname(__file__), "migrations")
CACHE_KB = 16_000
MMAP_BYTES = 1 << 30


def migrations() -> list[str]:
    """The files, in order; the number that a name begins with is the version it leads to."""
    names = sorted(name for name in os.listdir(FOLDER) if name.endswith(".sql"))
    if [int(name[:3]) for name in names] != list(range(1, len(names) + 1)):
        raise ActivityUnavailableError(f"{FOLDER} has a gap in its numbers: reinstall co-cli")
    return [os.path.join(FOLDER, name) for name in names]


class ActivityDatabase(Database):
    """One activity.db, shared by threads and processes."""

    derived = False

    def __init__(self, data_dir: str) -> None:
        super().__init__(os.path.join(data_dir, FILE_NAME))

    def shrink(self) -> None:
        """Return free pages to the disk, so that nothing of what was deleted is left in the file."""
        connection = self.borrow()
        try:
            connection.execute("pragma incremental_vacuum").fetchall()
            connection.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_TRUNCATE)
        except apsw.BusyError:
            pass  # somebody reads just now; the last one to close the file does the same
        finally:
            connection.close()

    def _open(self) -> FileConnection:
        with _clear(self.path):
            connection = _connect(self.path)
            if connection is not None:
                return connection
            make_folders(os.path.dirname(self.path))
            with locked(f"{self.path}.lock"):  # eight that make it at once would fail each other
                connection = _connect(self.path)
                if connection is None:
                    if not is_ours(self.path, APPLICATION, or_empty=True):
                        put_aside(self, "is damaged, or not an activity.db of ours")
                    migrate(self.path)
                    connection = _connect(self.path)
        if connection is None:
            raise ActivityUnavailableError(f"{self.path} cannot be made: move it away and try again")
        return connection


def migrate(path: str, version: int | None = None) -> None:
    """Bring a database, or a new file, to this version (the newest), one step a transaction. It is yours alone."""
    if not os.path.exists(path):
        os.close(os.open(path, os.O_CREAT | os.O_RDWR, 0o600))
    connection = apsw.Connection(path)
    try:
        connection.set_busy_timeout(BUSY_MS)
        os.chmod(path, 0o600)  # SQLite gives its log the same rights
        if connection.pragma("application_id") != APPLICATION:
            connection.pragma("auto_vacuum", 2)  # incremental; only a file without tables can be told
            if connection.pragma("journal_mode", "wal") != "wal":
                raise ActivityUnavailableError(
                    f"{path}: this file system cannot hold a write-ahead log; set CO_DATA_DIR"
                )
        connection.pragma("synchronous", "full")
        for number, file in enumerate(migrations()[:version], 1):
            connection.execute("begin immediate")
            if int(connection.pragma("user_version") or 0) < number:
                with open(file, encoding="utf-8") as stream:
                    connection.execute(stream.read())
                connection.pragma("application_id", APPLICATION)
                connection.pragma("user_version", number)
            connection.execute("commit")
        connection.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_TRUNCATE)
    finally:
        connection.close()


def _connect(path: str) -> FileConnection | None:
    """A connection; None if the file is missing, empty, damaged, not ours, or older than this program."""
    try:
        state = os.stat(path)
        connection = FileConnection(path, flags=apsw.SQLITE_OPEN_READWRITE)
    except FileNotFoundError:
        return None
    try:
        connection.set_busy_timeout(BUSY_MS)
        if connection.pragma("application_id") != APPLICATION:
            connection.close()
            return None
        if inode_of(path) != state.st_ino:  # restored or set aside meanwhile: the log that was opened may be another's
            connection.close()
            return None
        version, known = int(connection.pragma("user_version") or 0), len(migrations())
        if version > known:
            raise ActivityUnavailableError(
                f"{path} is of a newer co-cli (version {version}, this one knows {known}): "
                "update co-cli; until then use and history are not written down"
            )
        if version < known:
            connection.close()
            return None
        connection.pragma("synchronous", "full")  # nothing brings back what is lost here
        connection.pragma("cache_size", -CACHE_KB)
        connection.pragma("mmap_size", MMAP_BYTES)
        connection.inode = state.st_ino
    except (apsw.SQLError, *WRONG_FILE):
        connection.close()
        return None
    except BaseException:
        connection.close()
        raise
    return connection


@contextlib.contextmanager
def _clear(path: str) -> Generator[None]:
    """Say clearly what SQLite or the system refuses."""
    try:
        yield
    except apsw.BusyError as error:
        raise ActivityUnavailableError(f"{path} was locked by another program for {BUSY_MS // 1000} s") from error
    except (*NO_PLACE, *WRONG_FILE) as error:
        full = no_room(path, error)
        if full:
            raise ActivityUnavailableError(f"{path} cannot be written: {full}; free some space") from error
        raise ActivityUnavailableError(f"{path} cannot be opened ({error}): check the data folder") from error
    except apsw.SQLError as error:  # of a migration: somebody changed the tables
        raise ActivityUnavailableError(
            f"{path} cannot be brought to this version ({error}): move it away, and a new one is begun"
        ) from error


@contextlib.contextmanager
def available(path: str) -> Generator[None]:
    """Errors of a transaction as those of this file: nobody should rebuild search.db for them."""
    try:
        yield
    except IndexDamagedError as error:
        raise ActivityUnavailableError(f"{error}; `co data restore` brings back what was backed up") from error
    except IndexUnavailableError as error:
        if isinstance(error.__cause__, apsw.BusyError) or no_room(path, error.__cause__):
            raise ActivityUnavailableError(str(error)) from error
        raise ActivityUnavailableError(
            f"{path} cannot be used ({error.__cause__ or error}): move it away, and a new one is begun"
        ) from error
