"""An export as it was downloaded (a zip), unpacked (a folder), or one file of it, into members that can be read.

Nothing is ever unpacked to disk, links are not followed, and every stream is bounded: a zip that stands for more than
it should ends with one line. Names from a zip are names, never paths to write to.
"""

from __future__ import annotations

import contextlib
import gzip
import os
import stat
import zipfile
import zlib
from collections.abc import Generator, Iterator
from typing import IO, NamedTuple, Protocol

from co_cli.errors import InvalidInputError
from co_cli.exchange.items import Trouble
from co_cli.notes.refs import FOLDERS
from co_cli.regular import open_regular
from co_cli.typed import whole

LARGEST_FILE = 4_000_000_000
MOST_FILES = 200_000
BOMB_BYTES = 30_000_000
BOMB_RATIO = 300
"""JSON of conversations shrinks to a tenth; nothing real of that size shrinks to a three-hundredth."""
UNREADABLE = (OSError, EOFError, zlib.error, zipfile.BadZipFile, RuntimeError, NotImplementedError)
"""What zipfile and gzip raise for damage, passwords and methods that they do not know."""


class Unreadable(Exception):
    """A member that cannot be read, with the reason."""


class Source(Protocol):
    """What the readers of this package read from."""

    def read(self, size: int = -1, /) -> bytes: ...


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
    """One export that can be read. `single` says that the person named this very file."""

    def __init__(self, path: str, archive: zipfile.ZipFile | None = None) -> None:
        self.path, self.name = path, _name_of(path)
        self.archive = archive
        self.single = archive is None and not os.path.isdir(path)
        self.members: list[Member] = []
        self.troubles: list[Trouble] = []
        self.done = 0
        """Bytes that were read so far."""
        found = self._zipped(archive) if archive else self._filed()
        for member in found:
            self.members.append(member)
            if len(self.members) > MOST_FILES:
                raise InvalidInputError(f"{path}: more than {MOST_FILES:,} files; name a folder inside it")
        self.members.sort(key=lambda member: member.name)
        self._drop_top_folder()
        self.size = sum(member.size for member in self.members)

    def place(self, member: Member) -> str:
        return member.name if not self.single else self.path

    @contextlib.contextmanager
    def open(self, member: Member) -> Generator[Bounded]:
        """The bytes of a member, unzipped; raises Unreadable."""
        try:
            stream = self.archive.open(member.where) if self.archive else _open_plainly(member.where)
        except UNREADABLE as error:
            raise Unreadable(_reason(error)) from None
        with stream:
            packed = self.archive.getinfo(member.where).compress_size if self.archive else None
            if not member.name.lower().endswith(".gz"):
                yield Bounded(stream, packed, self)
                return
            with gzip.GzipFile(fileobj=stream) as unpacked:
                yield Bounded(unpacked, packed or member.size, self)

    def read(self, member: Member, largest: int) -> bytes:
        """A whole member of at most so many bytes."""
        if member.size > largest:
            raise Unreadable(f"{member.size:,} bytes; the limit is {largest:,} (the setting knowledge_max_note_bytes)")
        with self.open(member) as stream:
            data = stream.read(largest + 1)
        if len(data) > largest:
            raise Unreadable(f"more than {largest:,} bytes, the limit (the setting knowledge_max_note_bytes)")
        return data

    def _filed(self) -> Iterator[Member]:
        if self.single:
            state = os.stat(self.path)
            yield Member(os.path.basename(self.path), state.st_size, state.st_mtime, self.path)
            return
        for folder, inner, names in os.walk(self.path, onerror=self._cannot_list):
            below = os.path.relpath(folder, self.path).replace(os.sep, "/")
            prefix = "" if below == "." else below + "/"
            for name in [name for name in inner if os.path.islink(os.path.join(folder, name))]:
                self.troubles.append(Trouble(prefix + name, "a link to another folder; links are not followed"))
            inner[:] = sorted(name for name in inner if not name.startswith(".") and name != "__MACOSX")
            for name in sorted(names):
                if name.startswith("."):
                    continue
                path = os.path.join(folder, name)
                try:
                    state = os.lstat(path)
                except OSError as error:  # it went away while we walked
                    self.troubles.append(Trouble(prefix + name, str(error.strerror)))
                    continue
                if stat.S_ISREG(state.st_mode):
                    yield Member(prefix + name, state.st_size, state.st_mtime, path)
                else:
                    self.troubles.append(Trouble(prefix + name, "a link or no regular file; it is not read"))

    def _zipped(self, archive: zipfile.ZipFile) -> Iterator[Member]:
        for entry in archive.infolist():
            name = entry.filename
            parts = name.split("/")
            if entry.is_dir() or parts[0] == "__MACOSX":
                continue
            if ".." in parts or "\\" in name or name.startswith("/") or ":" in parts[0]:
                self.troubles.append(Trouble(name, "a name that leads out of the zip; it is not read"))
            elif stat.S_ISLNK(entry.external_attr >> 16):
                self.troubles.append(Trouble(name, "a link; links are not followed"))
            elif entry.file_size > LARGEST_FILE:
                self.troubles.append(Trouble(name, f"{entry.file_size:,} bytes; at most {LARGEST_FILE:,} are read"))
            elif not any(part.startswith(".") or not part for part in parts):
                yield Member(name, entry.file_size, None, name)

    def _drop_top_folder(self) -> None:
        """A zip of one folder is that folder, unless it is one that every vault has."""
        tops = {member.name.split("/", 1)[0] for member in self.members if "/" in member.name}
        if tops & set(FOLDERS.values()):
            return
        if self.archive and len(tops) == 1 and all("/" in member.name for member in self.members):
            (top,) = tops
            self.name = top
            self.members = [member._replace(name=member.name[len(top) + 1 :]) for member in self.members]

    def _cannot_list(self, error: OSError) -> None:
        self.troubles.append(Trouble(str(error.filename), f"the folder cannot be read: {error.strerror}"))


