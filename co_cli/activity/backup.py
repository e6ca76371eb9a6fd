"""Copies of activity.db, the one file that nothing brings back: made while it is in use, proven, never overwritten.

A copy is one SQLite file of its own. It is written under another name first and gets its own when it is whole, on disk
and compared; so is what takes its place at a restore, and what was there before is kept.
"""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Callable, Generator
from typing import NamedTuple

import apsw

from co_cli.activity.database import APPLICATION, FILE_NAME, ActivityDatabase, available, migrations
from co_cli.activity.folding import fold_spool
from co_cli.errors import ActivityUnavailableError, InvalidInputError
from co_cli.index.sqlite.files import (
    BUSY_MS,
    NO_PLACE,
    WRONG_FILE,
    no_room,
    opening,
    remove_database,
    set_aside,
    swap,
)
from co_cli.notes.files import make_folders, sync_folder

FOLDER = "backups"
PAGES = 1_000
"""At a time, to show how far it is."""
TABLES = "select name from sqlite_master where type = 'table' and name not like 'sqlite_%' order by name"
Progress = Callable[[int, int], None]


class Copy(NamedTuple):
    """A backup that was looked at."""

    path: str
    bytes: int
    version: int
    rows: dict[str, int]
    """How many each table has."""


class Restored(NamedTuple):
    """What took the place of activity.db, and where that is now."""

    copy: Copy
    kept: str | None


def default_place(data_dir: str, now: float) -> str:
    moment = time.strftime("%Y%m%dT%H%M%SZ", time.gmtime(now))
    return os.path.join(data_dir, FOLDER, f"activity-{moment}.db")


def backups(data_dir: str) -> list[str]:
    """Those in the usual place, oldest first."""
    folder = os.path.join(data_dir, FOLDER)
    with contextlib.suppress(OSError):
        names = sorted(name for name in os.listdir(folder) if name.startswith("activity-") and name.endswith(".db"))
        return [os.path.join(folder, name) for name in names]
    return []


def back_up(data_dir: str, path: str, overwrite: bool = False, progress: Progress | None = None) -> Copy:
    """Copy activity.db to `path`. Writers go on meanwhile; the copy is of one moment."""
    database = ActivityDatabase(data_dir)
    if not os.path.exists(database.path):
        raise InvalidInputError(f"there is no {database.path} yet: nothing was searched or saved, and nothing is lost")
    if os.path.realpath(path) in (os.path.realpath(database.path), os.path.join(data_dir, "search.db")):
        raise InvalidInputError(f"{path} is in use itself: name another file")
    if os.path.lexists(path) and not overwrite:
        raise InvalidInputError(f"{path} is there already: name another file, or --overwrite")
    if os.path.exists(path) and not os.path.isfile(path):
        raise InvalidInputError(f"{path} is not a file that could be replaced: name another")
    _require_folder(data_dir, os.path.dirname(path))
    try:
        with available(database.path):
            fold_spool(database, data_dir)
            connection = database.borrow()
            try:
                return _written(connection, path, overwrite, progress)
            finally:
                connection.close()
    finally:
        database.close()


def restore(data_dir: str, path: str, progress: Progress | None = None) -> Restored:
    """Put a copy in place of activity.db, and keep what was there under a dated name."""
    target = os.path.join(data_dir, FILE_NAME)
    if os.path.realpath(path) == os.path.realpath(target):
        raise InvalidInputError(f"{path} is activity.db itself: name a copy of it")
    found = look_at(path)
    if found.version > len(migrations()):
        raise ActivityUnavailableError(
            f"{path} is of a newer co-cli (version {found.version}, this one knows {len(migrations())}): update co-cli"
        )
    fresh = f"{target}.restored"
    with _clear(target), opening(target):
        remove_database(fresh)
        source = _open(path)
        try:
            _copy(source, fresh, progress)
        finally:
            source.close()
        if look_at(fresh).rows != found.rows:
            raise ActivityUnavailableError(f"{path} changed while it was read: try again")
        _write_ahead(fresh)
        _fold_log_in(target)
        kept = set_aside(target)
        swap(fresh, target)
        sync_folder(data_dir)
    return Restored(found._replace(path=path), kept)


