"""For agents that run elsewhere: their tools, and what they would be given for a prompt."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any

from pydantic import BaseModel, Field

from co_cli.entrance.local import LocalKnowledgeBase
from co_cli.searching.context import Context, WorkingSet
from co_cli.server.routes import CALLER, route
from co_cli.tools.tool import ToolResult
from co_cli.tools.toolbox import EVERY_TOOL, RESULT_TOKENS, Toolbox


class WorkingSetFor(BaseModel):
    """A prompt, and how much room there is."""

    prompt: str = ""
    """Without one, only notes that are always added."""
    tokens: int | None = Field(None, ge=1)
    """For notes; by default the setting `context_tokens`."""


class ContextFor(BaseModel):
    """A prompt of an agent that runs elsewhere."""

    prompt: str = ""
    """Without one, the notes that are always added."""
    seen: Sequence[str] = ()
    """Refs of notes that the agent has already."""


class ToolRequest(BaseModel):
    """A tool, and what a model sent to it."""

    name: str
    arguments: dict[str, Any] | None = None
    tokens: int = Field(RESULT_TOKENS, ge=1)
    """The maximum of the answer."""


@lru_cache(4)  # it remembers when it last looked for changed files
def toolbox_of(kb: LocalKnowledgeBase, may_write: bool) -> Toolbox:
    return Toolbox(kb, names=[tool.name for tool in EVERY_TOOL], read_only=not may_write, with_skills=True)


@route("POST", "/tools/{name}", role="read")
def call_tool(kb: LocalKnowledgeBase, asked: ToolRequest) -> ToolResult[dict[str, Any]]:
    """Call a tool of agents, such as `recall_memory`: the text for a model, and the same as data."""
    return toolbox_of(kb, CALLER.get().may("write")).call(asked.name, asked.arguments, asked.tokens)


@route("POST", "/context", role="read")
def choose_notes(kb: LocalKnowledgeBase, asked: ContextFor) -> Context:
    """Choose the notes that an agent elsewhere adds to a prompt."""
    return kb.matching_notes(asked.prompt, asked.seen) if asked.prompt else kb.always_notes()


@route("POST", "/given", role="read")
def show_given(kb: LocalKnowledgeBase, asked: WorkingSetFor) -> WorkingSet:
    """Show exactly what an agent would be given for a prompt, and why. No model is called; nothing is recorded."""
    from co_cli.agent.capability import working_set  # imports pydantic-ai, which `co web` does not wait for

    found = working_set(kb, asked.prompt.strip(), asked.tokens)
    found.report["warnings"] += kb.untrusted_vaults(found.report["degraded"])
    return found
