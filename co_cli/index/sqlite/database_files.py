"""The file of a database: create it, recognise ours, check it, move an unusable one aside, swap a new one in.

One process at a time, behind a lock file.
"""

from __future__ import annotations

import contextlib
import os
import re
import struct
import time
from collections.abc import Generator, Iterable
from typing import Any

import apsw

from co_cli.ground.errors import IndexUnavailableError
from co_cli.ground.paths import NO_ROOM, permission_cure
from co_cli.notes.files import locked, make_folders, patiently, sync_folder

BUSY_MS = 10_000
WRONG_FILE = (apsw.NotADBError, apsw.CorruptError)
NO_PLACE = (apsw.CantOpenError, apsw.PermissionsError, apsw.ReadOnlyError, apsw.IOError, apsw.FullError, OSError)
DATABASE_FILES = ("", "-wal", "-shm", "-journal")
KEPT = 3
"""How many unusable copies of search.db are kept: they are derived, and may be large."""
MARK = b"cokb"
IS_DATABASE = re.compile(rb"SQLite format 3\0.{5}\x40\x20\x20.{48}", re.DOTALL)
"""How every database of SQLite begins. Nobody can read a file without this header, so only the newest is kept."""
LITTLE = 64 << 10
"""Bytes: with less free space SQLite cannot open a database, and calls it an I/O error."""
MUCH = 64 << 20
"""Bytes: with more free space something else is used up, such as a quota."""
CACHE_TABLES = ("spaces", "embedding_cache")
VECTOR_TABLES = """
select name, sql like 'create virtual%' from sqlite_master where name like 'docs_vec%' and sql like '%, embedding %'
"""
READ_VECTORS = """
select count(*), count(distinct length(vectors.embedding)), coalesce(max(length(vectors.embedding)), 0),
    total(docs.id is not null and vectors.part is not docs.vault_id || '/' || docs.source)
from {table} as vectors left join passages on passages.id = vectors.rowid left join docs on docs.id = passages.doc_id
"""
VECTOR_BLOCKS = """
select blocks.chunk_id, blocks.size, blocks.validity, blocks.rowids, length(vectors.vectors)
from {table}_chunks as blocks left join {table}_vector_chunks00 as vectors on vectors.rowid = blocks.chunk_id
"""
VECTOR_PLACE = "select chunk_id, chunk_offset from {table}_rowids where rowid = :id"


def create(path: str, schema: str, version: int, application: int) -> None:
    """Write an empty database that only you can read; the version is set last, in the transaction of the tables."""
    with contextlib.suppress(FileExistsError):  # closing a database that others have open would drop their locks
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600))
    os.chmod(path, 0o600)  # SQLite gives its log the same permissions
    connection = apsw.Connection(path)
    try:
        connection.set_busy_timeout(BUSY_MS)
        connection.pragma("auto_vacuum", "incremental")  # must come first
        if connection.pragma("journal_mode", "wal") != "wal":
            raise IndexUnavailableError(f"{path}: this file system cannot hold a write-ahead log; set CO_DATA_DIR")
        connection.execute("begin immediate")
        connection.execute(schema)
        connection.pragma("application_id", application)
        connection.pragma("user_version", version)
        connection.execute("commit")
        connection.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_TRUNCATE)
    finally:
        connection.close()


def keep_cache(old: str, fresh: str) -> None:
    """Copy the embedding cache, which is expensive to make, if the old file is readable and has the same format."""
    connection = apsw.Connection(fresh)
    try:
        connection.set_busy_timeout(BUSY_MS)
        connection.execute("attach :old as old", {"old": old})
        if connection.execute("pragma old.quick_check(1)").get != "ok":
            return  # a vector from a damaged page would be wrong and look right
        connection.execute("begin")  # not immediate: that would wait for writers of the old one
        try:
            for table in CACHE_TABLES:
                columns = ", ".join(str(row[1]) for row in connection.execute(f"pragma main.table_info({table})"))
                connection.execute(f"insert into main.{table} ({columns}) select {columns} from old.{table}")
        except (apsw.SQLError, apsw.ConstraintError, *WRONG_FILE):
            connection.execute("rollback")
        else:
            connection.execute("commit")
    except (apsw.CantOpenError, *WRONG_FILE):
        return
    finally:
        connection.close()


