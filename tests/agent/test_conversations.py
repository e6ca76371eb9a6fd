"""Whole conversations with a scripted model: it saves, recalls, updates, forgets, and gets things wrong."""

from __future__ import annotations

from typing import Any

from pydantic_ai import Agent
from pydantic_ai.tools import DeferredToolRequests, DeferredToolResults

from co_cli.agent import Knowledge, knowledge_toolset
from co_cli.entrance.knowledge_base import KnowledgeBase
from tests.agent.scripted import Script, Turn, returned
from tests.folder import Vault


def test_a_memory_is_saved_recalled_updated_forgotten_and_can_be_restored(
    knowledge: Knowledge, kb: KnowledgeBase, vault: Vault
) -> None:
    def with_ref(tool: str, **arguments: str) -> Turn:
        return lambda messages: [(tool, {"ref": returned(messages, "save_memory")[0]["ref"], **arguments})]

    script = Script(
        [("save_memory", {"content": "Deploys go to the blue pool first.", "tags": ["deploy"]})],
        "Saved.",
        [("recall_memory", {"query": "which pool do deploys go to"})],
        with_ref("update_memory", content="Deploys go to the green pool first."),
        with_ref("read_note"),
        "It is green now.",
        with_ref("forget_memory"),
        [("recall_memory", {"query": "which pool do deploys go to"})],
        "Forgotten.",
    )
    agent = Agent(script.model, capabilities=[knowledge])

    saved = agent.run_sync("Remember that deploys go to the blue pool first.")
    (receipt,) = returned(saved.all_messages(), "save_memory")
    assert receipt["outcome"] == "created"
    assert receipt["read_back"]
    assert receipt["found_again"]
    assert "provenance: agent" in vault.read(receipt["path"])

    changed = agent.run_sync("No, green.", message_history=saved.all_messages())
    (found,) = returned(changed.all_messages(), "recall_memory")
    assert found["state"] == "found"
    assert [hit["ref"] for hit in found["hits"]] == [receipt["ref"]]
    (opened,) = returned(changed.all_messages(), "read_note")
    assert opened["text"] == "Deploys go to the green pool first."
    assert "green pool" in vault.read(receipt["path"])

    gone = agent.run_sync("Forget it.", message_history=changed.all_messages())
    assert returned(gone.all_messages(), "recall_memory")[-1]["state"] == "absent"
    assert vault.notes() == []

    assert kb.restore(receipt["ref"]).outcome == "restored"
    assert "green pool" in vault.read(receipt["path"])


def test_a_model_that_keeps_making_mistakes_does_not_end_the_run(knowledge: Knowledge) -> None:
    wrong: list[Turn] = [[("read_note", {"ref": f"memory:nothing-{at}"})] for at in range(5)]
    script = Script(*wrong, "I could not find it.")

    result = Agent(script.model, capabilities=[knowledge]).run_sync("Read me the note.")

    assert result.output == "I could not find it."
    assert "no note 'memory:nothing-4'" in script.told


def test_a_broken_vault_is_reported_and_the_run_goes_on(knowledge: Knowledge, vault: Vault) -> None:
    vault.path("memories").rmdir()
    vault.write("memories", "a file where a folder should be")
    script = Script([("save_memory", {"content": "Oaks live long."})], "I could not save it.")

    result = Agent(script.model, capabilities=[knowledge]).run_sync("Remember oaks.")

    assert result.output == "I could not save it."
    assert "memories" in script.told
    assert script.requests[-1][-1].parts[0].outcome == "failed"


def test_forgetting_waits_for_approval_only_when_that_was_asked_for(kb: KnowledgeBase, vault: Vault) -> None:
    vault.write("memories/oak.md", "Oaks live long.")
    vault.write("memories/elm.md", "Elms live shorter.")
    turn: list[Turn] = [[("forget_memory", {"ref": "memory:oak"})], "Gone."]
    script = Script(*turn)
    approving = Knowledge(knowledge_base=kb, approve_forget=True)
    agent = Agent(script.model, capabilities=[approving], output_type=[str, DeferredToolRequests])

    asked = agent.run_sync("Forget the oak.")
    assert isinstance(asked.output, DeferredToolRequests)
    assert [call.tool_name for call in asked.output.approvals] == ["forget_memory"]
    assert vault.notes() == ["memories/elm.md", "memories/oak.md"]

    approvals = DeferredToolResults(approvals={asked.output.approvals[0].tool_call_id: True})
    done = agent.run_sync(message_history=asked.all_messages(), deferred_tool_results=approvals)
    assert done.output == "Gone."
    assert vault.notes() == ["memories/elm.md"]

    plain = Script([("forget_memory", {"ref": "memory:elm"})], "Gone.")
    Agent(plain.model, capabilities=[Knowledge(knowledge_base=kb)]).run_sync("Forget the elm.")
    assert vault.notes() == []


def test_the_tools_alone_work_without_the_capability(kb: KnowledgeBase, vault: Vault) -> None:
    vault.write("memories/oak.md", "---\nloading: always\n---\nOaks live long.")
    script = Script([("recall_memory", {"query": "oaks"})], "Long.")

    result = Agent(script.model, toolsets=[knowledge_toolset(knowledge_base=kb)]).run_sync("How old do oaks get?")

    assert returned(result.all_messages(), "recall_memory")[0]["hits"][0]["ref"] == "memory:oak"
    assert "Oaks live long" not in str(script.requests[0])
    assert not script.instructions


def test_a_wrong_call_comes_back_as_a_retry_with_the_fix(knowledge: Knowledge, vault: Vault) -> None:
    vault.write("memories/blue-pool.md", "Blue takes traffic first.")
    wrong: list[tuple[str, dict[str, Any] | str, str]] = [
        ("recall_memory", {}, "recall_memory needs query"),
        ("recall_memory", "[1, 2]", "dict_type"),
        ("recall_memory", "{not json", "JSON"),
        ("read_note", {"ref": "memory:blue-pol"}, "did you mean memory:blue-pool"),
    ]
    for tool, arguments, fix in wrong:
        script = Script([(tool, arguments)], [("read_note", {"ref": "memory:blue-pool"})], "Blue.")

        result = Agent(script.model, capabilities=[knowledge]).run_sync("What about the pool?")

        retry = "\n".join(str(part) for part in script.requests[1][-1].parts)
        assert fix in retry
        assert "RetryPromptPart" in retry or "outcome='retried'" in retry
        assert returned(result.all_messages(), "read_note")[-1]["text"] == "Blue takes traffic first."
