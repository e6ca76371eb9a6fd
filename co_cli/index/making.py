"""Make search.db: create it, tell ours from others, set an unusable one aside, swap a new one in.

One process at a time, behind a lock file: eight that open a new database at once would fail each other.
"""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Callable, Generator, Iterable
from typing import NamedTuple

import apsw

from co_cli.errors import IndexUnavailableError
from co_cli.index.connection import (
    APPLICATION,
    BUSY_MS,
    NO_PLACE,
    SCHEMA,
    SCHEMA_VERSION,
    WRONG_FILE,
    Database,
    FileConnection,
    clear,
    connect,
    fresh_path,
)
from co_cli.notes.files import locked, make_folders, sync_folder

DATABASE_FILES = ("", "-wal", "-shm", "-journal")
KEPT = 3
"""So many of the search.db that were found unusable are kept: they are derived, and may be large."""
DEAR = "space_id not in (select id from old.spaces where provider = 'static')"
"""What the embedded model gave was cached once, and takes more bytes than it is worth."""


def open_or_make(database: Database) -> FileConnection:
    """A connection to a database of our version; whatever else stands in its place is replaced, or kept elsewhere."""
    path = database.path
    with opening(path):
        connection = _connect(database)
        if connection is not None:
            return connection  # another process made it while we waited
        if os.path.exists(path) or not _finish_swap(database):
            if not is_ours(path, APPLICATION):
                put_aside(database, "is not a search.db of ours")
            swap(_with_what_no_file_gives_back(path, _make_fresh(path)), path)
        connection = _connect(database)
    if connection is None:
        raise IndexUnavailableError(f"{path} cannot be made: delete it and try again")
    return connection


def _finish_swap(database: Database) -> bool:
    """Whoever was killed, or lost power, between the two steps of a swap left the new file beside an empty place."""
    path, fresh = database.path, fresh_path(database.path)
    connection = connect(fresh, database.extension)
    if connection is None:
        return False
    try:
        connection.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_TRUNCATE)  # its log does not come along
    finally:
        connection.close()
    swap(fresh, path)
    return True


def sweep_unfinished(path: str) -> None:
    """Remove what a killed rebuild left beside search.db, unless somebody is rebuilding now."""
    with contextlib.suppress(OSError), locked(f"{path}.lock", wait=False):
        if os.path.exists(path):
            _remove_unfinished(fresh_path(path))


def _connect(database: Database) -> FileConnection | None:
    try:
        return connect(database.path, database.extension)
    except apsw.ExtensionLoadingError:
        database.extension = None
        return connect(database.path, None)


def rebuild(database: Database, fill: Callable[[Database], None]) -> None:
    """Fill a new database beside the old one, then put it in its place."""
    with opening(database.path):
        fresh = Database(_make_fresh(database.path), database.extension)
        try:
            fill(fresh)
            with fresh.writing() as connection:
                connection.execute("pragma optimize")
            connection = fresh.borrow()
            connection.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_TRUNCATE)
            fresh.give_back(connection)
        finally:
            fresh.close()
        database.close()
        swap(fresh.path, database.path)


def create(path: str) -> None:
    """Write an empty database of our version; the version is set last, in the same transaction as the tables."""
    connection = apsw.Connection(path)
    try:
        connection.pragma("auto_vacuum", "incremental")  # before anything else: `give_back` in sync.py needs it
        if connection.pragma("journal_mode", "wal") != "wal":
            raise IndexUnavailableError(f"{path}: this file system cannot hold a write-ahead log; set CO_DATA_DIR")
        connection.execute("begin immediate")
        connection.execute(SCHEMA.decode())
        connection.pragma("application_id", APPLICATION)
        connection.pragma("user_version", SCHEMA_VERSION)
        connection.execute("commit")
        connection.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_TRUNCATE)
    finally:
        connection.close()


def swap(fresh: str, path: str) -> None:
    """Put a closed database in place of another. The old one goes with its log, which must never meet the new file."""
    try:
        remove_database(path)
        sync_folder(os.path.dirname(path))  # else a power cut may bring the old log back beside the new file
        os.replace(fresh, path)
        sync_folder(os.path.dirname(path))
    except PermissionError as error:
        raise IndexUnavailableError(f"{path} is in use by another program; close it and try again") from error


def set_aside(path: str) -> str | None:
    """Move an unusable database out of the way under a dated name; an empty file just goes."""
    if not os.path.exists(path):
        return None
    if os.path.getsize(path) == 0:
        remove_database(path)
        return None
    dated = f"{path}.{time.strftime('%Y%m%dT%H%M%SZ', time.gmtime())}"
    number = max((one.number for one in _dated(path) if one.path.startswith(dated)), default=0) + 1
    kept = dated if number == 1 else f"{dated}-{number}"  # a number that was given away is not given again
    while os.path.lexists(kept):
        number += 1
        kept = f"{dated}-{number}"
    for ending in DATABASE_FILES:
        with contextlib.suppress(FileNotFoundError):
            os.replace(path + ending, kept + ending)  # its log goes with it: it may be somebody's
    return kept


