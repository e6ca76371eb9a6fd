"""`co data export` and back: notes as Markdown in their folders, or as one JSON object a line. Nothing is overwritten.

An export is written under a temporary name and moved when it is complete. A line of JSON has the whole file if fields
and body alone would not give the same bytes back.
"""

from __future__ import annotations

import contextlib
import json
import os
import tempfile
import time
import zipfile
from collections.abc import Callable, Iterator, Sequence
from typing import IO, NamedTuple

from co_cli.errors import InvalidInputError, KnowledgeError, NoteFileError
from co_cli.importers.archive import Export
from co_cli.importers.folders import markdown_files, path_problem
from co_cli.importers.items import File, Item, Trouble, as_object, first_text
from co_cli.knowledge_base import KnowledgeBase
from co_cli.notes.editing import render_note
from co_cli.notes.files import TEMPORARY
from co_cli.notes.note import Note, NotTextError, read_note
from co_cli.notes.refs import path_of
from co_cli.values import NoteSummary, moment_text

Progress = Callable[[int, int], None]
FORMATS = ("markdown", "jsonl")
STANDARD_OUTPUT = "-"
ZIP_START = (1980, 1, 1, 0, 0, 0)
"""A zip cannot hold an earlier date."""


class ExportReport(NamedTuple):
    """What was written where."""

    to: str
    format: str
    notes: int
    bytes: int
    troubles: list[Trouble]


def export_notes(
    kb: KnowledgeBase,
    notes: Sequence[NoteSummary],
    to: str,
    layout: str | None = None,
    output: IO[bytes] | None = None,
    progress: Progress | None = None,
) -> ExportReport:
    """Write these notes to a new folder, zip or JSON Lines file; `-` means `output`."""
    layout = layout or ("jsonl" if to == STANDARD_OUTPUT or to.lower().endswith(".jsonl") else "markdown")
    if layout not in FORMATS:
        raise InvalidInputError(f"the format is one of {', '.join(FORMATS)}, not {layout!r}")
    troubles: list[Trouble] = []
    files = _files(kb, notes, troubles, progress)
    if to == STANDARD_OUTPUT:
        if layout != "jsonl" or output is None:
            raise InvalidInputError("only --format jsonl can go to standard output; give markdown a folder or a .zip")
        sizes = [output.write(line) for line in _lines(files)]
        return ExportReport(to, layout, len(sizes), sum(sizes), troubles)
    folder = layout == "markdown" and not to.lower().endswith(".zip")
    _refuse_target(to, folder, kb.root)
    target = os.path.abspath(to)
    try:
        with tempfile.TemporaryDirectory(prefix=TEMPORARY, dir=os.path.dirname(target)) as temporary:
            made = os.path.join(temporary, "export")
            if folder:
                sizes = _write_folder(files, made)
                if os.path.isdir(target):
                    os.rmdir(target)  # refuses if it is no longer empty
                os.rename(made, target)
            else:
                with open(made, "xb") as stream:
                    if layout == "jsonl":
                        sizes = [stream.write(line) for line in _lines(files)]
                    else:
                        sizes = _write_zip(files, stream)
                    stream.flush()
                    os.fsync(stream.fileno())
                with open(target, "xb"):  # takes the name, if it is still free
                    os.replace(made, target)
    except OSError as error:
        raise NoteFileError(f"cannot write {to}: {error.strerror or error}; check the disk and the folder") from error
    return ExportReport(to, layout, len(sizes), sum(sizes), troubles)


def read_own(export: Export, largest: int) -> Iterator[Item]:
    """What `co data export` wrote: JSON Lines, a folder of notes or a zip of one."""
    if not export.single:
        for member, data in markdown_files(export, largest):
            yield File(export.place(member), member.name, member.name, data, member.modified)
        return
    for place, value in export.values(export.members):
        found = as_object(value)
        path = first_text(found, "path") or path_of(first_text(found, "ref")) or ""
        problem = path_problem(path) if path else "not a note from `co data export`: it has no path"
        data = None if problem else _data(found)
        if data is None:
            needed = "not a note from `co data export`: it needs a body and frontmatter, or the file"
            export.trouble(place, f"{path}: {problem or needed}" if path else problem)
        else:
            yield File(place, path, path, data)


