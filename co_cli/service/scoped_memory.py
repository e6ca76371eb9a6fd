"""A vault's memories as flat files in scopes, `scope/name.md`, with versions: what a memory store of others asks for.

The scope called `home` is the folder `memories/` itself, so the memories you have are there at once; any other scope is
a folder below it, and sees nothing of its neighbours. A change names the version it is based on. A name that a flat
ASCII namespace cannot spell gets an alias that leads back to its file.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
import unicodedata
from typing import NamedTuple

from co_cli.errors import InvalidInputError, NoteConflictError
from co_cli.knowledge_base import KnowledgeBase
from co_cli.notes.refs import name_key
from co_cli.notes.secrets import counting
from co_cli.notes.store import content_hash
from co_cli.service.freshness import Freshener
from co_cli.service.memory_files import ROOT, MemoryFile, MemoryFiles, Place, shown
from co_cli.service.receipts import Receipt, Receipts
from co_cli.service.searching import LARGEST_LIMIT
from co_cli.typed import whole
from co_cli.values import Hit

SEGMENT = re.compile(r"[A-Za-z0-9_.-]{1,200}")
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,76}\.md")
ALIAS = re.compile(r".*-[0-9a-f]{8}\.md")
FRESH_WITHIN = 1.0
"""Seconds that a search waits for files that changed a moment ago."""


class Stored(NamedTuple):
    """A file and its version; perhaps only its beginning."""

    text: str
    version: str
    truncated: bool


class Changed(NamedTuple):
    """What a write or a delete did."""

    version: str | None
    existed: bool
    repeated: bool = False
    masked: int = 0
    """Secrets that were masked before it was written, as the setting `secrets` wants it."""


class Match(NamedTuple):
    """A file that a search found."""

    path: str
    snippet: str
    score: float


class Matches(NamedTuple):
    """What a search found, and how much it looked through."""

    matches: list[Match]
    scanned: int
    truncated: bool


class Operation(NamedTuple):
    """A change that its caller may repeat without knowing whether it happened."""

    id: str
    fingerprint: str


class OperationReusedError(NoteConflictError):
    """An operation's id came again with other arguments."""


