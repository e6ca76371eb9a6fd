"""Update an engine from the files of one origin: read what changed, one transaction per batch.

A sync can be killed at any point. Folders' listings are stored last: what a killed sync left undone still differs from
the stored listing, and what it did is recognised by its hash.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace

from co_cli.ground.paths import open_regular, permission_cure
from co_cli.ground.reports import Progress, SyncReport
from co_cli.ground.values import content_hash, to_utf8
from co_cli.index.changes import RACY_SECONDS, Changes, reported, settled
from co_cli.index.engine import Engine, ReadTransaction
from co_cli.index.stored import IndexedFile, StoredFile, SyncState
from co_cli.notes.encoding import NotTextError
from co_cli.notes.files import is_empty_folder
from co_cli.sources.documents.formats import is_unread_picture, reads_pictures
from co_cli.sources.origin import VAULT, Origin, adapter_of
from co_cli.sources.passages import Boundaries, cut_note
from co_cli.sources.walk import Scan, is_listed, place_of

BATCH = 1_000
UNREAD = "unread:"
"""How the hash of a file begins that was not opened."""
WRITE_SECONDS = 1.0
"""What was read is written after a batch, or after this long: a sync that is stopped loses no more than that."""
MANY = 1_000
"""After this many changes the engine is compacted."""
FEW_DELETED = 10
"""Fewer missing notes of a vault than this were deleted by hand, unless they were all of them."""


@dataclass(frozen=True, slots=True)
class SyncOptions:
    """Options of one sync."""

    limit: int = 2_000_000
    """Largest note in bytes; larger files are skipped."""
    source: str | None = None
    """Only notes of this source; others are left to the next sync."""
    progress: Progress | None = None
    boundaries: Boundaries | None = None
    embed: Callable[[], object] | None = None
    """Called after each write, to give it its vectors."""


@dataclass(slots=True)
class SyncFindings:
    """What a sync found while it read files."""

    started: float
    source: str | None = None
    was_synced: bool = False
    """Whether this origin was synced before."""
    added: list[str] = field(default_factory=list[str])
    changed: list[str] = field(default_factory=list[str])
    moved: list[tuple[str, str]] = field(default_factory=list[tuple[str, str]])
    unread: dict[str, str] = field(default_factory=dict[str, str])
    """Files that could not be read now, each with the reason."""
    same: dict[str, float] = field(default_factory=dict[str, float])
    """Files whose content is known, with their modification times."""
    stored: dict[str, str] = field(default_factory=dict[str, str])
    """Files that were written to the index, with their hashes."""
    unsure: set[str] = field(default_factory=set[str])
    """Files that the next sync must look at again."""


class Unreadable(Exception):
    """A file that could not be read now; the next sync tries again."""


def sync_files(engine: Engine, origin: Origin, scan: Scan, changes: Changes, options: SyncOptions) -> SyncReport:
    """Index the changes. The report's `skipped` and `problems` are those of the whole origin."""
    seen = SyncFindings(started=time.time(), source=options.source)
    with engine.writing() as writer:
        origin_id = writer.add_origin(origin)
        known_gone = writer.files(origin_id, changes.gone) if changes.gone else {}
        seen.was_synced = _is_synced(writer, origin)
    twins: dict[str, list[str]] = {}
    for path, file in known_gone.items():
        if file.skipped is None:
            twins.setdefault(file.hash, []).append(path)
    if options.progress and changes.look:
        options.progress(0, len(changes.look))
    for start in range(0, len(changes.look), BATCH):
        batch = changes.look[start : start + BATCH]
        with engine.reading() as snapshot:
            known = snapshot.files(origin_id, batch)
        files: list[IndexedFile] = []
        began = time.monotonic()
        for number, path in enumerate(batch, 1):
            if file := _look_at(origin, path, known.get(path), seen, options):
                _count(file, known.get(path), twins, seen)
                files.append(file)
            if files and (number == len(batch) or time.monotonic() - began >= WRITE_SECONDS):
                _write(engine, origin, files, options)
                files, began = [], time.monotonic()
            if options.progress:
                options.progress(start + number, len(changes.look))
    removed, kept = _finish(engine, origin, scan, changes, seen)
    if max(len(seen.stored), len(removed)) >= MANY:
        engine.compact()
    with engine.reading() as snapshot:
        skipped, problems = reported(snapshot.files(origin_id, reported=True))
    skipped += [*seen.unread.items(), *scan.odd]
    moved = {old for old, _ in seen.moved}
    removed = [path for path in removed if path not in moved]
    indexed = len(seen.added) + len(seen.changed) + len(seen.moved)
    return SyncReport(
        added=seen.added,
        changed=seen.changed,
        moved=seen.moved,
        removed=removed,
        excluded=tuple(path for path in removed if os.path.lexists(f"{origin.root}/{path}")),
        unchanged=max(0, scan.notes - indexed - len(skipped) + len(scan.odd)),
        skipped=sorted(skipped),
        problems=problems,
        kept=tuple(kept),
    )


