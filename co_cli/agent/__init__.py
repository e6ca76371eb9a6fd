"""A memory for any pydantic-ai agent.

`Knowledge` is the capability, `knowledge_toolset` only its tools, `CoDeps` what tools of your own need, and `agent` a
ready agent. Importing this opens no vault, and imports pydantic-ai only when a name is used that needs it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from co_cli.agent.anthropic_memory import memory_tool as memory_tool
    from co_cli.agent.capability import ContextAddedEvent as ContextAddedEvent
    from co_cli.agent.capability import Knowledge as Knowledge
    from co_cli.agent.capability import agent as agent
    from co_cli.agent.deps import CoDeps as CoDeps
    from co_cli.agent.toolset import knowledge_toolset as knowledge_toolset

__all__ = ["CoDeps", "ContextAddedEvent", "Knowledge", "agent", "knowledge_toolset", "memory_tool"]

_HOMES = {
    "Knowledge": "co_cli.agent.capability",
    "ContextAddedEvent": "co_cli.agent.capability",
    "CoDeps": "co_cli.agent.deps",
    "knowledge_toolset": "co_cli.agent.toolset",
    "agent": "co_cli.agent.capability",
    "memory_tool": "co_cli.agent.anthropic_memory",
}


def __getattr__(name: str) -> object:
    """Import a public name when it is first used: pydantic-ai takes a second to import."""
    from importlib import import_module

    if name not in _HOMES:
        raise AttributeError(f"module 'co_cli.agent' has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)
