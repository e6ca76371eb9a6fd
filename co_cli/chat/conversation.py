"""A conversation with a model that has the vault's tools: a question in, events while it is answered, then a turn.

Knows no terminal. A run that is stopped or that fails leaves a history the next question can go on from: what was said
is kept, and no tool call stands without its result.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from datetime import date
from typing import Any, cast

from pydantic_ai import Agent
from pydantic_ai.capabilities import HandleDeferredToolCalls
from pydantic_ai.messages import (
    AgentStreamEvent,
    FunctionToolCallEvent,
    FunctionToolResultEvent,
    ModelMessage,
    ModelRequest,
    ModelResponse,
    PartDeltaEvent,
    PartStartEvent,
    TextContent,
    TextPart,
    TextPartDelta,
    ThinkingPartDelta,
    ToolCallPart,
    ToolReturnPart,
    UserPromptPart,
)
from pydantic_ai.models import Model
from pydantic_ai.tools import DeferredToolRequests, DeferredToolResults, RunContext, ToolDenied

from co_cli.agent import Knowledge
from co_cli.agent.injection import KEY
from co_cli.chat.models import full_name, is_unexpected, load_model, problem_of
from co_cli.chat.turn import Beside, CallBegan, CallEnded, Event, Injected, TextCame, Thinking, ToolCall, Turn
from co_cli.errors import KnowledgeError
from co_cli.knowledge_base import KnowledgeBase
from co_cli.logbook import in_log, logger

INSTRUCTIONS = """\
You talk with a person in their terminal. Answer in Markdown, briefly: say what was asked for, and no more.
When you rely on a note, name its ref, such as memory:slug. Today is {today}."""
DENIED = "The person did not allow it. Do not try again unless they ask for it."
STOPPED = "The person stopped the answer before this tool returned."

Show = Callable[[Event], None]
Approve = Callable[[ToolCall], Awaitable[bool]]


class Conversation:
    """Questions and answers that build on each other."""

    def __init__(self, kb: KnowledgeBase, model: str | Model, approve: Approve, today: date | None = None) -> None:
        self.kb, self.approve = kb, approve
        self.messages: list[ModelMessage] = []
        self._model, self._model_name = self._loaded(model)
        self._agent = Agent(
            instructions=INSTRUCTIONS.format(today=today or date.today()),
            capabilities=[
                Knowledge(knowledge_base=kb, approve_forget=True, skills="tools"),
                HandleDeferredToolCalls[Any](handler=self._ask_person),
            ],
            retries=2,
            name="co",
        )

    @property
    def model_name(self) -> str:
        return self._model_name

    def use(self, model: str | Model) -> None:
        """Ask another model from now on. Raises UnusableModelError, and then the old one stays."""
        self._model, self._model_name = self._loaded(model)

    def clear(self) -> None:
        """Begin anew: the model forgets the conversation, the vault keeps what was saved."""
        self.messages = []

    async def ask(self, question: str, show: Show) -> Turn:
        """Ask, and show what comes. Cancelling the task stops the answer and returns what there is of it."""
        turn, spoken = Turn(question, self._model_name), list[str]()
        run: Any = None
        show(Thinking())
        try:
            async with self._agent.iter(question, model=self._model, message_history=self.messages) as run:
                async for node in run:
                    if Agent.is_model_request_node(node) or Agent.is_call_tools_node(node):
                        if Agent.is_model_request_node(node):
                            spoken.clear()
                            show(Thinking())
                        async with node.stream(run.ctx) as events:
                            self._show_beside(run, turn, show)
                            async for event in events:
                                self._take(event, turn, spoken, show)
                turn.answer = str(run.result.output)
        except asyncio.CancelledError:
            turn.stopped = True
            task = asyncio.current_task()
            if task is not None:
                task.uncancel()
        except Exception as error:  # whatever it is: the chat goes on, and the person is told
            turn.problem = problem_of(error, self._model_name, begun=bool(spoken))
            if is_unexpected(error):
                logger("chat").error("a question failed", exc_info=error)
                turn.problem += in_log()
        if turn.stopped or turn.problem:
            turn.answer = "".join(spoken)
            self._interrupt(turn, show)
        if run is not None:
            self._keep(run, turn)
        return turn

    def _keep(self, run: Any, turn: Turn) -> None:
        """What the next question goes on from, and what this one stood on."""
        new: list[ModelMessage] = run.new_messages()
        if turn.stopped or any(isinstance(message, ModelResponse) and message.parts for message in new):
            self.messages = settled(run.all_messages(), turn.answer if turn.stopped or turn.problem else "")
        self._take_report(_report(run, new), turn)
        turn.usage = _usage(run.usage)

    def _show_beside(self, run: Any, turn: Turn, show: Show) -> None:
        """Once, when the first request is on its way: it has them by then."""
        if not turn.injected:
            self._take_report(_report(run, run.new_messages()), turn)
            if turn.injected:
                show(Beside([note.ref for note in turn.injected]))

    def _take_report(self, report: dict[str, Any], turn: Turn) -> None:
        turn.injected = [self._injected(note) for note in report.get("injected", ())]
        turn.cut = [note["ref"] for note in report.get("cut", ())]

    def _injected(self, note: dict[str, Any]) -> Injected:
        try:
            title = self.kb.note(note["ref"]).title
        except KnowledgeError:
            title = ""  # forgotten by this very answer
        return Injected(note["ref"], title, note["why"], note["evidence"])

    def _take(self, event: AgentStreamEvent, turn: Turn, spoken: list[str], show: Show) -> None:
        match event:
            case PartStartEvent(part=TextPart(content=text)) | PartDeltaEvent(delta=TextPartDelta(content_delta=text)):
                if text:
                    spoken.append(text)
                    show(TextCame(text))
            case PartDeltaEvent(delta=ThinkingPartDelta()):
                show(Thinking())
            case FunctionToolCallEvent(part=part):
                if not any(call.id == part.tool_call_id for call in turn.calls):
                    turn.calls.append(ToolCall(part.tool_call_id, part.tool_name, _arguments(part)))
                    show(CallBegan(turn.calls[-1]))
            case FunctionToolResultEvent(part=part):
                for call in turn.calls:
                    if call.id == part.tool_call_id and call.outcome is None:
                        _answer(call, part)
                        show(CallEnded(call))
            case _:
                pass

    def _interrupt(self, turn: Turn, show: Show) -> None:
        for call in turn.calls:
            if call.outcome is None:
                call.outcome = "interrupted"
                show(CallEnded(call))

    async def _ask_person(self, context: RunContext[Any], requests: DeferredToolRequests) -> DeferredToolResults:
        results = DeferredToolResults()
        for part in requests.approvals:
            call = ToolCall(part.tool_call_id, part.tool_name, _arguments(part))
            results.approvals[part.tool_call_id] = True if await self.approve(call) else ToolDenied(DENIED)
        return results

    @staticmethod
    def _loaded(model: str | Model) -> tuple[Model, str]:
        if isinstance(model, str):
            return load_model(model), full_name(model)
        return model, f"{model.system}:{model.model_name}"


def settled(messages: list[ModelMessage], unfinished: str) -> list[ModelMessage]:
    """A history to go on from: the unfinished answer is in it, and each tool call has a result."""
    kept = [message for message in messages if message.parts]  # an answer that was stopped before its first word
    last = kept[-1] if kept else None
    if unfinished and isinstance(last, ModelRequest):
        kept.append(ModelResponse([TextPart(unfinished)]))
    returned = {
        part.tool_call_id
        for message in kept
        if isinstance(message, ModelRequest)
        for part in message.parts
        if isinstance(part, ToolReturnPart) or part.part_kind == "retry-prompt"
    }
    whole: list[ModelMessage] = []
    for message in kept:
        whole.append(message)
        if isinstance(message, ModelResponse):
            open_calls = [
                part for part in message.parts if isinstance(part, ToolCallPart) and part.tool_call_id not in returned
            ]
            if open_calls:
                whole.append(
                    ModelRequest([ToolReturnPart(part.tool_name, STOPPED, part.tool_call_id) for part in open_calls])
                )
    return whole


def _arguments(part: ToolCallPart) -> dict[str, Any]:
    try:
        return part.args_as_dict()
    except ValueError:
        return {"text": str(part.args)}  # broken JSON: shown as it came, and the tool says what is wrong with it


def _answer(call: ToolCall, part: Any) -> None:
    call.outcome = getattr(part, "outcome", None) or "retried"
    content = part.content
    call.text = content if isinstance(content, str) else _told(content)
    metadata = getattr(part, "metadata", None)
    if isinstance(metadata, dict):
        call.data = cast("dict[str, Any]", metadata)


def _told(content: Any) -> str:
    """What came back and is no text: a list of what is wrong with the arguments, each with more than a person needs."""
    if not isinstance(content, list):
        return str(content)
    return "; ".join(str(item.get("msg", item)) for item in cast("list[dict[str, Any]]", content))


def _report(run: Any, new: list[ModelMessage]) -> dict[str, Any]:
    """What Knowledge says it added: in the run's metadata, or, of a run that did not end, in the message itself."""
    metadata: dict[str, Any] = (run.result.metadata if run.result is not None else None) or {}
    if "knowledge" in metadata:
        return metadata["knowledge"]
    parts = [part for message in new if isinstance(message, ModelRequest) for part in message.parts]
    for part in parts:
        for content in part.content if isinstance(part, UserPromptPart) else ():
            said = content.metadata if isinstance(content, TextContent) else None
            if isinstance(said, dict) and KEY in said:
                return cast("dict[str, Any]", said)[KEY]
    return {}


def _usage(usage: Any) -> dict[str, int]:
    names = ("requests", "tool_calls", "input_tokens", "output_tokens")
    return {name: getattr(usage, name) for name in names}
