"""`co data export`: notes as Markdown in their folders, or as one JSON object a line. Nothing is overwritten.

An export is written under a temporary name and moved when it is complete.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import sys
import tempfile
import time
import zipfile
from collections.abc import Iterator, Sequence
from typing import IO, NamedTuple

from co_cli.ground.errors import InvalidInputError, KnowledgeError, NoteFileError
from co_cli.ground.paths import is_inside
from co_cli.ground.reports import Progress
from co_cli.ground.summaries import NoteSummary
from co_cli.ground.values import moment_text
from co_cli.importers.archive import OWN_ZIP, reason
from co_cli.importers.okf import bundle_of
from co_cli.notes.encoding import NotTextError, decode
from co_cli.notes.files import TEMPORARY
from co_cli.notes.note import read_note
from co_cli.notes.refs import ENDINGS, name_key
from co_cli.vault.vault import Vault

STANDARD_OUTPUT = "-"
OTHER_FILE = re.compile(r"\w\.(?!zip$|jsonl$)[a-z]\w*$", re.IGNORECASE)
"""A name such as x.pdf, of a format that is not written."""
NoteFile = tuple[str, bytes, float]
"""The path in the vault, the content, and when it was modified."""
ZIP_START = (1980, 1, 1, 0, 0, 0)
"""A zip cannot hold an earlier date."""


class ExportReport(NamedTuple):
    """What was written where, and `path: problem` for each note that could not be read, and each file that is none."""

    to: str
    format: str
    notes: int
    bytes: int
    failures: list[str]
    skipped: list[str]


def export_notes(
    vault: Vault,
    notes: Sequence[NoteSummary],
    to: str,
    layout: str | None = None,
    progress: Progress | None = None,
) -> ExportReport:
    """Write these notes to a new folder, zip or JSON Lines file; `-` is standard output."""
    if layout is None and OTHER_FILE.search(to) and not os.path.isdir(to):
        raise InvalidInputError(
            f"notes go to a folder, a .zip or a .jsonl file, not to {to}; if that is a folder, add --format markdown"
        )
    layout = layout or ("jsonl" if to == STANDARD_OUTPUT or to.lower().endswith(".jsonl") else "markdown")
    failures: list[str] = []
    files = _files(vault, notes, failures, progress)
    if layout == "okf":
        if to == STANDARD_OUTPUT or to.lower().endswith(".jsonl"):
            raise InvalidInputError("an OKF bundle is a folder or a .zip: name one")
        files = bundle_of(files, {name_key(_place(vault, note)) for note in notes}, failures)
    if to != STANDARD_OUTPUT:
        sizes = _write(files, to, layout, vault.root)
    elif layout == "jsonl":
        sizes = _write_lines(files, sys.stdout.buffer)
    else:
        raise InvalidInputError("only --format jsonl can go to standard output; give markdown a folder or a .zip")
    written = len(notes) - len(failures) if layout == "okf" else len(sizes)  # a bundle has listings, too
    return ExportReport(to, layout, written, sum(sizes), failures, [])


def skipped_files(vault: Vault) -> list[str]:
    """Files that look like notes and are none, each with the reason: binary, too large, ignored, a link."""
    said = ((path, why) for path, why in vault.index.listed() if why not in ("", "missing"))
    return sorted(f"{path}: {why}" for path, why in said if path.lower().endswith((*ENDINGS, "/")))


def _files(
    vault: Vault, notes: Sequence[NoteSummary], failures: list[str], progress: Progress | None
) -> Iterator[NoteFile]:
    """The notes that are in the vault; those read in place from elsewhere are not exported."""
    for number, note in enumerate(notes, 1):
        path = _place(vault, note)
        try:
            if not path.startswith("../"):
                data = vault.store.read(path)
                decode(data)  # raises NotTextError if it just became something else
                yield path, data, os.stat(note.path).st_mtime
        except (KnowledgeError, OSError, NotTextError) as error:
            failures.append(f"{path}: {reason(error)}")
        if progress:
            progress(number, len(notes))


def _place(vault: Vault, note: NoteSummary) -> str:
    """Its path in the vault."""
    return os.path.relpath(note.path, vault.root).replace(os.sep, "/")


def _write(files: Iterator[NoteFile], to: str, layout: str, root: str) -> list[int]:
    """Write a new folder or file, and return the sizes of its notes."""
    folder, target = layout != "jsonl" and not to.lower().endswith(".zip"), os.path.realpath(to)
    if is_inside(target, root):
        raise InvalidInputError(f"{to} is in the vault, where an export would become notes again; export elsewhere")
    if not os.path.isdir(os.path.dirname(target)):
        raise InvalidInputError(f"{to}: there is no folder {os.path.dirname(target)}; make it first")
    if os.path.lexists(to) and not (folder and os.path.isdir(to) and not os.listdir(to)):
        fix = "name a new or an empty folder" if folder else "nothing is overwritten; name another file"
        raise InvalidInputError(f"{to} exists already: {fix}")
    try:
        with tempfile.TemporaryDirectory(prefix=TEMPORARY, dir=os.path.dirname(target)) as temporary:
            made = os.path.join(temporary, "export")
            if folder:
                sizes = _write_folder(files, made)
                with contextlib.suppress(FileNotFoundError):
                    os.rmdir(target)  # refuses if it is no longer empty
                os.rename(made, target)
            else:
                with open(made, "xb") as stream:
                    sizes = (_write_lines if layout == "jsonl" else _write_zip)(files, stream)
                    stream.flush()
                    os.fsync(stream.fileno())  # a crash after the rename must not leave an empty file
                with open(target, "xb"):  # takes the name, if it is still free
                    os.replace(made, target)
    except OSError as error:
        raise NoteFileError(f"cannot write {to}: {reason(error)}; check the disk and the folder") from error
    return sizes


def _write_folder(files: Iterator[NoteFile], folder: str) -> list[int]:
    sizes: list[int] = []
    os.mkdir(folder)
    for path, data, modified in files:
        full = os.path.join(folder, *path.split("/"))
        os.makedirs(os.path.dirname(full), exist_ok=True)
        with open(full, "xb") as stream:
            sizes.append(stream.write(data))
        os.utime(full, (modified, modified))
    return sizes


def _write_zip(files: Iterator[NoteFile], stream: IO[bytes]) -> list[int]:
    sizes: list[int] = []
    with zipfile.ZipFile(stream, "w") as archive:
        archive.comment = OWN_ZIP
        for path, data, modified in files:
            entry = zipfile.ZipInfo(path, max(ZIP_START, time.gmtime(modified)[:6]))
            entry.external_attr = 0o644 << 16
            archive.writestr(entry, data, zipfile.ZIP_DEFLATED)
            sizes.append(len(data))
    return sizes


def _write_lines(files: Iterator[NoteFile], stream: IO[bytes]) -> list[int]:
    sizes: list[int] = []
    for path, data, _ in files:
        note = read_note(path, data)
        line = {
            "ref": note.ref,
            "path": note.path,
            "title": note.title,
            "kind": note.source,
            "body": note.body,
            "text": data.decode("utf-8", "surrogateescape"),  # the file, for `co data import co`
            "frontmatter": note.metadata,
            "tags": list(note.tags),
            "created": moment_text(note.created) if note.created is not None else None,
            "updated": moment_text(note.updated) if note.updated is not None else None,
            "links": list(note.links),
        }
        # the escape of a lone surrogate is also its escape in JSON
        text = json.dumps(line, ensure_ascii=stream.isatty()).replace("\x7f", "\\u007f") + "\n"
        sizes.append(stream.write(text.encode("utf-8", "backslashreplace")))
    return sizes
