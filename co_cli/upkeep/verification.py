"""Compare an index with its files: read every file again, and report what differs.

Whatever differs is repaired by `co index sync` (changed files) or `co index rebuild` (everything else).
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from co_cli.ground.errors import VaultError
from co_cli.ground.hits import Passage
from co_cli.ground.reports import Progress
from co_cli.index.derivation import stored_text
from co_cli.index.stored import StoredPassage
from co_cli.index.sync import Unreadable, read_file
from co_cli.knowledge_index import KnowledgeIndex
from co_cli.sources.documents.formats import is_picture, is_unread_picture


class Difference(NamedTuple):
    """A file, and how the index differs from it."""

    path: str
    what: str


class OriginCheck(NamedTuple):
    """One origin: counts, the differences, and one hash over the path and content of every note from each side."""

    label: str
    path: str
    problem: str = ""
    """Why it could not be compared; empty if it was."""
    files: int = 0
    bytes: int = 0
    notes: int = 0
    passages: int = 0
    skipped: int = 0
    missing: int = 0
    """Notes that are kept although their file is gone."""
    of_files: str = ""
    of_index: str = ""
    differing: Sequence[Difference] = ()


class Verified(NamedTuple):
    """The comparison of everything that is searched together."""

    origins: Sequence[OriginCheck]
    damage: str | None
    """What is wrong with search.db itself."""

    @property
    def agrees(self) -> bool:
        return not self.damage and not any(check.differing for check in self.origins)


def verify(index: KnowledgeIndex, progress: Progress | None = None, cut_by_model: bool = False) -> Verified:
    """Check the store, and compare this origin and those searched with it.

    `cut_by_model`: a model may have chosen the passages, so their boundaries are not compared.
    """
    damage = index.engine.problem()
    found = _verify(index, damage, progress, cut_by_model)
    if found.agrees or index.setup.authority is None:
        return found
    with index.setup.authority.lock():  # once more, while nobody on any server saves
        return _verify(index, damage, progress, cut_by_model)


def _verify(index: KnowledgeIndex, damage: str | None, progress: Progress | None, cut_by_model: bool) -> Verified:
    try:
        origins = [compare(index.of(origin), progress, cut_by_model) for origin in (index.origin, *index.linked)]
        if index.setup.authority:
            other = "differs from what was committed or saved"
            astray = [Difference(path, other) for path in index.setup.authority.differences()]
            origins[0] = origins[0]._replace(differing=[*astray, *origins[0].differing])
        return Verified(origins, damage)
    except Exception as error:
        broken = damage or index.damage_behind(error)
        if broken is None:
            raise
        return Verified([], str(broken))


def compare(index: KnowledgeIndex, progress: Progress | None = None, cut_by_model: bool = False) -> OriginCheck:
    """One origin alone."""
    origin, differing, hashes = index.origin, list[Difference](), dict[str, str]()
    try:
        paths = index.files()
    except VaultError as error:
        return OriginCheck(origin.label, origin.path, str(error))
    with index.engine.reading() as snapshot:
        notes = {note.path: note for note in index.notes.all()}
        vault = snapshot.origin(origin)
        known = snapshot.files(vault.id) if vault else {}
        stored: dict[str, list[StoredPassage]] = {}
        for passage in snapshot.passages(notes=[note.id for note in notes.values()]).values():
            stored.setdefault(passage.path, []).append(passage)
    size = skipped = 0
    for done, path in enumerate(paths):
        if progress:
            progress(done, len(paths))
        row, note = known.get(path), notes.get(path)
        indexed = row is not None and row.skipped is None
        try:
            known_picture = row.hash if row and indexed and is_picture(path) else None
            file = read_file(origin, path, index.limit, known_picture)
            size += os.path.getsize(os.path.join(index.root, path))
        except (Unreadable, OSError) as error:
            differing += [Difference(path, f"is indexed, but it {error}")] if indexed else []
            continue
        what, problem = "", file.note.problem if file.note else None
        shows_text = file.hash == known_picture or is_unread_picture(path, file.skipped, problem)
        if row and indexed and row.hash == file.hash and shows_text:  # which is not read again
            hashes[path] = file.hash
        elif file.note is None:
            skipped += 1
            what = f"should not be indexed: {file.skipped}" if indexed or row is None else ""
        else:
            hashes[path] = file.hash
            if row is None or note is None:
                what = "is not in the index"
            elif row.hash != file.hash or note.hash != file.hash:
                what = "has changed since it was indexed"
            elif (note.title, note.tags) != (stored_text(file.note.title), file.note.tags):
                what = "has other fields in the index than in the file"
            elif not cut_by_model and not _same(stored.get(path, []), file.passages):
                what = "has other passages in the index than in the file"
        differing += [Difference(path, what)] if what else []
    missing = {path for path, note in notes.items() if note.missing is not None}
    gone = sorted({*known, *notes} - set(paths) - missing)
    differing += [Difference(path, "is in the index, but there is no such file") for path in gone]
    there = {path: note.hash for path, note in notes.items() if note.missing is None}
    counts = len(hashes), size, len(notes), sum(map(len, stored.values())), skipped, len(missing)
    return OriginCheck(origin.label, origin.path, "", *counts, _digest(hashes), _digest(there), differing)


def _same(stored: list[StoredPassage], passages: Sequence[Passage]) -> bool:
    return [(passage.first_line, passage.last_line, passage.heading, passage.body) for passage in stored] == [
        (passage.first_line, passage.last_line, stored_text(passage.heading), stored_text(passage.text))
        for passage in passages
    ]


def _digest(hashes: Mapping[str, str]) -> str:
    digest = hashlib.sha256()
    for path in sorted(hashes):
        digest.update(f"{path}\0{hashes[path]}\n".encode("utf-8", "surrogateescape"))
    return digest.hexdigest()
