"""A file system that forgets: what is left of notes and databases after a power cut at any moment.

Bytes are safe when their file was synced, a name when its folder was, and a rename happens completely or not at all.
Everything else may be kept or lost in any order, and a write may be torn at a sector. `listening` hears what our code
asks of the system; `Disk` is an apsw VFS that hears what SQLite asks.
"""

from __future__ import annotations

import contextlib
import os
import random
import stat
import threading
from collections.abc import Callable, Generator
from typing import TYPE_CHECKING, Any, NamedTuple

import apsw

from co_cli.notes import files as note_files

if TYPE_CHECKING:
    from typing_extensions import Buffer

SECTOR = 512
LONGEST_GAP = 60
"""Requests of SQLite from one cut to the next: a save makes about as many."""
RECORDED = (
    apsw.SQLITE_OPEN_MAIN_DB | apsw.SQLITE_OPEN_WAL | apsw.SQLITE_OPEN_MAIN_JOURNAL | apsw.SQLITE_OPEN_SUPER_JOURNAL
)
CHANGES = {
    "link": "link",
    "rename": "rename",
    "replace": "rename",
    "unlink": "unlink",
    "remove": "unlink",
    "mkdir": "mkdir",
    "rmdir": "rmdir",
}
"""The functions of `os` that change names, and what each does."""
Image = dict[str, bytes]
"""The files after a cut, by path."""


class Request(NamedTuple):
    """One thing that the operating system was asked for; paths are inside the folder."""

    what: str
    path: str
    other: str = ""
    data: bytes = b""


class File:
    """The bytes of one file: what is safe, and the writes and truncations (no bytes) since, in order."""

    def __init__(self, safe: bytes = b"") -> None:
        self.safe, self.synced = safe, False
        self.since: list[tuple[int, bytes | None]] = []

    def append(self, data: bytes) -> None:
        self.since.append((len(_applied(self.safe, self.since)), data))

    def sync(self) -> None:
        self.safe, self.since, self.synced = _applied(self.safe, self.since), [], True

    def after_cut(self, chance: random.Random) -> bytes:
        """With nothing of the changes, all, a beginning, any of them, or torn sectors."""
        habit = chance.randrange(5)
        kept = [[], self.since, self.since[: chance.randint(0, len(self.since))]][habit] if habit < 3 else []
        for offset, data in self.since if habit > 2 else ():
            pieces = [(offset, data)] if habit == 3 or data is None else _sectors(offset, data)
            kept += [piece for piece in pieces if chance.random() < 0.5]
        return _applied(self.safe, kept)


def _applied(data: bytes, changes: list[tuple[int, bytes | None]]) -> bytes:
    held = bytearray(data)
    for offset, written in changes:
        if written is None:
            del held[offset:]
        else:
            held += bytes(max(0, offset - len(held)))
            held[offset : offset + len(written)] = written
    return bytes(held)


def _sectors(offset: int, data: bytes) -> list[tuple[int, bytes | None]]:
    starts = [0, *range(SECTOR - offset % SECTOR, len(data), SECTOR)]
    return [(offset + start, data[start:end]) for start, end in zip(starts, [*starts[1:], len(data)], strict=True)]


Change = tuple[Request, File | None, File | None]
"""What was asked for, about which file, and the one that had the other name."""


class FileSystem:
    """Names that are safe, and what was asked for since."""

    def __init__(self) -> None:
        self.now: dict[str, File] = {}
        self._safe: dict[str, File] = {}
        self._folders: set[str] = {""}
        self._since: list[Change] = []

    def hear(self, request: Request) -> None:
        what, path = request.what, request.path
        if what == "write":
            self.now[path].append(request.data)
        elif what == "sync":
            self.now[path].sync()
        elif what == "sync folder":
            for change in [change for change in self._since if path in _folders(change[0])]:
                self._since.remove(change)
                _apply(*change, self._safe, self._folders)
        else:
            file = File() if what == "create" else self.now.get(path)
            change = request, file, self.now.get(request.other)
            _apply(*change, self.now, set())
            self._since.append(change)

    def after_cut(self, chance: random.Random) -> Image:
        """The files as they are found when the power is back."""
        files, folders = dict(self._safe), set(self._folders)
        habit, last = chance.randrange(4), chance.randint(0, len(self._since))
        for place, change in enumerate(self._since):
            if (place < last, chance.random() < 0.5, False, True)[habit]:
                _apply(*change, files, folders)
        return {path: file.after_cut(chance) for path, file in files.items() if _reached(path, folders)}


def _apply(
    request: Request, file: File | None, replaced: File | None, files: dict[str, File], folders: set[str]
) -> None:
    what, path, other, _ = request
    if what == "exchange" and file is not None and replaced is not None:
        files[path], files[other] = replaced, file
    if what in ("rename", "unlink"):
        files.pop(path, None)
    if what in ("create", "link", "rename") and file is not None:
        files[other or path] = file
    elif what == "mkdir":
        folders.add(path)
    elif what == "rmdir":
        folders.discard(path)


def _folders(request: Request) -> set[str]:
    """The folders whose names this changes."""
    return {os.path.dirname(path) for path in (request.path, request.other) if path}


def _reached(path: str, folders: set[str]) -> bool:
    above = os.path.dirname(path)
    return above in folders and (not above or _reached(above, folders))