def look_at(path: str) -> Copy:
    """Read a copy from end to end; raises if it is not a sound activity.db."""
    connection = _open(path)
    try:
        if connection.pragma("application_id") != APPLICATION:
            raise InvalidInputError(f"{path} is no copy of an activity.db")
        broken = [str(row[0]) for row in connection.execute("pragma integrity_check(3)") if row[0] != "ok"]
        if broken:
            raise ActivityUnavailableError(f"{path} is damaged ({'; '.join(broken)}): take another copy")
        tables = [str(row[0]) for row in connection.execute(TABLES)]
        rows = {name: int(str(connection.execute(f'select count(*) from "{name}"').get)) for name in tables}
        return Copy(path, os.path.getsize(path), int(connection.pragma("user_version") or 0), rows)
    except WRONG_FILE as error:
        raise ActivityUnavailableError(f"{path} is damaged, or no database ({error}): take another copy") from error
    finally:
        connection.close()


def _require_folder(data_dir: str, folder: str) -> None:
    """Only our own folder is made: another that is not there may be on a drive that is not mounted."""
    if os.path.realpath(folder) != os.path.realpath(os.path.join(data_dir, FOLDER)) and not os.path.isdir(folder):
        raise InvalidInputError(f"there is no folder {folder}: is its drive mounted? Make it first, or name another")


def _written(connection: apsw.Connection, path: str, overwrite: bool, progress: Progress | None) -> Copy:
    folder = os.path.dirname(path)
    temporary = f"{path}.{os.getpid():x}-{time.monotonic_ns():x}.part"
    with _clear(path):
        make_folders(folder)
        try:
            _copy(connection, temporary, progress)
            found = look_at(temporary)
            if overwrite:
                os.replace(temporary, path)
            else:
                _claim(temporary, path)
            sync_folder(folder)
        finally:
            remove_database(temporary)
    return found._replace(path=path)


def _claim(temporary: str, path: str) -> None:
    """Give it its name, which may have been taken a moment ago."""
    try:
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
    except FileExistsError:
        raise InvalidInputError(f"{path} is there already: name another file, or --overwrite") from None
    os.replace(temporary, path)


def _copy(source: apsw.Connection, path: str, progress: Progress | None) -> None:
    """By SQLite's own way to copy a database that is in use; of one moment, and on disk when this returns."""
    os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600))
    target = apsw.Connection(path)
    source.execute("begin")
    try:
        source.execute("select count(*) from sqlite_master").fetchall()  # from here on it sees no later write
        with target.backup("main", source, "main") as backup:
            while not backup.done:
                backup.step(PAGES)
                if progress:
                    progress(backup.page_count - backup.remaining, backup.page_count)
        target.pragma("journal_mode", "delete")  # one file, which can be carried anywhere
    finally:
        source.execute("rollback")
        target.close()
    handle = os.open(path, os.O_RDWR)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _write_ahead(path: str) -> None:
    connection = apsw.Connection(path)
    try:
        connection.pragma("journal_mode", "wal")
    finally:
        connection.close()


def _fold_log_in(path: str) -> None:
    """What is kept should be whole in one file: whoever is killed while it is moved leaves its log behind."""
    if not os.path.exists(path):
        return
    with contextlib.suppress(apsw.Error):  # damaged, or in use: its log goes with it
        connection = apsw.Connection(path, flags=apsw.SQLITE_OPEN_READWRITE)
        try:
            connection.set_busy_timeout(BUSY_MS)
            connection.execute("select count(*) from sqlite_master").fetchall()  # only who reads knows of a log
            connection.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_TRUNCATE)
        finally:
            connection.close()


def _open(path: str) -> apsw.Connection:
    if os.path.exists(path) and not os.path.isfile(path):
        raise InvalidInputError(f"{path} is a folder, or no regular file: name a copy of activity.db")
    try:
        connection = apsw.Connection(path, flags=apsw.SQLITE_OPEN_READONLY)
        connection.set_busy_timeout(BUSY_MS)
    except (*NO_PLACE, *WRONG_FILE) as error:
        if not os.path.exists(path):
            raise InvalidInputError(
                f"there is no backup at {path}: `co data restore` lists those in the usual place"
            ) from None
        raise ActivityUnavailableError(f"{path} cannot be read ({error})") from error
    return connection


@contextlib.contextmanager
def _clear(path: str) -> Generator[None]:
    """Say clearly what SQLite or the system refuses."""
    try:
        yield
    except NO_PLACE as error:
        full = no_room(path, error)
        if full:
            raise ActivityUnavailableError(
                f"{path} cannot be written: {full}; free some space, or name another folder"
            ) from error
        raise ActivityUnavailableError(f"{path} cannot be written ({error}): name another folder") from error
