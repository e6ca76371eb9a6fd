"""A conversation: what a model does with the vault becomes events and a turn, and stopping it leaves no loose end."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from datetime import date
from typing import Any

import pytest
from pydantic_ai.exceptions import ModelAPIError
from pydantic_ai.messages import ModelMessage, ModelRequest, ModelResponse, TextPart, ToolCallPart, ToolReturnPart
from pydantic_ai.models import Model
from pydantic_ai.models.function import AgentInfo, DeltaToolCall, DeltaToolCalls, FunctionModel

from co_cli.chat.conversation import Conversation, settled
from co_cli.chat.turn import Beside, CallBegan, CallEnded, Event, TextCame, Thinking, ToolCall, answered, asked
from co_cli.knowledge_base import KnowledgeBase
from tests.agent.scripted import Script
from tests.vault import Vault


class Talk:
    """A conversation, and everything it showed."""

    def __init__(self, kb: KnowledgeBase, model: Model, allow: bool = False) -> None:
        self.events: list[Event] = []
        self.approvals: list[ToolCall] = []
        self.allow = allow
        self.conversation = Conversation(kb, model, self._approve, date(2026, 11, 15))

    async def ask(self, question: str) -> Any:
        return await self.conversation.ask(question, self.events.append)

    def __call__(self, question: str) -> Any:
        return asyncio.run(self.ask(question))

    async def _approve(self, call: ToolCall) -> bool:
        self.approvals.append(call)
        return self.allow


@pytest.mark.usefixtures("notes")
def test_an_answer_comes_as_events_and_as_a_turn(kb: KnowledgeBase, vault: Vault) -> None:
    script = Script(
        [("recall_memory", {"query": "how do we deploy"}), ("save_memory", {"content": "We deploy on Fridays."})],
        "Blue first, see memory:blue.",
    )
    talk = Talk(kb, script.model)

    turn = talk("How do we deploy?")

    assert turn.answer.strip() == "Blue first, see memory:blue."
    assert (turn.problem, turn.stopped) == (None, False)
    recall, save = turn.calls
    assert recall.data["hits"][0]["ref"] == "memory:blue"
    assert {"words", "meaning"} <= set(recall.data["hits"][0]["signals"])
    assert turn.saved == [save.data["ref"]] == ["memory:we-deploy-on-fridays"]
    assert "We deploy on Fridays." in vault.read("memories/we-deploy-on-fridays.md")
    kinds = [type(event) for event in talk.events if not isinstance(event, Thinking)]
    assert kinds[:4].count(CallBegan) == 2
    assert kinds[:4].count(CallEnded) == 2
    assert set(kinds[4:]) == {TextCame}
    assert "".join(event.text for event in talk.events if isinstance(event, TextCame)) == turn.answer
    assert turn.usage["requests"] == 2


@pytest.mark.usefixtures("notes")
def test_a_tool_call_is_told_on_one_line(kb: KnowledgeBase) -> None:
    script = Script(
        [
            ("recall_memory", {"query": "how do we\ndeploy"}),
            ("recall_memory", {"query": "quarks and gluons " * 9, "tags": ["none"]}),
            ("save_memory", {"content": "Mara drinks green tea."}),
            ("read_note", {"ref": "memory:blue"}),
            ("list_memories", {}),
            ("forget_memory", {"ref": "memory:tea"}),
        ],
        "Done.",
    )
    turn = Talk(kb, script.model, allow=True)("Do it all.")

    told = [f"{asked(call)} → {answered(call)}" for call in turn.calls]
    assert told[0].startswith('recall_memory "how do we deploy" → ')
    assert "memory:blue" in told[0]
    assert told[1].startswith('recall_memory "quarks and gluons quarks and gluons quarks and…" → ')
    assert told[1].endswith("→ nothing there; nearest: memory:blue memory:tea")
    assert told[2] == 'save_memory "Mara drinks green tea." → known already: memory:tea'
    assert told[3] == "read_note memory:blue → Deploys go through the blue pool first"
    assert told[4].startswith("list_memories → 2 memories, memory:")
    assert told[5] == "forget_memory memory:tea → forgotten; /restore memory:tea brings it back"

    turn.calls[0].data["degraded"] = ["files changed and are still being indexed"]
    assert answered(turn.calls[0]).endswith("(not everything could be asked)")


def test_the_instructions_are_static_and_know_the_day(kb: KnowledgeBase) -> None:
    script = Script("One.", "Two.")
    talk = Talk(kb, script.model)
    talk("a")
    first = script.instructions
    talk("b")

    assert script.instructions == first
    assert "Today is 2026-11-15" in first
    assert "recall_memory" in first


def test_the_next_question_builds_on_the_last_until_it_is_cleared(kb: KnowledgeBase) -> None:
    script = Script("Forty-two.", "I said forty-two.", "Nothing yet.")
    talk = Talk(kb, script.model)
    talk("What is it?")
    talk("What did you say?")
    assert "Forty-two." in script.everything

    talk.conversation.clear()
    talk("What did you say?")
    assert "Forty-two." not in script.everything


def test_what_stood_in_the_prompt_is_in_the_turn(kb: KnowledgeBase, vault: Vault) -> None:
    vault.write("memories/tone.md", "---\ntitle: Tone\nloading: always\n---\nSpeak plainly.")
    talk = Talk(kb, Script("Yes.", "No.").model)

    (note,) = talk("Hello").injected
    assert (note.ref, note.title, note.why) == ("memory:tone", "Tone", "always")
    assert talk("Hello again").injected == []
    assert [event for event in talk.events if isinstance(event, Beside)] == [Beside(["memory:tone"])]


@pytest.mark.usefixtures("notes")
@pytest.mark.parametrize("allow", [True, False])
def test_a_note_is_forgotten_only_if_the_person_allows_it(kb: KnowledgeBase, vault: Vault, allow: bool) -> None:
    script = Script([("forget_memory", {"ref": "memory:tea"})], "Done.")
    talk = Talk(kb, script.model, allow)

    turn = talk("Forget the tea.")

    assert [call.arguments for call in talk.approvals] == [{"ref": "memory:tea"}]
    assert ("memories/tea.md" in vault.notes()) is not allow
    assert turn.calls[0].outcome == ("success" if allow else "denied")
    assert turn.answer.strip() == "Done."
    assert ("did not allow" in script.told) is not allow


def test_a_model_that_gets_a_call_wrong_is_told_and_the_call_is_shown(kb: KnowledgeBase) -> None:
    script = Script([("read_note", {"ref": "memory:nothing"})], "There is none.")
    turn = Talk(kb, script.model)("Read it.")

    assert turn.calls[0].outcome in ("retried", "failed")
    assert "no note 'memory:nothing'" in answered(turn.calls[0])
    assert turn.answer.strip() == "There is none."


class Slow:
    """A model that says a few words, or begins a tool call, and then hangs."""

    def __init__(self, *words: str, then: str = "Better.") -> None:
        self.hanging = asyncio.Event()
        self.requests: list[list[ModelMessage]] = []
        self.words, self.then = words, then
        self.model = FunctionModel(stream_function=self._say)

    async def _say(self, messages: list[ModelMessage], info: AgentInfo) -> AsyncIterator[str | DeltaToolCalls]:
        self.requests.append(messages)
        if len(self.requests) > 1:
            yield self.then
            return
        for word in self.words:
            yield word
        self.hanging.set()
        await asyncio.Event().wait()
        yield {0: DeltaToolCall("recall_memory", "{}")}


def loose_ends(messages: list[ModelMessage]) -> set[str]:
    """Tool calls without a result."""
    parts = [part for message in messages for part in message.parts]
    called = {part.tool_call_id for part in parts if isinstance(part, ToolCallPart)}
    return called - {part.tool_call_id for part in parts if isinstance(part, ToolReturnPart)}


def test_a_stopped_answer_keeps_what_was_said_and_the_conversation_goes_on(kb: KnowledgeBase) -> None:
    async def talk() -> None:
        slow = Slow("Blue ", "first, ")
        talk = Talk(kb, slow.model)
        asking = asyncio.create_task(talk.ask("How do we deploy?"))
        await slow.hanging.wait()
        asking.cancel()
        turn = await asking

        assert turn.stopped
        assert turn.answer == "Blue first, "
        assert turn.problem is None

        again = await talk.ask("Shorter, please.")
        assert (again.answer, again.stopped) == ("Better.", False)
        said = [part for message in slow.requests[1] for part in message.parts]
        assert any(isinstance(part, TextPart) and part.content == "Blue first, " for part in said)
        assert [part.content for part in said if part.part_kind == "user-prompt"][-1] == "Shorter, please."
        assert loose_ends(slow.requests[1]) == set()

    asyncio.run(talk())


def test_a_stopped_answer_knows_what_it_stood_on(kb: KnowledgeBase, vault: Vault) -> None:
    vault.write("memories/tone.md", "---\nloading: always\n---\nSpeak plainly.")

    async def talk() -> None:
        slow = Slow("Well, ")
        talk = Talk(kb, slow.model)
        asking = asyncio.create_task(talk.ask("Hello"))
        await slow.hanging.wait()
        asking.cancel()
        assert [note.ref for note in (await asking).injected] == ["memory:tone"]
        assert (await talk.ask("Hello again")).injected == []

    asyncio.run(talk())


@pytest.mark.usefixtures("notes")
def test_an_answer_stopped_while_a_tool_waits_leaves_no_call_without_a_result(kb: KnowledgeBase, vault: Vault) -> None:
    script = Script([("recall_memory", {"query": "tea"}), ("forget_memory", {"ref": "memory:tea"})], "I stopped.")

    async def talk() -> None:
        talk, asked_person = Talk(kb, script.model), asyncio.Event()

        async def hesitate(call: ToolCall) -> bool:
            asked_person.set()
            await asyncio.Event().wait()
            return True

        talk.conversation.approve = hesitate
        asking = asyncio.create_task(talk.ask("Forget the tea."))
        await asked_person.wait()
        asking.cancel()
        turn = await asking

        assert turn.stopped
        assert {call.name: call.outcome for call in turn.calls}["forget_memory"] == "interrupted"
        assert isinstance(talk.events[-1], CallEnded)
        assert "memories/tea.md" in vault.notes()
        assert loose_ends(talk.conversation.messages) == set()

        again = await talk.ask("What happened?")
        assert again.answer.strip() == "I stopped."
        assert loose_ends(script.requests[-1]) == set()

    asyncio.run(talk())


def test_a_model_that_fails_is_one_line_and_the_question_can_be_asked_again(kb: KnowledgeBase) -> None:
    async def say(messages: list[ModelMessage], info: AgentInfo) -> AsyncIterator[str]:
        asked = [part.content for message in messages for part in message.parts if part.part_kind == "user-prompt"]
        seen.append(asked)
        if len(seen) == 1:
            raise RuntimeError("the lights\nwent out")
        yield "Here I am."

    seen: list[list[object]] = []
    talk = Talk(kb, FunctionModel(stream_function=say))

    turn = talk("Are you there?")
    assert turn.problem is not None
    assert turn.problem.endswith("RuntimeError: the lights went out")
    assert "\n" not in turn.problem

    assert talk("Are you there?").answer == "Here I am."
    assert seen[1] == ["Are you there?"]


def test_an_answer_that_breaks_off_is_kept_as_far_as_it_came(kb: KnowledgeBase) -> None:
    async def say(messages: list[ModelMessage], info: AgentInfo) -> AsyncIterator[str]:
        seen.append(messages)
        yield "Blue first, "
        if len(seen) == 1:
            raise ModelAPIError("qwen3", "Connection error.")

    seen: list[list[ModelMessage]] = []
    talk = Talk(kb, FunctionModel(stream_function=say))

    turn = talk("How do we deploy?")
    assert turn.answer == "Blue first, "
    assert "broke off in the middle of the answer: ask again" in str(turn.problem)

    assert talk("Go on.").problem is None
    assert any(isinstance(part, TextPart) for message in seen[1] for part in message.parts)


def test_a_history_is_settled_whatever_it_ends_with() -> None:
    call = ToolCallPart("recall_memory", {}, "c1")
    done = ToolCallPart("recall_memory", {}, "c2")
    asked_ = ModelRequest.user_text_prompt("?")
    result = ModelRequest([ToolReturnPart("recall_memory", "found", "c2")])

    histories = ([], [asked_], [asked_, ModelResponse([call])], [asked_, ModelResponse([call, done]), result])
    for history in histories:
        assert loose_ends(settled(history, "half")) == set()
    assert isinstance(settled([asked_], "half")[-1], ModelResponse)
    assert settled([asked_], "") == [asked_]
    assert settled([asked_, ModelResponse([])], "") == [asked_]
