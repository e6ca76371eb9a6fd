"""co-cli: a memory for agents and people, kept in Markdown files that you own."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from co_cli.errors import KnowledgeError as KnowledgeError
    from co_cli.hits import Hit as Hit
    from co_cli.hits import SearchResult as SearchResult
    from co_cli.knowledge_base import KnowledgeBase as KnowledgeBase
    from co_cli.reports import SyncReport as SyncReport
    from co_cli.saves import Saved as Saved
    from co_cli.version import __version__ as __version__

__all__ = ["Hit", "KnowledgeBase", "KnowledgeError", "Saved", "SearchResult", "SyncReport", "__version__"]

_HOMES = {
    "KnowledgeBase": "co_cli.knowledge_base",
    "KnowledgeError": "co_cli.errors",
    "Hit": "co_cli.hits",
    "Saved": "co_cli.saves",
    "SearchResult": "co_cli.hits",
    "SyncReport": "co_cli.reports",
    "__version__": "co_cli.version",
}


def __getattr__(name: str) -> object:
    """Import a public name when it is first used: `import co_cli` alone costs nothing."""
    from importlib import import_module

    if name not in _HOMES:
        raise AttributeError(f"module 'co_cli' has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)
