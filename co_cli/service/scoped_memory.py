"""A vault's memories as flat files in scopes, `scope/name.md`, with versions: the core of `co_cli.agent.harness`.

The scope called `home` is the folder `memories/` itself; any other scope is a folder below it and sees only itself. A
change names the version it is based on. A file name that is not plain ASCII gets an alias that leads back to its file.
"""

from __future__ import annotations

import hashlib
import re
import unicodedata
from typing import NamedTuple

from co_cli.errors import InvalidInputError, NoteConflictError
from co_cli.knowledge_base import KnowledgeBase
from co_cli.notes.refs import name_key
from co_cli.notes.secrets import counting
from co_cli.notes.store import content_hash
from co_cli.service.freshness import Freshener
from co_cli.service.memory_files import ROOT, MemoryFile, MemoryFiles, Place, is_note_name, shown
from co_cli.service.receipts import Receipt, Receipts
from co_cli.service.searching import LARGEST_LIMIT
from co_cli.values import Hit, to_utf8

SEGMENT = re.compile(r"(?!.*\.\.)(?!\.\Z)[A-Za-z0-9_.-]{1,200}")
NAME = re.compile(r"(?!.*\.\.)[A-Za-z0-9][A-Za-z0-9._-]{0,76}\.md")
ALIAS = re.compile(r".*-[0-9a-f]{8}\.md")
FRESH_WITHIN = 1.0
"""Seconds that a search waits for files that were just saved."""


class Stored(NamedTuple):
    """The beginning of a file, and its version."""

    text: str
    version: str
    truncated: bool


class Changed(NamedTuple):
    """What a write or a delete did."""

    version: str | None
    existed: bool
    repeated: bool = False
    masked: int = 0
    """Secrets that were masked because of the setting `secrets`."""


class Match(NamedTuple):
    path: str
    snippet: str
    score: float


class Matches(NamedTuple):
    """What a search found, and how many files it covered."""

    matches: list[Match]
    scanned: int
    truncated: bool


class Operation(NamedTuple):
    """A change that its caller may repeat without knowing whether it happened."""

    id: str
    fingerprint: str


class OperationReusedError(NoteConflictError):
    """An operation's id was used again with other arguments."""


