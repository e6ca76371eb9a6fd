"""Give the notes back: plain Markdown in its folders, or one JSON object a note. Nothing is ever overwritten.

Everything is written beside its place under a temporary name and moved there when it is complete, so that a stopped
export leaves nothing that looks like one.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import time
import zipfile
from collections.abc import Callable, Generator, Iterator, Sequence
from typing import IO, NamedTuple

from co_cli.errors import InvalidInputError, KnowledgeError, NoteFileError
from co_cli.exchange.items import Trouble
from co_cli.exchange.own_lines import note_line
from co_cli.knowledge_base import KnowledgeBase
from co_cli.notes.files import TEMPORARY
from co_cli.notes.note import NotTextError, read_note
from co_cli.values import NoteSummary

Progress = Callable[[int, int], None]

FORMATS = ("markdown", "jsonl")
STANDARD_OUTPUT = "-"
EARLIEST = (1980, 1, 1, 0, 0, 0)
"""A zip knows no moment before it."""


class ExportReport(NamedTuple):
    """What was written where."""

    to: str
    format: str
    notes: int
    bytes: int
    troubles: list[Trouble]


class _File(NamedTuple):
    path: str
    data: bytes
    modified: float


def export_notes(
    kb: KnowledgeBase,
    notes: Sequence[NoteSummary],
    to: str,
    layout: str | None = None,
    output: IO[bytes] | None = None,
    progress: Progress | None = None,
) -> ExportReport:
    """Write these notes to a folder, a zip or a JSON Lines file that is not there yet; `-` is `output`."""
    layout = layout or ("jsonl" if to == STANDARD_OUTPUT or to.lower().endswith(".jsonl") else "markdown")
    if layout not in FORMATS:
        raise InvalidInputError(f"the format is one of {', '.join(FORMATS)}, not {layout!r}")
    troubles: list[Trouble] = []
    files = _files(kb, notes, troubles, progress)
    if to == STANDARD_OUTPUT:
        if layout != "jsonl" or output is None:
            raise InvalidInputError("only --format jsonl can go to standard output; give markdown a folder or a .zip")
        return _report(to, layout, _write_lines(files, output), troubles)
    _refuse_target(to, layout, kb.root)
    with _reporting(to):
        if layout == "jsonl":
            with _beside(to) as temporary, open(temporary, "xb") as stream:
                counted = _write_lines(files, stream)
                _settle(stream)
                _claim(temporary, to)
        elif to.lower().endswith(".zip"):
            with _beside(to) as temporary, open(temporary, "xb") as stream:
                counted = _write_zip(files, stream)
                _settle(stream)
                _claim(temporary, to)
        else:
            counted = _write_folder(files, to)
    return _report(to, layout, counted, troubles)


def _files(
    kb: KnowledgeBase, notes: Sequence[NoteSummary], troubles: list[Trouble], progress: Progress | None
) -> Iterator[_File]:
    """The vault's own notes among these; what is read in place from elsewhere stays there."""
    for number, note in enumerate(notes, 1):
        path = os.path.relpath(note.path, kb.root).replace(os.sep, "/")
        if path.startswith("../"):
            continue
        try:
            yield _File(path, kb.store.read(path), os.stat(note.path).st_mtime)
        except (KnowledgeError, OSError) as error:
            troubles.append(Trouble(path, str(getattr(error, "strerror", None) or error)))
        if progress:
            progress(number, len(notes))


def _write_lines(files: Iterator[_File], stream: IO[bytes]) -> tuple[int, int]:
    count = size = 0
    for file in files:
        with contextlib.suppress(NotTextError):  # became something else this moment
            line = note_line(read_note(file.path, file.data), file.data).encode("utf-8") + b"\n"
            stream.write(line)
            count, size = count + 1, size + len(line)
    return count, size


def _write_zip(files: Iterator[_File], stream: IO[bytes]) -> tuple[int, int]:
    count = size = 0
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as archive:
        for file in files:
            entry = zipfile.ZipInfo(file.path, max(EARLIEST, time.gmtime(file.modified)[:6]))
            entry.compress_type, entry.external_attr = zipfile.ZIP_DEFLATED, 0o644 << 16
            archive.writestr(entry, file.data)
            count, size = count + 1, size + len(file.data)
    return count, size


def _write_folder(files: Iterator[_File], to: str) -> tuple[int, int]:
    count = size = 0
    target = os.path.abspath(to)
    with _beside(to) as temporary:
        os.mkdir(temporary)
        for file in files:
            full = os.path.join(temporary, *file.path.split("/"))
            os.makedirs(os.path.dirname(full), exist_ok=True)
            with open(full, "xb") as stream:
                stream.write(file.data)
            os.utime(full, (file.modified, file.modified))
            count, size = count + 1, size + len(file.data)
        if os.path.isdir(target):
            os.rmdir(target)  # it was empty; if it is no longer, this refuses
        os.rename(temporary, target)
    return count, size


def _refuse_target(to: str, layout: str, root: str) -> None:
    target = os.path.realpath(to)
    if target == root or target.startswith(root + os.sep):
        raise InvalidInputError(f"{to} is in the vault: what lies there would be notes again; export elsewhere")
    parent = os.path.dirname(target)
    if not os.path.isdir(parent):
        raise InvalidInputError(f"{to}: there is no folder {parent}; make it first")
    folder = layout == "markdown" and not to.lower().endswith(".zip")
    if not os.path.lexists(to) or (folder and os.path.isdir(target) and not os.listdir(target)):
        return
    cure = "name a new or an empty folder" if folder else "nothing is overwritten; name another file"
    raise InvalidInputError(f"{to} is there already: {cure}")


@contextlib.contextmanager
def _beside(to: str) -> Generator[str]:
    """A temporary name in the same folder, of which nothing stays."""
    target = os.path.abspath(to)
    temporary = os.path.join(os.path.dirname(target), f"{TEMPORARY}{os.getpid():x}-{os.urandom(4).hex()}")
    try:
        yield temporary
    finally:
        if os.path.isdir(temporary):
            shutil.rmtree(temporary, ignore_errors=True)
        with contextlib.suppress(FileNotFoundError):
            os.unlink(temporary)


def _settle(stream: IO[bytes]) -> None:
    stream.flush()
    os.fsync(stream.fileno())


def _claim(temporary: str, to: str) -> None:
    """Take the name, if nobody has it meanwhile."""
    try:
        os.link(temporary, to)
    except FileExistsError:
        raise InvalidInputError(f"{to} is there already: nothing is overwritten; name another file") from None
    except OSError:  # no hard links on this file system
        os.close(os.open(to, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o644))
        os.replace(temporary, to)


@contextlib.contextmanager
def _reporting(to: str) -> Generator[None]:
    try:
        yield
    except OSError as error:
        raise NoteFileError(f"cannot write {to}: {error.strerror or error}; check the disk and the folder") from error


def _report(to: str, layout: str, counted: tuple[int, int], troubles: list[Trouble]) -> ExportReport:
    return ExportReport(to, layout, *counted, troubles)