@contextlib.contextmanager
def listening(root: str, hear: Callable[[Request], None]) -> Generator[None]:
    """Report everything that this process asks of the system about files below a folder, and do it."""
    real = {name: getattr(os, name) for name in ("open", "write", "fsync", "close", *CHANGES)}
    handles: dict[int, str] = {}

    def inside(path: Any) -> str | None:
        text = os.fsdecode(path)
        if text == root:
            return ""
        return text[len(root) + 1 :] if text.startswith(root + os.sep) else None

    def open_(path: Any, flags: int, mode: int = 0o777, **more: Any) -> int:
        known = inside(path)
        new = bool(flags & os.O_CREAT) and not os.path.exists(path)
        handle = real["open"](path, flags, mode, **more)
        if known is not None:
            handles[handle] = known
            if new:
                hear(Request("create", known))
        return handle

    def write(handle: int, data: Any) -> int:
        count = real["write"](handle, data)
        if handle in handles:
            hear(Request("write", handles[handle], data=bytes(data[:count])))
        return count

    def fsync(handle: int) -> None:
        real["fsync"](handle)
        if handle in handles:
            folder = stat.S_ISDIR(os.fstat(handle).st_mode)
            hear(Request("sync folder" if folder else "sync", handles[handle]))

    def close(handle: int) -> None:
        handles.pop(handle, None)
        real["close"](handle)

    def change(name: str) -> Callable[..., None]:
        def call(path: Any, *others: Any, **more: Any) -> None:
            real[name](path, *others, **more)
            known = inside(path)
            if known is not None:
                other = inside(others[0]) if CHANGES[name] in ("link", "rename") else ""
                hear(Request(CHANGES[name], known, other or ""))

        return call

    def rename_with(how: int, source: str, target: str) -> bool:
        done = real_rename(how, source, target)
        known, other = inside(source), inside(target)
        if done and known is not None:
            hear(Request("exchange" if how == note_files.EXCHANGE else "rename", known, other or ""))
        return done

    real_rename = note_files.rename_with
    with contextlib.ExitStack() as undo:
        undo.callback(setattr, note_files, "rename_with", real_rename)
        note_files.rename_with = rename_with
        heard: dict[str, Any] = {"open": open_, "write": write, "fsync": fsync, "close": close}
        for name, call in {**heard, **{name: change(name) for name in CHANGES}}.items():
            undo.callback(setattr, os, name, real[name])
            setattr(os, name, call)
        yield


class Disk(apsw.VFS):
    """Records the databases of one folder, for every connection of this process while it is in use."""

    def __init__(self, folder: str, chance: random.Random, on_cut: Callable[[Image], None]) -> None:
        self.folder, self.chance = folder + os.sep, chance
        self.on_cut = on_cut
        """Is given the files as a cut at this moment leaves them. The work goes on: only it knows of the cut."""
        self.files = FileSystem()
        self.lock = threading.RLock()
        self.base = apsw.vfs_names()[0]
        self._until = 1
        super().__init__(f"co-soak-{id(self):x}", self.base, makedefault=True)

    def xOpen(self, name: Any, flags: list[int]) -> apsw.VFSFile:
        path = name.filename() if isinstance(name, apsw.URIFilename) else name
        if path is None or not path.startswith(self.folder) or not flags[0] & RECORDED:
            return apsw.VFSFile(self.base, name, flags)
        with self.lock:
            file, known = DiskFile(self, name, flags), os.path.basename(path)
            if known not in self.files.now:
                self.files.hear(Request("create", known))
            file.file = self.files.now[known]
        return file

    def xDelete(self, filename: str, syncdir: bool) -> None:
        if filename.startswith(self.folder):
            with self.lock:
                self.tick()
                self.files.hear(Request("unlink", os.path.basename(filename)))
        super().xDelete(filename, syncdir)
        if syncdir:
            self.hear(Request("sync folder", ""))

    def hear(self, request: Request) -> None:
        """What the program itself does to the databases."""
        with self.lock:
            if request.what == "sync folder" or request.path in self.files.now:
                self.files.hear(request)

    def tick(self) -> None:
        """Before each thing that SQLite asks for."""
        self._until -= 1
        if self._until <= 0:
            self._until = self.chance.randint(1, LONGEST_GAP)
            image = self.files.after_cut(self.chance)
            for name in os.listdir(self.folder):
                if name.endswith("-shm") and self.chance.random() < 0.5:
                    image[name] = self.chance.randbytes(32_768) if self.chance.random() < 0.5 else bytes(32_768)
            self.on_cut(image)


class DiskFile(apsw.VFSFile):
    """One open file of a Disk."""

    file: File

    def __init__(self, disk: Disk, name: Any, flags: list[int]) -> None:
        self.disk = disk
        super().__init__(disk.base, name, flags)

    def xWrite(self, data: Buffer, offset: int) -> None:
        with self.disk.lock:
            self.disk.tick()
            self.file.since.append((offset, bytes(data)))
        super().xWrite(data, offset)

    def xTruncate(self, newsize: int) -> None:
        with self.disk.lock:
            self.disk.tick()
            self.file.since.append((newsize, None))
        super().xTruncate(newsize)

    def xSync(self, flags: int) -> None:
        super().xSync(flags)
        with self.disk.lock:
            self.disk.tick()
            new = not self.file.synced
            self.file.sync()
            if new:  # SQLite syncs the folder with the first sync of a file that it made
                self.disk.files.hear(Request("sync folder", ""))
