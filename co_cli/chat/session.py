"""A conversation with a model that can use the vault's tools: a question in, printed output and a Turn out.

An answer that is stopped or fails stays in the history as far as it got, so the next question can build on it.
"""

from __future__ import annotations

import asyncio
import signal
from collections.abc import AsyncIterable, Awaitable, Callable
from dataclasses import asdict, dataclass, field
from datetime import date
from typing import Any

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
)
from pydantic_ai.models import Model
from pydantic_ai.tools import DeferredToolRequests, DeferredToolResults, RunContext, ToolDenied

from co_cli.agent import Knowledge
from co_cli.agent.injection import KEY, user_contents
from co_cli.chat.models import NO_MODEL, UnusableModelError, full_name, load_model, problem_of
from co_cli.chat.screen import Output, summarise
from co_cli.errors import KnowledgeError
from co_cli.knowledge_base import KnowledgeBase
from co_cli.tools.fencing import plain_ref
from co_cli.tools.memory import forget_memory

INSTRUCTIONS = """\
You talk with a person in their terminal. Answer in Markdown, briefly: say what was asked for, and no more.
When you rely on a note, name its ref, such as memory:slug. Today is {today}."""
DENIED = "The person did not allow it. Do not try again unless they ask for it."
USAGE = ("requests", "tool_calls", "input_tokens", "output_tokens")


@dataclass(slots=True)
class ToolCall:
    """What a model asked of a tool, and what came back."""

    name: str
    arguments: dict[str, Any]
    outcome: str | None = None
    """`success`, `failed`, `denied`, `interrupted` or `retried`; None while it runs."""
    result: dict[str, Any] = field(default_factory=dict[str, Any])
    summary: str = ""


@dataclass(slots=True)
class Turn:
    """A question, its answer, and what the answer is based on."""

    question: str
    model: str
    answer: str = ""
    tool_calls: dict[str, ToolCall] = field(default_factory=dict[str, ToolCall])
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
        results = [call.result for call in self.tool_calls.values()]
        saved = [result["ref"] for result in results if result.get("outcome") in ("created", "updated")]
        return {**asdict(self), "tool_calls": list(map(asdict, self.tool_calls.values())), "saved": saved}


