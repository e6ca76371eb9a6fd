"""What a vault must hold after a fault, by what was acknowledged and what was under way."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from co_cli.notes.files import TEMPORARY
from co_cli.notes.store import TRASH
from tests.soak.vaults import is_whole, mark_of

WRITES = ("remember", "update", "forget", "restore", "edit")


class Ledger:
    """What was acknowledged about the notes of one vault, and what was under way."""

    def __init__(self) -> None:
        self.notes: dict[str, str] = {}
        """The mark of each note by its path."""
        self.trashed: set[str] = set()
        self.pending: tuple[str, str, str] | None = None
        self.under_way = ""
        self.acknowledged = 0

    def hear(self, said: Any) -> None:
        """`("begin", verb, path, mark)` or `("done", verb, path, mark)`."""
        told, verb, path, mark = said
        if told == "begin":
            self.under_way, self.pending = verb, (verb, path, mark)
            return
        self.pending = None
        self.acknowledged += verb in WRITES
        if verb == "forget":
            self.trashed.add(self.notes.pop(path))
        elif verb in WRITES:
            self.notes[path] = mark
            self.trashed.discard(mark)

    def check(self, files: dict[str, bytes]) -> list[str]:
        """What is wrong with the files of the vault, each by its path there."""
        found = {path: data for path, data in files.items() if not path.startswith(f"{TRASH}/")}
        names = {path.rsplit("/", 1)[-1] for path in files}
        problems = [f"{name} was left behind" for name in names if not name.endswith(".md") and _odd(name)]
        notes = {path: data for path, data in found.items() if path.endswith(".md")}
        kept = {path: data for path, data in files.items() if path not in found and path.endswith(".md")}
        problems += [f"{path} is half a note" for path, data in (notes | kept).items() if not is_whole(data)]
        trash = {mark_of(data) for data in kept.values()}
        verb, at, mark = self.pending or ("", "", "")
        for path, known in self.notes.items():
            now = mark_of(notes[path]) if path in notes else None
            if now == known or (path == at and now == mark and verb in ("update", "edit")):
                continue
            if path == at and verb == "forget" and now is None and known in trash:
                continue
            problems.append(f"{path} was acknowledged with {known} and has {now}")
        here = {mark_of(data) for data in notes.values()}
        for path in notes.keys() - self.notes.keys():
            if verb not in ("remember", "restore") or mark_of(notes[path]) != mark:
                problems.append(f"{path} is there and nobody saved it")
        lost = self.trashed - trash - ({mark} & here if verb == "restore" else set())
        return problems + [f"{mark} was forgotten and is not in the trash" for mark in sorted(lost)]

    def settle(self, files: dict[str, bytes]) -> None:
        """What is there now is what counts from here on."""
        notes = {path: mark_of(data) for path, data in files.items() if path.endswith(".md")}
        self.notes = {path: mark for path, mark in notes.items() if not path.startswith(f"{TRASH}/")}
        self.trashed = {mark for path, mark in notes.items() if path.startswith(f"{TRASH}/")}
        self.pending, self.under_way, self.acknowledged = None, "", 0


def files_of(root: Path) -> dict[str, bytes]:
    """Every file below a folder, by its path there."""
    return {file.relative_to(root).as_posix(): file.read_bytes() for file in root.rglob("*") if file.is_file()}


def _odd(name: str) -> bool:
    return not name.startswith(TEMPORARY)
