"""Compare an index with the files it was made from: every file is read once more.

Whatever differs is repaired by `co index sync` (files that changed) or `co index rebuild` (everything else).
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from co_cli.index.embed import text_hash
from co_cli.index.engine import StoredPassage
from co_cli.index.sync import Unreadable, read_file
from co_cli.notes.store import content_hash
from co_cli.paths import open_regular
from co_cli.values import Passage

if TYPE_CHECKING:
    from co_cli.knowledge_index import KnowledgeIndex

LARGEST = 100_000_000
Progress = Callable[[int, int], None]


class Difference(NamedTuple):
    """One file, or (with an empty path) the whole index, and what is wrong."""

    path: str
    what: str


class Compared(NamedTuple):
    """What was seen of one origin."""

    files: int
    bytes: int
    notes: int
    passages: int
    skipped: int
    missing: int
    """Notes that are kept though their file is gone."""
    of_files: str
    """One hash over the path and the content of every note, from the files."""
    of_index: str
    """The same from the index."""
    differing: list[Difference]


def compare(
    index: KnowledgeIndex, progress: Progress | None = None, cut_by_model: bool = False, vectors: bool = True
) -> Compared:
    """Read every file and compare. `cut_by_model`: a model may have chosen the passages, so their cuts may differ.
    `vectors`: also count the passages that lost theirs.

    Raises VaultError if the folder is not there.
    """
    differing: list[Difference] = []
    with index.engine.reading() as reader:
        vault = reader.vault(index.origin)
        known = reader.files(vault) if vault is not None else {}
        stored: dict[str, list[StoredPassage]] = {}
        for passage in reader.passages_of(vault) if vault is not None else ():
            stored.setdefault(passage.path, []).append(passage)
        counts = reader.counts([vault]) if vault is not None else None
    notes = {note.path: note for note in index.notes_here()}
    seen: dict[str, str] = {}
    size = skipped = 0
    paths = index.files()
    for done, path in enumerate(paths, 1):
        row = known.get(path)
        try:
            file = read_file(index.origin, path, index.limit)
            size += os.path.getsize(os.path.join(index.root, path))
        except (Unreadable, OSError) as error:
            if row is not None and row.skipped is None:
                differing.append(Difference(path, f"is indexed, but it {error}"))
            continue
        if file.note is None:
            skipped += 1
            if row is None or row.skipped is None:
                differing.append(Difference(path, f"should not be indexed: {file.skipped}"))
        else:
            seen[path] = file.hash
            if row is None or path not in notes:
                differing.append(Difference(path, "is not in the index"))
            elif row.hash != file.hash or notes[path].hash != file.hash:
                differing.append(Difference(path, "has changed since it was indexed"))
            elif notes[path].title != file.note.title or notes[path].tags != file.note.tags:
                differing.append(Difference(path, "has other fields in the index than in the file"))
            elif not cut_by_model and not _same(stored.get(path, []), file.passages):
                differing.append(Difference(path, "has other passages in the index than in the file"))
        if progress:
            progress(done, len(paths))
    missing = {path for path, note in notes.items() if note.missing is not None}
    for path in sorted({*known, *notes} - set(paths) - missing):
        differing.append(Difference(path, "is in the index, but there is no such file"))
    passages = sum(map(len, stored.values()))
    differing += _miscounted(index, len(notes), passages)
    lost = lost_vectors(index) if vectors else 0
    if lost:
        differing.append(Difference("", f"{lost:,} of {passages:,} passages have no vector"))
    there = {path: note.hash for path, note in notes.items() if note.missing is None}
    counted = counts.passages if counts else 0
    digests = _digest(seen), _digest(there)
    return Compared(len(seen), size, len(notes), counted, skipped, len(missing), *digests, differing)


def _miscounted(index: KnowledgeIndex, notes: int, passages: int) -> list[Difference]:
    """What the engine's own counts say: notes and passages, and words for each passage."""
    found: list[Difference] = []
    with index.engine.reading() as reader:
        vault = reader.vault(index.origin)
        if vault is None:
            return []
        counts = reader.counts([vault])
        words = reader.word_count(vault)
    if (counts.notes, counts.passages) != (notes, passages):
        told = f"{counts.notes:,} notes and {counts.passages:,} passages are counted, {notes:,} and {passages:,} exist"
        found.append(Difference("", told))
    if words != passages:
        found.append(Difference("", f"{words:,} passages have words, of {passages:,}"))
    return found


def lost_vectors(index: KnowledgeIndex) -> int:
    """How many passages should have a vector and have none."""
    with index.engine.reading() as reader:
        vault = reader.vault(index.origin)
        active = reader.spaces(vault).active if vault is not None else None
        bare = reader.without_vector(vault, active) if vault is not None and active else []
        cached = reader.cached(active, [text_hash(one.text) for one in bare]) if active else {}
    return sum(cached.get(text_hash(one.text), b"") is not None for one in bare)


def differs(root: str, path: str, known: str | None) -> bool:
    """Whether a file has another content than what it was indexed with, or none that can be read."""
    found = hash_of_file(os.path.join(root, path))
    return found is None or found != known


def hash_of_file(path: str) -> str | None:
    """The hash of its content; None if it cannot be read."""
    try:
        with open_regular(path, follow=False) as stream:
            return content_hash(stream.read(LARGEST + 1))
    except OSError:
        return None


def _same(stored: list[StoredPassage], passages: Sequence[Passage]) -> bool:
    return [(one.first_line, one.last_line, one.heading, one.body) for one in stored] == [
        (one.first_line, one.last_line, _storable(one.heading), _storable(one.text)) for one in passages
    ]


def _storable(text: str) -> str:
    return text if text.isascii() else text.encode("utf-8", "replace").decode()


def _digest(hashes: Mapping[str, str]) -> str:
    digest = hashlib.sha256()
    for path in sorted(hashes):
        digest.update(f"{path}\0{hashes[path]}\n".encode("utf-8", "surrogateescape"))
    return digest.hexdigest()
