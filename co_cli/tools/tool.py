"""What a tool is: a name, a description written for models, schemas, and what it does to a vault."""

from __future__ import annotations

from typing import Any, NamedTuple

Schema = dict[str, Any]


class Tool(NamedTuple):
    """One thing an agent can do with a vault, described without any agent library."""

    name: str
    title: str
    description: str
    parameters: Schema
    """JSON schema of the arguments."""
    returns: Schema
    """JSON schema of `ToolResult.data`."""
    read_only: bool = False
    destructive: bool = False
    idempotent: bool = False


class ToolResult(NamedTuple):
    """What a tool answers, twice: as text for a model, and as plain values for a program."""

    text: str
    data: dict[str, Any]
