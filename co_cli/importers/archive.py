"""Read an export as downloaded (a zip), unpacked (a folder), or one file of it.

Nothing is unpacked to disk and no link is followed. JSON is read one value at a time, so that memory depends on the
longest conversation and not on the export. What cannot be read becomes a failed receipt, and reading goes on.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import re
import stat
import zipfile
import zlib
from collections.abc import Generator, Iterator
from typing import IO, NamedTuple

from co_cli.ground.errors import DiskFullError, InvalidInputError, KnowledgeError
from co_cli.ground.paths import open_regular
from co_cli.ground.values import to_utf8
from co_cli.importers.items import ImportReceipt, as_list, as_object, failed
from co_cli.notes.refs import FOLDERS

MAX_VALUE = 50_000_000  # characters of one JSON value
CHUNK = 1 << 20
BOMB_BYTES = 30_000_000
BOMB_RATIO = 300
"""Conversations compress to a tenth; nothing real of that size compresses to a three-hundredth."""
TEXTS = (".md", ".markdown", ".txt", ".text", ".xml")
WRAPPERS = ("conversations", "results", "memories", "items")  # members that hold the list we want
SEPARATORS = re.compile(r"[\s,]*")
LONGEST_INTEGER = 300  # digits; Python does not read every longer one, and nothing here needs one
ESCAPES = re.compile(r"^/|^[A-Za-z]:/|(?:^|/)\.\.(?:/|$)" + (r"|[\\:]" if os.sep == "\\" else ""))
"""A name in a zip that could lead to another folder."""
OWN_ZIP = b"co data export"
"""The comment of a zip that `co data export` wrote: its names are those of the vault."""
UNREADABLE = (KnowledgeError, OSError, EOFError, ValueError, zlib.error, zipfile.BadZipFile, RuntimeError, MemoryError)
"""What zipfile raises for damage, passwords and unknown methods, and we for what we refuse."""


class Member(NamedTuple):
    """One file of an export. The name is inside the export, with `/`; `where` is on disk, or inside the zip."""

    name: str
    size: int
    modified: float | None
    where: str


class Broken(NamedTuple):
    """A value that is not valid JSON, and why."""

    problem: str


class Export:
    """One export. `single` means that the person named one file; `largest` is the size limit of a note."""

    def __init__(self, path: str, largest: int) -> None:
        folder = os.path.isdir(path)
        if not folder and not os.path.isfile(path):
            problem = "is not a regular file" if os.path.exists(path) else "does not exist"
            raise InvalidInputError(f"{path or 'an empty name'} {problem}: name a file, a zip or a folder")
        self.path, self.largest = path, largest
        self.archive: zipfile.ZipFile | None = None
        self.receipts: list[ImportReceipt] = []
        self.done = 0  # bytes read so far, about
        if not folder and path.lower().endswith(".zip"):
            try:
                self.archive = zipfile.ZipFile(path)
            except UNREADABLE as error:
                raise InvalidInputError(f"{path}: not a complete zip ({reason(error)}); download it again") from None
        self.single = not self.archive and not folder
        real = os.path.realpath(path)
        named = os.path.dirname(real) if self.single else os.path.splitext(real)[0] if self.archive else real
        self.name = to_utf8(os.path.basename(named))
        self.members: list[Member] = sorted(self._in_zip(self.archive) if self.archive else self._on_disk())
        tops = {member.name.partition("/")[0] if "/" in member.name else "" for member in self.members}
        whole = self.archive and self.archive.comment == OWN_ZIP
        if self.archive and not whole and len(tops) == 1 and not tops & {"", *FOLDERS.values()}:
            (self.name,) = tops  # a zip of one folder counts as that folder, unless every vault has it
            self.members = [member._replace(name=member.name.partition("/")[2]) for member in self.members]
        self.size = sum(member.size for member in self.members)
        if self.archive and self.size > max(BOMB_BYTES, BOMB_RATIO * os.path.getsize(path)):
            self.close()
            raise InvalidInputError(f"{path}: unpacks to {self.size:,} bytes: refused as a zip bomb")

    def close(self) -> None:
        if self.archive:
            self.archive.close()

    def fail(self, place: str, problem: str) -> None:
        self.receipts.append(failed(place, problem))

    @contextlib.contextmanager
    def reporting(self, place: str) -> Generator[None]:
        """What cannot be read within this block becomes a failed receipt. A full disk ends the import."""
        try:
            yield
        except DiskFullError:
            raise
        except UNREADABLE as error:
            self.fail(place, reason(error))

    def open(self, member: Member) -> IO[bytes]:
        """The bytes of a member, uncompressed. zipfile never reads more than the size that the zip declares."""
        if not self.archive:
            return open_regular(member.where, follow=self.single)
        if member.size > max(BOMB_BYTES, BOMB_RATIO * self.archive.getinfo(member.where).compress_size):
            raise ValueError(f"unpacks to {member.size:,} bytes: refused as a zip bomb")
        return self.archive.open(member.where)

    def read(self, member: Member) -> bytes:
        """A whole member. Raises one of UNREADABLE, also if it is larger than a note may be."""
        with self.open(member) as stream:
            data = stream.read(self.largest + 1)
        if len(data) > self.largest:
            raise ValueError(f"more than {self.largest:,} bytes (setting knowledge_max_note_bytes)")
        self.done += len(data)
        return data

    def read_hidden(self, name: str, most: int) -> bytes:
        """The beginning of a file that is no member because it is hidden; nothing if it cannot be read."""
        with contextlib.suppress(*UNREADABLE, KeyError):
            if not self.archive:
                with open_regular(os.path.join(self.path, name), follow=False) as stream:
                    return stream.read(most)
            inside = name if name in self.archive.namelist() else f"{self.name}/{name}"
            with self.archive.open(inside) as stream:
                return stream.read(most)
        return b""

    def values(self, wanted: re.Pattern[str]) -> Iterator[tuple[str, object]]:
        """Each value of the JSON files that are `wanted`, with its place; the members of a list one by one.

        The pattern is searched in `export/folder/file`; a file that the person named is always wanted.
        """
        for member in self.members:
            named = self.single and not member.name.lower().endswith(TEXTS)
            if not named and not wanted.search(f"{self.name}/{member.name}"):
                continue
            number, before = 0, self.done
            with self.reporting(member.name), self.open(member) as stream:
                for value in _decode(stream):
                    self.done = before + stream.tell()
                    if isinstance(value, Broken):
                        number += 1
                        self.fail(member.name, f"item {number:,}: {value.problem}")
                        continue
                    holder = as_object(value)
                    listed = next((holder[key] for key in WRAPPERS if isinstance(holder.get(key), list)), [value])
                    for listed_item in as_list(listed):
                        number += 1
                        yield f"{member.name}, item {number}", listed_item

    def _on_disk(self) -> Iterator[Member]:
        if self.single:
            yield Member(os.path.basename(self.path), os.path.getsize(self.path), None, self.path)
            return
        for folder, inner, names in os.walk(self.path, onerror=lambda error: self.fail(error.filename, reason(error))):
            inner[:] = [name for name in inner if not name.startswith(".")]
            paths = [os.path.join(folder, name) for name in (*inner, *names) if not name.startswith(".")]
            for path in paths:
                relative = os.path.relpath(path, self.path).replace(os.sep, "/")
                with self.reporting(relative):
                    state = os.lstat(path)
                    if stat.S_ISREG(state.st_mode):
                        yield Member(relative, state.st_size, state.st_mtime, path)
                    elif not stat.S_ISDIR(state.st_mode):
                        raise ValueError("a link or not a regular file; it is not read")

    def _in_zip(self, archive: zipfile.ZipFile) -> Iterator[Member]:
        for entry in archive.infolist():
            name = entry.filename
            if ESCAPES.search(name):
                self.fail(name, "a name that leads out of the zip; it is not read")
            elif stat.S_ISLNK(entry.external_attr >> 16):
                self.fail(name, "a link; links are not followed")
            elif not entry.is_dir() and not re.search(r"^__MACOSX/|(?:^|/)\.|//", name):
                yield Member(name, entry.file_size, None, name)


def reason(error: BaseException) -> str:
    """What an error says, on one line."""
    if isinstance(error, RecursionError | MemoryError):
        return "nested too deep" if isinstance(error, RecursionError) else "it needs too much memory"
    said = getattr(error, "strerror", None) or getattr(error, "msg", None) or str(error) or type(error).__name__
    locked = isinstance(error, RuntimeError) and "password" in said
    return "it has a password; unpack it first" if locked else " ".join(said.split())


def _decode(stream: IO[bytes]) -> Iterator[object]:
    """The values of JSON or JSON Lines, or the members of a list. One that is not valid is Broken, and costs no other
    if they begin on lines of their own.
    """
    decoded = io.TextIOWrapper(stream, "utf-8-sig", "replace")
    start = decoded.read(CHUNK)
    text, whole = start.lstrip(), len(start) < CHUNK
    listed = text.startswith("[")
    at, next_item = int(listed), _next_item(text, listed)
    while True:
        separators = SEPARATORS.match(text, at)
        at = separators.end() if separators else at
        if listed and text.startswith("]", at):
            return
        try:
            value, at = DECODER.raw_decode(text, at)
        except (ValueError, RecursionError) as error:
            if isinstance(error, ValueError) and not whole and len(text) - at < MAX_VALUE:
                more = decoded.read(max(CHUNK, len(text) - at))  # doubles, so a long value is not parsed too often
                text, at, whole = text[at:] + more, 0, not more
                continue
            if not text[at:].strip() and not listed:
                return
            why = reason(error) if whole else f"longer than {MAX_VALUE:,} characters"
            yield Broken(reason(error) if isinstance(error, RecursionError) else f"cut off or not valid JSON ({why})")
            found = next_item.search(text, at)
            if not found:
                return
            at = found.end()
            continue
        yield value


def _next_item(text: str, listed: bool) -> re.Pattern[str]:
    """Where the next value begins: on a line that is indented like the first, or that is an object as a whole."""
    first = re.match(r"\[[ \t]*\r?\n([ \t]*)", text) if listed else None
    if first and first[1]:
        return re.compile(rf"\n{first[1]}(?=\{{)")
    return re.compile(r"\n(?=\{[^\n]*\}" + (",?" if listed else "") + r"[ \t\r]*(?:\n|\Z))")


def _integer(digits: str) -> int | float:
    return int(digits) if len(digits) <= LONGEST_INTEGER else float(digits)


DECODER = json.JSONDecoder(strict=False, parse_int=_integer)