class ScopedMemory:
    """The memories of one knowledge base. Safe to share between threads."""

    def __init__(self, kb: KnowledgeBase, home: str | None = "main", provenance: str = "agent") -> None:
        self.kb, self.home = kb, home
        self._files = MemoryFiles(kb, provenance)
        self._receipts = Receipts(kb.settings.data_dir, kb.root)
        self._freshener = Freshener(kb)

    def read(self, path: str, most: int) -> Stored | None:
        """The first `most` characters of a file, or None if there is none."""
        place = self._place(path)
        if place.kind != "file":
            return None
        file = self._files.read(place.path)
        text = whole(file.text)
        return Stored(text[:most], content_hash(file.data), len(text) > most)

    def repeated(self, operation: Operation) -> Changed | None:
        """What an operation did, if it was carried out before."""
        with self._files.store.lock():
            return self._repeated(operation)

    def write(self, path: str, text: str, version: str | None, operation: Operation | None = None) -> Changed:
        """Create a file (`version` None), or replace the one that has this version."""
        with counting() as masked, self._files.writing():
            before = self._repeated(operation) if operation else None
            if before is not None:
                return before
            place, file = self._current(path, version)
            if file is None and (place.twin or place.barred):
                why = f"{shown(place.twin)} has the same name but for case" if place.twin else f"it {place.barred}"
                raise InvalidInputError(f"{path} cannot be written: {why}")
            # the version is of what is written, which may be another text than was given
            data = self._files.store.safe(self._files.encoded(text, file), file.data if file else b"")
            receipt = Receipt(operation.fingerprint if operation else "", path, content_hash(data), bool(file), False)
            self._keep(operation, receipt)
            if file is not None:
                self._files.change(file, text)
            elif not self._files.create(place.path, text):
                raise NoteConflictError(f"{path} came into being meanwhile; read it, then repeat the change")
            self._keep(operation, receipt._replace(done=True))
        return Changed(receipt.version, receipt.existed, masked=len(masked))

    def delete(self, path: str, version: str | None, operation: Operation | None = None) -> Changed:
        """Move the file that has this version to the trash."""
        with self._files.writing():
            before = self._repeated(operation) if operation else None
            if before is not None:
                return before
            place, file = self._current(path, version)
            receipt = Receipt(operation.fingerprint if operation else "", path, None, bool(file), False)
            self._keep(operation, receipt)
            if file is not None:
                self._files.trash(place)
            self._keep(operation, receipt._replace(done=True))
        return Changed(None, receipt.existed)

    def paths(self, prefix: str, most: int) -> list[str]:
        """Files whose path starts so, in order."""
        found: list[str] = []
        waiting: list[tuple[str, ...]] = [()]
        while waiting:
            names = waiting.pop()
            notes, folders = self._files.contents("/".join((ROOT, *names)))
            scope = self._scope_of(names)
            if scope is not None:
                candidates = ((f"{scope}/" if scope else "") + alias_of(note) for note in notes)
                found += [path for path in candidates if path.startswith(prefix)]
            waiting += [(*names, folder) for folder in folders if SEGMENT.fullmatch(folder) and ".." not in folder]
        return sorted(found)[:most]

    def search(self, prefix: str, query: str, limit: int, most_files: int, most_chars: int, longest: int) -> Matches:
        """The best files directly below a prefix. A file of more than `longest` characters can be read in part only."""
        behind = self._freshener.ensure(FRESH_WITHIN)
        hits, complete = self._hits(prefix, query, limit)
        matches: list[Match] = []
        left, cut = most_chars, bool(behind) or not complete or len(hits) > limit
        for path, hit in hits[:limit]:
            name = path.removeprefix(prefix)
            left -= len(name)
            if left <= 0:
                cut = True
                break
            snippet = whole(hit.snippet)[:left]
            left -= len(snippet)
            cut = cut or len(snippet) < len(hit.snippet) or self._longer(path, hit.path, longest)
            matches.append(Match(path, snippet, hit.score))
        scanned = sum(1 for path in self.paths(prefix, most_files) if "/" not in path.removeprefix(prefix))
        return Matches(matches, scanned, cut)

    # -- inside -----------------------------------------------------------------------------------------------------

    def _hits(self, prefix: str, query: str, limit: int) -> tuple[list[tuple[str, Hit]], bool]:
        """Hits of this scope, best first, and whether everything was searched. Others' notes may stand before ours."""
        want = min(limit * 5, LARGEST_LIMIT)
        while True:
            result = self.kb.search(query, limit=want, sources=["memory"])
            found: dict[str, Hit] = {}
            for hit in result.hits:
                path = self._path_of(hit.path)
                if path is not None and path.startswith(prefix) and "/" not in path.removeprefix(prefix):
                    found.setdefault(path, hit)
            whole_answer = len(result.hits) < want
            if len(found) > limit or whole_answer or want == LARGEST_LIMIT:
                return list(found.items()), (whole_answer and result.state != "inconclusive") or len(found) > limit
            want = min(want * 5, LARGEST_LIMIT)

    def _path_of(self, absolute: str) -> str | None:
        """The store's path of a note, if it has one."""
        inside = absolute.removeprefix(self._files.store.root).replace("\\", "/").strip("/").split("/")
        if inside[0] != ROOT or not all(SEGMENT.fullmatch(name) and ".." not in name for name in inside[1:-1]):
            return None
        scope = self._scope_of(tuple(inside[1:-1]))
        return None if scope is None else f"{scope}/{alias_of(inside[-1])}" if scope else alias_of(inside[-1])

    def _scope_of(self, folders: tuple[str, ...]) -> str | None:
        """The scope that a folder is; None for one that the name of `home` hides."""
        scope = "/".join(folders)
        if self.home is None:
            return scope
        return self.home if not folders else scope if scope != self.home else None

    def _names(self, path: str) -> tuple[str, ...]:
        parts = path.split("/")
        if not all(SEGMENT.fullmatch(part) and ".." not in part and part != "." for part in parts):
            raise InvalidInputError(f"{path!r} is no path of a memory: use names of letters, digits, `_`, `.` and `-`")
        if self.home is None:
            return tuple(parts)
        if len(parts) == 1:
            raise InvalidInputError(f"{path!r} has no scope: {self.home}/{path} is a path of a memory")
        return tuple(parts[-1:]) if "/".join(parts[:-1]) == self.home else tuple(parts)

    def _place(self, path: str) -> Place:
        names = self._names(path)
        place = self._files.locate(names)
        if place.kind == "nothing" and ALIAS.fullmatch(names[-1]):
            folder = "/".join((ROOT, *names[:-1]))
            for note in self._files.contents(folder)[0]:
                if alias_of(note) == names[-1]:
                    return Place(f"{folder}/{note}", "file")
        return place

    def _current(self, path: str, version: str | None) -> tuple[Place, MemoryFile | None]:
        """Where a path leads and what is there now, if that is what the caller knows of."""
        place = self._place(path)
        file = self._files.read(place.path) if place.kind == "file" else None
        if (content_hash(file.data) if file else None) != version:
            raise NoteConflictError(f"{path} was changed meanwhile; read it again, then repeat the change")
        if file is not None and whole(file.text) != file.text:
            raise InvalidInputError(f"{path} is not valid UTF-8; save it as UTF-8, then change it")
        return place, file

    def _repeated(self, operation: Operation) -> Changed | None:
        receipt = self._receipts.get(operation.id)
        if receipt is None:
            return None
        if receipt.fingerprint != operation.fingerprint:
            raise OperationReusedError(f"operation {operation.id} was used before, with other arguments")
        if not receipt.done:  # whoever wrote it was killed: did the change happen?
            place = self._place(receipt.path)
            now = content_hash(self._files.store.read(place.path)) if place.kind == "file" else None
            if now != receipt.version:
                self._receipts.drop(operation.id)
                return None
            self._receipts.put(operation.id, receipt._replace(done=True))
        return Changed(receipt.version, receipt.existed, repeated=True)

    def _keep(self, operation: Operation | None, receipt: Receipt) -> None:
        if operation is not None:
            self._receipts.put(operation.id, receipt)

    def _longer(self, path: str, absolute: str, longest: int) -> bool:
        """Has it more characters than this? One that has no more bytes need not be looked for and read."""
        with contextlib.suppress(OSError):
            if os.path.getsize(absolute) <= longest:
                return False
        stored = self.read(path, longest)
        return stored is not None and stored.truncated


def alias_of(name: str) -> str:
    """A file's name where it can be spelled in a flat ASCII namespace; else one that is as near as possible to it."""
    if NAME.fullmatch(name) and ".." not in name:
        return name
    plain = unicodedata.normalize("NFKD", name.rsplit(".", 1)[0]).encode("ascii", "ignore").decode()
    stem = re.sub(r"[^A-Za-z0-9]+", "-", plain).strip("-")[:60].rstrip("-") or "note"
    digest = hashlib.blake2b(name_key(name).encode("utf-8", "surrogateescape"), digest_size=4).hexdigest()
    return f"{stem}-{digest}.md"
