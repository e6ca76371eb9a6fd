"""A conversation: a model's answers and tool calls become a turn, and stopping one leaves no loose end."""

from __future__ import annotations

import asyncio
import io
from collections.abc import AsyncIterator, Awaitable, Callable

import pytest
from pydantic_ai.messages import ModelMessage, TextPart, ToolCallPart, ToolReturnPart
from pydantic_ai.models import Model
from pydantic_ai.models.function import AgentInfo, DeltaToolCall, DeltaToolCalls, FunctionModel

from co_cli.cli.chat_screen import Output
from co_cli.cli.chat_session import ChatSession, Turn
from co_cli.entrance.knowledge_base import KnowledgeBase
from co_cli.tools import Toolbox
from tests.agent.scripted import Script
from tests.folder import Vault


class Talk:
    """A session, everything it printed, and what the person was asked."""

    def __init__(self, kb: KnowledgeBase, model: Model, allow: bool = False) -> None:
        self.printed, self.questions = io.StringIO(), list[str]()

        async def confirm(question: str) -> bool:
            self.questions.append(question)
            return allow

        self.session = ChatSession(kb, model, Output(self.printed, self.printed, markdown=False), confirm)

    def __call__(self, question: str) -> Turn:
        return asyncio.run(self.session.answer(question))

    async def stopped(self, question: str, when: Callable[[], Awaitable[object]]) -> Turn:
        """Ask, and stop the answer at a certain moment."""
        asking = asyncio.create_task(self.session.answer(question))
        await when()
        asking.cancel()
        return await asking


@pytest.mark.usefixtures("notes")
def test_an_answer_is_printed_and_returned_as_a_turn(kb: KnowledgeBase, vault: Vault) -> None:
    vault.write("memories/tone.md", "---\ntitle: Tone\nloading: always\n---\nSpeak plainly.")
    script = Script(
        [("recall_memory", {"query": "how do we\ndeploy"}), ("save_memory", {"content": "We deploy on Fridays."})],
        "Blue first, see memory:blue.",
        "I said blue.",
    )
    talk = Talk(kb, script.model)

    turn = talk("How do we deploy?")

    assert turn.answer.strip() == "Blue first, see memory:blue."
    assert (turn.problem, turn.stopped, turn.usage["requests"]) == (None, False, 2)
    recall, save = turn.tool_calls.values()
    assert "memory:blue" in [hit["ref"] for hit in recall["result"]["hits"]]
    assert recall["summary"].startswith('recall_memory "how do we deploy" → found: memory:')
    assert save["summary"].startswith('save_memory "We deploy on Fridays." → created memory:we-deploy-on-fridays ')
    assert save["result"]["ref"] == "memory:we-deploy-on-fridays"
    assert "We deploy on Fridays." in vault.read("memories/we-deploy-on-fridays.md")
    assert [(note["ref"], note["why"]) for note in turn.injected] == [("memory:tone", "always")]
    printed = talk.printed.getvalue()
    assert printed.startswith("· added to the question: memory:tone\n· ")
    assert printed.endswith(turn.answer)

    assert talk("What did you say?").injected == []
    assert "Blue first" in script.everything


@pytest.mark.usefixtures("notes")
def test_a_note_is_forgotten_only_if_the_person_allows_it(kb: KnowledgeBase, vault: Vault) -> None:
    for allow in (False, True):
        script = Script([("forget_memory", {"ref": "memory:tea"})], "Done.")
        talk = Talk(kb, script.model, allow)

        turn = talk("Forget the tea.")

        assert talk.questions == ["Forget memory:tea (Tea)?"]
        assert ("memories/tea.md" in vault.notes()) is not allow
        assert [call["outcome"] for call in turn.tool_calls.values()] == ["success" if allow else "denied"]
        assert ("did not allow" in script.told) is not allow


def test_nobody_is_asked_about_a_note_that_is_not_there(kb: KnowledgeBase) -> None:
    for arguments, problem in (({"ref": "memory:tea"}, "no note 'memory:tea'"), ({}, "forget_memory needs ref")):
        script = Script([("forget_memory", arguments)], "There is none.")
        talk = Talk(kb, script.model, allow=True)

        turn = talk("Forget the tea.")

        assert (talk.questions, turn.answer.strip()) == ([], "There is none.")
        assert problem in script.told


def test_the_person_is_asked_about_the_note_that_would_be_forgotten(kb: KnowledgeBase, vault: Vault) -> None:
    for arguments in (
        {"ref": "memory:precious"},
        {"ref": "precious", "slug": "memory:junk"},
        {"ref": "co://memory/precious"},
    ):
        vault.write("memories/precious.md", "---\ntitle: Precious\n---\nKeep it.")
        vault.write("memories/junk.md", "---\ntitle: Junk\n---\nThrow it away.")
        kb.sync()

        question = Talk(kb, Script().model).session.approval_question(dict(arguments))
        Toolbox(kb).call("forget_memory", arguments)

        assert question == "Forget memory:precious (Precious)?", arguments
        assert vault.notes() == ["memories/junk.md"], arguments


def loose_ends(messages: list[ModelMessage]) -> set[str]:
    """Tool calls without a result."""
    parts = [part for message in messages for part in message.parts]
    called = {part.tool_call_id for part in parts if isinstance(part, ToolCallPart)}
    return called - {part.tool_call_id for part in parts if isinstance(part, ToolReturnPart)}


def test_a_stopped_answer_keeps_what_was_said_and_the_conversation_goes_on(kb: KnowledgeBase) -> None:
    requests: list[list[ModelMessage]] = []

    async def talk() -> None:
        hanging = asyncio.Event()

        async def say(messages: list[ModelMessage], info: AgentInfo) -> AsyncIterator[str | DeltaToolCalls]:
            requests.append(messages)
            yield "Blue first, "
            if len(requests) == 1:
                hanging.set()
                await asyncio.Event().wait()
                yield {0: DeltaToolCall("recall_memory", "{}")}

        talk = Talk(kb, FunctionModel(stream_function=say))
        turn = await talk.stopped("How do we deploy?", hanging.wait)
        assert (turn.stopped, turn.answer, turn.problem) == (True, "Blue first, ", None)

        again = await talk.session.answer("Shorter, please.")
        assert (again.answer, again.stopped) == ("Blue first, ", False)

    asyncio.run(talk())
    said = [part for message in requests[1] for part in message.parts]
    assert any(isinstance(part, TextPart) and part.content == "Blue first, " for part in said)
    assert [part.content for part in said if part.part_kind == "user-prompt"][-1] == "Shorter, please."


@pytest.mark.usefixtures("notes")
def test_an_answer_stopped_while_a_tool_waits_leaves_no_call_without_a_result(kb: KnowledgeBase, vault: Vault) -> None:
    script = Script([("recall_memory", {"query": "tea"}), ("forget_memory", {"ref": "memory:tea"})], "I stopped.")

    async def talk() -> None:
        talk, asked = Talk(kb, script.model), asyncio.Event()

        async def hesitate(question: str) -> bool:
            asked.set()
            await asyncio.Event().wait()
            return True

        talk.session.confirm = hesitate
        turn = await talk.stopped("Forget the tea.", asked.wait)

        assert {call["name"]: call["outcome"] for call in turn.tool_calls.values()}["forget_memory"] == "interrupted"
        assert talk.printed.getvalue().endswith("· stopped\n")
        assert "memories/tea.md" in vault.notes()
        assert (await talk.session.answer("What happened?")).answer.strip() == "I stopped."

    asyncio.run(talk())
    assert loose_ends(script.requests[-1]) == set()
