"""A vault as the memory store of pydantic-ai's harness: `Memory(VaultMemoryStore("notes/"))`.

The harness's `Memory` capability keeps its files in the vault, and its `search_memory` searches by words and meaning.
Needs the extra `harness`.
"""

from __future__ import annotations

import functools
import importlib
import json
import os
import re
from collections.abc import Callable, Coroutine
from typing import Any

import anyio.to_thread
from pydantic_ai.exceptions import ToolFailed

from co_cli.agent.deps import PathLike
from co_cli.agent.memory_files import Kind, MemoryFiles
from co_cli.agent.toolset import VaultAccess, model_error
from co_cli.entrance.knowledge_base import KnowledgeBase
from co_cli.ground.errors import InvalidInputError, KnowledgeError, NoteConflictError
from co_cli.ground.values import content_hash, to_utf8
from co_cli.notes.files import make_folders, read_json, replace
from co_cli.searching.requests import LARGEST_LIMIT

HOME = "main"
"""The scope of the vault's own memories; `Memory` uses it by default."""
UNSAFE = re.compile(r"[^A-Za-z0-9._-]|(?<=\.)\.|^[._-]")
FRESH_SECONDS = 1.0
"""How long a search waits for files that were just saved."""
MAX_RECEIPTS = 1_000


def harness(name: str, *fields: object) -> Any:
    """A value or an error of the harness, by name: it pins one pydantic-ai, so type checkers may not have it."""
    return getattr(importlib.import_module("pydantic_ai_harness.memory"), name)(*fields)


def in_thread(method: Callable[..., Any]) -> Callable[..., Coroutine[Any, Any, Any]]:
    """Run a method in a thread, and raise its errors as those that an agent can handle."""

    @functools.wraps(method)
    async def run(*given: Any, **named: Any) -> Any:
        try:
            return await anyio.to_thread.run_sync(functools.partial(method, *given, **named))
        except NoteConflictError as error:
            raise harness("MemoryConflictError", str(error)) from error
        except KnowledgeError as error:
            raise model_error(error) from error
        except OSError as error:  # without the names of folders on this machine
            raise ToolFailed(f"the memory cannot be read or written: {error.strerror or error}") from error

    return run


class VaultMemoryStore:
    """A `SearchableMemoryStore` of the harness: versioned files in scopes, such as `main/notes.md`.

    The scope `main` is the folder `memories/` itself; any other is a folder below it and sees only itself. Letters that
    the harness does not allow in names are written as `_fc_`, their code point.
    """

    def __init__(
        self,
        vault: PathLike | None = None,
        *,
        data_dir: PathLike | None = None,
        knowledge_base: KnowledgeBase | None = None,
    ) -> None:
        self._access = VaultAccess(vault, data_dir, knowledge_base)

    @in_thread
    def read(self, path: str, *, max_chars: int) -> Any:
        files = MemoryFiles(self._access.kb().local)
        stored, kind = _locate(files, path)
        if kind != "file":
            return None
        text, data = files.read(stored)
        return harness("MemoryFile", text[:max_chars], content_hash(data), None, len(text) > max_chars)

    @in_thread
    def delete(self, path: str, *, expected_version: str | None, operation: Any = None) -> Any:
        return self._change(path, None, expected_version=expected_version, operation=operation)

    @in_thread
    def list_paths(self, prefix: str = "", *, limit: int) -> list[str]:
        paths = _scoped_paths(MemoryFiles(self._access.kb().local))
        return sorted(path for path in paths if path.startswith(prefix))[:limit]

    @in_thread
    def search(self, prefix: str, query: str, *, limit: int, **bounds: int) -> Any:
        """`bounds` are for stores that read files. The index knows all, and the harness cuts long snippets."""
        toolbox = self._access.toolbox()
        late = toolbox.freshener.ensure(FRESH_SECONDS)
        kb = toolbox.kb.local
        paths, place = _scoped_paths(MemoryFiles(kb)), kb.store.absolute
        inside = {place(paths[path]): path for path in paths if f"{path.rpartition('/')[0]}/" == prefix}
        result = kb.search(query, limit=LARGEST_LIMIT, sources=["memory"])  # other scopes may rank first
        hits = [hit for hit in result.hits if hit.path in inside]
        matches = [harness("MemorySearchMatch", inside[hit.path], to_utf8(hit.snippet), hit.score) for hit in hits]
        cut = bool(late) or result.state == "inconclusive" or len(hits) > limit
        return harness("MemorySearchResult", matches[:limit], len(inside), cut)

    def _change(self, path: str, content: str | None, *, expected_version: str | None, operation: Any = None) -> Any:
        """Replace the file that has this version (None: create it). Without content, move it to the trash."""
        files = MemoryFiles(self._access.kb().local)
        with files.writing():
            before = self._replayed(operation)
            if before is not None:
                return before
            stored, kind = _locate(files, path)
            data = files.read(stored)[1] if kind == "file" else None
            if expected_version != (None if data is None else content_hash(data)):
                raise NoteConflictError(f"{path} was changed meanwhile; read it again, then repeat the change")
            if content is None and data is not None:
                files.store.trash(stored)
            new_version = None if content is None else content_hash(files.write(stored, content, data))
            if operation is not None:
                receipt = {operation.id: [operation.fingerprint, new_version, data is not None]}
                newest = list((read_json(self._receipts()) | receipt).items())[-MAX_RECEIPTS:]
                make_folders(os.path.dirname(self._receipts()))
                replace(self._receipts(), json.dumps(dict(newest)).encode())
        return harness("MemoryMutation", new_version, False, data is not None)

    def _replayed(self, operation: Any) -> Any:
        """What an operation did, if it was carried out before."""
        receipt = read_json(self._receipts()).get(operation.id) if operation else None
        if receipt is None:
            return None
        fingerprint, version, existed = receipt
        if fingerprint != operation.fingerprint:
            raise harness("MemoryOperationConflictError", f"{operation.id} was used before, with other arguments")
        return harness("MemoryMutation", version, True, existed)

    get_operation, write = in_thread(_replayed), in_thread(_change)

    def _receipts(self) -> str:
        kb = self._access.kb().local
        return os.path.join(kb.settings.data_dir, "memory-operations", f"{content_hash(os.fsencode(kb.root))}.json")


def _locate(files: MemoryFiles, path: str) -> tuple[str, Kind]:
    known, names = _scoped_paths(files), path.split("/")
    if not re.fullmatch(r"[\w.-]+(/[\w.-]+)+", path, re.ASCII):
        raise InvalidInputError(f"{path!r} is not a memory path such as {HOME}/notes.md")
    if path in known:
        return known[path], "file"
    return files.locate(names[1:] if names[0] == HOME and len(names) == 2 else names)


def _scoped_paths(files: MemoryFiles) -> dict[str, str]:
    """What the harness calls each file, and its path. The folder `memories/main/` has no scope."""
    found: dict[str, str] = {}
    for path in files.paths():
        _, *scope, name = path.split("/")
        names = (UNSAFE.sub(lambda letter: f"_{ord(letter[0]):x}_", part) for part in (*(scope or [HOME]), name))
        if scope != [HOME]:
            found["/".join(names)] = path
    return found
