"""Knowledge as a capability of pydantic-ai: lazy, from a spec, combined, with any dependencies."""

from __future__ import annotations

import copy
import json
import os
import pickle
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from opentelemetry.trace import INVALID_SPAN_CONTEXT, NonRecordingSpan, NoOpTracer, NoOpTracerProvider
from pydantic import ImportString, TypeAdapter
from pydantic_ai import Agent, InstrumentationSettings, RunContext
from pydantic_ai.capabilities import Instrumentation
from pydantic_ai.exceptions import UserError
from pydantic_ai.models.test import TestModel

from co_cli.agent import CoDeps, Knowledge, agent, knowledge_toolset
from co_cli.agent.toolset import VaultAccess
from co_cli.entrance.knowledge_base import KnowledgeBase
from co_cli.ground.errors import InvalidInputError
from co_cli.knowledge_index import KnowledgeIndex
from co_cli.tools import TOOLS
from tests.agent.scripted import Reports, Script, returned
from tests.folder import Vault

ENDS_EARLY = """
import sys, time
from pydantic_ai import Agent
from co_cli.agent import Knowledge

Agent("test", capabilities=[Knowledge("notes", data_dir="data")]).run_sync("How deep is the harbour?")
while "onnxruntime.capi.onnxruntime_inference_collection" not in sys.modules:
    time.sleep(0.001)
time.sleep(0.5)
"""


def tools_of(script: Script) -> list[str]:
    return [tool.name for tool in script.infos[-1].function_tools]


def test_a_missing_vault_is_created_only_on_request(home: Path, tmp_path: Path) -> None:
    folder = tmp_path / "notes"
    with pytest.raises(UserError, match=r"no vault at .*; Knowledge\(\.\.\., create=True\) creates it"):
        Agent(Script().model, capabilities=[Knowledge(folder)]).run_sync("Hello")
    assert not folder.exists()

    script = Script([("save_memory", {"content": "Blue takes traffic first."})], "Done.")
    Agent(script.model, capabilities=[Knowledge(folder, create=True)]).run_sync("Remember that blue is first.")

    assert [file.name for file in folder.rglob("*.md")] == ["blue-takes-traffic-first.md"]
    assert (folder / ".gitignore").read_text() == ".trash/\n"


def test_knowledge_can_be_copied_and_pickled_even_after_it_was_used(kb: KnowledgeBase, vault: Vault) -> None:
    vault.write("memories/oak.md", "---\nloading: always\n---\nOaks live long.")
    script = Script(*["Long."] * 3)
    used = Knowledge(knowledge_base=kb, context_tokens=300)
    Agent(script.model, capabilities=[used]).run_sync("How long?")

    assert copy.deepcopy(used).knowledge_base is kb
    for one in (copy.deepcopy(used), pickle.loads(pickle.dumps(used))):
        Agent(script.model, capabilities=[one]).run_sync("How long?")
        assert "Oaks live long." in script.told
        assert one.context_tokens == 300
    one.knowledge_base.close()


def test_a_trace_shows_what_was_added_to_the_prompt(kb: KnowledgeBase, vault: Vault) -> None:
    vault.write("memories/oak.md", "---\nloading: always\n---\nOaks live long.")
    spans: list[tuple[str, dict[str, Any]]] = []

    class Span(NonRecordingSpan):
        def set_attribute(self, key: str, value: Any) -> None:
            spans[-1][1][key] = value

    class Tracer(NoOpTracer):
        @contextmanager
        def start_as_current_span(self, name: str, *args: Any, **options: Any) -> Iterator[Span]:
            spans.append((name, {}))
            yield Span(INVALID_SPAN_CONTEXT)

    class Provider(NoOpTracerProvider):
        def get_tracer(self, *args: Any, **options: Any) -> Tracer:
            return Tracer()

    for content in (True, False):
        settings = InstrumentationSettings(tracer_provider=Provider(), include_content=content)
        capabilities = [Knowledge(knowledge_base=kb), Instrumentation(settings=settings)]
        Agent(Script("Long.").model, capabilities=capabilities).run_sync("How long?")

    (_, shown), (_, hidden) = [span for span in spans if span[0] == "add knowledge to the prompt"]
    assert json.loads(shown["knowledge.report"])["injected"][0]["ref"] == "memory:oak"
    assert hidden == {"knowledge.notes": 1}


