"""A conversation with a model that can use the vault's tools: a question in, printed output and a Turn out.

An answer that is stopped or fails stays in the history as far as it got, so the next question can build on it.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import signal
import textwrap
from collections.abc import AsyncIterable, Awaitable, Callable
from dataclasses import dataclass, field
from datetime import date
from typing import Any, cast

from pydantic_ai import Agent, capture_run_messages, messages
from pydantic_ai.capabilities import HandleDeferredToolCalls
from pydantic_ai.models import Model
from pydantic_ai.tools import DeferredToolRequests, DeferredToolResults, RunContext, ToolDenied

from co_cli.agent import Knowledge
from co_cli.agent.capability import ContextAddedEvent, keep_said
from co_cli.agent.facet_model import ENOUGH_TURNS, read_conversations
from co_cli.agent.injection import spoken_turns
from co_cli.agent.message_history import load_checkpoint
from co_cli.agent.models import NO_MODEL, UnusableModelError, load_model, problem_of
from co_cli.cli.chat_screen import Output
from co_cli.entrance.local import LocalKnowledgeBase
from co_cli.ground.errors import InvalidInputError, KnowledgeError
from co_cli.notes.files import replace
from co_cli.saving.turns import KeptSession
from co_cli.tools.fencing import clean, plain_ref
from co_cli.tools.memory import forget_memory

INSTRUCTIONS = """\
You talk with a person in their terminal. Answer in Markdown, briefly: say what was asked for, and no more.
When you rely on a note, name its ref, such as memory:slug. Today is {today}."""
DENIED = "The person did not allow it. Do not try again unless they ask for it."
CONVERSATION = "chat-conversation.json"
"""In the data folder: the last conversation, for `co chat --continue`."""
USAGE = ("requests", "tool_calls", "input_tokens", "output_tokens")


@dataclass(slots=True)
class Turn:
    """A question, its answer, and what the answer is based on."""

    question: str
    model: str
    answer: str = ""
    tool_calls: dict[str, dict[str, Any]] = field(default_factory=dict[str, dict[str, Any]])
    """By id: `name`, `arguments`, `outcome`, `result`, and `summary` in one line."""
    injected: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])
    """Notes that were added to the question: `ref`, `why`, `evidence`, `tokens`."""
    usage: dict[str, int] = field(default_factory=dict[str, int])
    stopped: bool = False
    problem: str | None = None
    """Why there is no answer, with the fix, on one line."""


class ChatSession:
    """Questions and answers that build on each other. `confirm` decides whether a note may be forgotten."""

    def __init__(
        self,
        kb: LocalKnowledgeBase,
        model: str | Model | None,
        output: Output,
        confirm: Callable[[str], Awaitable[bool]],
    ) -> None:
        self.kb, self.output, self.confirm = kb, output, confirm
        self.model = model  # a name until the first question: loading takes time, and may fail
        self.messages: list[messages.ModelMessage] = []
        self.keep = False
        """Whether the conversation is stored after each answer."""
        self.private = False
        """Whether nothing more of this conversation is kept, whatever the settings say."""
        self.last: Turn | None = None
        self._conversation: str | None = None  # `new` after a fork, else the messages say it
        self._loop = asyncio.new_event_loop()
        # answers that are stopped are kept, too, so the chat does that itself
        knowledge = Knowledge(knowledge_base=kb, approve_forget=True, skills="tools", private=True)
        self._agent = Agent(
            instructions=INSTRUCTIONS.format(today=date.today()),
            capabilities=[knowledge, HandleDeferredToolCalls[Any](handler=self._ask_for_approval)],
            retries=2,
            name="co",
        )

    @property
    def model_name(self) -> str:
        """With the provider once it is loaded, as in `ollama:qwen3`; empty if there is no model."""
        return f"{self.model.system}:{self.model.model_name}" if isinstance(self.model, Model) else self.model or ""

    def ask(self, question: str) -> Turn:
        """Print the answer as it arrives. Ctrl-C stops it. Raises UnusableModelError if there is no model."""
        if self.model is None:
            raise UnusableModelError(NO_MODEL)
        self.model = load_model(self.model) if isinstance(self.model, str) else self.model
        self.output.status("thinking …")
        task = self._loop.create_task(self.answer(question))

        def stop(*_: object) -> None:
            if not task.cancelling():  # pressing Ctrl-C again changes nothing
                self._loop.call_soon_threadsafe(task.cancel)

        before = signal.signal(signal.SIGINT, stop)
        try:
            return self._loop.run_until_complete(task)
        finally:
            signal.signal(signal.SIGINT, before)
            self.output.finish()
            if self.keep and not self.private:
                self.store()

    def store(self) -> None:
        """Write the conversation to a file that only its owner can read."""
        file = os.path.join(self.kb.settings.data_dir, CONVERSATION)
        said = messages.ModelMessagesTypeAdapter.dump_python(self.messages, mode="json")
        with contextlib.suppress(OSError):  # a full disk must not end the chat
            replace(file, json.dumps({"vault": self.kb.root, "messages": said}).encode(), private=True)

    def resume(self) -> None:
        """Go on with the last conversation that was stored. Raises InvalidInputError if there is none."""
        try:
            with open(os.path.join(self.kb.settings.data_dir, CONVERSATION), encoding="utf-8") as stream:
                stored = json.load(stream)
            if stored["vault"] == self.kb.root:
                self.messages = messages.ModelMessagesTypeAdapter.validate_python(stored["messages"])
        except (OSError, ValueError, LookupError, TypeError):
            self.messages = []
        if not self.messages:
            raise InvalidInputError("there is no conversation about this vault to continue: leave out --continue")

    def fork(self, name: str) -> None:
        """Go on from a checkpoint. Raises InvalidInputError if there is none, or if its vault is not trusted."""
        self.messages, self._conversation = load_checkpoint(self.kb, name), "new"

    def remember(self, least: int = ENOUGH_TURNS) -> None:
        """Before the chat ends, read new turns for memories if there are at least `least`. Ctrl-C skips it for now."""
        if self.private or self.kb.settings.capture not in ("propose", "save") or self.kb.settings.model is None:
            return
        self.output.status("reading the conversation for memories, Ctrl-C skips it …")
        try:
            found = read_conversations(self.kb, least)
            for count, done in ((len(found.saved), "saved"), (len(found.proposed), "proposed")):
                if count:
                    self.output.line(f"· {done} from conversations: {count} (co note review, co forget)")
            if found.problem:
                self.output.line(f"· conversations are read for memories later: {found.problem}")
        except (KnowledgeError, KeyboardInterrupt) as error:
            self.output.line(f"· conversations are read for memories later: {error or 'stopped'}")
        finally:
            self.output.finish()

    async def answer(self, question: str) -> Turn:
        """Cancelling it stops the answer and returns what there is of it."""
        turn = self.last = Turn(question, self.model_name)
        with capture_run_messages() as captured:
            try:
                result = await self._agent.run(
                    question,
                    model=self.model,
                    message_history=self.messages,
                    conversation_id=self._conversation,
                    event_stream_handler=self._follow,
                )
                turn.answer = result.output
                turn.usage = {name: getattr(result.usage, name) for name in USAGE}
            except asyncio.CancelledError:
                turn.stopped = True
                self.output.line("· stopped")
            except Exception as error:  # the chat goes on after any error
                turn.problem = problem_of(error, turn.model, begun=bool(turn.answer))
        if turn.answer or turn.tool_calls or turn.stopped:  # a question that failed at once can be asked again
            said = spoken_turns(captured[len(self.messages) :])
            self.messages = captured
            self._conversation = None
            session = next((message.conversation_id for message in reversed(captured) if message.conversation_id), None)
            if session and said and not self.private and self.kb.captures:
                keep_said(self.kb, KeptSession(session, "co chat"), said)
        return turn

    async def _follow(self, run: RunContext[Any], events: AsyncIterable[messages.AgentStreamEvent]) -> None:
        """Print and record what happens."""
        turn = cast("Turn", self.last)
        async for event in events:
            match event:
                case ContextAddedEvent(report=report) if report.get("injected"):
                    turn.injected = report["injected"]
                    self.output.line(f"· added to the question: {' '.join(note['ref'] for note in turn.injected)}")
                case (
                    messages.PartStartEvent(part=messages.TextPart(content=text))
                    | messages.PartDeltaEvent(delta=messages.TextPartDelta(content_delta=text))
                ):
                    turn.answer += text
                    self.output.text(text)
                case messages.FunctionToolCallEvent(part=part):
                    about = {"name": part.tool_name, "arguments": part.args_as_dict(), "outcome": "interrupted"}
                    turn.tool_calls.setdefault(part.tool_call_id, {**about, "result": {}, "summary": part.tool_name})
                    turn.answer = ""  # what was said before a tool call is not the answer
                    self.output.status(f"{part.tool_name} …")
                case messages.FunctionToolResultEvent(part=part):
                    call = turn.tool_calls[part.tool_call_id]
                    call["outcome"] = getattr(part, "outcome", "retried")
                    call["result"] = getattr(part, "metadata", None) or {}
                    call["summary"] = summarise(call, str(part.content))
                    self.output.line(f"· {call['summary']}")
                    self.output.status("thinking …")
                case _:
                    pass

    async def _ask_for_approval(self, _: RunContext[Any], requests: DeferredToolRequests) -> DeferredToolResults:
        results = DeferredToolResults()
        for part in requests.approvals:
            self.output.finish()
            try:
                allowed = await self.confirm(self.approval_question(part.args_as_dict()))
                results.approvals[part.tool_call_id] = True if allowed else ToolDenied(DENIED)
            except KnowledgeError as error:  # there is no such note, so nobody is asked
                results.approvals[part.tool_call_id] = ToolDenied(clean(str(error)))
        return results

    def approval_question(self, arguments: dict[str, Any]) -> str:
        """`Forget memory:blue-first (Blue takes traffic first)?`, about the note that the tool itself would choose."""
        note = self.kb.note(plain_ref(forget_memory.read_arguments(arguments)[0]["ref"]))
        return f"Forget {note.ref} ({note.title})?"


def summarise(call: dict[str, Any], text: str) -> str:
    """`recall_memory "deploy" → found: memory:blue-pool-first`: what a tool was asked, and what it answered."""
    asked = textwrap.shorten(str(next(iter(call["arguments"].values()), "")), 48, placeholder=" …")
    refs = [str(note["ref"]) for note in call["result"].get("hits") or call["result"].get("notes") or ()]
    found = f"{call['result'].get('state', 'found')}: {' '.join(refs)}" if refs else text
    return f'{call["name"]} "{asked}" → {textwrap.shorten(found, 160, placeholder=" …")}'