def _write(engine: Engine, origin: Origin, files: Sequence[IndexedFile], options: SyncOptions) -> None:
    with engine.writing() as writer:
        writer.put_files(writer.add_origin(origin), files)
    if options.embed:
        options.embed()


def read_file(
    origin: Origin, path: str, limit: int, known_hash: str | None = None, boundaries: Boundaries | None = None
) -> IndexedFile:
    """A file as it goes into the index; it is not parsed if its content is known already."""
    if to_utf8(path) != path:  # a sync does not list it
        raise Unreadable("has a name that is not valid UTF-8; rename it")
    adapter, name = adapter_of(origin), place_of(path)[1]
    reason, why, limit = (
        adapter.unread(name),
        adapter.limit_text(name, limit),
        adapter.largest(name, limit),
    )
    try:
        with open_regular(os.path.join(origin.root, path), follow=False) as stream:
            state = os.fstat(stream.fileno())
            # a picture that was read earlier keeps its text where nobody has the time to read it again
            was_read = reason is not None and known_hash is not None and not known_hash.startswith(UNREAD)
            data = stream.read(limit + 1) if state.st_size <= limit and (reason is None or was_read) else b""
    except OSError as error:
        cure = f"; `{permission_cure(os.path.join(origin.root, path))}`" if isinstance(error, PermissionError) else ""
        raise Unreadable(f"cannot be read: {error.strerror}{cure}") from None
    mtime = state.st_mtime_ns / 1e9
    if state.st_size > limit and reason is None:
        reason = f"{state.st_size:,} bytes; {why}"
    if was_read and content_hash(data) == known_hash:
        return IndexedFile(path, known_hash or "", mtime, None, [])
    if reason is not None:
        return IndexedFile(path, f"{UNREAD}{state.st_size}:{state.st_mtime_ns}:{limit}", mtime, None, [], reason)
    file_hash = content_hash(data)
    if file_hash == known_hash:
        return IndexedFile(path, file_hash, mtime, None, [])
    try:
        # without the tier: the same rows serve those whose own vault it is
        note = adapter.read(origin._replace(tier="") if origin.tier else origin, path, data)
    except NotTextError as error:
        return IndexedFile(path, file_hash, mtime, None, [], str(error))
    passages, problem = cut_note(note, boundaries)
    return IndexedFile(path, file_hash, mtime, replace(note, problem=note.problem or problem), passages)


def _look_at(
    origin: Origin, path: str, before: StoredFile | None, seen: SyncFindings, options: SyncOptions
) -> IndexedFile | None:
    """The file if it has to be written to the index."""
    try:
        unread = before and reads_pictures() and is_unread_picture(path, before.skipped, before.problem)
        known = before.hash if before and not unread else None
        file = read_file(origin, path, options.limit, known, options.boundaries)
    except Unreadable as error:
        seen.unread[path] = str(error)
        seen.unsure.add(path)
        return None
    if abs(time.time() - file.mtime) < RACY_SECONDS:
        seen.unsure.add(path)
    if known and file.hash == known:
        seen.same[path] = file.mtime
        return None
    if options.source and file.note is not None and file.note.source != options.source:
        seen.unsure.add(path)
        return None
    seen.stored[path] = file.hash
    return file