def test_two_of_one_id_are_refused(kb: KnowledgeBase) -> None:
    given = [Knowledge(knowledge_base=kb, read_only=True), Knowledge(knowledge_base=kb)]

    with pytest.raises(UserError, match="give each its own id"):
        Agent(Script("Well.").model, capabilities=given).run_sync("Hello!")


def test_the_agent_gets_the_chosen_tools_and_instructions_for_them(kb: KnowledgeBase) -> None:
    script = Script("Well.", "Well.", "Well.")

    Agent(script.model, capabilities=[Knowledge(knowledge_base=kb)]).run_sync("Hello!")
    assert tools_of(script) == [tool.name for tool in TOOLS]
    assert "save_memory" in script.instructions

    Agent(script.model, capabilities=[Knowledge(knowledge_base=kb, read_only=True)]).run_sync("Hello!")
    assert not {"save_memory", "save_article", "update_memory", "forget_memory"} & set(tools_of(script))
    assert "save_memory" not in script.instructions

    Agent(script.model, capabilities=[Knowledge(knowledge_base=kb, tools=["read_note"])]).run_sync("Hello!")
    assert tools_of(script) == ["read_note"]
    assert "recall_memory" not in script.instructions


def test_instructions_stay_the_same_so_that_a_prompt_cache_holds(knowledge: Knowledge, vault: Vault) -> None:
    script = Script([("save_memory", {"content": "Oaks live long."})], "Saved.", "Long.")
    agent = Agent(script.model, capabilities=[knowledge])

    first = agent.run_sync("Remember that oaks live long.")
    agent.run_sync("How long do oaks live?", message_history=first.all_messages())

    told = {message.instructions for request in script.requests for message in request if message.kind == "request"}
    assert len(told) == 1


def test_every_tool_has_a_schema_that_the_test_model_can_fill(knowledge: Knowledge) -> None:
    agent = Agent(TestModel(), capabilities=[knowledge])

    result = agent.run_sync("Try everything.")

    called = {
        part.tool_name for message in result.all_messages() for part in message.parts if part.part_kind == "tool-call"
    }
    assert called == {tool.name for tool in TOOLS}


def test_own_tools_share_the_knowledge_base_of_their_dependencies(kb: KnowledgeBase, vault: Vault) -> None:
    vault.write("memories/oak.md", "Oaks live long.")
    script = Script([("count_notes", {}), ("recall_memory", {"query": "oaks"})], "One.")
    agent = Agent(script.model, deps_type=CoDeps, capabilities=[Knowledge()])

    @agent.tool
    def count_notes(ctx: RunContext[CoDeps]) -> str:
        assert ctx.deps.settings.vault == str(vault.root)
        return f"{len(ctx.deps.knowledge_base.notes())} note"

    result = agent.run_sync("How many notes?", deps=CoDeps(kb))

    assert "1 note" in script.told
    assert returned(result.all_messages(), "recall_memory")[0]["hits"][0]["ref"] == "memory:oak"


def test_dependencies_may_name_an_index_instead_of_a_knowledge_base(vault: Vault, data_dir: Path) -> None:
    vault.write("memories/oak.md", "Oaks live long.")
    index = KnowledgeIndex(data_dir / "search.db", vault.root)
    index.sync()
    script = Script([("find", {}), ("recall_memory", {"query": "oaks"})], "Long.")
    agent = Agent(script.model, deps_type=CoDeps, capabilities=[Knowledge()])

    @agent.tool
    def find(ctx: RunContext[CoDeps]) -> str:
        assert ctx.deps.knowledge_index is index
        return ctx.deps.knowledge_index.search("oaks", source="memory")[0].ref

    result = agent.run_sync("How old are oaks?", deps=CoDeps(knowledge_index=index))

    assert "memory:oak" in script.told
    assert returned(result.all_messages(), "recall_memory")[0]["hits"][0]["ref"] == "memory:oak"
    with pytest.raises(InvalidInputError, match="CoDeps needs a knowledge_base or a knowledge_index"):
        CoDeps()


