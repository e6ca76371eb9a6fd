"""The agent tools as a pydantic-ai toolset, for an agent that wants the tools and nothing else.

The tools validate their own arguments. A mistake that a model can correct becomes a retry with the fix, anything else a
failed call; neither ends the run.
"""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache, partial
from typing import Any

import anyio.to_thread
from pydantic_ai import FunctionToolset, RunContext, Tool, ToolReturn
from pydantic_ai.exceptions import ModelRetry, ToolFailed, UserError
from pydantic_ai.tools import ToolDefinition
from pydantic_ai.toolsets import ToolsetTool
from pydantic_core import SchemaValidator, core_schema

from co_cli.agent.deps import CoDeps, PathLike, open_once
from co_cli.entrance.knowledge_base import KnowledgeBase
from co_cli.ground.errors import InvalidInputError, KnowledgeError, SettingsError, VaultError
from co_cli.tools.fencing import clean
from co_cli.tools.skill_tools import SKILL_TOOLS
from co_cli.tools.tool import Tool as AgentTool
from co_cli.tools.toolbox import EVERY_TOOL, RESULT_TOKENS, Toolbox, select_tools

MAX_RETRIES = 3
"""Wrong calls in a row, after which the model has to do without the tool."""
MAX_TOOLBOXES = 64
"""Kept for runs that bring knowledge bases of their own."""
TOOL_NAME = re.compile(rf"\b(?:{'|'.join(tool.name for tool in EVERY_TOOL)})\b")


@dataclass
class VaultAccess:
    """A vault that is opened when a run or a tool first needs it. Threads can share it."""

    vault: PathLike | None = None
    data_dir: PathLike | None = None
    knowledge_base: KnowledgeBase | None = None
    tools: Sequence[str] | None = None
    read_only: bool = False
    result_tokens: int = RESULT_TOKENS
    skills: bool = False
    create: bool = False
    server: str | None = None
    token: str | None = field(default=None, repr=False)
    prefix: str = ""

    def __post_init__(self) -> None:
        named = (self.knowledge_base, self.server, None if self.vault is self.data_dir is None else True)
        if sum(choice is not None for choice in named) > 1:
            raise UserError("give a knowledge_base, a server, or a vault with its data_dir: one of them")
        try:
            self.selected = select_tools(self.tools, self.read_only, self.skills or self.tools is not None)
        except InvalidInputError as error:
            raise UserError(str(error)) from None
        self._opened = lru_cache(1)(self._open)
        self._toolbox = lru_cache(MAX_TOOLBOXES)(self._make_toolbox)

    def kb(self, deps: object = None) -> KnowledgeBase:
        """The vault that was named, else the one in the run's CoDeps, else the one that the settings name."""
        if self.knowledge_base is not None:
            return self.knowledge_base
        if isinstance(deps, CoDeps) and self.vault is self.data_dir is self.server is None:
            return deps.knowledge_base
        return self._opened(os.getpid())

    def toolbox(self, deps: object = None) -> Toolbox:
        return self._toolbox(self.kb(deps))

    def _make_toolbox(self, kb: KnowledgeBase) -> Toolbox:
        names = [tool.name for tool in self.selected]
        return Toolbox(kb, names=names, result_tokens=self.result_tokens, with_skills=True, prefix=self.prefix)

    def _open(self, process: int) -> KnowledgeBase:
        """Once per process: it stays the same vault when the program changes its working directory."""
        try:
            if self.server is not None:
                return KnowledgeBase.connect(self.server, self.token)
            return open_once(self.vault, self.data_dir, self.create)
        except KnowledgeError as error:  # the agent's author made the mistake, not the model
            absent = isinstance(error, VaultError) and self.vault is not None and not os.path.exists(self.vault)
            fix = "; Knowledge(..., create=True) creates it on first use" if absent and not self.create else ""
            raise UserError(f"the knowledge base cannot be opened: {error}{fix}") from error


def knowledge_toolset(
    vault: PathLike | None = None,
    *,
    data_dir: PathLike | None = None,
    knowledge_base: KnowledgeBase | None = None,
    tools: Sequence[str] | None = None,
    read_only: bool = False,
    approve_forget: bool = False,
    result_tokens: int = RESULT_TOKENS,
    skills: bool = False,
    create: bool = False,
    server: str | None = None,
    token: str | None = None,
    id: str | None = "knowledge",
) -> FunctionToolset[Any]:
    """The tools of a vault, for `Agent(toolsets=[...])`. The first call opens the vault.

    The parameters are those of `Knowledge`; `skills` adds tools to find and load skills, wherever there are any.
    """
    limits = (tools, read_only, result_tokens, skills, create)
    access = VaultAccess(vault, data_dir, knowledge_base, *limits, server, token)
    return make_toolset(access, approve_forget, id)


class LenientToolset(FunctionToolset[Any]):
    """Accepts any JSON object: its tools validate their own arguments, and say what would be right."""

    async def get_tools(self, ctx: RunContext[Any]) -> dict[str, ToolsetTool[Any]]:
        tools = await super().get_tools(ctx)
        return {name: replace(tool, args_validator=ARGUMENTS) for name, tool in tools.items()}


def make_toolset(access: VaultAccess, approve_forget: bool, id: str | None) -> FunctionToolset[Any]:
    tools = [_make_tool(access, tool, approve_forget and tool.name == "forget_memory") for tool in access.selected]
    return LenientToolset(tools, max_retries=MAX_RETRIES, id=id)


def _make_tool(access: VaultAccess, tool: AgentTool, requires_approval: bool) -> Tool[Any]:
    def call(ctx: RunContext[Any], /, **arguments: Any) -> ToolReturn:  # a model may send a `ctx` of its own
        """Synchronous, so that pydantic-ai runs it in a thread: parallel calls do not wait for each other."""
        toolbox = access.toolbox(ctx.deps)
        try:
            result = toolbox.call(tool.name, arguments)
        except KnowledgeError as error:
            raise model_error(error, ctx.last_attempt) from error
        return ToolReturn(result.text, metadata=result.data)

    description = TOOL_NAME.sub(lambda name: access.prefix + name[0], tool.description)
    made = Tool[Any].from_schema(call, tool.name, description, tool.parameters, takes_ctx=True)
    made.requires_approval = requires_approval
    if tool in SKILL_TOOLS:
        made.prepare = partial(_prepare_skill_tool, access)
    made.metadata = {"title": tool.title, "read_only": tool.read_only, "destructive": tool.destructive}
    return made


async def _prepare_skill_tool(access: VaultAccess, ctx: RunContext[Any], tool: ToolDefinition) -> ToolDefinition | None:
    """Hide the tool where there are no skills, so that it costs no tokens."""
    return tool if await anyio.to_thread.run_sync(lambda: access.kb(ctx.deps).local.skills.there()) else None


def model_error(error: KnowledgeError, last_attempt: bool = False) -> ModelRetry | ToolFailed:
    """A mistake that a model can correct is worth another try; anything else is not."""
    correctable = error.exit_code == 2 and not isinstance(error, SettingsError | VaultError)
    text = clean(str(error))  # it may quote refs and titles, which are untrusted text
    return ModelRetry(text) if correctable and not last_attempt else ToolFailed(text)


def _to_object(value: Any) -> Any:
    """`null` and an empty text mean no arguments; anything else that is not an object is refused with a retry."""
    return {} if value is None or value == "" else value


ARGUMENTS = SchemaValidator(
    core_schema.no_info_before_validator_function(_to_object, core_schema.dict_schema(core_schema.str_schema()))
)
