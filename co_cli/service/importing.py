"""Bring files into the vault as articles, byte for byte, and say of each what became of it.

But for two claims that only you can make of a note: that it belongs beside every prompt (`loading`), and that it is
your own words (`provenance: user`). A file that brings them along has them under another name.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from typing import NamedTuple

from co_cli.errors import InvalidInputError, KnowledgeError, SecretError
from co_cli.knowledge_index import KnowledgeIndex
from co_cli.notes.editing import set_fields
from co_cli.notes.note import Note, NotTextError, read_note
from co_cli.notes.refs import ref_of, slugify
from co_cli.notes.secrets import count_masked
from co_cli.notes.similarity import fingerprint
from co_cli.notes.store import NoteStore
from co_cli.paths import open_regular
from co_cli.values import Saved

TEXTS = (".md", ".markdown", ".txt", ".text")


class Imported(NamedTuple):
    """One file that was asked for: its receipt, or why it was left out."""

    origin: str
    saved: Saved | None
    skipped: str = ""


def find_files(path: str) -> Iterator[tuple[str, str, bool]]:
    """A file, or every text of a folder, each with the folders it lies in below the one that was named, and whether
    it was named itself: only then may it be a link.
    """
    if os.path.isfile(path):
        yield path, "", True
        return
    if not os.path.isdir(path):
        raise InvalidInputError(f"{path}: there is no such file or folder")
    for folder, inner, names in os.walk(path):
        inner[:] = sorted(name for name in inner if not name.startswith("."))
        below = os.path.relpath(folder, path).replace(os.sep, "/")
        for name in sorted(names):
            if not name.startswith(".") and name.lower().endswith(TEXTS):
                yield os.path.join(folder, name), "" if below == "." else below, False


def import_files(
    store: NoteStore, index: KnowledgeIndex, paths: list[str], largest: int, progress: Callable[[int, int], None] | None
) -> list[Imported]:
    files = [found for path in paths for found in find_files(path)]
    done: list[Imported] = []
    for number, (origin, below, named) in enumerate(files):
        done.append(_import_one(store, index, origin, below, named, largest))
        if progress:
            progress(number + 1, len(files))
    return done


def _import_one(
    store: NoteStore, index: KnowledgeIndex, origin: str, below: str, named: bool, largest: int
) -> Imported:
    try:
        with open_regular(origin, follow=named) as stream:
            size = os.fstat(stream.fileno()).st_size
            if size > largest:
                return Imported(
                    origin, None, f"{size:,} bytes; the limit is {largest:,} (setting knowledge_max_note_bytes)"
                )
            data = stream.read(largest)
        note = read_note(f"articles/{os.path.basename(origin)}", data)
    except OSError as error:
        link = not named and os.path.islink(origin)
        return Imported(origin, None, "a link; links are not followed" if link else str(error.strerror or error))
    except NotTextError as error:
        return Imported(origin, None, str(error))
    if not note.body.strip():
        return Imported(origin, None, "the file is empty")
    try:
        data = _without_claims(note, data)
    except KnowledgeError as error:
        return Imported(origin, None, f"what it claims of itself cannot be taken out: {error}")
    stem = slugify(os.path.splitext(os.path.basename(origin))[0])
    folder = "/".join(["articles", *(slugify(part) for part in below.split("/") if part)])
    with store.lock():
        for path in index.exact_twins("article", fingerprint(note.body)):
            if _still_says(store, path, note):
                ref = ref_of(path, "article")
                return Imported(origin, Saved(ref, store.absolute(path), "duplicate", f"{ref} says this already"))
        try:
            store.refuse_name(f"{below}/{os.path.basename(origin)}")
            with count_masked() as masked:
                path = store.create(folder, stem, data, index.taken)
        except SecretError as error:
            return Imported(origin, None, str(error))
        index.index_file(None, path)
    ref = index.ref_of(path) or ref_of(path, "article")
    return Imported(origin, Saved(ref, store.absolute(path), "created", masked=len(masked)))


def _without_claims(note: Note, data: bytes) -> bytes:
    claimed = {key: note.metadata[key] for key in ("loading", "provenance") if note.metadata.get(key) is not None}
    if str(claimed.get("provenance", "import")).strip().casefold() in ("import", "web", "agent"):
        claimed.pop("provenance", None)
    if not claimed:
        return data
    fields: dict[str, object] = {f"imported_{key}": value for key, value in claimed.items()}
    fields |= {key: "import" if key == "provenance" else None for key in claimed}
    text = set_fields(data.decode("utf-8", "surrogateescape"), fields, note.path)
    return text.encode("utf-8", "surrogateescape")


def _still_says(store: NoteStore, path: str, note: Note) -> bool:
    """The index proposes a twin; only its file knows what it says now."""
    try:
        return store.exists(path) and fingerprint(read_note(path, store.read(path)).body) == fingerprint(note.body)
    except NotTextError:
        return False
