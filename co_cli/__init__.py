"""co-cli: a memory for agents and people, kept in Markdown files that you own."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from co_cli.entrance.knowledge_base import KnowledgeBase as KnowledgeBase
    from co_cli.ground.errors import KnowledgeError as KnowledgeError
    from co_cli.ground.hits import Hit as Hit
    from co_cli.ground.hits import SearchResult as SearchResult
    from co_cli.ground.reports import SyncReport as SyncReport
    from co_cli.ground.saves import Saved as Saved
    from co_cli.version import __version__ as __version__

__all__ = ["Hit", "KnowledgeBase", "KnowledgeError", "Saved", "SearchResult", "SyncReport", "__version__"]

os.environ.setdefault("ORT_DISABLE_TELEMETRY", "1")
"""Or onnxruntime sends the path of the program and the machine's identifier to its makers. Read when it is loaded."""

_HOMES = {
    "KnowledgeBase": "co_cli.entrance.knowledge_base",
    "KnowledgeError": "co_cli.ground.errors",
    "Hit": "co_cli.ground.hits",
    "Saved": "co_cli.ground.saves",
    "SearchResult": "co_cli.ground.hits",
    "SyncReport": "co_cli.ground.reports",
    "__version__": "co_cli.version",
}


def __getattr__(name: str) -> object:
    """Import a public name when it is first used: `import co_cli` alone costs nothing."""
    from importlib import import_module

    if name not in _HOMES:
        raise AttributeError(f"module 'co_cli' has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)
