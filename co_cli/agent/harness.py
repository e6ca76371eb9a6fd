"""A vault as the memory store of pydantic-ai's harness: `Memory(VaultMemoryStore("notes/"))`.

The harness's `Memory` capability keeps its files in the vault, and its `search_memory` searches by words and meaning.
Needs the extra: `pip install "co-cli[harness]"`.
"""

from __future__ import annotations

import importlib
import json
import os
import re
from collections.abc import Callable
from typing import Any, NamedTuple, TypeVar

import anyio.to_thread
from pydantic_ai.exceptions import ToolFailed

from co_cli.agent.deps import PathLike
from co_cli.agent.memory_files import ROOT, Entry, MemoryFiles, clean_text, is_note_name
from co_cli.agent.toolset import VaultAccess, model_error
from co_cli.errors import InvalidInputError, KnowledgeError, NoteConflictError
from co_cli.knowledge_base import KnowledgeBase
from co_cli.logbook import logger
from co_cli.notes.files import make_folders, replace
from co_cli.notes.secrets import count_masked
from co_cli.notes.store import content_hash
from co_cli.service.freshness import Freshener
from co_cli.service.searching import LARGEST_LIMIT
from co_cli.values import masked_text, to_utf8

HOME = "main"
"""The scope of the vault's own memories; `Memory` uses it by default."""
SEGMENT = re.compile(r"(?!.*\.\.)(?!\.\Z)[A-Za-z0-9_.-]{1,200}")
UNSAFE, ESCAPED = re.compile(r"[^A-Za-z0-9._-]|(?<=\.)\.|^[._-]"), re.compile(r"_([0-9a-f]{1,5})_")
FRESH_SECONDS = 1.0
"""How long a search waits for files that were just saved."""
MAX_RECEIPTS = 1_000

Result = TypeVar("Result")


class Changed(NamedTuple):
    """What a write did; `replayed` if an earlier call did it."""

    version: str | None
    replayed: bool
    existed: bool


class OperationReusedError(NoteConflictError):
    """An operation's id was used again with other arguments."""


class ScopedMemory:
    """A vault's memories as versioned files in scopes: `scope/name.md`. Threads can share it.

    The scope `main` is the folder `memories/` itself; any other is a folder below it and sees only itself. Letters that
    the harness does not allow in names are written as `_fc_`, their code point.
    """

    def __init__(self, kb: KnowledgeBase) -> None:
        self.kb, self._files, self._freshener = kb, MemoryFiles(kb), Freshener(kb)
        name = f"{content_hash(os.fsencode(kb.root))}.json"
        self._receipts_file = os.path.join(kb.settings.data_dir, "memory-operations", name)

    def read(self, path: str, max_chars: int) -> tuple[str, str, bool] | None:
        """A file's text, its version, and whether it was cut; None if there is none."""
        entry = self._locate(path)
        if entry.kind != "file":
            return None
        file = self._files.read(entry.path)
        text = to_utf8(file.text)
        return text[:max_chars], content_hash(file.data), len(text) > max_chars

    def write(self, path: str, text: str | None, version: str | None, operation: Any = None) -> Changed:
        """Replace the file that has this version (None: create it). Without a text, move it to the trash.

        An `operation` with `id` and `fingerprint` that is repeated is not done twice.
        """
        with count_masked() as masked, self._files.writing():
            before = self.replayed(operation)
            if before is not None:
                return before
            entry = self._locate(path)
            file = self._files.read(entry.path) if entry.kind == "file" else None
            if (content_hash(file.data) if file else None) != version:
                raise NoteConflictError(f"{path} was changed meanwhile; read it again, then repeat the change")
            if file is not None and to_utf8(file.text) != file.text:
                raise InvalidInputError(f"{path} is not valid UTF-8; save it as UTF-8, then change it")
            data = None if text is None else self._files.encode(entry.path, clean_text(text), file)
            if data is None and file is not None:
                self._files.trash(entry)
            elif data is not None and not self._files.write(entry.path, data, file):
                raise NoteConflictError(f"{path} was created meanwhile; read it, then repeat the change")
            changed = Changed(None if data is None else content_hash(data), False, file is not None)
            self._record(operation, changed)
        if masked:
            logger("harness").warning("%s: %s before it was written", path, masked_text(len(masked)))
        return changed

    def replayed(self, operation: Any) -> Changed | None:
        """What an operation did, if it was carried out before."""
        receipt = self._receipts().get(operation.id) if operation else None
        if receipt is None:
            return None
        fingerprint, version, existed = receipt
        if fingerprint != operation.fingerprint:
            raise OperationReusedError(f"operation {operation.id} was used before, with other arguments")
        return Changed(version, True, existed)

    def paths(self, prefix: str, limit: int | None = None) -> list[str]:
        """Files whose path starts with a prefix, in order."""
        found = (self._scoped(entry.path) for entry in self._files.walk(ROOT) if entry.kind == "file")
        return sorted(path for path in found if path and path.startswith(prefix))[:limit]

    def search(
        self, prefix: str, query: str, limit: int, max_chars: int
    ) -> tuple[list[tuple[str, str, float]], int, bool]:
        """Path, snippet and score of the best files directly below a prefix; of how many; and whether some are cut."""
        cut = bool(self._freshener.ensure(FRESH_SECONDS))
        scanned = {path for path in self.paths(prefix) if "/" not in path.removeprefix(prefix)}
        result = self.kb.search(query, limit=LARGEST_LIMIT, sources=["memory"])  # other scopes may rank first
        cut = cut or len(result.hits) == LARGEST_LIMIT or result.state == "inconclusive"
        matches: dict[str, tuple[str, str, float]] = {}
        for hit in result.hits:
            path = self._scoped(hit.path.removeprefix(self._files.store.root).replace("\\", "/").strip("/"))
            if path not in scanned or path in matches:
                continue
            room = max(0, max_chars - len(path) + len(prefix)) if len(matches) < limit else 0
            snippet = to_utf8(hit.snippet)[:room]
            cut, max_chars = cut or len(snippet) < len(hit.snippet), max_chars - len(path) + len(prefix) - len(snippet)
            if snippet:
                matches[path] = (path, snippet, hit.score)
        return list(matches.values()), len(scanned), cut

    def _locate(self, path: str) -> Entry:
        *scope, name = path.split("/")
        if not scope or not all(map(SEGMENT.fullmatch, (*scope, name))):
            raise InvalidInputError(f"{path!r} is not a memory path such as {HOME}/notes.md")
        scope = [] if scope == [HOME] else scope
        entry = self._files.locate([*scope, name])
        unescaped = ESCAPED.sub(lambda code: chr(int(code[1], 16)), name)
        if entry.kind == "missing" and unescaped != name:
            found = self._files.locate([*scope, unescaped])
            return found if found.kind == "file" else entry
        return entry

    def _scoped(self, path: str) -> str | None:
        """The scoped path of a file in the vault, if it has one."""
        root, *scope, name = path.split("/")
        if root != ROOT or scope == [HOME] or not is_note_name(name) or not all(map(SEGMENT.fullmatch, scope)):
            return None
        safe = UNSAFE.sub(lambda letter: f"_{ord(letter[0]):x}_", name)
        return "/".join((*(scope or [HOME]), safe))

    def _receipts(self) -> dict[str, tuple[str, str | None, bool]]:
        try:
            with open(self._receipts_file, encoding="utf-8") as stream:
                return dict(json.load(stream))
        except (FileNotFoundError, ValueError, TypeError):  # damaged: versions still protect the files
            return {}

    def _record(self, operation: Any, changed: Changed) -> None:
        if operation is not None:
            receipts = self._receipts() | {operation.id: (operation.fingerprint, changed.version, changed.existed)}
            make_folders(os.path.dirname(self._receipts_file))
            replace(self._receipts_file, json.dumps(dict(list(receipts.items())[-MAX_RECEIPTS:])).encode())


