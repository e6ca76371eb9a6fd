"""Checkpoints: a conversation is saved, found for a task, and continued with the messages that it had."""

from __future__ import annotations

import io
import json
from argparse import Namespace
from pathlib import Path

import pytest
from pydantic_ai import Agent
from pydantic_ai.messages import (
    BinaryContent,
    ModelMessage,
    ModelRequest,
    ModelResponse,
    TextContent,
    TextPart,
    ToolReturnPart,
    UserPromptPart,
)
from pydantic_ai.run import AgentRunResult

from co_cli.agent import CoDeps, Knowledge
from co_cli.agent.injection import KEY
from co_cli.agent.models import load_model
from co_cli.cli.chat_commands import handle
from co_cli.cli.chat_screen import Output
from co_cli.cli.chat_session import ChatSession
from co_cli.entrance.knowledge_base import KnowledgeBase
from co_cli.ground.errors import InvalidInputError
from co_cli.ground.settings import load_settings
from co_cli.tools import Toolbox
from tests.chat_server import ChatServer, calls, text
from tests.command import Co
from tests.folder import Vault

TOKEN = "ghp_" + "1aB2cD3eF4gH5iJ6kL7mN8oP9qR0sT1uV2wX"


@pytest.fixture
def knowledge(kb: KnowledgeBase) -> Knowledge:
    return Knowledge(knowledge_base=kb, tools=["default", "find_checkpoint"])


def ask(knowledge: Knowledge, question: str, name: str | None = None) -> AgentRunResult[str]:
    history = knowledge.load(name) if name else None
    return Agent(load_model("ollama:qwen3"), capabilities=[knowledge]).run_sync(question, message_history=history)


@pytest.fixture
def saved(knowledge: Knowledge, notes: Vault, server: ChatServer) -> str:
    """A conversation about deploys that used tools, saved as a checkpoint."""
    notes.write("entities/blue-pool.md", "Takes traffic first.")
    server.play(
        calls(("recall_memory", {"query": "blue pool"}), ("read_note", {"ref": "memory:blue"})),
        text("Blue goes first."),
    )
    result = ask(knowledge, f"How do we deploy with the blue pool? The token is {TOKEN}.")
    return knowledge.checkpoint(result, "Plan the deploy").ref


def test_a_checkpoint_is_a_note_beside_its_messages(co: Co, vault: Vault, saved: str) -> None:
    note, messages = vault.read(".checkpoints/plan-the-deploy.md"), vault.read(".checkpoints/plan-the-deploy.json")

    one = co("checkpoint", "show", saved, "--json").json
    assert saved == one["ref"] == "checkpoint:plan-the-deploy"
    assert (one["title"], one["messages"], one["model"], one["quality"]) == ("Plan the deploy", 5, "qwen3", None)
    assert one["tools"] == ["recall_memory", "read_note"]
    assert one["files"] == ["memory:blue"]
    assert one["entities"] == ["Blue pool"]
    assert one["topics"] == ["deploy"]
    assert {"deploy", "blue", "pool"} <= set(one["keywords"])
    assert one["description"].startswith("How do we deploy with the blue pool?")
    assert "Blue goes first." in note
    assert "Blue takes traffic first" not in note, "what tools said is in the messages alone"
    assert "Blue takes traffic first" in messages
    assert TOKEN not in note + messages
    shown, listed = co("checkpoint", "show", saved).out, co("checkpoint", "list").out
    assert "\ntools: recall_memory, read_note\nfiles: memory:blue\n" in shown
    assert "Blue goes first." in shown
    assert listed.startswith("Plan the deploy  checkpoint:plan-the-deploy\n")


def test_secrets_are_masked_wherever_a_tool_says_them_and_pictures_stay_as_they_are(
    knowledge: Knowledge, vault: Vault, server: ChatServer
) -> None:
    agent = Agent(load_model("ollama:qwen3"), capabilities=[knowledge])
    picture = BinaryContent(b"\x89PNG" + TOKEN.encode(), media_type="image/png")

    @agent.tool_plain
    def read_secret(id: str) -> dict[str, object]:
        return {"kind": "Secret", "id": id, "data": {"token": id}}

    server.play(calls(("read_secret", {"id": TOKEN})), text("Done."))

    knowledge.checkpoint(agent.run_sync(["Read the secret.", picture]), "Secret")

    assert TOKEN not in vault.read(".checkpoints/secret.md") + vault.read(".checkpoints/secret.json")
    (kept,) = [
        content
        for part in knowledge.load("secret")[0].parts
        if isinstance(part, UserPromptPart)
        for content in part.content
        if isinstance(content, BinaryContent)
    ]
    assert kept.data == picture.data


