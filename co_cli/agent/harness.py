"""A vault as the memory store of pydantic-ai's harness: `Memory(VaultMemoryStore("notes/"))`.

The harness's `Memory` capability keeps its files in the vault, and its `search_memory` searches by words and meaning.
Needs the extra: `pip install "co-cli[harness]"`.
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
from co_cli.service.scoped_memory import Changed, OperationReusedError, ScopedMemory
from co_cli.values import masked_text

try:
    # by name: it pins one version of pydantic-ai, so type checkers may not have it
    harness: Any = importlib.import_module("pydantic_ai_harness.memory")
except ModuleNotFoundError as error:
    raise ModuleNotFoundError(
        'co_cli.agent.harness needs pydantic-ai-harness: `pip install "co-cli[harness]"`', name=error.name
    ) from error

Answer = TypeVar("Answer")


class VaultMemoryStore:
    """A `SearchableMemoryStore` of the harness over a vault.

    `home` is the scope of the vault's own memories: `main`, which `Memory` uses unless you give it an `agent_name` or a
    `namespace`. Every other scope is a folder below `memories/`, and sees only itself.
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
        self._vault, self._given, self._home = (vault, data_dir), knowledge_base, home
        self._memory: ScopedMemory | None = None

    async def read(self, path: str, *, max_chars: int) -> Any:
        _require_positive("max_chars", max_chars)
        stored = await self._ask(lambda memory: memory.read(path, max_chars))
        return stored and harness.MemoryFile(
            content=stored.text, version=stored.version, operation_id=None, truncated=stored.truncated
        )

    async def get_operation(self, operation: Any) -> Any:
        changed = await self._ask(lambda memory: memory.repeated(operation))
        return changed and _mutation(changed)

    async def write(self, path: str, content: str, *, expected_version: str | None, operation: Any = None) -> Any:
        changed = await self._ask(lambda memory: memory.write(path, content, expected_version, operation))
        if changed.masked:  # the harness's result has no place for it
            logger("harness").warning("%s: %s before it was written", path, masked_text(changed.masked))
        return _mutation(changed)

    async def delete(self, path: str, *, expected_version: str | None, operation: Any = None) -> Any:
        return _mutation(await self._ask(lambda memory: memory.delete(path, expected_version, operation)))

    async def list_paths(self, prefix: str = "", *, limit: int) -> list[str]:
        _require_positive("limit", limit)
        return await self._ask(lambda memory: memory.paths(prefix, limit))

    async def search(
        self, prefix: str, query: str, *, limit: int, max_files: int, max_chars: int, max_file_chars: int
    ) -> Any:
        """`max_file_chars` is for stores that read files: the index knows all of a file."""
        if not query.split() or min(limit, max_files, max_chars) <= 0:
            return harness.MemorySearchResult(matches=[], scanned=0, truncated=False)
        found = await self._ask(lambda memory: memory.search(prefix, query, limit, max_files, max_chars))
        matches = [harness.MemorySearchMatch(**match._asdict()) for match in found.matches]
        return harness.MemorySearchResult(matches=matches, scanned=found.scanned, truncated=found.truncated)

    async def _ask(self, ask: Callable[[ScopedMemory], Answer]) -> Answer:
        """Run synchronous code in a thread, and raise its errors as those of the harness and pydantic-ai."""

        def run() -> Answer:
            kb = self._given or opened(*self._vault)
            memory = self._memory
            if memory is None or memory.kb is not kb:
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
        except OSError as error:  # without the names of folders on this machine
            raise ToolFailed(f"the memory cannot be read or written: {error.strerror or error}") from error


def _mutation(changed: Changed) -> Any:
    return harness.MemoryMutation(version=changed.version, replayed=changed.repeated, existed=changed.existed)


def _require_positive(name: str, number: int) -> None:
    if number <= 0:
        raise ValueError(f"{name} must be positive")
