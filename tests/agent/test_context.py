"""Notes about a prompt are added to the user's turn: as data, once, within a budget."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
from pydantic_ai import Agent, ModelMessagesTypeAdapter
from pydantic_ai.messages import (
    BinaryContent,
    CompactionPart,
    ImageUrl,
    ModelMessage,
    ModelRequest,
    ModelResponse,
    TextContent,
    ToolCallPart,
    ToolReturnPart,
    UserPromptPart,
)
from pydantic_ai.result import StreamedRunResult
from pydantic_ai.run import AgentRunResult

from co_cli.agent import Knowledge, capability
from co_cli.agent.injection import KEY
from co_cli.entrance.knowledge_base import KnowledgeBase
from co_cli.ground.settings import load_settings
from tests.agent.scripted import Reports, Script, part_text
from tests.embedding.loopback import OllamaServer
from tests.folder import Vault

ALWAYS = "---\ntitle: Tone\nloading: always\n---\nSpeak plainly to the harbour masters."
CONTEXTUAL = "---\ntitle: Apologies\nloading: contextual\n---\nWhen a harbour master is upset, open with an apology."
UNMARKED = "The spare key of the Lannick harbour hangs in the bakery."


@pytest.fixture(autouse=True)
def notes(vault: Vault) -> None:
    vault.write("memories/tone.md", ALWAYS)
    vault.write("memories/apologies.md", CONTEXTUAL)
    vault.write("memories/lannick-key.md", UNMARKED)
    vault.write("memories/soup.md", "On Thursdays there is soup at noon.")


def injected(result: AgentRunResult[str] | StreamedRunResult[Any, str]) -> list[tuple[str, str]]:
    pieces = context_of(result.new_messages())
    return [(note["ref"], note["why"]) for piece in pieces for note in piece.metadata[KEY]["injected"]]


def refs(result: AgentRunResult[str] | StreamedRunResult[Any, str]) -> list[str]:
    return [ref for ref, _ in injected(result)]


def context_of(messages: list[ModelMessage]) -> list[TextContent]:
    """Every piece of the conversation that we added."""
    prompts = [part for message in messages for part in message.parts if isinstance(part, UserPromptPart)]
    pieces = [piece for prompt in prompts if not isinstance(prompt.content, str) for piece in prompt.content]
    return [piece for piece in pieces if isinstance(piece, TextContent) and KEY in (piece.metadata or {})]


def test_notes_follow_the_prompt_in_the_same_turn_however_the_agent_is_run(knowledge: Knowledge) -> None:
    script = Script(*["Plainly."] * 4)
    agent = Agent(script.model, capabilities=[knowledge])

    async def every_way() -> None:
        await agent.run("How do I speak?")
        async with agent.run_stream("How do I speak?") as streamed:
            assert await streamed.get_output() == "Plainly. "
        assert refs(streamed) == ["memory:tone"]
        async with agent.iter("How do I speak?") as run:
            async for _ in run:
                pass
        assert run.result is not None
        assert refs(run.result) == ["memory:tone"]

    asyncio.run(every_way())
    agent.run_sync("How do I speak?")

    assert len(script.requests) == 4
    for request in script.requests:
        (turn,) = request  # what the model gets is one turn: the prompt, then the notes
        question, context = turn.parts
        assert isinstance(turn, ModelRequest)
        assert part_text(question) == "How do I speak?"
        assert part_text(context).startswith("<knowledge>\n")
        assert part_text(context).endswith("\n</knowledge>")
        assert "harbour masters" not in (turn.instructions or "")


def test_a_note_is_added_once_a_conversation(knowledge: Knowledge) -> None:
    script = Script("In the bakery.", "Still there.", "There.", "Anew.")
    agent = Agent(script.model, capabilities=[knowledge])

    first = agent.run_sync("Where does the spare key of Lannick hang?")
    second = agent.run_sync("Where does the spare key of Lannick hang?", message_history=first.all_messages())
    assert refs(second) == []
    assert script.everything.count(UNMARKED) == 1

    stored = ModelMessagesTypeAdapter.validate_json(second.all_messages_json())
    third = agent.run_sync("The spare key of Lannick hangs where?", message_history=stored)
    assert refs(third) == []

    other = agent.run_sync("Where does the spare key of Lannick hang?")
    assert refs(other) == ["memory:tone", "memory:lannick-key"]


def test_a_note_that_is_always_loaded_is_sent_again_when_it_changed_and_after_a_compaction(
    knowledge: Knowledge, vault: Vault
) -> None:
    agent = Agent(Script(*["Well."] * 5).model, capabilities=[knowledge])
    first = agent.run_sync("Hello!")
    same = agent.run_sync("And now?", message_history=first.all_messages())
    vault.write("memories/tone.md", f"{ALWAYS} Never shout.")
    changed = agent.run_sync("And now?", message_history=same.all_messages())
    settled = agent.run_sync("And now?", message_history=changed.all_messages())
    compacted = [*settled.all_messages(), ModelResponse([CompactionPart("They talked about tone.")])]
    after = agent.run_sync("And now?", message_history=compacted)

    assert [refs(run) for run in (first, same, changed, settled, after)] == [
        ["memory:tone"],
        [],
        ["memory:tone"],
        [],
        ["memory:tone"],
    ]
    assert "Never shout." in context_of(changed.new_messages())[0].content


def test_what_does_not_fit_the_budget_is_cut_and_named(vault: Vault, kb: KnowledgeBase) -> None:
    sentence = "A harbour master likes a plain word more than a long one. "
    vault.write("memories/long.md", f"---\ntitle: Long\nloading: always\nimportance: 1\n---\n{sentence * 60}")
    script = Script("Well.")

    result = Agent(script.model, capabilities=[Knowledge(knowledge_base=kb, context_tokens=200)]).run_sync("Hello!")

    (context,) = context_of(result.all_messages())
    report = context.metadata[KEY]
    assert refs(result) == ["memory:long"]
    assert [note["ref"] for note in report["cut"]] == ["memory:long", "memory:tone"]
    assert report["cut"][0]["tokens"] > 500
    assert len(context.content) <= 200 * 4
    assert 'part="of 870 tokens"' in context.content


@pytest.mark.medium
def test_a_run_does_not_wait_for_an_embedding_server_that_does_not_answer(
    vault: Vault, data_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    server = OllamaServer()
    provider = {"knowledge_embedding_provider": "ollama", "knowledge_embedding_host": server.url}
    flags = {"vault": vault.root, "data_dir": data_dir, **provider}
    with KnowledgeBase.open(settings=load_settings(flags)) as kb:
        kb.sync()
        reports = Reports()
        agent = Agent(Script("Well.", "Well.").model, capabilities=[Knowledge(knowledge_base=kb), reports])
        server.faults = ["503"] * 5
        refused = agent.run_sync(KEY_QUESTION)
        server.faults = ["slow"] * 5
        monkeypatch.setattr(capability, "CONTEXT_SECONDS", 2.0)
        slow = agent.run_sync(KEY_QUESTION + " Now?")
        server.close()  # lets a held answer go

    assert refs(refused) == ["memory:tone", "memory:lannick-key"]
    assert refs(slow) == ["memory:tone"]
    assert "compared by words" in reports.found[0]["degraded"][0]
    assert "took longer" in reports.found[1]["degraded"][0]


KEY_QUESTION = "Where does the spare key of the Lannick harbour hang?"


def test_each_added_note_has_its_reason(knowledge: Knowledge) -> None:
    script = Script("In the bakery.", "Sorry!", "Hello!")
    agent = Agent(script.model, capabilities=[knowledge], metadata={"tenant": "lannick"})

    result = agent.run_sync(KEY_QUESTION)
    assert injected(result) == [("memory:tone", "always"), ("memory:lannick-key", "recalled")]
    assert '<note ref="memory:lannick-key" title="Lannick key" provenance="user" why="recalled">' in script.told
    assert result.metadata == {"tenant": "lannick"}

    upset = agent.run_sync("The harbour master is upset. Write to him.")
    assert ("memory:apologies", "contextual") in injected(upset)
    assert refs(agent.run_sync("Write a haiku about autumn.")) == ["memory:tone"]


def test_notes_that_are_invalid_or_not_ours_are_not_added(knowledge: Knowledge, vault: Vault) -> None:
    body = "The spare key of the Lannick harbour hangs in the chapel."
    vault.write("memories/a.md", f"---\nsuperseded_by: memory:lannick-key\n---\n{body}")
    vault.write("memories/b.md", f"---\nvalid_until: 2020-03-01\n---\n{body} Once.")
    vault.write("memories/c.md", f"---\nvalid_from: 2999-06-01\n---\n{body} Soon.")
    vault.write("memories/d.md", f"---\nprovenance: web\n---\n{body} They say.")

    result = Agent(Script("In the bakery.").model, capabilities=[knowledge]).run_sync(KEY_QUESTION)

    assert refs(result) == ["memory:tone", "memory:lannick-key"]


@pytest.mark.medium
def test_any_prompt_gets_its_notes(knowledge: Knowledge) -> None:
    prompts: list[Any] = [
        "",
        [],
        [KEY_QUESTION, ImageUrl("http://127.0.0.1/key.png")],
        [BinaryContent(b"\x89PNG", media_type="image/png")],
        ["Where does the spare", TextContent("key of Lannick hang?")],
        "key \ud800 \0 of Lannick",
        '"Lannick" -key AND (OR NOT',
        KEY_QUESTION + "log line\n" * 400_000,
    ]
    agent = Agent(Script(*["Well."] * 9).model, capabilities=[knowledge])

    found = [refs(agent.run_sync(prompt)) for prompt in prompts]
    history = agent.run_sync(message_history=[ModelRequest([UserPromptPart(KEY_QUESTION)])])

    assert {refs[0] for refs in found} == {"memory:tone"}
    assert found[2] == found[7] == refs(history) == ["memory:tone", "memory:lannick-key"]


def test_a_run_that_is_not_the_users_turn_or_has_no_room_adds_nothing(kb: KnowledgeBase) -> None:
    history = [
        ModelRequest([UserPromptPart(KEY_QUESTION)]),
        ModelResponse([ToolCallPart("recall_memory", {"query": "key"}, tool_call_id="one")]),
        ModelRequest([ToolReturnPart("recall_memory", "absent", tool_call_id="one")]),
    ]
    script = Script(*["Well."] * 4)
    agent = Agent(script.model, capabilities=[Knowledge(knowledge_base=kb)], instructions="Go on.")

    assert refs(agent.run_sync()) == refs(agent.run_sync(message_history=history)) == []
    for options in ({"context": False}, {"context_tokens": 10}):
        Agent(script.model, capabilities=[Knowledge(knowledge_base=kb, **options)]).run_sync("Hello!")
        assert script.told == "Hello!"
