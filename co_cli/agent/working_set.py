"""What an agent is given before its first turn, asked of the agent itself.

A real agent with the capability runs against a model that only listens: whatever it heard is what any model would.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from pydantic_ai import Agent
from pydantic_ai.messages import ModelMessage, ModelRequest, ModelResponse, TextContent, TextPart
from pydantic_ai.models.function import AgentInfo, FunctionModel

from co_cli.agent.capability import Knowledge
from co_cli.agent.injection import OPENING, user_contents
from co_cli.knowledge_base import KnowledgeBase
from co_cli.tools.budget import estimate_tokens

PATIENCE = 30.0
"""Seconds: whoever asks what belongs beside a prompt wants to see it, also on a slow disk."""


class WorkingSet(NamedTuple):
    """All of it, each with about what it costs in tokens."""

    instructions: str
    instructions_tokens: int
    tools: dict[str, int]
    knowledge: str
    """The part of the user's turn that holds the notes; empty if none belongs there."""
    knowledge_tokens: int
    report: dict[str, Any]
    """`injected`, `cut`, `budget`, `degraded`, and `warnings` if there are any."""


def working_set(kb: KnowledgeBase, task: str, context_tokens: int | None = None) -> WorkingSet:
    """For this task as the first prompt; an empty one brings what is always there."""
    heard: list[tuple[list[ModelMessage], AgentInfo]] = []

    def listen(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        heard.append((list(messages), info))
        return ModelResponse([TextPart("heard")])

    given = Knowledge(knowledge_base=kb, context_tokens=context_tokens, context_seconds=PATIENCE)
    agent = Agent(FunctionModel(listen), capabilities=[given])
    metadata = agent.run_sync(task or " ").metadata or {}
    messages, info = heard[0]
    instructions = "\n".join(one.instructions or "" for one in messages if isinstance(one, ModelRequest)).strip()
    texts = [content.content if isinstance(content, TextContent) else content for content in user_contents(messages)]
    knowledge = "\n".join(text for text in texts if isinstance(text, str) and text.startswith(OPENING))
    tools = {
        tool.name: estimate_tokens(f"{tool.name} {tool.description or ''} {tool.parameters_json_schema}")
        for tool in info.function_tools
    }
    report: dict[str, Any] = metadata.get("knowledge", {})
    return WorkingSet(instructions, estimate_tokens(instructions), tools, knowledge, estimate_tokens(knowledge), report)