def test_the_ready_agent_is_found_as_clai_looks_for_it(
    vault: Vault, data_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CO_VAULT", str(vault.root))
    monkeypatch.setenv("CO_DATA_DIR", str(data_dir))
    vault.write("memories/oak.md", "Oaks live long.")
    script = Script([("recall_memory", {"query": "oaks"})], "Long.")

    found = TypeAdapter(ImportString[Any]).validate_python("co_cli.agent:agent")
    assert found is agent
    assert found.model is None
    result = found.run_sync("How old do oaks get?", model=script.model)

    assert returned(result.all_messages(), "recall_memory")[0]["hits"][0]["ref"] == "memory:oak"


def test_a_forked_process_never_uses_the_knowledge_base_of_its_parent(
    vault: Vault, data_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    access = VaultAccess(vault.root, data_dir)
    with access.kb() as mine:
        monkeypatch.setattr(os, "getpid", lambda: -1)
        with access.kb() as childs:
            assert childs is not mine
            assert access.kb() is access.toolbox().kb is childs


def test_wrong_settings_are_an_error_at_first_use(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CO_KNOWLEDGE_SEARCH_BACKEND", "telepathy")
    with_context = Agent(Script("Well.").model, capabilities=[Knowledge()])
    with_tools = Agent(Script([("recall_memory", {"query": "oaks"})]).model, toolsets=[knowledge_toolset()])

    for wrong in (with_context, with_tools):
        with pytest.raises(UserError, match=r"cannot be opened: .*knowledge_search_backend must be one of grep, fts5"):
            wrong.run_sync("Hello!")


def test_an_agent_comes_from_a_spec(vault: Vault, data_dir: Path, tmp_path: Path) -> None:
    vault.write("memories/oak.md", "---\nloading: always\n---\nOaks live long.")
    options = {"vault": str(vault.root), "data_dir": str(data_dir), "read_only": True, "context_tokens": 300}
    script, reports = Script(*[[("recall_memory", {"query": "oaks"})], "Long."] * 2), Reports()
    for name in ("agent.yaml", "agent.json"):  # JSON is YAML too
        (tmp_path / name).write_text(json.dumps({"capabilities": [{"Knowledge": options}]}))
        made = Agent.from_file(tmp_path / name, custom_capability_types=[Knowledge], model=script.model)
        result = made.run_sync("How old do oaks get?", capabilities=[reports])
        assert returned(result.all_messages(), "recall_memory")[0]["hits"][0]["ref"] == "memory:oak"
        assert "save_memory" not in tools_of(script)
        assert reports.found.pop()["budget"] == 300
    for spec in ("Knowledge", {"Knowledge": str(vault.root)}):
        Agent.from_spec({"capabilities": [spec]}, custom_capability_types=[Knowledge], model="test")


def test_an_agent_asks_for_what_is_around_a_note_and_for_what_changed(knowledge: Knowledge, vault: Vault) -> None:
    vault.write("memories/oak.md", "Oaks live long, says Mara Lind.")
    vault.write("memories/age.md", "Old trees: [[oak]].")
    vault.write("entities/mara.md", "---\ntitle: Mara Lind\n---\nPlants trees.")
    calls = [("read_note", {"ref": "memory:oak", "around": True}), ("forget_memory", {"ref": "memory:age"})]
    script = Script(*([call] for call in calls), [("list_memories", {"since": "1d"})], "Done.")

    Agent(script.model, capabilities=[knowledge]).run_sync("What is known about oaks?")

    assert 'Linked from: memory:age: "Old trees: [[oak]]."' in script.everything
    assert "Names: entity:mara (Mara Lind)" in script.everything
    assert "<notes>\nmemory:age · Age · forgotten " in script.told
    assert "entity:mara · Mara Lind · created " in script.told


@pytest.mark.slow
def test_a_program_ends_well_while_vectors_are_made_in_the_background(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CO_KNOWLEDGE_EMBEDDING_PROVIDER", "encoder")
    for number in range(400):  # many seconds of work
        text = f"Pump {number} is in hall {number * 7} of the harbour."
        Vault(tmp_path / "notes").write(f"memories/{number}.md", text)

    ran = subprocess.run(
        [sys.executable, "-c", ENDS_EARLY], cwd=tmp_path, capture_output=True, text=True, timeout=120, check=False
    )

    assert (ran.returncode, ran.stderr) == (0, "")