class ScopedMemory:
    """The memories of one knowledge base. Threads can share it."""

    def __init__(self, kb: KnowledgeBase, home: str | None = "main", provenance: str = "agent") -> None:
        self.kb, self.home = kb, home
        self._files = MemoryFiles(kb, provenance)
        self._receipts = Receipts(kb.settings.data_dir, kb.root)
        self._freshener = Freshener(kb)

    def read(self, path: str, max_chars: int) -> Stored | None:
        """The beginning of a file, or None if it does not exist."""
        place = self._place(path)
        if place.kind != "file":
            return None
        file = self._files.read(place.path)
        text = to_utf8(file.text)
        return Stored(text[:max_chars], content_hash(file.data), len(text) > max_chars)

    def repeated(self, operation: Operation) -> Changed | None:
        """What an operation did, if it was carried out before."""
        with self._files.store.lock():
            return self._repeated(operation)

    def write(self, path: str, text: str, version: str | None, operation: Operation | None = None) -> Changed:
        """Create a file (`version` None), or replace the one that has this version."""
        return self._change(path, text, version, operation)

    def delete(self, path: str, version: str | None, operation: Operation | None = None) -> Changed:
        """Move the file that has this version to the trash."""
        return self._change(path, None, version, operation)

    def paths(self, prefix: str, limit: int) -> list[str]:
        """Files whose path starts with a prefix, in order."""
        found = (self._path_of(entry.path) for entry in self._files.walk(ROOT) if is_note_name(entry.path))
        return sorted(path for path in found if path and path.startswith(prefix))[:limit]

    def search(self, prefix: str, query: str, limit: int, max_files: int, max_chars: int) -> Matches:
        """The best files directly below a prefix, by words and meaning."""
        behind = self._freshener.ensure(FRESH_WITHIN)
        result = self.kb.search(query, limit=LARGEST_LIMIT, sources=["memory"])  # other scopes may rank first
        hits: dict[str, Hit] = {}
        for hit in result.hits:
            path = self._path_of(hit.path.removeprefix(self._files.store.root).replace("\\", "/").strip("/"))
            if path and path.startswith(prefix) and "/" not in path.removeprefix(prefix):
                hits.setdefault(path, hit)
        cut = bool(behind) or len(result.hits) == LARGEST_LIMIT or result.state == "inconclusive" or len(hits) > limit
        matches: list[Match] = []
        for path, hit in list(hits.items())[:limit]:
            snippet = to_utf8(hit.snippet)[: max(0, max_chars - len(path.removeprefix(prefix)))]
            max_chars -= len(path.removeprefix(prefix)) + len(snippet)
            cut = cut or len(snippet) < len(hit.snippet)
            if not snippet:
                break
            matches.append(Match(path, snippet, hit.score))
        scanned = sum("/" not in path.removeprefix(prefix) for path in self.paths(prefix, max_files))
        return Matches(matches, scanned, cut)

    def _change(self, path: str, text: str | None, version: str | None, operation: Operation | None) -> Changed:
        with counting() as masked, self._files.writing():
            before = self._repeated(operation) if operation else None
            if before is not None:
                return before
            place, file = self._current(path, version)
            written = None
            if text is not None:
                if file is None and (place.twin or place.barred):
                    why = f"{shown(place.twin)} differs only in case" if place.twin else f"it {place.barred}"
                    raise InvalidInputError(f"{path} cannot be written: {why}")
                # the version of what is written, which may be masked
                data = self._files.store.safe(self._files.encode(text, file), file.data if file else b"")
                written = content_hash(data)
            receipt = Receipt(operation.fingerprint if operation else "", path, written, bool(file), False)
            self._keep(operation, receipt)
            if file is not None and text is not None:
                self._files.change(file, text)
            elif file is not None:
                self._files.trash(place)
            elif text is not None and not self._files.create(place.path, text):
                raise NoteConflictError(f"{path} was created meanwhile; read it, then repeat the change")
            self._keep(operation, receipt._replace(done=True))
        return Changed(written, receipt.existed, masked=len(masked))

    def _path_of(self, path: str) -> str | None:
        """The scoped path of a note in the vault, if it has one."""
        root, *folders, name = path.split("/")
        scope = "/".join(folders)
        if root != ROOT or not all(map(SEGMENT.fullmatch, folders)) or (folders and scope == self.home):
            return None  # in the last case, the home scope hides the folder
        return "/".join(filter(None, (scope or self.home, alias_of(name))))

    def _place(self, path: str) -> Place:
        *scope, name = path.split("/")
        if not all(map(SEGMENT.fullmatch, (*scope, name))):
            raise InvalidInputError(f"{path!r} is not a memory path: use letters, digits, `_`, `.` and `-`")
        if self.home is not None and not scope:
            raise InvalidInputError(f"{path!r} has no scope: use {self.home}/{path}")
        scope = [] if "/".join(scope) == self.home else scope
        place = self._files.locate([*scope, name])
        if place.kind == "nothing" and ALIAS.fullmatch(name):
            for entry in self._files.walk("/".join((ROOT, *scope))):
                if not entry.is_folder and self._path_of(entry.path) == path:
                    return Place(entry.path, "file")
        return place

    def _current(self, path: str, version: str | None) -> tuple[Place, MemoryFile | None]:
        """Where a path leads and what is there now, if that is the version that the caller knows."""
        place = self._place(path)
        file = self._files.read(place.path) if place.kind == "file" else None
        if (content_hash(file.data) if file else None) != version:
            raise NoteConflictError(f"{path} was changed meanwhile; read it again, then repeat the change")
        if file is not None and to_utf8(file.text) != file.text:
            raise InvalidInputError(f"{path} is not valid UTF-8; save it as UTF-8, then change it")
        return place, file

    def _repeated(self, operation: Operation) -> Changed | None:
        receipt = self._receipts.get(operation.id)
        if receipt is None:
            return None
        if receipt.fingerprint != operation.fingerprint:
            raise OperationReusedError(f"operation {operation.id} was used before, with other arguments")
        if not receipt.done:  # its process was killed: did the change happen?
            place = self._place(receipt.path)
            now = content_hash(self._files.store.read(place.path)) if place.kind == "file" else None
            if now != receipt.version:
                self._receipts.drop(operation.id)
                return None
            self._keep(operation, receipt._replace(done=True))
        return Changed(receipt.version, receipt.existed, repeated=True)

    def _keep(self, operation: Operation | None, receipt: Receipt) -> None:
        if operation is not None:
            self._receipts.put(operation.id, receipt)


def alias_of(name: str) -> str:
    """A file's name, or an ASCII alias close to it."""
    if NAME.fullmatch(name):
        return name
    plain = unicodedata.normalize("NFKD", name.rsplit(".", 1)[0]).encode("ascii", "ignore").decode()
    stem = re.sub(r"[^A-Za-z0-9]+", "-", plain).strip("-")[:60].rstrip("-") or "note"
    digest = hashlib.blake2b(name_key(name).encode("utf-8", "surrogateescape"), digest_size=4).hexdigest()
    return f"{stem}-{digest}.md"
