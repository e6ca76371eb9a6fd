"""A conversation: what a model does with the vault becomes events and a turn, and stopping it leaves no loose end."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest
from pydantic_ai.exceptions import ModelAPIError
from pydantic_ai.messages import ModelMessage, TextPart, ToolCallPart, ToolReturnPart
from pydantic_ai.models import Model
from pydantic_ai.models.function import AgentInfo, DeltaToolCall, DeltaToolCalls, FunctionModel

from co_cli.chat.conversation import Conversation, ToolCall, Turn
from co_cli.chat.screen import Output, request_summary, result_summary
from co_cli.knowledge_base import KnowledgeBase
from tests.agent.scripted import Script
from tests.vault import Vault


class Talk(Output):
    """A conversation, and everything it printed."""

    def __init__(self, kb: KnowledgeBase, model: Model, allow: bool = False) -> None:
        self.printed: list[str] = []
        self.approvals: list[ToolCall] = []
        self.allow = allow
        self.conversation = Conversation(kb, model, self._approve)

    def text(self, piece: str) -> None:
        self.printed.append(piece)

    def line(self, text: str, style: str = "dim") -> None:
        self.printed.append(f"{text}\n")

    async def ask(self, question: str) -> Turn:
        return await self.conversation.ask(question, self)

    def __call__(self, question: str) -> Turn:
        return asyncio.run(self.ask(question))

    async def _approve(self, call: ToolCall) -> bool:
        self.approvals.append(call)
        return self.allow


@pytest.mark.usefixtures("notes")
def test_an_answer_is_printed_and_returned_as_a_turn(kb: KnowledgeBase, vault: Vault) -> None:
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
    assert [save.saved] == ["memory:we-deploy-on-fridays"]
    assert "We deploy on Fridays." in vault.read("memories/we-deploy-on-fridays.md")
    first, second, *words = talk.printed
    assert {first.split()[1], second.split()[1]} == {"recall_memory", "save_memory"}
    assert "".join(words) == turn.answer
    assert turn.usage["requests"] == 2


@pytest.mark.usefixtures("notes")
def test_a_tool_call_is_summarised_on_one_line(kb: KnowledgeBase) -> None:
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

    told = [f"{request_summary(call)} → {result_summary(call)}" for call in turn.calls]
    assert told[0].startswith('recall_memory "how do we deploy" → ')
    assert "memory:blue" in told[0]
    assert told[1].startswith('recall_memory "quarks and gluons quarks and gluons quarks and…" → ')
    assert told[1].endswith("→ nothing there; nearest: memory:blue memory:tea")
    assert told[2] == 'save_memory "Mara drinks green tea." → already known: memory:tea'
    assert told[3] == "read_note memory:blue → Deploys go through the blue pool first"
    assert told[4].startswith("list_memories → 2 memories, memory:")
    assert told[5] == "forget_memory memory:tea → forgotten; /restore memory:tea brings it back"

    turn.calls[0].data["degraded"] = ["files changed and are still being indexed"]
    assert result_summary(turn.calls[0]).endswith("(not everything could be searched)")


def test_the_next_question_builds_on_the_last_until_it_is_cleared(kb: KnowledgeBase) -> None:
    script = Script("Forty-two.", "I said forty-two.", "Nothing yet.")
    talk = Talk(kb, script.model)
    talk("What is it?")
    talk("What did you say?")
    assert "Forty-two." in script.everything

    talk.conversation.messages = []
    talk("What did you say?")
    assert "Forty-two." not in script.everything


def test_what_stood_in_the_prompt_is_in_the_turn(kb: KnowledgeBase, vault: Vault) -> None:
    vault.write("memories/tone.md", "---\ntitle: Tone\nloading: always\n---\nSpeak plainly.")
    talk = Talk(kb, Script("Yes.", "No.").model)

    (note,) = talk("Hello").injected
    assert (note["ref"], note["title"], note["why"]) == ("memory:tone", "Tone", "always")
    assert talk("Hello again").injected == []
    assert "".join(talk.printed).count("· added to the question: memory:tone\n") == 1


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
    assert "no note 'memory:nothing'" in result_summary(turn.calls[0])
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
        assert [note["ref"] for note in (await asking).injected] == ["memory:tone"]
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
        assert talk.printed[-2:] == ["· forget_memory memory:tea → stopped\n", "· stopped\n"]
        assert "memories/tea.md" in vault.notes()

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
    assert "RuntimeError: the lights went out" in turn.problem
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
