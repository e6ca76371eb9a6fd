"""Read an export as downloaded (a zip), unpacked (a folder), or one file of it.

Nothing is unpacked to disk and links are not followed. JSON is read one value at a time, so that memory depends on the
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
from collections.abc import Generator, Iterable, Iterator
from typing import IO, NamedTuple, Self

from co_cli.errors import InvalidInputError
from co_cli.importers.items import ImportReceipt, as_list, as_object, failed
from co_cli.notes.refs import FOLDERS
from co_cli.paths import open_regular
from co_cli.values import to_utf8

MAX_VALUE = 100_000_000
"""Characters of one JSON value."""
CHUNK = 1 << 20
BOMB_BYTES = 30_000_000
BOMB_RATIO = 300
"""Conversations compress to a tenth; nothing real of that size compresses to a three-hundredth."""
WRAPPERS = ("conversations", "results", "memories", "items")
"""Members of an object that hold the list we want."""
SEPARATORS = re.compile(r"[\s,]*")
DECODER = json.JSONDecoder(strict=False)


class UnreadableError(Exception):
    """A member that is refused, with the reason."""


UNREADABLE = (UnreadableError, OSError, EOFError, zlib.error, zipfile.BadZipFile, RuntimeError, NotImplementedError)
"""What zipfile raises for damage, passwords and unknown methods."""


class Member(NamedTuple):
    """One file of an export. The name is inside the export, with `/`."""

    name: str
    size: int
    modified: float | None
    where: str
    """Its path on disk, or its name inside the zip."""

    @property
    def base(self) -> str:
        return self.name.rsplit("/", 1)[-1]

    @property
    def ending(self) -> str:
        return os.path.splitext(self.base)[1].lower()


class Export:
    """One export. `single` means that the person named one file; `largest` is the size limit of a note."""

    def __init__(self, path: str, largest: int) -> None:
        folder = os.path.isdir(path)
        if not folder and not os.path.isfile(path):
            problem = "is not a regular file" if os.path.exists(path) else "does not exist"
            raise InvalidInputError(f"{path or 'an empty name'} {problem}: name a file, a zip or a folder")
        self.path, self.largest = path, largest
        name = os.path.basename(os.path.realpath(path))
        self.name = to_utf8(name if folder else os.path.splitext(name)[0])
        self.archive: zipfile.ZipFile | None = None
        self.failures: list[ImportReceipt] = []
        self.remarks: list[str] = []
        self.done = 0
        """How much was read so far, about in bytes."""
        if not folder and path.lower().endswith(".zip"):
            try:
                self.archive = zipfile.ZipFile(path)
            except UNREADABLE as error:
                raise InvalidInputError(f"{path}: not a complete zip ({_reason(error)}); download it again") from None
        self.single = self.archive is None and not folder
        self.members: list[Member] = sorted(self._in_zip(self.archive) if self.archive else self._on_disk())
        tops = {one.name.partition("/")[0] if "/" in one.name else "" for one in self.members}
        if self.archive and len(tops) == 1 and not tops & {"", *FOLDERS.values()}:
            (self.name,) = tops  # a zip of one folder counts as that folder, unless every vault has it
            self.members = [one._replace(name=one.name.partition("/")[2]) for one in self.members]
        self.size = sum(member.size for member in self.members)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        if self.archive:
            self.archive.close()

    def fail(self, place: str, problem: str) -> None:
        self.failures.append(failed(place, problem))

    def place(self, member: Member) -> str:
        return self.path if self.single else member.name

    def matching(self, pattern: re.Pattern[str]) -> list[Member]:
        """The file that was named, or the members whose names match, counting the name of the export itself."""
        return [one for one in self.members if self.single or pattern.match(f"{self.name}/{one.name}")]

    def read(self, member: Member) -> bytes | None:
        """A whole member; None if it cannot be read or is too large."""
        with self._reporting(self.place(member)), self._open(member) as stream:
            data = stream.read(self.largest + 1)
            self.done += len(data)
            if len(data) <= self.largest:
                return data
            raise UnreadableError(f"more than {self.largest:,} bytes (setting knowledge_max_note_bytes)")
        return None

    def values(self, members: Iterable[Member]) -> Iterator[tuple[str, object]]:
        """Each value of JSON or JSON Lines with its place; the members of a list one by one."""
        for member in members:
            place, number = self.place(member), 0
            with self._reporting(place), self._open(member) as stream:
                for value in self._decode(stream):
                    holder = as_object(value)
                    key = next((key for key in WRAPPERS if isinstance(holder.get(key), list)), None)
                    for one in as_list(holder[key]) if key else [value]:
                        number += 1
                        yield f"{place}, item {number}", one

    def _decode(self, stream: IO[bytes]) -> Iterator[object]:
        reader = io.TextIOWrapper(stream, "utf-8-sig", "replace")
        text = reader.read(CHUNK).lstrip()
        listed = text.startswith("[")
        at, number = int(listed), 1
        while True:
            separators = SEPARATORS.match(text, at)
            at = separators.end() if separators else at
            if listed and text.startswith("]", at):
                return
            try:
                value, at = DECODER.raw_decode(text, at)
            except ValueError as error:  # perhaps because the rest is not read yet
                more = reader.read(max(CHUNK, len(text) - at))  # doubles, so a long value is not parsed too often
                text, at = text[at:] + more, 0
                self.done += len(more)
                if len(text) > MAX_VALUE:
                    raise UnreadableError(f"item {number:,} is longer than {MAX_VALUE:,} characters") from None
                if more:
                    continue
                if not text and not listed and number > 1:
                    return
                raise UnreadableError(f"item {number:,}: cut off or not valid JSON ({_reason(error)})") from None
            yield value
            number += 1

    @contextlib.contextmanager
    def _reporting(self, place: str) -> Generator[None]:
        try:
            yield
        except UNREADABLE as error:
            self.fail(place, _reason(error))

    @contextlib.contextmanager
    def _open(self, member: Member) -> Generator[IO[bytes]]:
        """The bytes of a member, uncompressed. zipfile never reads more than the size that the zip declares."""
        archive, where = self.archive, member.where
        if archive and member.size > max(BOMB_BYTES, BOMB_RATIO * archive.getinfo(where).compress_size):
            raise UnreadableError(f"unpacks to {member.size:,} bytes: refused as a zip bomb")
        with archive.open(where) if archive else open_regular(where, follow=self.single) as stream:
            yield stream

    def _on_disk(self) -> Iterator[Member]:
        if self.single:
            yield Member(os.path.basename(self.path), os.path.getsize(self.path), None, self.path)
            return
        for folder, inner, names in os.walk(self.path, onerror=lambda error: self.fail(error.filename, _reason(error))):
            inner[:] = [name for name in inner if not name.startswith(".")]
            links = [name for name in inner if os.path.islink(os.path.join(folder, name))]
            for name in [*links, *(name for name in names if not name.startswith("."))]:
                path = os.path.join(folder, name)
                relative = os.path.relpath(path, self.path).replace(os.sep, "/")
                with self._reporting(relative):
                    state = os.lstat(path)
                    if not stat.S_ISREG(state.st_mode):
                        raise UnreadableError("a link or not a regular file; it is not read")
                    yield Member(relative, state.st_size, state.st_mtime, path)

    def _in_zip(self, archive: zipfile.ZipFile) -> Iterator[Member]:
        for entry in archive.infolist():
            name, parts = entry.filename, entry.filename.split("/")
            if entry.is_dir() or parts[0] == "__MACOSX":
                continue
            if ".." in parts or "\\" in name or name.startswith("/") or ":" in parts[0]:
                self.fail(name, "a name that leads out of the zip; it is not read")
            elif stat.S_ISLNK(entry.external_attr >> 16):
                self.fail(name, "a link; links are not followed")
            elif not any(part.startswith(".") or not part for part in parts):
                yield Member(name, entry.file_size, None, name)


def _reason(error: BaseException) -> str:
    if isinstance(error, RecursionError):
        return "nested too deep"
    said = getattr(error, "strerror", None) or getattr(error, "msg", None) or str(error) or type(error).__name__
    return "it has a password; unpack it first" if "password" in said else " ".join(said.split())