def put_aside(database: Database, why: str) -> str | None:
    """Set the file of a database aside, and say so once: to whoever asked to be told, else in the log."""
    kept = set_aside(database.path)
    if kept:
        database.set_aside = kept
        told = f"{database.path} {why}: it is kept as {kept}, and a new one takes its place"
        if database.told:
            database.told(told)
        from co_cli.logbook import logger  # rarely needed, and slow to import

        logger("index").warning(told)
        if database.derived:
            _forget_older(database.path, kept)
    return kept


def set_aside_before(path: str) -> list[str]:
    """What was set aside of this file and is still there, oldest first."""
    return [one.path for one in sorted(_dated(path))]


class _Dated(NamedTuple):
    """A file that was set aside: when, and which of that second."""

    moment: str
    number: int
    path: str


def _dated(path: str) -> list[_Dated]:
    import re  # slow to import, and rarely needed

    folder, name = os.path.split(path)
    dated = re.compile(re.escape(name) + r"\.(\d{8}T\d{6}Z)(?:-(\d+))?")
    try:
        found = [match for match in map(dated.fullmatch, os.listdir(folder)) if match]
    except OSError:
        return []
    return [_Dated(match[1], int(match[2] or 1), os.path.join(folder, match[0])) for match in found]


def _forget_older(path: str, newest: str) -> None:
    """Of those that were set aside keep the newest few. What may be somebody else's is never removed.

    Which one is the newest is known, whatever the clock says.
    """
    others = [kept for kept in set_aside_before(path) if kept != newest and _is_marked(kept)]
    for kept in others[: max(0, len(others) - KEPT + 1)]:
        with contextlib.suppress(OSError):
            remove_database(kept)


def _is_marked(path: str) -> bool:
    """Does the header of a file, which may be damaged, have the mark of a search.db? It is not opened as a database."""
    try:
        with open(path, "rb") as stream:
            header = stream.read(100)
    except OSError:
        return False
    return header.startswith(b"SQLite format 3\0") and header[68:72] == APPLICATION.to_bytes(4, "big")


def remove_database(path: str, endings: Iterable[str] = DATABASE_FILES) -> None:
    for ending in endings:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(path + ending)


def _remove_unfinished(fresh: str) -> None:
    """The file last: as long as it is there, the next process knows that something is left to sweep."""
    remove_database(fresh, reversed(DATABASE_FILES))


def carry_cache(old: str, fresh: str) -> None:
    """Bring what is expensive to make again from an older search.db into a new one, if it is of the same make."""
    connection = apsw.Connection(fresh)
    try:
        connection.set_busy_timeout(BUSY_MS)
        connection.execute("attach :old as old", {"old": old})
        if connection.execute("pragma old.quick_check(1)").get != "ok":
            return  # a vector out of a damaged page would be wrong and look right
        connection.execute("begin")  # not immediate: that would wait for whoever writes to the old one
        try:
            for table, which in (("spaces", "true"), ("embedding_cache", DEAR)):
                columns = ", ".join(str(row[1]) for row in connection.execute(f"pragma main.table_info({table})"))
                connection.execute(
                    f"insert into main.{table} ({columns}) select {columns} from old.{table} where {which}"
                )
        except (apsw.SQLError, apsw.ConstraintError, *WRONG_FILE):
            connection.execute("rollback")  # of another make, or damaged: what it cached is made again
        else:
            connection.execute("commit")
    except WRONG_FILE:
        return
    finally:
        connection.close()


def _make_fresh(path: str) -> str:
    """An empty database beside `path`, with the cache of the one that is there."""
    fresh = fresh_path(path)
    _remove_unfinished(fresh)
    create(fresh)
    if os.path.exists(path):
        carry_cache(path, fresh)
    return fresh


def _with_what_no_file_gives_back(old: str, fresh: str) -> str:
    """A version that is no longer ours may know notes whose file is gone; a sync of the new one would not."""
    if os.path.exists(old):
        from co_cli.index.carrying import carry_notes  # for the day of an upgrade

        filled = Database(fresh)
        try:
            carry_notes(old, filled)
            connection = filled.borrow()
            connection.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_TRUNCATE)
            filled.give_back(connection)
        finally:
            filled.close()
    return fresh


def is_ours(path: str, application: int, or_empty: bool = False) -> bool:
    """A database of this program, whatever its version, whose tables can be listed; or no file at all.

    `or_empty`: one without any table will do. Whoever is killed while it is made leaves that, and it is worth nothing.
    """
    try:
        connection = apsw.Connection(path, flags=apsw.SQLITE_OPEN_READWRITE)
    except apsw.CantOpenError:
        return not os.path.lexists(path)
    try:
        connection.set_busy_timeout(BUSY_MS)  # whoever looked at it without the lock may be closing it
        tables = connection.execute("select count(*) from sqlite_master").get
        return connection.pragma("application_id") == application or (or_empty and not tables)
    except (apsw.SQLError, *WRONG_FILE):
        return False
    finally:
        connection.close()


@contextlib.contextmanager
def opening(path: str) -> Generator[None]:
    """Hold the lock, and say clearly what SQLite or the system refuses meanwhile."""
    try:
        make_folders(os.path.dirname(path))
        with locked(f"{path}.lock"):
            yield
    except (apsw.BusyError, *NO_PLACE) as error:
        raise clear(path, error) from error