def test_no_search_and_no_prompt_has_a_checkpoint(co: Co, kb: KnowledgeBase, vault: Vault, saved: str) -> None:
    assert saved not in co("search", "plan the deploy", "--json").out + co("list", "--json").out
    assert vault.read(".checkpoints/.gitignore") == "*\n"
    assert "checkpoint" not in Toolbox(kb).call("search_knowledge", {"query": "plan the deploy blue pool"}).text


@pytest.mark.medium
@pytest.mark.usefixtures("saved")
def test_a_run_continues_with_the_messages_of_a_checkpoint(knowledge: Knowledge, server: ChatServer) -> None:
    server.play(text("Green goes second."))

    ask(knowledge, "And then?", "plan-the-deploy")

    assert len(server.requests) == 1
    roles = [one["role"] for one in server.requests[0]["messages"] if one["role"] not in ("system", "user")]
    assert roles == ["assistant", "tool", "tool", "assistant"]
    assert "Blue goes first." in server.said("assistant")
    assert "Blue takes traffic first" in server.said("tool")
    assert server.said("user").endswith("And then?")


@pytest.mark.medium
@pytest.mark.usefixtures("saved")
def test_a_chat_continues_from_a_checkpoint_and_saves_another(
    co: Co, server: ChatServer, kb: KnowledgeBase, capsys: pytest.CaptureFixture[str]
) -> None:
    async def refuse(question: str) -> bool:
        return False

    session = ChatSession(kb, "ollama:qwen3", Output(io.StringIO(), io.StringIO(), markdown=False), refuse)
    server.play(text("Green goes second."), text("Ten minutes."))
    ran = co("chat", "--from", "plan-the-deploy", "And then?")
    said = server.said("assistant")
    for line in ("How long do we wait?", "/checkpoint Waiting"):
        handle(session, line, Namespace(vault=None, data_dir=None))

    assert (ran.code, ran.out) == (0, "Green goes second.\n")
    assert "Blue goes first." in said
    assert "saved checkpoint:waiting; `co chat --from waiting` continues from here" in capsys.readouterr().out
    listed = {one["ref"] for one in co("checkpoint", "list", "--json").json}
    assert listed == {"checkpoint:waiting", "checkpoint:plan-the-deploy"}
    unknown = co("chat", "--from", "nowhere", "And then?")
    assert (unknown.code, "the checkpoints are plan-the-deploy, waiting" in unknown.err) == (2, True)


@pytest.mark.medium
def test_a_model_finds_where_to_continue_and_ratings_count(co: Co, knowledge: Knowledge, server: ChatServer) -> None:
    for title in ("Plan the deploy", "Plan the deploy"):
        server.play(text("Blue goes first."))
        knowledge.checkpoint(ask(knowledge, "How do we deploy with the blue pool?"), title)
    server.play(text("At noon."))
    knowledge.checkpoint(ask(knowledge, "When is the soup served?"))
    co("feedback", "give", "checkpoint:plan-the-deploy", "bad")
    co("feedback", "give", "checkpoint:plan-the-deploy-2", "good")
    server.play(calls(("find_checkpoint", {"query": "deploy blue"})), text("From there."))

    ask(knowledge, "Where do I continue the deploy?")

    told = [line.split(" ")[0] for line in server.said("tool").splitlines() if line.startswith("checkpoint:")]
    assert told[:2] == ["checkpoint:plan-the-deploy-2", "checkpoint:plan-the-deploy"]
    assert "rated 100% good" in server.said("tool")
    assert co("checkpoint", "list", "soup", "--json").json[0]["ref"] == "checkpoint:when-is-the-soup-served"


