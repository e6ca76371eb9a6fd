"""The values and errors of pydantic-ai's harness, for where it is not installed: it pins one version of pydantic-ai."""

from __future__ import annotations

import importlib.util
import sys
from dataclasses import make_dataclass
from types import ModuleType
from typing import Any

INSTALLED = importlib.util.find_spec("pydantic_ai_harness") is not None


class Types(ModuleType):
    """As much of `pydantic_ai_harness.memory` as our store uses."""

    MemoryFile = make_dataclass("MemoryFile", ["content", "version", "operation_id", "truncated"], frozen=True)
    MemoryOperation = make_dataclass("MemoryOperation", ["id", "fingerprint"], frozen=True)
    MemoryMutation = make_dataclass("MemoryMutation", ["version", "replayed", "existed"], frozen=True)
    MemorySearchMatch = make_dataclass("MemorySearchMatch", ["path", "snippet", "score"], frozen=True)
    MemorySearchResult = make_dataclass("MemorySearchResult", ["matches", "scanned", "truncated"], frozen=True)
    MemoryConflictError = type("MemoryConflictError", (RuntimeError,), {})
    MemoryOperationConflictError = type("MemoryOperationConflictError", (RuntimeError,), {})


if not INSTALLED:
    sys.modules.setdefault("pydantic_ai_harness.memory", Types("pydantic_ai_harness.memory"))

types: Any = importlib.import_module("pydantic_ai_harness.memory")
