"""The agent tools as a pydantic-ai toolset: for an agent that wants the tools and nothing else.

Arguments are read by the tools themselves, which forgive what models really send; a mistake that a model can mend comes
back as a retry with the cure, and a thing that is broken as a failed call, so that neither ends a run.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import anyio.to_thread
from pydantic_ai import FunctionToolset, RunContext, Tool, ToolReturn
from pydantic_ai.exceptions import ModelRetry, ToolFailed
from pydantic_ai.tools import ToolDefinition
from pydantic_core import SchemaValidator, core_schema

from co_cli.agent.access import Access
from co_cli.agent.deps import PathLike
from co_cli.errors import KnowledgeError, SettingsError, VaultError
from co_cli.knowledge_base import KnowledgeBase
from co_cli.tools import Tool as AgentTool
from co_cli.tools.fencing import clean
from co_cli.tools.skill_tools import SKILL_TOOLS

MAX_RETRIES = 3
"""Times in a row that a model may get a call wrong before it is told to go on without."""


def knowledge_toolset(
    vault: PathLike | None = None,
    *,
    data_dir: PathLike | None = None,
    knowledge_base: KnowledgeBase | None = None,
    tools: Sequence[str] | None = None,
    read_only: bool = False,
    approve_forget: bool = False,
    result_tokens: int = 2_000,
    skills: bool = False,
    create: bool = False,
    id: str | None = "knowledge",
) -> FunctionToolset[Any]:
    """The tools of a vault, for `Agent(toolsets=[...])`. The vault is opened by the first call.

    `tools` names the ones wanted, `read_only` leaves out those that write. With `approve_forget` the run pauses before
    a note is forgotten: its output type must then include `DeferredToolRequests`, or a handler must be attached.
    `skills` adds tools to find and load skills, wherever there are any. `create` makes the vault if it is not there.
    """
    access = Access(vault, data_dir, knowledge_base, tools, read_only, result_tokens, skills, create)
    return toolset_of(access, approve_forget, id)


def toolset_of(access: Access, approve_forget: bool, id: str | None) -> FunctionToolset[Any]:
    made = [_tool(access, tool, approve_forget and tool.name == "forget_memory") for tool in access.tools]
    return FunctionToolset(made, max_retries=MAX_RETRIES, id=id)


def _tool(access: Access, tool: AgentTool, requires_approval: bool) -> Tool[Any]:
    def call(ctx: RunContext[Any], /, **arguments: Any) -> ToolReturn:  # a model may send a `ctx` of its own
        """Synchronous, so that pydantic-ai runs it in a thread: parallel calls do not wait for each other."""
        toolbox = access.toolbox(ctx.deps)
        try:
            result = toolbox.call(tool.name, arguments)
        except KnowledgeError as error:
            raise told_to_a_model(error, ctx.last_attempt) from error
        return ToolReturn(result.text, metadata=result.data)

    made = Tool[Any].from_schema(call, tool.name, tool.description, tool.parameters, takes_ctx=True)
    made.function_schema.validator = ARGUMENTS
    made.requires_approval = requires_approval
    if tool in SKILL_TOOLS:
        made.prepare = partial(_if_there_are_skills, access)
    made.metadata = {"title": tool.title, "read_only": tool.read_only, "destructive": tool.destructive}
    return made


async def _if_there_are_skills(access: Access, ctx: RunContext[Any], tool: ToolDefinition) -> ToolDefinition | None:
    """An agent that runs where there are no skills pays no tokens for them."""

    def there() -> bool:
        return access.toolbox(ctx.deps).kb.skills.there()

    return tool if await anyio.to_thread.run_sync(there) else None


def told_to_a_model(error: KnowledgeError, last_attempt: bool = False) -> ModelRetry | ToolFailed:
    """A mistake that a model can mend is worth another try; a thing that is broken is not."""
    can_mend = error.exit_code == 2 and not isinstance(error, SettingsError | VaultError)
    said = clean(str(error))  # it may name refs and titles, which are somebody's text
    return ModelRetry(said) if can_mend and not last_attempt else ToolFailed(said)


def _object(value: Any) -> Any:
    """`null` and an empty text mean no arguments; anything else that is no object is refused with a retry."""
    return {} if value is None or value == "" else value


ARGUMENTS = SchemaValidator(
    core_schema.no_info_before_validator_function(_object, core_schema.dict_schema(core_schema.str_schema()))
)
"""Any JSON object: what is in it is read by the tools, which say what would be right."""
