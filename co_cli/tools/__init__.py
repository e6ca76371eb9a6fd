"""What an agent can do with a vault, in plain Python: the same tools for pydantic-ai, MCP and the chat."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from co_cli.tools.tool import Tool as Tool
    from co_cli.tools.tool import ToolResult as ToolResult
    from co_cli.tools.toolbox import TOOLS as TOOLS
    from co_cli.tools.toolbox import Toolbox as Toolbox

__all__ = ["TOOLS", "Tool", "ToolResult", "Toolbox"]


def __getattr__(name: str) -> object:
    """Import a name when it is first used: tools need pydantic, and what renders notes for a prompt does without."""
    from importlib import import_module

    if name not in __all__:
        raise AttributeError(f"module 'co_cli.tools' has no attribute {name!r}")
    return getattr(
        import_module("co_cli.tools.tool" if name in ("Tool", "ToolResult") else "co_cli.tools.toolbox"), name
    )
