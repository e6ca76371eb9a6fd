"""A vault as the memory store of pydantic-ai's harness: `Memory(VaultMemoryStore("notes/"))`.

Its `Memory` capability keeps its notebook and its files in the vault, and its `search_memory` answers by words and
meaning. Needs the extra: `pip install "co-cli[harness]"`.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any, TypeVar

import anyio.to_thread
from pydantic_ai.exceptions import ToolFailed

from co_cli.agent.access import opened, require_one
from co_cli.agent.deps import PathLike
from co_cli.agent.toolset import told_to_a_model
from co_cli.errors import KnowledgeError, NoteConflictError
from co_cli.knowledge_base import KnowledgeBase
from co_cli.logbook import logger
from co_cli.service.scoped_memory import Changed, Operation, OperationReusedError, ScopedMemory
from co_cli.values import masked_text

try:
    # by name: it pins one version of pydantic-ai, so whoever checks our types may not have it
    harness: Any = importlib.import_module("pydantic_ai_harness.memory")
except ModuleNotFoundError as error:
    raise ModuleNotFoundError(
        'co_cli.agent.harness needs pydantic-ai-harness: `pip install "co-cli[harness]"`', name=error.name
    ) from error

Answer = TypeVar("Answer")


class VaultMemoryStore:
    """A `SearchableMemoryStore` of the harness over a vault.

    `home` is the scope whose files are the vault's own memories: `main`, which is what `Memory` uses unless you give it
    an `agent_name` or a `namespace`. Every other scope is a folder below `memories/`, and sees only itself.
    """

    def __init__(
        self,
        vault: PathLike | None = None,
        *,
        data_dir: PathLike | None = None,
        knowledge_base: KnowledgeBase | None = None,
        home: str | None = "main",
    ) -> None:
        require_one(vault, data_dir, knowledge_base)
        self._place, self._given, self._home = (vault, data_dir), knowledge_base, home
        self._memory: ScopedMemory | None = None

    async def read(self, path: str, *, max_chars: int) -> Any:
        """A `MemoryFile`, or None."""
        _require_positive("max_chars", max_chars)
        stored = await self._in_thread(lambda memory: memory.read(path, max_chars))
        if stored is None:
            return None
        return harness.MemoryFile(
            content=stored.text, version=stored.version, operation_id=None, truncated=stored.truncated
        )

    async def get_operation(self, operation: Any) -> Any:
        """The `MemoryMutation` of an operation that was carried out before, or None."""
        changed = await self._in_thread(lambda memory: memory.repeated(_operation(operation)))
        return _mutation(changed) if changed else None

    async def write(self, path: str, content: str, *, expected_version: str | None, operation: Any = None) -> Any:
        """Create or replace a file that has the expected version; a `MemoryMutation`.

        Nothing in it can say that a secret was masked, so the log `co_cli` does.
        """
        wanted = _operation(operation) if operation is not None else None
        changed = await self._in_thread(lambda memory: memory.write(path, content, expected_version, wanted))
        if changed.masked:
            logger("harness").warning("%s: %s before it was written", path, masked_text(changed.masked))
        return _mutation(changed)

    async def delete(self, path: str, *, expected_version: str | None, operation: Any = None) -> Any:
        """Move a file that has the expected version to the trash; a `MemoryMutation`."""
        wanted = _operation(operation) if operation is not None else None
        return _mutation(await self._in_thread(lambda memory: memory.delete(path, expected_version, wanted)))

    async def list_paths(self, prefix: str = "", *, limit: int) -> list[str]:
        """Paths that start with a prefix, in order."""
        _require_positive("limit", limit)
        return await self._in_thread(lambda memory: memory.paths(prefix, limit))

    async def search(
        self, prefix: str, query: str, *, limit: int, max_files: int, max_chars: int, max_file_chars: int
    ) -> Any:
        """The best files directly below a prefix, by words and meaning; a `MemorySearchResult`."""
        if not query.split() or min(limit, max_files, max_chars, max_file_chars) <= 0:
            return harness.MemorySearchResult(matches=[], scanned=0, truncated=False)
        found = await self._in_thread(
            lambda memory: memory.search(prefix, query, limit, max_files, max_chars, max_file_chars)
        )
        matches = [
            harness.MemorySearchMatch(path=path, snippet=text, score=score) for path, text, score in found.matches
        ]
        return harness.MemorySearchResult(matches=matches, scanned=found.scanned, truncated=found.truncated)

    async def _in_thread(self, ask: Callable[[ScopedMemory], Answer]) -> Answer:
        """Our core is synchronous. What a model can mend goes back to it; conflicts are the harness's own errors."""

        def run() -> Answer:
            kb = self._given or opened(*self._place)
            memory = self._memory
            if memory is None or memory.kb is not kb:  # two threads may make one each: they share files and lock
                memory = self._memory = ScopedMemory(kb, self._home)
            return ask(memory)

        try:
            return await anyio.to_thread.run_sync(run)
        except OperationReusedError as error:
            raise harness.MemoryOperationConflictError(str(error)) from error
        except NoteConflictError as error:
            raise harness.MemoryConflictError(str(error)) from error
        except KnowledgeError as error:
            raise told_to_a_model(error) from error
        except OSError as error:  # a folder or a disk that is gone: the message names no folder of this machine
            raise ToolFailed(f"the memory cannot be read or written: {error.strerror or error}") from error


def _operation(operation: Any) -> Operation:
    return Operation(operation.id, operation.fingerprint)


def _mutation(changed: Changed) -> Any:
    return harness.MemoryMutation(version=changed.version, replayed=changed.repeated, existed=changed.existed)


def _require_positive(name: str, number: int) -> None:
    if number <= 0:
        raise ValueError(f"{name} must be positive")
