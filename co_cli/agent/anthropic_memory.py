"""Anthropic's memory tool for a pydantic-ai agent, over a vault.

With `NativeTool(MemoryTool())` Claude uses the tool it was trained on; any other model sees an ordinary function tool.
"""

from __future__ import annotations

from typing import Any

from pydantic_ai import RunContext, Tool

from co_cli.agent.access import opened, require_one
from co_cli.agent.deps import CoDeps, PathLike
from co_cli.knowledge_base import KnowledgeBase
from co_cli.service.memory_protocol import DESCRIPTION, Command, MemoryToolProtocol


def memory_tool(
    vault: PathLike | None = None,
    *,
    data_dir: PathLike | None = None,
    knowledge_base: KnowledgeBase | None = None,
    overwrite: bool = False,
) -> Tool[Any]:
    """The `memory` tool over a vault or a knowledge base; by default the one in the run's CoDeps, else the usual one.

    The first call opens the vault. With `overwrite`, `create` replaces a file that exists and moves the old one to the
    trash; the protocol says to refuse.
    """
    require_one(vault, data_dir, knowledge_base)

    def memory(ctx: RunContext[Any], /, **command: Any) -> str:  # a model may send a `ctx` of its own
        given = knowledge_base
        if given is None and vault is None and data_dir is None and isinstance(ctx.deps, CoDeps):
            given = ctx.deps.knowledge_base
        return MemoryToolProtocol(given or opened(vault, data_dir), overwrite=overwrite).call(command)

    return Tool.from_schema(memory, "memory", DESCRIPTION, Command.model_json_schema(), takes_ctx=True)
