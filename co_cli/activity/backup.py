"""Back up and restore activity.db, the one file that cannot be rebuilt.

A backup is one SQLite file. It is written under another name, checked, and renamed when it is complete. A restore keeps
the file that it replaces.
"""

from __future__ import annotations

import contextlib
import os
import time
from typing import NamedTuple

import apsw

from co_cli.activity import Activity
from co_cli.activity.database import APPLICATION, FILE_NAME, explained, refuse_version
from co_cli.ground.errors import ActivityUnavailableError, InvalidInputError
from co_cli.ground.settings import Settings
from co_cli.index.sqlite.database_files import BUSY_MS, NO_PLACE, WRONG_FILE, opening, remove_database, set_aside, swap
from co_cli.notes.files import make_folders, open_private, patiently, sync_folder, temporary_name

FOLDER = "backups"
TABLES = "select name from sqlite_master where type = 'table' and name not like 'sqlite_%' order by name"


class Copy(NamedTuple):
    """A backup that was checked."""

    path: str
    bytes: int
    version: int
    rows: dict[str, int]
    """How many each table has."""


class Restored(NamedTuple):
    """What replaced activity.db, and where the old one is."""

    copy: Copy
    kept: str | None


def default_path(data_dir: str, now: float) -> str:
    """Dated; a second one within a second gets a number."""
    stem = os.path.join(data_dir, FOLDER, f"activity-{time.strftime('%Y%m%dT%H%M%SZ', time.gmtime(now))}")
    number, path = 1, f"{stem}.db"
    while os.path.lexists(path):
        number += 1
        path = f"{stem}-{number}.db"
    return path


def backups(data_dir: str) -> list[str]:
    """Those in the default folder, oldest first."""
    folder = os.path.join(data_dir, FOLDER)
    names = os.listdir(folder) if os.path.isdir(folder) else []
    return [os.path.join(folder, name) for name in sorted(names) if name.startswith("activity-") and name[-3:] == ".db"]


def back_up(settings: Settings, path: str, overwrite: bool = False) -> Copy:
    """Copy activity.db to `path` as it is at one moment, while others may write."""
    data_dir, folder = settings.data_dir, os.path.dirname(path)
    source = os.path.join(data_dir, FILE_NAME)
    if not os.path.exists(source):
        raise InvalidInputError(f"there is no {source} yet: nothing was searched or saved, so there is nothing to copy")
    if os.path.realpath(path) in (os.path.realpath(source), os.path.join(data_dir, "search.db")):
        raise InvalidInputError(f"{path} is the database itself: name another file")
    if os.path.lexists(path) and not overwrite:
        raise InvalidInputError(f"{path} exists: name another file, or add --overwrite")
    if os.path.exists(path) and not os.path.isfile(path):
        raise InvalidInputError(f"{path} is not a regular file: name another")
    if folder != os.path.join(data_dir, FOLDER) and not os.path.isdir(folder):
        raise InvalidInputError(f"there is no folder {folder}: is its drive mounted? Create it, or name another")
    temporary = temporary_name(folder)
    with Activity(settings, "") as activity:
        with explained(source):
            connection = activity.written().borrow()
        with contextlib.closing(connection), explained(path, "name a file in another folder"):
            try:
                make_folders(folder)
                _copy(connection, temporary)
                found = look_at(temporary)
                patiently(os.replace, temporary, path)
                sync_folder(folder)
            finally:
                remove_database(temporary)
    return found._replace(path=path)


def restore(data_dir: str, path: str) -> Restored:
    """Replace activity.db with a backup, and keep the replaced file under a dated name."""
    target = os.path.join(data_dir, FILE_NAME)
    if os.path.realpath(path) == os.path.realpath(target):
        raise InvalidInputError(f"{path} is activity.db itself: name a copy of it")
    found = look_at(path)
    refuse_version(path, found.version)
    fresh = temporary_name(data_dir)
    with explained(target), opening(target):
        source = _open(path)
        try:
            _copy(source, fresh)
            look_at(fresh)
            connection = apsw.Connection(fresh)
            connection.pragma("journal_mode", "wal")
            connection.close()
            kept = set_aside(target)  # with its log
            swap(fresh, target)
        finally:
            source.close()
            remove_database(fresh)
    return Restored(found, kept)


def look_at(path: str) -> Copy:
    """Read a backup from end to end; raises if it is not a sound activity.db."""
    connection = _open(path)
    try:
        if connection.pragma("application_id") != APPLICATION:
            raise InvalidInputError(f"{path} is not a copy of an activity.db")
        broken = [str(row[0]) for row in connection.execute("pragma integrity_check(3)") if row[0] != "ok"]
        if broken:
            raise ActivityUnavailableError(f"{path} is damaged ({'; '.join(broken)}): use another copy")
        tables = [str(row[0]) for row in connection.execute(TABLES)]
        rows = {name: int(str(connection.execute(f'select count(*) from "{name}"').get)) for name in tables}
        return Copy(path, os.path.getsize(path), int(connection.pragma("user_version") or 0), rows)
    except WRONG_FILE as error:
        raise ActivityUnavailableError(f"{path} is damaged, or no database ({error}): use another copy") from error
    finally:
        connection.close()


def _copy(source: apsw.Connection, path: str) -> None:
    """A new file that only its owner can read, on disk when this returns."""
    handle = open_private(path, os.O_CREAT | os.O_EXCL | os.O_RDWR)
    try:
        source.execute("vacuum into :path", {"path": path})
        os.fsync(handle)
    finally:
        os.close(handle)


def _open(path: str) -> apsw.Connection:
    if not os.path.exists(path):
        raise InvalidInputError(f"there is no backup at {path}: `co data restore` lists those in the default folder")
    if not os.path.isfile(path):
        raise InvalidInputError(f"{path} is not a regular file: name a copy of activity.db")
    try:
        connection = apsw.Connection(path, flags=apsw.SQLITE_OPEN_READONLY)
        connection.set_busy_timeout(BUSY_MS)
    except (*NO_PLACE, *WRONG_FILE) as error:
        raise ActivityUnavailableError(f"{path} cannot be read ({error})") from error
    return connection
