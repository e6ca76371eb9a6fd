"""What an agent can do with a vault, in plain Python: the same tools for pydantic-ai, MCP and the chat."""

from co_cli.tools.tool import Tool, ToolResult
from co_cli.tools.toolbox import TOOLS, Toolbox

__all__ = ["TOOLS", "Tool", "ToolResult", "Toolbox"]
