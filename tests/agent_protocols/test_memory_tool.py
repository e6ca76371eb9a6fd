"""The memory tool in a pydantic-ai agent: whole conversations, and what goes over the wire to Anthropic."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic_ai import Agent, ModelMessage, ToolReturnPart, models
from pydantic_ai.capabilities import NativeTool
from pydantic_ai.exceptions import UserError
from pydantic_ai.native_tools import MemoryTool

from co_cli.agent import CoDeps, memory_tool
from co_cli.knowledge_base import KnowledgeBase
from tests.agent.scripted import Script, Turn
from tests.agent_protocols.anthropic_service import COMMANDS, RESULTS, Anthropic
from tests.vault import Vault


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
    from pydantic_ai.models.anthropic import AnthropicModel
    from pydantic_ai.providers.anthropic import AnthropicProvider

    service = Anthropic(COMMANDS)
    model = AnthropicModel("claude-sonnet-5-5", provider=AnthropicProvider(api_key="none", base_url=service.url))
    agent = Agent(model, tools=[memory_tool(knowledge_base=kb)], capabilities=[NativeTool(MemoryTool())])

    with models.override_allow_model_requests(True):  # the service is ours, on loopback
        result = agent.run_sync("I like tea.", model_settings={"max_tokens": 100})
    service.close()

    assert result.output == "done"
    assert service.requests[0]["tools"] == [{"type": "memory_20250818", "name": "memory"}]
    assert "context-management-2025-06-27" in service.betas[0]
    assert service.results() == RESULTS
    assert [hit.ref for hit in kb.search("tea").hits] == ["memory:tea.txt"]