class ChatSession:
    """Questions and answers that build on each other. `confirm` decides whether a note may be forgotten."""

    def __init__(
        self,
        kb: KnowledgeBase,
        model: str | Model | None,
        output: Output,
        confirm: Callable[[str], Awaitable[bool]],
    ) -> None:
        self.kb, self.output, self.confirm = kb, output, confirm
        self.messages: list[ModelMessage] = []
        self.last: Turn | None = None
        self._model = model  # a name until the first question: loading takes time, and may fail
        self._runner = asyncio.Runner()
        self._agent = Agent(
            instructions=INSTRUCTIONS.format(today=date.today()),
            capabilities=[
                Knowledge(knowledge_base=kb, approve_forget=True, skills="tools"),
                HandleDeferredToolCalls[Any](handler=self._ask_for_approval),
            ],
            retries=2,
            name="co",
        )

    def close(self) -> None:
        self._runner.close()

    @property
    def model_name(self) -> str:
        """With the provider, as in `ollama:qwen3`; empty if there is no model."""
        if isinstance(self._model, Model):
            return f"{self._model.system}:{self._model.model_name}"
        return full_name(self._model) if self._model else ""

    def use_model(self, name: str) -> None:
        """Switch to another model. If it raises UnusableModelError, the previous model stays."""
        self._model = load_model(name)

    def clear(self) -> None:
        """Start a new conversation."""
        self.messages, self.last = [], None

    def ask(self, question: str) -> Turn:
        """Print the answer as it arrives. Ctrl-C stops it. Raises UnusableModelError if there is no model."""
        if self._model is None:
            raise UnusableModelError(NO_MODEL)
        if isinstance(self._model, str):
            self.use_model(self._model)
        self.output.status("thinking …")
        loop = self._runner.get_loop()
        task = loop.create_task(self.answer(question))

        def stop(*_: object) -> None:
            if not task.cancelling():  # pressing Ctrl-C again changes nothing
                loop.call_soon_threadsafe(task.cancel)

        before = signal.signal(signal.SIGINT, stop)
        try:
            self.last = loop.run_until_complete(task)
        finally:
            signal.signal(signal.SIGINT, before)
            self.output.finish()
        return self.last

    async def answer(self, question: str) -> Turn:
        """Cancelling it stops the answer and returns what there is of it."""
        turn = Turn(question, self.model_name)

        async def follow(run: RunContext[Any], events: AsyncIterable[AgentStreamEvent]) -> None:
            if not turn.injected:
                self._record_injected(run, turn)
            async for event in events:
                self._handle(event, turn)

        with capture_run_messages() as messages:
            try:
                result = await self._agent.run(
                    question, model=self._model, message_history=self.messages, event_stream_handler=follow
                )
                turn.answer = result.output
                turn.usage = {name: getattr(result.usage, name) for name in USAGE}
            except asyncio.CancelledError:
                turn.stopped = True
            except Exception as error:  # the chat goes on after any error
                turn.problem = problem_of(error, self.model_name, begun=bool(turn.answer))
        for call in turn.tool_calls.values():
            if call.outcome is None:
                self._finish(call, "interrupted", "stopped")
        if turn.stopped:
            self.output.line("· stopped")
        if turn.answer or turn.tool_calls or turn.stopped:  # a question that failed at once can be asked again
            self.messages = messages
        return turn

    def _record_injected(self, run: RunContext[Any], turn: Turn) -> None:
        """What `Knowledge` added to this question, from the metadata of the text that it added."""
        for content in user_contents([message for message in run.messages if message.run_id == run.run_id]):
            metadata: Any = content.metadata if isinstance(content, TextContent) else None
            if metadata and KEY in metadata:
                turn.cut = [note["ref"] for note in metadata[KEY]["cut"]]
                for note in metadata[KEY]["injected"]:
                    about = {name: note[name] for name in ("ref", "why", "evidence")}
                    turn.injected.append({**about, "title": self.kb.note(note["ref"]).title})
                self.output.line(f"· added to the question: {' '.join(note['ref'] for note in turn.injected)}")

    def _handle(self, event: AgentStreamEvent, turn: Turn) -> None:
        match event:
            case PartStartEvent(part=TextPart(content=text)) | PartDeltaEvent(delta=TextPartDelta(content_delta=text)):
                turn.answer += text
                self.output.text(text)
            case FunctionToolCallEvent(part=part):
                turn.tool_calls.setdefault(part.tool_call_id, ToolCall(part.tool_name, part.args_as_dict()))
                turn.answer = ""  # what was said before a tool call is not the answer
                self.output.status(f"{part.tool_name} …")
            case FunctionToolResultEvent(part=part):
                call = turn.tool_calls[part.tool_call_id]
                call.result = getattr(part, "metadata", None) or {}
                self._finish(call, getattr(part, "outcome", "retried"), str(part.content))
            case _:
                pass

    def _finish(self, call: ToolCall, outcome: str, text: str) -> None:
        call.outcome, call.summary = outcome, summarise(call.name, call.arguments, text, call.result)
        self.output.line(f"· {call.summary}")
        self.output.status("thinking …")

    async def _ask_for_approval(self, _: RunContext[Any], requests: DeferredToolRequests) -> DeferredToolResults:
        results = DeferredToolResults()
        for part in requests.approvals:
            self.output.finish()
            allowed = await self.confirm(self.approval_question(part.args_as_dict()))
            results.approvals[part.tool_call_id] = True if allowed else ToolDenied(DENIED)
        return results

    def approval_question(self, arguments: dict[str, Any]) -> str:
        """`Forget memory:blue-first (Blue takes traffic first)?`, about the note that the tool itself would choose."""
        try:
            note = self.kb.note(plain_ref(forget_memory.read_arguments(arguments)[0]["ref"]))
            return f"Forget {note.ref} ({note.title})?"
        except KnowledgeError:
            return "Forget a note that is not there?"  # the tool reports what is wrong