def _files(
    kb: KnowledgeBase, notes: Sequence[NoteSummary], troubles: list[Trouble], progress: Progress | None
) -> Iterator[File]:
    """The notes that are in the vault; those read in place from elsewhere are not exported."""
    for number, note in enumerate(notes, 1):
        path = os.path.relpath(note.path, kb.root).replace(os.sep, "/")
        if path.startswith("../"):
            continue
        try:
            yield File(path, path, path, kb.store.read(path), os.stat(note.path).st_mtime)
        except (KnowledgeError, OSError) as error:
            troubles.append(Trouble(path, str(getattr(error, "strerror", None) or error)))
        if progress:
            progress(number, len(notes))


def _write_folder(files: Iterator[File], folder: str) -> list[int]:
    sizes: list[int] = []
    os.mkdir(folder)
    for file in files:
        full = os.path.join(folder, *file.path.split("/"))
        os.makedirs(os.path.dirname(full), exist_ok=True)
        with open(full, "xb") as stream:
            sizes.append(stream.write(file.data))
        os.utime(full, (file.modified or 0, file.modified or 0))
    return sizes


def _write_zip(files: Iterator[File], stream: IO[bytes]) -> list[int]:
    sizes: list[int] = []
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as archive:
        for file in files:
            entry = zipfile.ZipInfo(file.path, max(ZIP_START, time.gmtime(file.modified)[:6]))
            entry.compress_type, entry.external_attr = zipfile.ZIP_DEFLATED, 0o644 << 16
            archive.writestr(entry, file.data)
            sizes.append(len(file.data))
    return sizes


def _lines(files: Iterator[File]) -> Iterator[bytes]:
    for file in files:
        with contextlib.suppress(NotTextError):  # it just became something else
            yield _line(read_note(file.path, file.data), file.data)


def _line(note: Note, data: bytes) -> bytes:
    told: dict[str, object] = {
        "ref": note.ref,
        "path": note.path,
        "title": note.title,
        "kind": note.source,
        "body": note.body,
        "frontmatter": note.metadata,
        "tags": list(note.tags),
        "created": moment_text(note.created) if note.created is not None else None,
        "updated": moment_text(note.updated) if note.updated is not None else None,
        "links": list(note.links),
    }
    if _data(told) != data:
        told["file"] = data.decode("utf-8", "surrogateescape")
    # the escape of a lone surrogate is also its escape in JSON
    return json.dumps(told, ensure_ascii=False).encode("utf-8", "backslashreplace") + b"\n"


def _data(found: dict[str, object]) -> bytes | None:
    """The bytes of the note that an object describes; None if it describes none."""
    file, body, metadata = found.get("file"), found.get("body"), as_object(found.get("frontmatter"))
    with contextlib.suppress(InvalidInputError, ValueError, RecursionError):
        if isinstance(file, str):
            return file.encode("utf-8", "surrogateescape")
        if isinstance(body, str):
            return (render_note(metadata, body) if metadata else body).encode("utf-8")
    return None


def _refuse_target(to: str, folder: bool, root: str) -> None:
    target = os.path.realpath(to)
    if target == root or target.startswith(root + os.sep):
        raise InvalidInputError(f"{to} is in the vault, where an export would become notes again; export elsewhere")
    parent = os.path.dirname(target)
    if not os.path.isdir(parent):
        raise InvalidInputError(f"{to}: there is no folder {parent}; make it first")
    if os.path.lexists(to) and not (folder and os.path.isdir(target) and not os.listdir(target)):
        fix = "name a new or an empty folder" if folder else "nothing is overwritten; name another file"
        raise InvalidInputError(f"{to} exists already: {fix}")