def _count(file: IndexedFile, before: StoredFile | None, twins: dict[str, list[str]], seen: SyncFindings) -> None:
    if file.note is None:
        return
    if before and before.skipped is None:
        seen.changed.append(file.path)
    elif twins.get(file.hash):
        seen.moved.append((twins[file.hash].pop(), file.path))
    else:
        seen.added.append(file.path)


def _finish(
    engine: Engine, origin: Origin, scan: Scan, changes: Changes, seen: SyncFindings
) -> tuple[list[str], list[str]]:
    """Forget what is gone and store the listings, in one transaction. Returns the notes removed, and those kept.

    Where most of an origin vanished at once, notes are marked as missing instead.
    """
    moved = {old for old, _ in seen.moved}
    with engine.writing() as writer:
        origin_id = writer.add_origin(origin)
        if seen.was_synced and not _is_synced(writer, origin):
            return [], []  # search.db was replaced meanwhile: the next sync starts over
        known = writer.files(origin_id, [*seen.stored, *seen.same])
        lost = {path for path, held in seen.stored.items() if path not in known or known[path].hash != held}
        unsure = seen.unsure | lost | (seen.same.keys() - known.keys())
        unlisted = dict.fromkeys((*changes.unlisted, *seen.stored), False)
        gone: list[str] = []
        for path in changes.gone:
            if is_listed(origin.root, path, scan.excluded):
                unlisted[path] = True  # another process may have indexed it since we looked
            else:
                gone.append(path)
        if seen.source and gone:
            others = {note.path for note in writer.find_notes(origin_id, "path", gone) if note.source != seen.source}
            unlisted.update(dict.fromkeys(others, True))
            gone = [path for path in gone if path not in others]
        lost_now = [path for path in gone if path not in moved and not os.path.lexists(f"{origin.root}/{path}")]
        vanished = _vanished(writer, origin_id, origin, lost_now)
        keep = set(lost_now) if vanished else set[str]()
        dropped = [path for path in gone if path not in keep]
        removed = writer.drop_files(origin_id, dropped) if dropped else []
        listings = _listings(scan, changes, unsure, writer.listings(origin_id)[0])
        kept = writer.finish_sync(origin_id, SyncState(seen.started, listings, unlisted, seen.same, sorted(keep)))
    return removed, kept


def _listings(
    scan: Scan, changes: Changes, unsure: Collection[str], stored: Mapping[str, bytes]
) -> Mapping[str, bytes | None]:
    """The listings to store. Where another sync has stored one meanwhile, its files stay in it, and those of this sync
    are looked at again: each of the two may have seen what the other has not.
    """
    young, looked = _by_folder(unsure), _by_folder(changes.look)
    found: dict[str, bytes | None] = {}
    for folder, then in changes.folders.items():
        ours, theirs = scan.listings.get(folder), stored.get(folder)
        if theirs is not None and theirs != then:
            found[folder] = settled(ours or b"", looked.get(folder, ()), theirs)
        else:
            found[folder] = None if ours is None else settled(ours, young.get(folder, ()))
    return found


def _by_folder(paths: Collection[str]) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for folder, name in map(place_of, paths):
        found.setdefault(folder, []).append(name)
    return found


def _vanished(snapshot: ReadTransaction, origin_id: int, origin: Origin, lost: Sequence[str]) -> bool:
    """Whether more of an origin is gone at once than a person deletes, for example because its drive is not mounted.

    Then the rows stay, marked as missing, until their files are back or the user drops them.
    """
    if not lost or not adapter_of(origin).guards_missing:
        return False
    if origin.only or is_empty_folder(origin.root):
        return True
    notes = snapshot.find_notes(origin_id, "path", list(snapshot.files(origin_id)))
    if origin.source == VAULT:
        there = {note.path for note in notes if note.missing is None}
    else:  # also files that are listed only
        there = snapshot.files(origin_id).keys() - {note.path for note in notes if note.missing is not None}
    gone, few = len(there.intersection(lost)), FEW_DELETED if origin.source == VAULT else 2
    return gone > 1 and (gone == len(there) or (gone >= few and gone * 2 > len(there)))


def _is_synced(snapshot: ReadTransaction, origin: Origin) -> bool:
    stored = snapshot.origin(origin)
    return stored is not None and stored.synced_at is not None
