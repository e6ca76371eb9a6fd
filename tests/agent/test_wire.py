"""The whole way: an Ollama model of pydantic-ai, over HTTP, to a server that streams scripted tool calls."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import pytest
from pydantic_ai import Agent, models

from co_cli.agent import Knowledge
from co_cli.knowledge_base import KnowledgeBase
from tests.agent.scripted import returned
from tests.chat_server import ChatServer, calls, fails, text
from tests.vault import Vault


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[ChatServer]:
    """The model is a server of ours on loopback: this is the one place where models may be asked over HTTP."""
    monkeypatch.setattr(models, "ALLOW_MODEL_REQUESTS", True)
    with ChatServer() as server:
        monkeypatch.setenv("OLLAMA_BASE_URL", server.url)
        yield server


def test_streamed_tool_calls_save_and_recall_and_the_answer_streams(
    server: ChatServer, kb: KnowledgeBase, vault: Vault
) -> None:
    vault.write("memories/tone.md", "---\nloading: always\n---\nSpeak plainly.")
    server.turns = [
        calls(
            ("save_memory", {"content": "Blue takes traffic first.", "tags": "deploy"}),
            ("recall_memory", {"query": "how do I speak", "limit": "3"}),
        ),
        text("Saved: ", "blue ", "first.", thoughts=["It said created."]),
    ]
    agent = Agent("ollama:qwen3", capabilities=[Knowledge(knowledge_base=kb)])

    async def talk() -> list[str]:
        async with agent.run_stream("Remember that blue takes traffic first.") as answer:
            heard = [piece async for piece in answer.stream_text(delta=True, debounce_by=None)]
        (receipt,) = returned(answer.all_messages(), "save_memory")
        assert receipt["outcome"] == "created"
        (found,) = returned(answer.all_messages(), "recall_memory")
        assert found["hits"][0]["ref"] == "memory:tone"
        return heard

    assert asyncio.run(talk()) == ["Saved: ", "blue ", "first."]
    assert "tags: [deploy]" in vault.read("memories/blue-takes-traffic-first.md")

    first, second = server.requests
    assert first["stream"]
    tools = {tool["function"]["name"]: tool["function"] for tool in first["tools"]}
    assert tools["recall_memory"]["parameters"]["required"] == ["query"]
    assert "Speak plainly" in server.said("user", 0)
    assert "Speak plainly" not in server.said("system", 0)
    assert "save_memory" in server.said("system", 0)
    assert "created memory:blue-takes-traffic-first" in server.said("tool", 1)
    assert [message["role"] for message in second["messages"]].count("user") == [
        message["role"] for message in first["messages"]
    ].count("user")


def test_what_was_saved_before_the_model_failed_stays_saved(
    server: ChatServer, kb: KnowledgeBase, vault: Vault
) -> None:
    server.turns = [calls(("save_memory", {"content": "Oaks live long."})), fails(400)]

    with pytest.raises(Exception, match="400"):
        Agent("ollama:qwen3", capabilities=[Knowledge(knowledge_base=kb)]).run_sync("Remember oaks.")

    assert vault.notes() == ["memories/oaks-live-long.md"]
