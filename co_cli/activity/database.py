"""activity.db: what files cannot tell. Opened like search.db, but never thrown away: it has numbered migrations.

Migrations run forward only, one transaction each. A file that is newer than this program is left alone; one that is
damaged or not ours is moved aside under a dated name. Nothing in it is needed to find a note.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Generator

import apsw

from co_cli.errors import ActivityUnavailableError, IndexDamagedError, IndexUnavailableError
from co_cli.index.sqlite.connection import Database, FileConnection
from co_cli.index.sqlite.database_files import BUSY_MS, NO_PLACE, WRONG_FILE, inode_of, is_ours, no_room, put_aside
from co_cli.notes.files import locked, make_folders

FILE_NAME = "activity.db"
APPLICATION = 0x636F6163
"""Tells our file from somebody else's (`coac`)."""
FOLDER = os.path.join(os.path.dirname(__file__), "migrations")
CACHE_KB = 16_000
MMAP_BYTES = 1 << 30


def migrations() -> list[str]:
    """The files in order; the number that a name begins with is the version it leads to."""
    names = sorted(name for name in os.listdir(FOLDER) if name.endswith(".sql"))
    if [int(name[:3]) for name in names] != list(range(1, len(names) + 1)):
        raise ActivityUnavailableError(f"{FOLDER} has a gap in its numbers: reinstall co-cli")
    return [os.path.join(FOLDER, name) for name in names]


class ActivityDatabase(Database):
    """One activity.db, shared by threads and processes. Transactions raise ActivityUnavailableError."""

    derived = False

    def __init__(self, data_dir: str) -> None:
        super().__init__(os.path.join(data_dir, FILE_NAME))

    @contextlib.contextmanager
    def reading(self) -> Generator[FileConnection]:  # pyright: ignore[reportIncompatibleMethodOverride]
        with _explained(self.path), super().reading() as connection:
            yield connection

    @contextlib.contextmanager
    def writing(self) -> Generator[FileConnection]:  # pyright: ignore[reportIncompatibleMethodOverride]
        with _explained(self.path), super().writing() as connection:
            yield connection

    def shrink(self) -> None:
        """Return free pages to the disk, so that nothing that was deleted is left in the file."""
        connection = self.borrow()
        try:
            connection.execute("pragma incremental_vacuum").fetchall()
            connection.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_TRUNCATE)
        except apsw.BusyError:
            pass  # somebody is reading; the last one to close the file does the same
        finally:
            connection.close()

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
        if self.set_aside:
            return f"activity.db was unusable; it is kept as {self.set_aside}"
        return f"{self.path} is damaged: {broken}; `co doctor --fix` starts a new one" if broken else None

    def _open(self) -> FileConnection:
        with _explained(self.path):
            connection = _connect(self.path)
            if connection is not None:
                return connection
            make_folders(os.path.dirname(self.path))
            with locked(f"{self.path}.lock"):  # eight processes that create it at once would fail each other
                connection = _connect(self.path)
                if connection is None:
                    if not is_ours(self.path, APPLICATION, or_empty=True):
                        put_aside(self, "is damaged, or not an activity.db of ours")
                    migrate(self.path)
                    connection = _connect(self.path)
        if connection is None:
            raise ActivityUnavailableError(f"{self.path} cannot be created: move it away and try again")
        return connection


def migrate(path: str, version: int | None = None) -> None:
    """Bring a database, or a new file, to this version (default: the newest). Nobody else may have it open."""
    if not os.path.exists(path):
        os.close(os.open(path, os.O_CREAT | os.O_RDWR, 0o600))
    connection = apsw.Connection(path)
    try:
        connection.set_busy_timeout(BUSY_MS)
        os.chmod(path, 0o600)  # SQLite gives its log the same permissions
        if connection.pragma("application_id") != APPLICATION:
            connection.pragma("auto_vacuum", 2)  # incremental; possible only before there are tables
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
    """A connection; None if the file is missing, empty, damaged, not ours, replaced meanwhile, or older."""
    inode = inode_of(path)
    if not inode:
        return None
    connection = FileConnection(path, flags=apsw.SQLITE_OPEN_READWRITE)
    usable = False
    try:
        connection.set_busy_timeout(BUSY_MS)
        ours = connection.pragma("application_id") == APPLICATION
        version, newest = int(connection.pragma("user_version") or 0), len(migrations())
        if ours and version > newest:
            raise ActivityUnavailableError(
                f"{path} is of a newer co-cli (version {version}, this one knows {newest}): "
                "update co-cli; until then use and history are not recorded"
            )
        connection.pragma("synchronous", "full")  # nothing brings back what is lost here
        connection.pragma("cache_size", -CACHE_KB)
        connection.pragma("mmap_size", MMAP_BYTES)
        connection.inode = inode
        # if it was restored or moved aside meanwhile, the log that was opened may belong to another file
        usable = ours and version == newest and inode_of(path) == inode
    except (apsw.SQLError, *WRONG_FILE):
        pass
    finally:
        if not usable:
            connection.close()
    return connection if usable else None


@contextlib.contextmanager
def _explained(path: str) -> Generator[None]:
    """Errors as those of activity.db, with the fix: nobody should rebuild search.db because of them."""
    try:
        yield
    except IndexDamagedError as error:
        raise ActivityUnavailableError(f"{error}; `co data restore` brings back what was backed up") from error
    except (IndexUnavailableError, apsw.BusyError, *NO_PLACE, *WRONG_FILE) as error:
        cause = error.__cause__ if isinstance(error, IndexUnavailableError) else error
        full = no_room(path, cause)
        if full:
            raise ActivityUnavailableError(f"{path} cannot be written: {full}; free some space") from error
        if isinstance(cause, apsw.BusyError):
            text = f"{path} was locked by another program for {BUSY_MS // 1000} s; try again"
            raise ActivityUnavailableError(text) from error
        text = f"{path} cannot be used ({cause or error}): check the data folder, or move it away to start a new one"
        raise ActivityUnavailableError(text) from error
    except apsw.SQLError as error:  # of a migration or a statement: somebody changed the tables
        raise ActivityUnavailableError(
            f"{path} cannot be used ({error}): move it away, and a new one is started"
        ) from error
