"""A file system and a disk that forget: what is left of notes and databases after a power cut at any moment.

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

if TYPE_CHECKING:
    from typing_extensions import Buffer

SECTOR = 512
LONGEST_GAP = 60
"""Requests of SQLite from one cut to the next: a save makes about as many."""
RECORDED = (
    apsw.SQLITE_OPEN_MAIN_DB | apsw.SQLITE_OPEN_WAL | apsw.SQLITE_OPEN_MAIN_JOURNAL | apsw.SQLITE_OPEN_SUPER_JOURNAL
)
Changes = list[tuple[int, bytes | None]]
"""Writes at an offset; without bytes, a truncation to that length."""
Image = dict[str, bytes]
"""The files of the folder after a cut, by name."""


class Request(NamedTuple):
    """One thing that the operating system was asked for; paths are inside the vault."""

    what: str
    path: str
    other: str = ""
    data: bytes = b""


class Kept:
    """A file system: what is safe, and what it was asked for since."""

    def __init__(self) -> None:
        self.folders: set[str] = {""}
        self.files: dict[str, int] = {}
        """Names that are safe, and the number of the file behind each."""
        self.since: list[tuple[Request, int]] = []
        """Changes of names that are not safe yet."""
        self.written: list[bytes] = []
        """The bytes of every file, by its number."""
        self.safe: set[int] = set()
        """Files whose bytes are."""
        self._now: dict[str, int] = {}

    def hear(self, request: Request) -> None:
        what, path, _, data = request
        if what == "create":
            self.written.append(b"")
            self._now[path] = len(self.written) - 1
        elif what == "write":
            number = self._now[path]
            self.written[number] += data
            self.safe.discard(number)
            return
        elif what == "sync":
            self.safe.add(self._now[path])
            return
        elif what == "sync folder":
            kept = [(one, number) for one, number in self.since if path in _folders(one)]
            self.since = [(one, number) for one, number in self.since if path not in _folders(one)]
            for one, number in kept:
                _apply(one, number, self.files, self.folders)
            return
        number = self._now.get(path, -1)
        _apply(request, number, self._now, set())
        self.since.append((request, number))

    def after_cut(self, chance: random.Random) -> dict[str, bytes]:
        """The files as they are found when the power is back."""
        files, folders = dict(self.files), set(self.folders)
        habit = chance.randrange(4)
        last = chance.randint(0, len(self.since))
        for place, (request, number) in enumerate(self.since):
            if (place < last, chance.random() < 0.5, False, True)[habit]:
                _apply(request, number, files, folders)
        reached = {path: number for path, number in files.items() if _reached(path, folders)}
        return {path: self._bytes(number, chance) for path, number in reached.items()}

    def _bytes(self, number: int, chance: random.Random) -> bytes:
        data = self.written[number]
        if number in self.safe:
            return data
        return chance.choice((b"", bytes(len(data)), data[: chance.randint(0, len(data))]))


def _apply(request: Request, number: int, files: dict[str, int], folders: set[str]) -> None:
    what, path, other, _ = request
    if what == "create":
        files[path] = number
    elif what == "link":
        files[other] = number
    elif what == "rename":
        files.pop(path, None)
        files[other] = number
    elif what == "unlink":
        files.pop(path, None)
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
    """Tell of everything that this process asks of the system about files below a folder, and do it."""
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

    told: dict[str, Any] = {"open": open_, "write": write, "fsync": fsync, "close": close}
    told |= {name: change(name) for name in CHANGES}
    try:
        for name, call in told.items():
            setattr(os, name, call)
        yield
    finally:
        for name, call in real.items():
            setattr(os, name, call)


CHANGES = {
    "link": "link",
    "rename": "rename",
    "replace": "rename",
    "unlink": "unlink",
    "remove": "unlink",
    "mkdir": "mkdir",
    "rmdir": "rmdir",
}


class Stored:
    """One file: what is safe, and what was asked for since, in order."""

    def __init__(self, safe: bytes | None) -> None:
        self.safe = safe
        """None: even its name is not safe yet."""
        self.since: Changes = []

    def sync(self) -> None:
        self.safe = applied(self.safe or b"", self.since)
        self.since = []

    def after_cut(self, chance: random.Random) -> bytes | None:
        """As it is found; None: not at all."""
        if self.safe is None and chance.random() < 0.5:
            return None
        return applied(self.safe or b"", _survivors(self.since, chance))


def applied(data: bytes, changes: Changes) -> bytes:
    """Bytes after these changes."""
    if not changes:
        return data
    held = bytearray(data)
    for offset, written in changes:
        if written is None:
            del held[offset:]
            continue
        if len(held) < offset:
            held += bytes(offset - len(held))
        held[offset : offset + len(written)] = written
    return bytes(held)


def _survivors(changes: Changes, chance: random.Random) -> Changes:
    """What a cut keeps of the changes since the last sync: nothing, all, a beginning, any of them, or torn sectors."""
    habit = chance.randrange(5)
    if habit < 4:
        beginning = changes[: chance.randint(0, len(changes))]
        return ([], changes, beginning, [change for change in changes if chance.random() < 0.5])[habit]
    kept: Changes = []
    for offset, written in changes:
        if written is None:
            kept += [(offset, None)] if chance.random() < 0.5 else []
            continue
        start = 0
        while start < len(written):
            size = SECTOR - (offset + start) % SECTOR
            if chance.random() < 0.5:
                kept.append((offset + start, written[start : start + size]))
            start += size
    return kept


class Disk(apsw.VFS):
    """Remembers the databases of one folder, for every connection of this process while it is in use."""

    def __init__(self, folder: str, chance: random.Random, on_cut: Callable[[Image], None]) -> None:
        self.folder, self.chance = folder + os.sep, chance
        self.on_cut = on_cut
        """Is given the files as a cut at this moment leaves them. The work goes on: only it knows of the cut."""
        self._until = 1
        """So many requests of SQLite until the power is cut next."""
        self._stored: dict[int, Stored] = {}
        self._inodes: dict[str, int] = {}
        """Which file each name was opened as."""
        self._deleted: dict[str, bytes] = {}
        self._renamed: list[tuple[str, str]] = []
        """What was deleted and renamed since the folder was synced."""
        self.lock = threading.RLock()
        self.base = apsw.vfs_names()[0]
        super().__init__(f"co-soak-{id(self):x}", self.base, makedefault=True)

    def xOpen(self, name: Any, flags: list[int]) -> apsw.VFSFile:
        path = name.filename() if isinstance(name, apsw.URIFilename) else name
        if path is None or not path.startswith(self.folder) or not flags[0] & RECORDED:
            return apsw.VFSFile(self.base, name, flags)
        with self.lock:
            new = not os.path.exists(path)
            file = DiskFile(self, name, flags)
            inode = os.stat(path).st_ino
            if new:
                self._stored[inode] = Stored(None)
            elif inode not in self._stored:
                with open(path, "rb") as stream:
                    self._stored[inode] = Stored(stream.read())
            file.stored = self._stored[inode]
            self._inodes[os.path.basename(path)] = inode
        return file

    def xDelete(self, filename: str, syncdir: bool) -> None:
        if filename.startswith(self.folder):
            with self.lock:
                self.tick()
                self._delete(os.path.basename(filename))
        super().xDelete(filename, syncdir)
        if syncdir:
            self.folder_synced()

    def hear(self, request: Request) -> None:
        """What the program itself does to these files, beside SQLite."""
        with self.lock:
            if request.what == "sync folder":
                self.folder_synced()
            elif request.what == "unlink":
                self._delete(request.path)
            elif request.what == "rename" and request.path in self._inodes:
                self._inodes[request.other] = self._inodes.pop(request.path)
                self._renamed.append((request.path, request.other))

    def _delete(self, name: str) -> None:
        stored = self._stored.get(self._inodes.pop(name, -1))
        if stored is not None and stored.safe is not None:
            self._deleted[name] = stored.safe

    def folder_synced(self) -> None:
        """What was deleted stays deleted, and what was renamed renamed."""
        with self.lock:
            self._deleted.clear()
            self._renamed.clear()

    def tick(self) -> None:
        """Before each thing that SQLite asks for."""
        self._until -= 1
        if self._until <= 0:
            self._until = self.chance.randint(1, LONGEST_GAP)
            self.on_cut(self._cut())

    def _cut(self) -> Image:
        """The databases as they are found when the power is back."""
        found: Image = {}
        for name in sorted(os.listdir(self.folder)):
            stored = self._stored.get(os.stat(os.path.join(self.folder, name)).st_ino)
            data = stored.after_cut(self.chance) if stored else None
            if data is not None:
                found[name] = data
            if name.endswith("-shm") and self.chance.random() < 0.5:
                found[name] = self.chance.randbytes(32_768) if self.chance.random() < 0.5 else bytes(32_768)
        for old, new in reversed(self._renamed):
            if new in found and old not in found and self.chance.random() < 0.5:
                found[old] = found.pop(new)
        for name, data in self._deleted.items():
            if name not in found and self.chance.random() < 0.5:
                found[name] = data
        return found


class DiskFile(apsw.VFSFile):
    """One open file of a Disk."""

    stored: Stored

    def __init__(self, disk: Disk, name: Any, flags: list[int]) -> None:
        self.disk = disk
        super().__init__(disk.base, name, flags)

    def xWrite(self, data: Buffer, offset: int) -> None:
        with self.disk.lock:
            self.disk.tick()
            self.stored.since.append((offset, bytes(data)))
        super().xWrite(data, offset)

    def xTruncate(self, newsize: int) -> None:
        with self.disk.lock:
            self.disk.tick()
            self.stored.since.append((newsize, None))
        super().xTruncate(newsize)

    def xSync(self, flags: int) -> None:
        super().xSync(flags)
        with self.disk.lock:
            self.disk.tick()
            new = self.stored.safe is None
            self.stored.sync()
            if new:  # SQLite syncs the folder with the first sync of a file that it made
                self.disk.folder_synced()
