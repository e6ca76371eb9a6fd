"""Bring search.db up to the files: look at what changed, one transaction a batch, resumable after a kill at any point.

A file counts as done when its row has its hash; a folder's listing is stored last. So whatever a killed sync left
undone differs from the listing, and whatever it did is recognised by its hash.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Iterable, Iterator

import apsw

from co_cli.index.changes import RACY_SECONDS, Changes, settled
from co_cli.index.rows import PUT_UNLISTED, IndexedFile, drop_file, mark_missing, put_files
from co_cli.index.vanishing import vanished
from co_cli.index.vault_database import VaultDatabase
from co_cli.notes.note import NotTextError
from co_cli.notes.store import content_hash
from co_cli.regular import open_regular
from co_cli.sources.origin import Origin, kind_of
from co_cli.sources.passages import Boundaries, passages_of
from co_cli.sources.walking import Scan, is_listed, place_of
from co_cli.values import SyncReport

BATCH = 500
MANY = 1_000
"""After so many files the words are merged: twenty segments make each word three times as slow to find as one."""
MERGED_PAGES = 1_000
"""At a time: others who write must not wait for all of it."""
LARGE = 2_000
"""Files to read, from which on a process more is worth its start."""
BEING_WRITTEN = "somebody is writing it: it is read when that is done"
Progress = Callable[[int, int], None]
"""Called with how many files are done, and of how many."""
Hold = Callable[[str], bool]
"""Is this file (its full path) to be left to the next sync?"""

KNOWN = """
select path, hash, skipped from knowledge_files
where vault_id = :vault and path in (select value from json_each(:paths))
"""
PUT_LISTING = """
insert into folders (vault_id, path, listing) values (:vault, :path, :listing)
on conflict (vault_id, path) do update set listing = excluded.listing where listing <> excluded.listing
"""
DROP_LISTING = "delete from folders where vault_id = :vault and path = :path"
NOW_LISTED = """
delete from unlisted where vault_id = :vault and path in (select value from json_each(:paths))
"""
RETIME = """
update docs set mtime = :mtime, created = case when created = mtime then :mtime else created end
where vault_id = :vault and path = :path and mtime <> :mtime
"""
NOT_MISSING = "update docs set missing = null where vault_id = :vault and path = :path and missing is not null"
MERGE_WORDS = "insert into docs_fts (docs_fts, rank) values ('merge', :pages)"
GIVE_BACK = f"pragma incremental_vacuum({MERGED_PAGES})"
SYNCED_AT = "select synced_at from vaults where id = :vault"
TOUCH = "update vaults set synced_at = :now where id = :vault"


class Unreadable(Exception):
    """A file that could not be read now; the next sync tries again."""


def sync_files(
    database: VaultDatabase,
    scan: Scan,
    changes: Changes,
    limit: int,
    progress: Progress | None,
    hold: Hold | None = None,
    boundaries: Boundaries | None = None,
    synced: bool = False,
) -> SyncReport:
    """Work off the changes. The report's `skipped` and `problems` are those of this vault as it is now.

    `synced`: was there a whole sync before, so that the files which are not looked at are known?
    """
    now_ns = time.time_ns()
    gone_hashes = _known(database, changes.gone)
    twins: dict[str, list[str]] = {}
    for path, (file_hash, skipped) in gone_hashes.items():
        if skipped is None:
            twins.setdefault(file_hash, []).append(path)

    added: list[str] = []
    changed: list[str] = []
    moved: list[tuple[str, str]] = []
    unread: dict[str, str] = {}
    same: list[IndexedFile] = []
    unsure: set[str] = set()
    put: dict[str, str] = {}
    done = 0
    for batch in _batches(changes.look):
        known = _known(database, batch)
        files: list[IndexedFile] = []
        for path in batch:
            before = known.get(path)
            if hold and hold(os.path.join(database.origin.root, path)):
                unread[path] = BEING_WRITTEN
                unsure.add(path)
                continue
            try:
                file = read_file(database.origin, path, limit, before[0] if before else None, boundaries)
            except Unreadable as error:
                unread[path] = str(error)
                unsure.add(path)
                continue
            if abs(now_ns / 1e9 - file.mtime) < RACY_SECONDS:
                unsure.add(path)
            if before and file.hash == before[0]:
                same.append(file)
                continue
            files.append(file)
            if file.note is None:
                continue
            if before and before[1] is None:
                changed.append(path)
            elif twins.get(file.hash):
                moved.append((twins[file.hash].pop(), path))
            else:
                added.append(path)
        if files:
            with database.writing() as (connection, vault):
                put_files(connection, vault, files)
            put.update((file.path, file.hash) for file in files)
        done += len(batch)
        if progress:
            progress(done, len(changes.look))

    left = {old for old, _ in moved}
    keep = vanished(database, changes.gone, left)
    removed = _finish(database, scan, changes, same, put, unsure, now_ns, left, keep, synced)
    kept = [path for path in removed if path not in left] if keep else []
    if len(put) >= MANY:
        merge_words(database)
    if max(len(put), len(removed)) >= MANY:
        give_back(database)
    skipped, problems = database.reported()
    skipped += [*unread.items(), *scan.odd]
    return SyncReport(
        added=added,
        changed=changed,
        moved=moved,
        removed=[] if keep else [path for path in removed if path not in left],
        unchanged=scan.notes - len(added) - len(changed) - len(moved) - len(skipped) + len(scan.odd),
        skipped=sorted(skipped),
        problems=problems,
        kept=tuple(kept),
    )


def read_file(
    origin: Origin, path: str, limit: int, known_hash: str | None, boundaries: Boundaries | None = None
) -> IndexedFile:
    """The file as it goes into the index; taken apart only if it does not hold what is known already."""
    if not _storable(path):
        raise Unreadable("the file name is not valid UTF-8; rename it")
    kind, name = kind_of(origin), place_of(path)[1]
    reason, limit = kind.unread(name), kind.largest(name, limit)
    try:
        with open_regular(os.path.join(origin.root, path), follow=False) as stream:
            state = os.fstat(stream.fileno())
            data = stream.read(limit + 1) if state.st_size <= limit and reason is None else b""
    except OSError as error:
        raise Unreadable(f"cannot be read: {error.strerror}") from None
    mtime = state.st_mtime_ns / 1e9
    if state.st_size > limit and reason is None:
        reason = f"{state.st_size:,} bytes; the limit is {limit:,} (setting knowledge_max_note_bytes)"
    if reason is not None:
        return IndexedFile(path, f"unread:{state.st_size}:{state.st_mtime_ns}:{limit}", mtime, None, [], reason)
    file_hash = content_hash(data)
    if file_hash == known_hash:
        return IndexedFile(path, file_hash, mtime, None, [])
    try:
        # the same rows serve those whose own vault it is
        note = kind.read(origin._replace(tier="") if origin.tier else origin, path, data)
    except NotTextError as error:
        return IndexedFile(path, file_hash, mtime, None, [], str(error))
    return IndexedFile(path, file_hash, mtime, note, passages_of(note, boundaries))


def _finish(
    database: VaultDatabase,
    scan: Scan,
    changes: Changes,
    same: list[IndexedFile],
    put: dict[str, str],
    unsure: set[str],
    now_ns: int,
    moved: set[str],
    vanished: bool,
    synced: bool,
) -> list[str]:
    """Forget what is gone and store the listings, in one transaction. Returns the notes that were forgotten.

    Where an origin keeps what is missing, or all of it vanished, they are marked instead. If somebody deleted search.db
    or put another in its place meanwhile, what it lacks is left to the next sync, as after a kill.
    """
    keep_missing = vanished or kind_of(database.origin).keeps_missing
    removed: list[str] = []
    back: set[str] = set()
    young: dict[str, list[str]] = {}
    with database.writing() as (connection, vault):
        if synced and connection.execute(SYNCED_AT, {"vault": vault}).get is None:
            return []
        lost = _lost(connection, vault, {**put, **{file.path: file.hash for file in same}})
        for path in unsure | lost:
            folder, name = place_of(path)
            young.setdefault(folder, []).append(name)
        for path in filter(_storable, changes.gone):
            if is_listed(database.origin.root, path, scan.excluded):
                back.add(path)  # another process may have indexed it since we looked
                connection.execute(PUT_UNLISTED, {"vault": vault, "path": path})
            elif keep_missing and path not in moved and not os.path.lexists(os.path.join(database.origin.root, path)):
                if mark_missing(connection, vault, path, now_ns / 1e9):
                    removed.append(path)
            elif drop_file(connection, vault, path):
                removed.append(path)
        for file in same:
            connection.execute(RETIME, {"vault": vault, "path": file.path, "mtime": file.mtime})
            connection.execute(NOT_MISSING, {"vault": vault, "path": file.path})
        listed = json.dumps([path for path in (*changes.unlisted, *put) if path not in back])
        connection.execute(NOW_LISTED, {"vault": vault, "paths": listed})
        for folder in changes.folders:
            if not _storable(folder):
                continue  # looked at anew each time; its files are reported as skipped
            values = {"vault": vault, "path": folder}
            listing = scan.listings.get(folder)
            if listing is None:
                connection.execute(DROP_LISTING, values)
            else:
                connection.execute(PUT_LISTING, {**values, "listing": settled(listing, young.get(folder, ()))})
        connection.execute(TOUCH, {"vault": vault, "now": now_ns / 1e9})
    return removed


def _lost(connection: apsw.Connection, vault: int, done: dict[str, str]) -> set[str]:
    """Those of the files that were written, or found unchanged, which this search.db does not have so."""
    rows = connection.execute(KNOWN, {"vault": vault, "paths": json.dumps(list(done))})
    known = {str(path): file_hash for path, file_hash, _ in rows}
    return {path for path, file_hash in done.items() if known.get(path) != file_hash}


def merge_words(database: VaultDatabase) -> None:
    """Bring the segments that a large sync leaves behind together, a few pages a transaction."""
    pages = -MERGED_PAGES  # a negative number once: all segments, however different in size
    while True:
        with database.writing() as (connection, _):
            before = connection.total_changes()
            connection.execute(MERGE_WORDS, {"pages": pages})
            if connection.total_changes() - before < 2:  # as FTS5 says that nothing is left to merge
                return
        pages = MERGED_PAGES


def give_back(database: VaultDatabase) -> None:
    """Return pages that hold nothing any more to the disk, some a transaction; what is little the next notes take."""
    while True:
        with database.writing() as (connection, _):
            free = int(connection.pragma("freelist_count"))
            if free < int(connection.pragma("page_count")) // 20:
                return
            connection.execute(GIVE_BACK).fetchall()
            if int(connection.pragma("freelist_count")) >= free:
                return  # a file that was made without


def _known(database: VaultDatabase, paths: Iterable[str]) -> dict[str, tuple[str, str | None]]:
    wanted = [path for path in paths if _storable(path)]
    if not wanted:
        return {}
    with database.reading() as (connection, vault):
        rows = connection.execute(KNOWN, {"vault": vault, "paths": json.dumps(wanted)})
        return {path: (file_hash, skipped) for path, file_hash, skipped in rows}


def _batches(paths: list[str]) -> Iterator[list[str]]:
    for start in range(0, len(paths), BATCH):
        yield paths[start : start + BATCH]


def _storable(path: str) -> bool:
    try:
        path.encode()
    except UnicodeEncodeError:
        return False
    return True