@contextlib.contextmanager
def open_export(path: str) -> Generator[Export]:
    """A folder, a zip, or one file."""
    if not path.strip() or not os.path.exists(path):
        raise InvalidInputError(f"{path or 'an empty name'}: there is no such file or folder")
    if os.path.isdir(path):
        yield Export(path)
        return
    if not os.path.isfile(path):
        raise InvalidInputError(f"{path} is no regular file: name a file, a zip or a folder")
    try:
        zipped = zipfile.is_zipfile(path) and not path.lower().endswith((".json", ".jsonl", ".md", ".txt"))
        archive = zipfile.ZipFile(path) if zipped else None
    except UNREADABLE as error:
        raise InvalidInputError(f"{path}: no zip that can be read ({_reason(error)}); download it again") from None
    if archive is None:
        if path.lower().endswith(".zip"):
            raise InvalidInputError(f"{path}: no zip, or only a part of one; download it again")
        yield Export(path)
        return
    with archive:
        yield Export(path, archive)


class Bounded:
    """A stream that says no before it becomes more than a person can have meant."""

    def __init__(self, stream: IO[bytes] | gzip.GzipFile, packed: int | None, export: Export) -> None:
        self._stream, self._packed, self._export = stream, packed, export
        self.done = 0

    def read(self, size: int = -1, /) -> bytes:
        try:
            data = self._stream.read(size)
        except UNREADABLE as error:
            raise Unreadable(_reason(error)) from None
        self.done += len(data)
        self._export.done += len(data)
        if self.done > LARGEST_FILE:
            raise Unreadable(f"more than {LARGEST_FILE:,} bytes; that is no export")
        if self._packed is not None and self.done > max(BOMB_BYTES, BOMB_RATIO * self._packed):
            raise Unreadable(f"{self._packed:,} bytes that unpack to more than {self.done:,}: refused as a zip bomb")
        return data


def _open_plainly(path: str) -> IO[bytes]:
    return open_regular(path)


def _name_of(path: str) -> str:
    name = os.path.basename(os.path.realpath(path))
    return whole(name if os.path.isdir(path) else os.path.splitext(name)[0])


def _reason(error: BaseException) -> str:
    said = getattr(error, "strerror", None) or str(error) or type(error).__name__
    return "it has a password; unpack it first" if "password" in said else " ".join(str(said).split())