class VaultMemoryStore:
    """A `SearchableMemoryStore` of the harness over a vault."""

    def __init__(
        self,
        vault: PathLike | None = None,
        *,
        data_dir: PathLike | None = None,
        knowledge_base: KnowledgeBase | None = None,
    ) -> None:
        try:
            # by name: it pins one version of pydantic-ai, so type checkers may not have it
            self._types: Any = importlib.import_module("pydantic_ai_harness.memory")
        except ModuleNotFoundError as error:
            message = 'VaultMemoryStore needs pydantic-ai-harness: `pip install "co-cli[harness]"`'
            raise ModuleNotFoundError(message, name=error.name) from error
        self._access = VaultAccess(vault, data_dir, knowledge_base)
        self._memory: ScopedMemory | None = None

    async def read(self, path: str, *, max_chars: int) -> Any:
        found = await self._run(lambda memory: memory.read(path, max_chars))
        if found is None:
            return None
        content, version, truncated = found
        return self._types.MemoryFile(content=content, version=version, operation_id=None, truncated=truncated)

    async def get_operation(self, operation: Any) -> Any:
        changed = await self._run(lambda memory: memory.replayed(operation))
        return changed and self._types.MemoryMutation(*changed)

    async def write(
        self, path: str, content: str | None, *, expected_version: str | None, operation: Any = None
    ) -> Any:
        changed = await self._run(lambda memory: memory.write(path, content, expected_version, operation))
        return self._types.MemoryMutation(*changed)

    async def delete(self, path: str, *, expected_version: str | None, operation: Any = None) -> Any:
        return await self.write(path, None, expected_version=expected_version, operation=operation)

    async def list_paths(self, prefix: str = "", *, limit: int) -> list[str]:
        return await self._run(lambda memory: memory.paths(prefix, limit))

    async def search(
        self, prefix: str, query: str, *, limit: int, max_files: int, max_chars: int, max_file_chars: int
    ) -> Any:
        """`max_files` and `max_file_chars` are for stores that read files: the index knows all of them."""
        matches, scanned, cut = await self._run(lambda memory: memory.search(prefix, query, limit, max_chars))
        found = [self._types.MemorySearchMatch(*match) for match in matches]
        return self._types.MemorySearchResult(matches=found, scanned=scanned, truncated=cut)

    async def _run(self, call: Callable[[ScopedMemory], Result]) -> Result:
        """Run synchronous code in a thread, and raise its errors as those of the harness and pydantic-ai."""

        def run() -> Result:
            kb = self._access.kb()
            if self._memory is None or self._memory.kb is not kb:
                self._memory = ScopedMemory(kb)
            return call(self._memory)

        try:
            return await anyio.to_thread.run_sync(run)
        except OperationReusedError as error:
            raise self._types.MemoryOperationConflictError(str(error)) from error
        except NoteConflictError as error:
            raise self._types.MemoryConflictError(str(error)) from error
        except KnowledgeError as error:
            raise model_error(error) from error
        except OSError as error:  # without the names of folders on this machine
            raise ToolFailed(f"the memory cannot be read or written: {error.strerror or error}") from error