@pytest.mark.medium
@pytest.mark.usefixtures("saved")
def test_no_checkpoint_of_an_untrusted_vault_is_loaded(
    co: Co, server: ChatServer, vault: Vault, data_dir: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    project = tmp_path / "clone"
    (project / ".co-cli").mkdir(parents=True)
    vault.root.rename(project / ".co-cli" / "knowledge")
    settings = load_settings({"data_dir": str(data_dir)}, environ={}, start=str(project))

    with KnowledgeBase.open(settings=settings) as kb:
        assert [one.ref for one in kb.checkpoints.all()] == ["checkpoint:plan-the-deploy"]
        with pytest.raises(InvalidInputError, match=r"is not loaded: .*co config trust"):
            Knowledge(knowledge_base=kb).load("plan-the-deploy")
    monkeypatch.delenv("CO_VAULT")
    monkeypatch.chdir(project)
    server.play(text("Green goes second."), text("Green goes second."))
    refused = co("chat", "--from", "plan-the-deploy", "And then?")
    assert (refused.code, "co config trust" in refused.err, server.requests) == (2, True, [])
    assert co("config", "trust").code == 0
    assert co("chat", "--from", "plan-the-deploy", "And then?").out == "Green goes second.\n"


@pytest.mark.usefixtures("saved")
def test_the_dependencies_of_a_run_say_which_vault_it_is(kb: KnowledgeBase) -> None:
    anywhere = Knowledge()

    again = anywhere.checkpoint(anywhere.load("plan-the-deploy", CoDeps(kb)), "Again", deps=CoDeps(kb))

    assert {one.ref for one in kb.checkpoints.all()} == {again.ref, "checkpoint:plan-the-deploy"}


@pytest.mark.usefixtures("saved")
def test_a_removed_checkpoint_is_in_the_trash_of_its_folder(co: Co, vault: Vault) -> None:
    assert co("checkpoint", "remove", "nowhere").code == 2

    gone = co("checkpoint", "remove", "plan-the-deploy", "--json").json

    assert [one["ref"] for one in gone] == ["checkpoint:plan-the-deploy"]
    assert all(vault.path(path).exists() for path in gone[0]["trash"])
    assert co("checkpoint", "list").out.startswith("No checkpoints yet")
    assert co("checkpoint", "list", "deploy").code == 1


@pytest.mark.parametrize("damage", ["not json", '{"kind": "request"}', json.dumps([{"kind": "poem", "parts": []}])])
@pytest.mark.usefixtures("saved")
def test_messages_that_cannot_be_read_are_one_line(co: Co, vault: Vault, damage: str) -> None:
    vault.write(".checkpoints/plan-the-deploy.json", damage)

    ran = co("chat", "--from", "plan-the-deploy", "And then?")

    assert (ran.code, ran.err.count("\n")) == (2, 1)
    assert "plan-the-deploy" in ran.err


@pytest.mark.usefixtures("saved")
def test_files_that_are_no_checkpoint_are_left_out(co: Co, vault: Vault) -> None:
    vault.write(".checkpoints/picture.md", b"\x89PNG\r\n\x1a\n\x00\x00")
    vault.path(".checkpoints/folder.md").mkdir()
    vault.path(".checkpoints/link.md").symlink_to("/etc/passwd")

    assert [one["ref"] for one in co("checkpoint", "list", "--json").json] == ["checkpoint:plan-the-deploy"]
    assert co("checkpoint", "list", "deploy", "--json").json[0]["ref"] == "checkpoint:plan-the-deploy"


def test_metadata_that_came_back_from_a_web_page_can_be_anything(knowledge: Knowledge) -> None:
    messages: list[ModelMessage] = [
        ModelRequest([UserPromptPart("Which pool?"), UserPromptPart([TextContent("x", metadata={KEY: ["forged"]})])]),
        ModelRequest([ToolReturnPart("recall_memory", "found", "1", metadata={"hits": [7, {"tags": None}]})]),
        ModelRequest([ToolReturnPart("recall_memory", "found", "2", metadata=["hits"])]),
        ModelResponse([TextPart("Blue.")]),
    ]

    saved = knowledge.checkpoint(messages)

    assert (saved.title, saved.topics) == ("Which pool", ())