def find_damage(connection: apsw.Connection) -> str | None:
    """What is wrong with the file; None if nothing. Reads all of it."""
    try:
        broken = [str(row[0]) for row in connection.execute("pragma quick_check(3)") if row[0] != "ok"]
        tables: list[Any] = [] if broken else connection.execute(VECTOR_TABLES).fetchall()
        broken += [f"the vectors in {name} are damaged" for name, vec0 in tables if not _sound(connection, name, vec0)]
        return "; ".join(broken) or None
    except (apsw.BusyError, apsw.ReadOnlyError):
        return None
    except (apsw.Error, UnicodeDecodeError) as error:
        return str(error)


def _sound(connection: apsw.Connection, table: str, vec0: bool) -> bool:
    """Whether every vector can be read, and sqlite-vec's tables agree: for SQLite's own check these are just rows."""
    try:
        read: list[Any] = connection.execute(READ_VECTORS.format(table=table)).fetchall()
        blocks: Iterable[Any] = connection.execute(VECTOR_BLOCKS.format(table=table)) if vec0 else ()
        (count, widths, width, astray), used = read[0], 0
        for block, size, validity, rowids, length in blocks:
            if (len(validity) * 8, len(rowids), length) != (size, size * 8, size * width if width else length):
                return False
            for place in range(size):
                if validity[place // 8] >> place % 8 & 1:
                    (row,) = struct.unpack_from("<q", rowids, place * 8)
                    if connection.execute(VECTOR_PLACE.format(table=table), {"id": row}).get != (block, place):
                        return False
                    used += 1
        return widths <= 1 and not astray and (not vec0 or used == count)
    except (apsw.SQLError, TypeError):
        return False


def swap(fresh: str, path: str) -> None:
    """Put a closed database in place of another. The old log must never meet the new file."""
    try:
        remove_database(path)
        sync_folder(os.path.dirname(path))  # otherwise a power cut may bring the old log back next to the new file
        patiently(os.replace, fresh, path)
        sync_folder(os.path.dirname(path))
    except PermissionError as error:
        raise IndexUnavailableError(f"{path} is in use by another program; close it and try again") from error


def sweep_unfinished(path: str) -> None:
    """Remove what a killed rebuild left, unless another process is rebuilding now."""
    with contextlib.suppress(OSError), locked(f"{path}.lock", wait=False):
        if os.path.exists(path):
            for damaged in set_aside_before(fresh_path(path)):
                remove_database(damaged)
            remove_unfinished(fresh_path(path))


def remove_unfinished(fresh: str) -> None:
    """The file last: as long as it is there, the next process knows that something is left to sweep."""
    remove_database(fresh, reversed(DATABASE_FILES))


def remove_database(path: str, endings: Iterable[str] = DATABASE_FILES) -> None:
    for ending in endings:
        with contextlib.suppress(FileNotFoundError):
            patiently(os.unlink, path + ending)


def set_aside(path: str) -> str | None:
    """Move an unusable database aside under a dated name; an empty file is removed."""
    if not os.path.exists(path):
        return None
    if os.path.getsize(path) == 0:
        remove_database(path)
        return None
    seconds, rest = divmod(time.time_ns(), 1_000_000_000)
    kept = f"{path}.{time.strftime('%Y%m%dT%H%M%S', time.gmtime(seconds))}.{rest:09}Z"
    for ending in DATABASE_FILES:
        with contextlib.suppress(FileNotFoundError):
            patiently(os.replace, path + ending, kept + ending)  # with its log, which may hold data
    return kept


def remove_old_copies(path: str, kept: int = KEPT) -> None:
    """Keep the newest few of the files that were moved aside. A readable database that is not ours is never removed."""
    headers = {copy: _header(copy) for copy in set_aside_before(path)}
    ours = [copy for copy, header in headers.items() if header.endswith(MARK)]
    nobodys = [copy for copy, header in headers.items() if copy not in ours and not IS_DATABASE.match(header)]
    for older in (*ours[: max(0, len(ours) - kept)], *nobodys[: len(nobodys) - min(kept, len(nobodys), 1)]):
        with contextlib.suppress(OSError):
            remove_database(older)


def set_aside_before(path: str) -> list[str]:
    """Copies of this file that were moved aside and are still there, oldest first."""
    folder, name = os.path.split(path)
    dated = re.compile(re.escape(name) + r"\.\d{8}T\d{6}[.\d]*Z")
    try:
        return sorted(os.path.join(folder, found) for found in os.listdir(folder) if dated.fullmatch(found))
    except OSError:
        return []


def is_ours(path: str, application: int, or_empty: bool = False) -> bool:
    """A database of this program, whatever its version, or no file at all. `or_empty`: one without tables will do."""
    try:
        connection = apsw.Connection(path, flags=apsw.SQLITE_OPEN_READWRITE)
    except apsw.CantOpenError:
        return not os.path.lexists(path)
    try:
        connection.set_busy_timeout(BUSY_MS)  # a process without the lock may be closing it
        tables = connection.execute("select count(*) from sqlite_master").get
        return connection.pragma("application_id") == application or (or_empty and not tables)
    except (apsw.SQLError, *WRONG_FILE):
        return False
    finally:
        connection.close()


@contextlib.contextmanager
def opening(path: str) -> Generator[None]:
    """Hold the lock, and turn errors of SQLite and the system into one line with the fix."""
    try:
        make_folders(os.path.dirname(path), private=True)
        with locked(f"{path}.lock"):
            yield
    except (apsw.BusyError, *NO_PLACE) as error:
        raise explain(path, error) from error


def explain(path: str, error: BaseException) -> IndexUnavailableError:
    """An error of SQLite or the system as one line with the fix."""
    if isinstance(error, apsw.BusyError):
        return IndexUnavailableError(f"{path} was locked by another program for {BUSY_MS // 1000} s; try again")
    full = no_room(path, error)
    if full:
        return IndexUnavailableError(f"{path} cannot be written: {full}; free some space, or set CO_DATA_DIR")
    what, cure = unwritable(path) or (f"{path} cannot be opened ({error})", "")
    return IndexUnavailableError(f"{what}: {f'`{cure}`' if cure else 'check the folder'}, or set CO_DATA_DIR")


def unwritable(path: str) -> tuple[str, str] | None:
    """That the file or its folder may not be written, and the command that allows it."""
    folder = there = os.path.dirname(path)
    while not os.path.lexists(there):
        there = os.path.dirname(there)
    files = [path, f"{path}-wal", f"{path}-shm"]  # SQLite makes these with the permissions of the first
    refused = [file for file in files if os.path.exists(file) and not os.access(file, os.R_OK | os.W_OK)]
    if refused:
        return f"{refused[0]} cannot be read and written", " && ".join(map(permission_cure, refused))
    if os.path.isdir(there) and not os.access(there, os.R_OK | os.W_OK | os.X_OK):
        return f"the data folder {folder} cannot be written", permission_cure(path, write=True)
    return None


def no_room(path: str, error: BaseException | None) -> str | None:
    """`the disk is full (0 bytes are left in /data)`, if that is what an error about this file means."""
    import shutil  # with its compressors 4 ms, which only a failed write costs

    folder = os.path.dirname(path)
    try:
        left = shutil.disk_usage(folder).free
    except OSError:
        left = None
    full = isinstance(error, apsw.FullError) or (isinstance(error, OSError) and error.errno in NO_ROOM)
    unclear = isinstance(error, (apsw.IOError, apsw.CantOpenError)) and left is not None and left < LITTLE
    if not (full or unclear):
        return None
    if left is None or left > MUCH:
        return f"a quota is used up, or the disk of {folder} is full"
    return f"the disk is full ({left:,} bytes are left in {folder})"


def fresh_path(path: str) -> str:
    """Where a new search.db is made."""
    return f"{path}.new"


def inode_of(path: str) -> int:
    """0 if there is no such file, or no way to it."""
    try:
        return os.stat(path).st_ino
    except OSError:
        return 0


def _header(path: str) -> bytes:
    """The first bytes of a file, which may be damaged. Those of a search.db end with its mark."""
    with contextlib.suppress(OSError), open(path, "rb") as stream:
        return stream.read(72)
    return b""
