"""A conversation with a model that can use the vault's tools: a question in, printed output and a Turn out.

An answer that is stopped or fails stays in the history as far as it got, so the next question can build on it.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterable, Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from datetime import date
from typing import Any, cast

from pydantic_ai import Agent, capture_run_messages
from pydantic_ai.capabilities import HandleDeferredToolCalls
from pydantic_ai.messages import (
    AgentStreamEvent,
    FunctionToolCallEvent,
    FunctionToolResultEvent,
    ModelMessage,
    PartDeltaEvent,
    PartStartEvent,
    TextContent,
    TextPart,
    TextPartDelta,
    ToolCallPart,
)
from pydantic_ai.models import Model
from pydantic_ai.tools import DeferredToolRequests, DeferredToolResults, RunContext, ToolDenied

from co_cli.agent import Knowledge
from co_cli.agent.injection import KEY, user_contents
from co_cli.chat.models import full_name, load_model, problem_of
from co_cli.chat.screen import Output, print_call, short_list
from co_cli.errors import KnowledgeError
from co_cli.knowledge_base import KnowledgeBase

INSTRUCTIONS = """\
You talk with a person in their terminal. Answer in Markdown, briefly: say what was asked for, and no more.
When you rely on a note, name its ref, such as memory:slug. Today is {today}."""
DENIED = "The person did not allow it. Do not try again unless they ask for it."
USAGE = ("requests", "tool_calls", "input_tokens", "output_tokens")


@dataclass(slots=True)
class ToolCall:
    """What a model asked of a tool, and what came back."""

    id: str
    name: str
    arguments: dict[str, Any]
    outcome: str | None = None
    """`success`, `failed`, `denied`, `interrupted` or `retried`; None while it runs."""
    text: str = ""
    """What the model was sent."""
    data: dict[str, Any] = field(default_factory=dict[str, Any])
    """The same as plain values."""

    @property
    def saved(self) -> str | None:
        """The ref of the note that this call wrote."""
        return self.data.get("ref") if self.data.get("outcome") in ("created", "updated") else None

    @property
    def returned(self) -> Sequence[dict[str, Any]]:
        """The notes that this call showed to the model."""
        if "outcome" in self.data or "trash" in self.data:
            return []
        return self.data.get("hits", [self.data] if "ref" in self.data else [])


@dataclass(slots=True)
class Turn:
    """A question, its answer, and what the answer is based on."""

    question: str
    model: str
    answer: str = ""
    calls: list[ToolCall] = field(default_factory=list[ToolCall])
    injected: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])
    """Notes that were added to the question: `ref`, `title`, `why`, `evidence`."""
    cut: list[str] = field(default_factory=list[str])
    """Refs that were left out of the prompt for lack of space."""
    usage: dict[str, int] = field(default_factory=dict[str, int])
    stopped: bool = False
    problem: str | None = None
    """Why there is no answer, with the fix, on one line."""

    def as_object(self) -> dict[str, Any]:
        """For `--json`."""
        return {
            "question": self.question,
            "answer": self.answer,
            "model": self.model,
            "injected": self.injected,
            "cut": self.cut,
            "tool_calls": [
                {"name": call.name, "arguments": call.arguments, "outcome": call.outcome, "result": call.data}
                for call in self.calls
            ],
            "saved": list(dict.fromkeys(call.saved for call in self.calls if call.saved)),
            "usage": self.usage,
            "stopped": self.stopped,
        }


class Conversation:
    """Questions and answers that build on each other. `approve` decides whether a note may be forgotten."""

    def __init__(self, kb: KnowledgeBase, model: str | Model, approve: Callable[[ToolCall], Awaitable[bool]]) -> None:
        self.kb, self.approve = kb, approve
        self.messages: list[ModelMessage] = []
        self.use(model)
        self._agent = Agent(
            instructions=INSTRUCTIONS.format(today=date.today()),
            capabilities=[
                Knowledge(knowledge_base=kb, approve_forget=True, skills="tools"),
                HandleDeferredToolCalls[Any](handler=self._ask_for_approval),
            ],
            retries=2,
            name="co",
        )

    def use(self, model: str | Model) -> None:
        """Switch to another model. If it raises UnusableModelError, the previous model stays."""
        self._model = load_model(model) if isinstance(model, str) else model
        self.model_name = full_name(model) if isinstance(model, str) else f"{model.system}:{model.model_name}"

    async def ask(self, question: str, output: Output) -> Turn:
        """Ask, and print what comes. Cancelling the task stops the answer and returns what there is of it."""
        turn = Turn(question, self.model_name)

        async def follow(run: RunContext[Any], events: AsyncIterable[AgentStreamEvent]) -> None:
            if not turn.usage:
                self._read_report(turn, _report(run))
                if turn.injected:
                    output.line(f"· added to the question: {short_list([note['ref'] for note in turn.injected])}")
            turn.usage = {name: getattr(run.usage, name) for name in USAGE}
            async for event in events:
                _handle(event, turn, output)

        with capture_run_messages() as messages:
            try:
                result = await self._agent.run(
                    question, model=self._model, message_history=self.messages, event_stream_handler=follow
                )
                turn.answer = result.output
                turn.usage = {name: getattr(result.usage, name) for name in USAGE}
                self._read_report(turn, (result.metadata or {}).get("knowledge", {}))
            except asyncio.CancelledError:
                turn.stopped = True
            except Exception as error:  # the chat goes on after any error
                turn.problem = problem_of(error, self.model_name, begun=bool(turn.answer))
        for call in turn.calls:
            if call.outcome is None:
                call.outcome = "interrupted"
                print_call(output, call)
        if turn.stopped:
            output.line("· stopped")
        if turn.answer or turn.calls or turn.stopped:  # a question that failed at once can be asked again
            self.messages = messages
        return turn

    def _read_report(self, turn: Turn, report: dict[str, Any]) -> None:
        turn.cut = [note["ref"] for note in report.get("cut", ())]
        turn.injected = [
            {"ref": note["ref"], "title": self._title(note["ref"]), "why": note["why"], "evidence": note["evidence"]}
            for note in report.get("injected", ())
        ]

    def _title(self, ref: str) -> str:
        try:
            return self.kb.note(ref).title
        except KnowledgeError:
            return ""  # this answer has just forgotten it

    async def _ask_for_approval(self, _: RunContext[Any], requests: DeferredToolRequests) -> DeferredToolResults:
        results = DeferredToolResults()
        for part in requests.approvals:
            results.approvals[part.tool_call_id] = True if await self.approve(_call(part)) else ToolDenied(DENIED)
        return results


def _report(run: RunContext[Any]) -> dict[str, Any]:
    """What `Knowledge` added to the question of this run: it is in the metadata of the text that it added."""
    for content in user_contents([message for message in run.messages if message.run_id == run.run_id]):
        metadata: Any = content.metadata if isinstance(content, TextContent) else None
        if metadata and KEY in metadata:
            return metadata[KEY]
    return {}


def _handle(event: AgentStreamEvent, turn: Turn, output: Output) -> None:
    match event:
        case PartStartEvent(part=TextPart(content=text)) | PartDeltaEvent(delta=TextPartDelta(content_delta=text)):
            if text:
                turn.answer += text
                output.text(text)
        case FunctionToolCallEvent(part=part) if all(call.id != part.tool_call_id for call in turn.calls):
            turn.calls.append(_call(part))
            turn.answer = ""  # what was said before a tool call is not the answer
            output.status(f"{part.tool_name} …")
        case FunctionToolResultEvent(part=part):
            for call in turn.calls:
                if call.id == part.tool_call_id and call.outcome is None:
                    call.outcome = getattr(part, "outcome", None) or "retried"
                    call.text = _text(part.content)
                    call.data = getattr(part, "metadata", None) or {}
                    print_call(output, call)
            output.status("thinking …")
        case _:
            pass


def _call(part: ToolCallPart) -> ToolCall:
    try:
        return ToolCall(part.tool_call_id, part.tool_name, part.args_as_dict())
    except ValueError:  # broken JSON; the tool's answer says what is wrong with it
        return ToolCall(part.tool_call_id, part.tool_name, {"text": str(part.args)})


def _text(content: Any) -> str:
    """A tool's answer as text. Invalid arguments come as a list of errors, of which only the message matters here."""
    if not isinstance(content, list):
        return str(content)
    return "; ".join(str(error.get("msg", error)) for error in cast("list[dict[str, Any]]", content))
