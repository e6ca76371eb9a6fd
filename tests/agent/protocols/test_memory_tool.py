"""The memory tool in a pydantic-ai agent: whole conversations, and what goes over the wire to Anthropic."""

from __future__ import annotations

import json
from typing import Any

import httpx2
import pytest
from pydantic_ai import Agent, ModelMessage, ToolReturnPart, models
from pydantic_ai.capabilities import NativeTool
from pydantic_ai.exceptions import UserError
from pydantic_ai.native_tools import MemoryTool

from co_cli.agent import CoDeps, memory_tool
from co_cli.entrance.knowledge_base import KnowledgeBase
from tests.agent.scripted import Script, Turn
from tests.folder import Vault


def returns(messages: list[ModelMessage]) -> list[str]:
    return [str(part.content) for message in messages for part in message.parts if isinstance(part, ToolReturnPart)]


def scripted(*commands: dict[str, Any]) -> Script:
    turns: list[Turn] = [[("memory", command)] for command in commands]
    return Script(*turns, "done")


def test_a_model_looks_writes_corrects_and_tidies_up(kb: KnowledgeBase) -> None:
    path = "/memories/progress.txt"
    script = scripted(
        {"command": "view", "path": "/memories"},
        {"command": "create", "path": path, "file_text": "Status: started\nNext: the parser\n"},
        {"command": "str_replace", "path": path, "old_str": "started", "new_str": "parser done"},
        {"command": "insert", "path": path, "insert_line": 2, "insert_text": "Then: the printer"},
        {"command": "rename", "old_path": path, "new_path": "/memories/done/progress.txt"},
        {"command": "delete", "path": "/memories/nothing.txt"},
        {"command": "view", "path": "/memories/done/progress.txt"},
    )

    answers = returns(Agent(script.model, tools=[memory_tool(knowledge_base=kb)]).run_sync("Go on.").all_messages())

    assert [answer.split("\n")[0] for answer in answers[1:-1]] == [
        "File created successfully at: /memories/progress.txt",
        "The memory file has been edited. Here is the snippet showing the change (with line numbers):",
        "The file /memories/progress.txt has been edited.",
        "Successfully renamed /memories/progress.txt to /memories/done/progress.txt",
        "Error: The path /memories/nothing.txt does not exist. Please provide a valid path.",
    ]
    assert answers[-1].endswith("1\tStatus: parser done\n     2\tNext: the parser\n     3\tThen: the printer")
    assert [hit.ref for hit in kb.search("printer parser").hits] == ["memory:done/progress.txt"]
    assert kb.note("memory:done/progress.txt").provenance == "agent"


def test_the_vault_comes_from_the_runs_deps_and_must_exist(kb: KnowledgeBase, vault: Vault, tmp_path: Any) -> None:
    command = {"command": "create", "path": "/memories/a.txt", "file_text": "Blue."}

    agent = Agent(scripted(command).model, deps_type=CoDeps, tools=[memory_tool()])
    agent.run_sync("Remember.", deps=CoDeps(kb))

    assert vault.notes() == ["memories/a.txt.md"]
    with pytest.raises(UserError, match="cannot be opened: no vault at"):
        Agent(scripted(command).model, tools=[memory_tool(tmp_path / "nowhere")]).run_sync("Hello.")


def test_claude_gets_the_tool_it_was_trained_on(kb: KnowledgeBase) -> None:
    pytest.importorskip("anthropic", reason="the client of Anthropic is not installed: pydantic-ai-slim[anthropic]")
    from anthropic import AsyncAnthropic
    from pydantic_ai.models.anthropic import AnthropicModel
    from pydantic_ai.providers.anthropic import AnthropicProvider

    requests: list[httpx2.Request] = []
    path = "/memories/tea.txt"
    create = {"command": "create", "path": path, "file_text": "Anna likes tea.\n"}
    turns: list[tuple[str, dict[str, Any]]] = [
        *(("tool_use", {"id": "t0", "name": "memory", "input": create}),),
        *(("tool_use", {"id": "t1", "name": "memory", "input": {"command": "view", "path": path}}),),
        *(("text", {"text": "done"}),),
    ]

    def answer(request: httpx2.Request) -> httpx2.Response:
        kind, content = turns[len(requests)]
        requests.append(request)
        message = {"id": "m", "type": "message", "role": "assistant", "model": "claude-sonnet-5-5"}
        reason = {"stop_reason": "tool_use" if kind == "tool_use" else "end_turn", "stop_sequence": None}
        usage = {"input_tokens": 1, "output_tokens": 1}
        return httpx2.Response(200, json={**message, **reason, "content": [{"type": kind, **content}], "usage": usage})

    http = httpx2.AsyncClient(transport=httpx2.MockTransport(answer))
    provider = AnthropicProvider(anthropic_client=AsyncAnthropic(api_key="none", http_client=http))
    model = AnthropicModel("claude-sonnet-5-5", provider=provider)
    agent = Agent(model, tools=[memory_tool(knowledge_base=kb)], capabilities=[NativeTool(MemoryTool())])

    with models.override_allow_model_requests(True):  # nothing leaves this process
        result = agent.run_sync("I like tea.", model_settings={"max_tokens": 100})

    assert result.output == "done"
    assert json.loads(requests[0].content)["tools"] == [{"type": "memory_20250818", "name": "memory"}]
    assert "context-management-2025-06-27" in requests[0].headers["anthropic-beta"]
    assert [answer.split("\n")[-1] for answer in returns(result.all_messages())] == [
        f"File created successfully at: {path}",
        "     1\tAnna likes tea.",
    ]
    assert [hit.ref for hit in kb.search("tea").hits] == ["memory:tea.txt"]
