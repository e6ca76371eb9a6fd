"""A vault as the memory store of pydantic-ai's harness: `Memory(VaultMemoryStore("notes/"))`.

The harness's `Memory` capability keeps its files in the vault, and its `search_memory` searches by words and meaning.
Needs the extra: `pip install "co-cli[harness]"`.
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
from co_cli.agent.memory_files import ROOT, Entry, MemoryFiles, clean_text, is_note_name
from co_cli.agent.toolset import VaultAccess, model_error
from co_cli.errors import InvalidInputError, KnowledgeError, NoteConflictError
from co_cli.knowledge_base import KnowledgeBase
from co_cli.logbook import logger
from co_cli.notes.files import make_folders, replace
from co_cli.notes.secrets import count_masked
from co_cli.notes.store import content_hash
from co_cli.service.searching import LARGEST_LIMIT
from co_cli.values import masked_text, to_utf8

HOME = "main"
"""The scope of the vault's own memories; `Memory` uses it by default."""
SEGMENT = re.compile(r"(?!.*\.\.)(?!\.\Z)[A-Za-z0-9_.-]{1,200}")
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
        files = MemoryFiles(self._access.kb())
        entry = _locate(files, path)
        if entry.kind != "file":
            return None
        file = files.read(entry.path)
        text = to_utf8(file.text)
        return harness("MemoryFile", text[:max_chars], content_hash(file.data), None, len(text) > max_chars)

    @in_thread
    def get_operation(self, operation: Any) -> Any:
        return self._replayed(operation)

    @in_thread
    def write(self, path: str, content: str, *, expected_version: str | None, operation: Any = None) -> Any:
        return self._change(path, clean_text(content), expected_version, operation)

    @in_thread
    def delete(self, path: str, *, expected_version: str | None, operation: Any = None) -> Any:
        return self._change(path, None, expected_version, operation)

    @in_thread
    def list_paths(self, prefix: str = "", *, limit: int) -> list[str]:
        return self._paths(prefix)[:limit]

    @in_thread
    def search(self, prefix: str, query: str, *, limit: int, **bounds: int) -> Any:
        """`bounds` are for stores that read files. The index knows all, and the harness cuts long snippets."""
        toolbox = self._access.toolbox()
        late = toolbox.freshener.ensure(FRESH_SECONDS)
        scanned = {path for path in self._paths(prefix) if "/" not in path.removeprefix(prefix)}
        result = toolbox.kb.search(query, limit=LARGEST_LIMIT, sources=["memory"])  # other scopes may rank first
        found = [(_scoped(os.path.relpath(hit.path, toolbox.kb.root).replace(os.sep, "/")), hit) for hit in result.hits]
        inside = [(path, to_utf8(hit.snippet), hit.score) for path, hit in found if path in scanned]
        cut = late or len(found) == LARGEST_LIMIT or result.state == "inconclusive" or len(inside) > limit
        matches = [harness("MemorySearchMatch", *match) for match in inside[:limit]]
        return harness("MemorySearchResult", matches, len(scanned), bool(cut))

    def _change(self, path: str, text: str | None, version: str | None, operation: Any) -> Any:
        """Replace the file that has this version (None: create it). Without a text, move it to the trash."""
        files = MemoryFiles(self._access.kb())
        with count_masked() as masked, files.writing():
            before = self._replayed(operation)
            if before is not None:
                return before
            entry = _locate(files, path)
            file = files.read(entry.path) if entry.kind == "file" else None
            if (file and content_hash(file.data)) != version:
                raise NoteConflictError(f"{path} was changed meanwhile; read it again, then repeat the change")
            if file is not None and to_utf8(file.text) != file.text:
                raise InvalidInputError(f"{path} is not valid UTF-8; save it as UTF-8, then change it")
            if text is None and file is not None:
                files.store.trash(entry.path)
            new_version = None if text is None else content_hash(files.write(entry.path, text, file))
            self._record(operation, new_version, file is not None)
        if masked:
            logger("harness").warning("%s: %s before it was written", path, masked_text(len(masked)))
        return harness("MemoryMutation", new_version, False, file is not None)

    def _paths(self, prefix: str) -> list[str]:
        found = map(_scoped, MemoryFiles(self._access.kb()).paths())
        return sorted(path for path in found if path and path.startswith(prefix))

    def _replayed(self, operation: Any) -> Any:
        """What an operation did, if it was carried out before."""
        receipt = self._receipts().get(operation.id) if operation else None
        if receipt is None:
            return None
        fingerprint, version, existed = receipt
        if fingerprint != operation.fingerprint:
            text = f"operation {operation.id} was used before, with other arguments"
            raise harness("MemoryOperationConflictError", text)
        return harness("MemoryMutation", version, True, existed)

    def _receipts_file(self) -> str:
        kb = self._access.kb()
        return os.path.join(kb.settings.data_dir, "memory-operations", f"{content_hash(os.fsencode(kb.root))}.json")

    def _receipts(self) -> dict[str, tuple[str, str | None, bool]]:
        try:
            with open(self._receipts_file(), encoding="utf-8") as stream:
                return dict(json.load(stream))
        except (FileNotFoundError, ValueError, TypeError):  # damaged: versions still protect the files
            return {}

    def _record(self, operation: Any, version: str | None, existed: bool) -> None:
        if operation is not None:
            receipts = self._receipts() | {operation.id: (operation.fingerprint, version, existed)}
            make_folders(os.path.dirname(self._receipts_file()))
            replace(self._receipts_file(), json.dumps(dict(list(receipts.items())[-MAX_RECEIPTS:])).encode())


def _locate(files: MemoryFiles, path: str) -> Entry:
    *scope, name = path.split("/")
    if not scope or not all(map(SEGMENT.fullmatch, (*scope, name))):
        raise InvalidInputError(f"{path!r} is not a memory path such as {HOME}/notes.md")
    known = {_scoped(one): one for one in files.paths()}
    if path in known:
        return Entry(known[path], "file")
    return files.locate([name] if scope == [HOME] else [*scope, name])


def _scoped(path: str) -> str | None:
    """The scoped path of a file in the vault, if it has one."""
    root, *scope, name = path.split("/")
    if root != ROOT or scope == [HOME] or not is_note_name(name) or not all(map(SEGMENT.fullmatch, scope)):
        return None
    safe = UNSAFE.sub(lambda letter: f"_{ord(letter[0]):x}_", name)
    return "/".join((*(scope or [HOME]), safe))
