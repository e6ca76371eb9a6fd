"""Cut the power while notes are written: every order in which a file system may keep what it was asked for.

A file system promises little: bytes are safe when their file was synced, a name when its folder was, and a rename
happens whole or not at all. Whatever was not synced may be kept or lost, in any order. The real note store writes real
files; what it asks of the system is heard, and at every moment it is asked what would be left, with other losses each
time. Then every acknowledged note is there and whole, a forgotten one is in the trash, and none is half there.
"""

from __future__ import annotations

import contextlib
import os
import random
import stat
from collections import deque
from collections.abc import Callable, Generator
from pathlib import Path
from typing import Any, NamedTuple

from co_cli.notes.store import NoteStore
from tests.soak.contract import Trial
from tests.soak.ledger import Ledger
from tests.soak.vaults import mark_of, sealed_text

LIFE = 500
LOSSES = 4
"""Ways in which each moment is lost."""
MANY = 8
FOLDERS = ("memories", "articles")


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


def run(trial: Trial) -> None:
    work: Work | None = None
    for number in trial.rounds():
        if work is None or (number - 1) % LIFE == 0:
            work = Work(trial.folder(number) / "vault", trial.chance)
        work.chance = trial.chance
        verb, problems = work.next_cut()
        trial.count("cuts")
        for problem in problems:
            trial.fault(f"cut in {verb}: {problem}")
        trial.count("saves acknowledged", work.ledger.acknowledged)
        work.ledger.acknowledged = 0


class Work:
    """A note store at work, and what the file system would have kept."""

    def __init__(self, root: Path, chance: random.Random) -> None:
        root.mkdir()
        self.chance, self.store = chance, NoteStore(str(root))
        self.kept, self.ledger = Kept(), Ledger()
        self._cuts: deque[tuple[str, list[str]]] = deque()

    def next_cut(self) -> tuple[str, list[str]]:
        """What was under way, and what is wrong after the cut."""
        while not self._cuts:
            with listening(self.store.root, self._hear):
                self._step()
            self._cut()  # and after it was acknowledged
        return self._cuts.popleft()

    def _hear(self, request: Request) -> None:
        self._cut()
        self.kept.hear(request)

    def _cut(self) -> None:
        for _ in range(LOSSES):
            found = self.kept.after_cut(self.chance)
            self._cuts.append((self.ledger.under_way, self.ledger.check(found)))

    def _step(self) -> None:
        notes = sorted(self.ledger.notes)
        verb = self.chance.choice(("remember", "update", "forget", "restore"))
        trashed = (
            [(kept, home) for kept, home in self.store.trashed() if home not in notes] if verb == "restore" else []
        )
        if not notes or (verb == "restore" and not trashed) or (verb == "forget" and len(notes) < MANY // 2):
            verb = "remember"
        if verb in ("remember", "restore") and len(notes) >= MANY:
            verb = "forget"
        mark = self.chance.randbytes(6).hex()
        path = self.chance.choice(notes) if notes else ""
        text = sealed_text(self.chance, mark).encode()
        if verb == "restore":
            path = trashed[0][1]
            mark = mark_of(self.store.read(trashed[0][0]))
        self.ledger.hear(("begin", verb, path, mark))
        if verb == "remember":
            folder = f"{self.chance.choice(FOLDERS)}/{self.chance.choice(('', 'a', 'a/b'))}".rstrip("/")
            path = self.store.create(folder, f"Note {mark}", text)
        elif verb == "update":
            self.store.replace(path, text, based_on=self.store.read(path))
        elif verb == "forget":
            self.store.trash(path)
        else:
            self.store.restore(path)
        self.ledger.hear(("done", verb, path, mark))
