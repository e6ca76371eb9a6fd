"""A model that answers from a script, and keeps what it was told. It works for whole and for streamed answers."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from pydantic_ai import RunContext
from pydantic_ai.capabilities import AbstractCapability
from pydantic_ai.messages import (
    AgentStreamEvent,
    ModelMessage,
    ModelRequest,
    ModelResponse,
    TextContent,
    TextPart,
    ToolCallPart,
)
from pydantic_ai.models.function import AgentInfo, DeltaToolCall, DeltaToolCalls, FunctionModel

from co_cli.agent import ContextAddedEvent

Call = tuple[str, Mapping[str, Any] | str]
Turn = str | list[Call] | Callable[[list[ModelMessage]], "Turn"]
"""Text, or tool calls, or what to say once it is known what was said so far."""


class Script:
    """`Script([("recall_memory", {"query": "oaks"})], "Oaks live long.")`; `.model` is for an Agent."""

    def __init__(self, *turns: Turn) -> None:
        self._turns = list(turns)
        self.requests: list[list[ModelMessage]] = []
        self.infos: list[AgentInfo] = []
        self.model = FunctionModel(self._whole, stream_function=self._streamed)

    @property
    def told(self) -> str:
        """What the last request added, as a model would read it: prompts and answers of tools."""
        last = self.requests[-1][-1]
        assert isinstance(last, ModelRequest)
        return "\n".join(part_text(part) for part in last.parts)

    @property
    def everything(self) -> str:
        """All that the last request held, without its instructions."""
        return "\n".join(part_text(part) for message in self.requests[-1] for part in message.parts)

    @property
    def instructions(self) -> str:
        last = self.requests[-1][-1]
        assert isinstance(last, ModelRequest)
        return last.instructions or ""

    def _next(self, messages: list[ModelMessage], info: AgentInfo) -> str | list[Call]:
        self.requests.append(list(messages))
        self.infos.append(info)
        turn = self._turns.pop(0)
        return turn(messages) if callable(turn) else turn  # type: ignore[return-value]

    def _whole(self, messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        turn = self._next(messages, info)
        if isinstance(turn, str):
            return ModelResponse([TextPart(turn)])
        return ModelResponse([ToolCallPart(name, arguments) for name, arguments in turn])  # type: ignore[arg-type]

    async def _streamed(self, messages: list[ModelMessage], info: AgentInfo) -> AsyncIterator[str | DeltaToolCalls]:
        turn = self._next(messages, info)
        if isinstance(turn, str):
            for word in turn.split(" "):
                yield f"{word} "
        else:
            for at, (name, arguments) in enumerate(turn):
                written = arguments if isinstance(arguments, str) else json.dumps(arguments)
                yield {at: DeltaToolCall(name, written)}


class Answering:
    """A model that answers every request with this value as its structured output, and keeps what it was told."""

    def __init__(self, value: Any) -> None:
        self.value, self.told = value, list[str]()
        self.model = FunctionModel(self._answer)

    def _answer(self, messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        self.told.append(str(messages))
        return ModelResponse([ToolCallPart(info.output_tools[0].name, json.dumps({"response": self.value}))])


@dataclass
class Reports(AbstractCapability[Any]):
    """A listener: what `Knowledge` says about each run."""

    found: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])

    async def on_event(self, ctx: RunContext[Any], *, event: AgentStreamEvent) -> None:
        if isinstance(event, ContextAddedEvent):
            self.found.append(event.report)


def part_text(part: object) -> str:
    content: Any = getattr(part, "content", "")
    if isinstance(content, str):
        return content
    if isinstance(content, list):
        return "\n".join(piece.content if isinstance(piece, TextContent) else str(piece) for piece in content)
    return str(content)


def returned(messages: list[ModelMessage], tool: str) -> list[Any]:
    """The metadata of this tool's answers, in order."""
    parts = [part for message in messages for part in message.parts]
    return [part.metadata for part in parts if part.part_kind == "tool-return" and part.tool_name == tool]
