"""The memory tool in a pydantic-ai agent: whole conversations, and what goes over the wire to Anthropic."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from pydantic_ai import Agent, ModelMessage, ModelResponse, TextPart, ToolCallPart, ToolReturnPart, models
from pydantic_ai.capabilities import NativeTool
from pydantic_ai.exceptions import UserError
from pydantic_ai.models.function import AgentInfo, FunctionModel
from pydantic_ai.models.test import TestModel
from pydantic_ai.native_tools import MemoryTool

from co_cli.agent import CoDeps, memory_tool
from co_cli.knowledge_base import KnowledgeBase
from tests.agent_protocols.anthropic_service import COMMANDS, RESULTS, Anthropic
from tests.vault import Vault


@pytest.fixture(autouse=True)
def no_model_requests(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(models, "ALLOW_MODEL_REQUESTS", False)


def returns(messages: list[ModelMessage]) -> list[str]:
    return [str(part.content) for message in messages for part in message.parts if isinstance(part, ToolReturnPart)]


class Script:
    """A model that calls the memory tool turn by turn as it was told, and then says what it heard last."""

    def __init__(self, *turns: list[dict[str, Any]]) -> None:
        self.turns = list(turns)
        self.tools: list[str] = []

    def __call__(self, messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        self.tools = [tool.name for tool in info.function_tools]
        if self.turns:
            return ModelResponse([ToolCallPart("memory", turn) for turn in self.turns.pop(0)])
        return ModelResponse([TextPart(returns(messages)[-1])])


def test_a_model_looks_writes_corrects_and_tidies_up(kb: KnowledgeBase, vault: Vault) -> None:
    script = Script(
        [{"command": "view", "path": "/memories"}],
        [{"command": "create", "path": "/memories/progress.txt", "file_text": "Status: started\nNext: the parser\n"}],
        [{"command": "str_replace", "path": "/memories/progress.txt", "old_str": "started", "new_str": "parser done"}],
        [{"command": "insert", "path": "/memories/progress.txt", "insert_line": 2, "insert_text": "Then: the printer"}],
        [{"command": "rename", "old_path": "/memories/progress.txt", "new_path": "/memories/done/progress.txt"}],
        [{"command": "delete", "path": "/memories/nothing.txt"}],
        [{"command": "view", "path": "/memories/done/progress.txt"}],
    )
    agent = Agent(FunctionModel(script), tools=[memory_tool(knowledge_base=kb)])

    result = agent.run_sync("Go on.")

    assert script.tools == ["memory"]
    assert returns(result.all_messages())[1:-1] == [
        "File created successfully at: /memories/progress.txt",
        "The memory file has been edited. Here is the snippet showing the change (with line numbers):\n"
        "     1\tStatus: parser done\n     2\tNext: the parser",
        "The file /memories/progress.txt has been edited.",
        "Successfully renamed /memories/progress.txt to /memories/done/progress.txt",
        "Error: The path /memories/nothing.txt does not exist",
    ]
    assert result.output == (
        "Here's the content of /memories/done/progress.txt with line numbers:\n"
        "     1\tStatus: parser done\n     2\tNext: the parser\n     3\tThen: the printer"
    )
    assert [hit.ref for hit in kb.search("printer parser").hits] == ["memory:done/progress.txt"]
    assert kb.note("memory:done/progress.txt").provenance == "agent"


def test_arguments_that_make_no_sense_are_answered_and_do_not_end_the_run(kb: KnowledgeBase) -> None:
    nonsense: list[dict[str, Any]] = [
        {},
        {"command": None},
        {"command": ["view"]},
        {"command": "view", "path": 5},
        {"command": "view", "path": "/memories", "view_range": "all", "unknown": True},
        {"command": "create", "path": "/memories/a.md", "file_text": ["a", "b"]},
    ]
    agent = Agent(FunctionModel(Script(*([call] for call in nonsense))), tools=[memory_tool(knowledge_base=kb)])

    answers = returns(agent.run_sync("Go.").all_messages())

    assert len(answers) == len(nonsense)
    assert [answer.startswith("Error: ") for answer in answers] == [True, True, True, True, True, True]


def test_a_model_that_knows_no_native_tool_sees_an_ordinary_function_tool(kb: KnowledgeBase) -> None:
    model = TestModel(call_tools=[])
    Agent(model, tools=[memory_tool(knowledge_base=kb)]).run_sync("Hello.")

    assert model.last_model_request_parameters is not None
    (tool,) = model.last_model_request_parameters.function_tools
    assert tool.name == "memory"
    assert tool.description is not None
    assert "View /memories before you start" in tool.description
    schema = tool.parameters_json_schema
    assert schema["properties"]["command"]["enum"] == ["view", "create", "str_replace", "insert", "delete", "rename"]
    assert schema["required"] == ["command"]


def test_the_vault_of_the_runs_own_deps_is_used(kb: KnowledgeBase, vault: Vault) -> None:
    script = Script([{"command": "create", "path": "/memories/a.txt", "file_text": "Blue."}])
    agent = Agent(FunctionModel(script), deps_type=CoDeps, tools=[memory_tool()])

    agent.run_sync("Remember.", deps=CoDeps(kb))

    assert vault.notes() == ["memories/a.txt.md"]


def test_a_vault_that_is_not_there_is_a_mistake_of_whoever_wrote_the_agent(tmp_path: Any) -> None:
    agent = Agent(FunctionModel(Script([{"command": "view"}])), tools=[memory_tool(tmp_path / "nowhere")])

    with pytest.raises(UserError, match="cannot be opened: no vault at"):
        agent.run_sync("Hello.")


# -- over the wire ----------------------------------------------------------------------------------------------------


@pytest.fixture
def service() -> Iterator[Anthropic]:
    running = Anthropic(COMMANDS)
    yield running
    running.close()


def test_claude_gets_the_tool_it_was_trained_on(service: Anthropic, kb: KnowledgeBase) -> None:
    pytest.importorskip("anthropic", reason="the client of Anthropic is not installed: pydantic-ai-slim[anthropic]")
    from pydantic_ai.models.anthropic import AnthropicModel
    from pydantic_ai.providers.anthropic import AnthropicProvider

    model = AnthropicModel("claude-sonnet-5-5", provider=AnthropicProvider(api_key="none", base_url=service.url))
    agent = Agent(model, tools=[memory_tool(knowledge_base=kb)], capabilities=[NativeTool(MemoryTool())])

    with models.override_allow_model_requests(True):  # the service is ours, on loopback
        result = agent.run_sync("I like tea.", model_settings={"max_tokens": 100})

    assert result.output == "done"
    assert service.requests[0]["tools"] == [{"type": "memory_20250818", "name": "memory"}]
    assert "context-management-2025-06-27" in service.betas[0]
    assert service.results() == RESULTS
    assert [hit.ref for hit in kb.search("tea").hits] == ["memory:tea.txt"]
