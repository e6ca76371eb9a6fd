"""A knowledge base over a server does what the same one does next to its files: in Python, for agents, and as `co`."""

from __future__ import annotations

import pickle
from collections.abc import Iterator
from dataclasses import replace
from typing import Any, Protocol, get_type_hints

import pytest
from pydantic_ai import Agent
from pydantic_ai.messages import ModelMessage, ModelResponse, TextPart, ToolCallPart
from pydantic_ai.models.function import AgentInfo, FunctionModel

from co_cli.agent import Knowledge
from co_cli.entrance.knowledge_base import KnowledgeBase
from co_cli.ground.errors import InvalidInputError, NoteConflictError, ServerUnavailableError, UnknownRefError
from co_cli.http.http_server import listen
from co_cli.searching.note_details import note_history
from co_cli.server.access_tokens import AccessTokens
from co_cli.tools import Toolbox
from co_cli.tools.memory import forget_memory, rate_memory, save_memory
from co_cli.tools.tool import ToolCall
from tests.command import Co
from tests.folder import Vault
from tests.server.conftest import Server, serving

OAK = """---
title: Oaks
tags: [tree, old]
category: fact
place: park
created: 2026-03-01
---
Oaks live long. See [[elm]].
"""


@pytest.fixture
def team(vault: Vault, kb: KnowledgeBase) -> Iterator[Server]:
    vault.write("memories/oak.md", OAK)
    vault.write("memories/elm.md", "---\nloading: always\n---\nElms like water.\n")
    vault.write("articles/park.md", "# The park\n\n## Ponds\n\nThe pond has carps.\n")
    kb.sync()
    with serving(kb, AccessTokens.of(kb.vault)) as server:
        yield server


@pytest.fixture
def token(kb: KnowledgeBase) -> str:
    return AccessTokens.of(kb.vault).create("write", "mara")[0]


@pytest.fixture
def remote(team: Server, token: str) -> Iterator[KnowledgeBase]:
    with KnowledgeBase.connect(team.url, token) as remote:
        yield remote


@pytest.mark.medium
def test_it_answers_as_the_vault_itself_does(remote: KnowledgeBase, kb: KnowledgeBase) -> None:
    here, there = kb.search("old trees", limit=3), remote.search("old trees", limit=3)
    at_any_time: dict[str, Any] = {"took_ms": 0.0, "meta": {}, "searched": here.searched}
    assert replace(there, **at_any_time) == replace(here, **at_any_time)
    narrow: dict[str, Any] = {"tags": ["tree"], "category": "fact", "fields": {"place": "park"}, "since": "2026-01-01"}
    assert [hit.ref for hit in remote.search("water", **narrow).hits] == ["memory:oak"]
    for ref in ("memory:oak", "article:park#L3-5", "Oaks"):
        assert remote.note(ref) == kb.note(ref)
        assert remote.links(ref) == kb.links(ref)
    assert remote.notes() == kb.notes()
    assert remote.notes("memory", limit=1, **narrow) == kb.notes("memory", limit=1, **narrow)
    assert remote.tags() == kb.tags()
    assert remote.tags("article") == kb.tags("article") == {}
    assert replace(remote.status(), synced_at=None) == replace(kb.status(), synced_at=None)
    assert remote.always_notes() == kb.always_notes()
    matching = remote.matching_notes("Do oaks live long?", ())
    assert matching == kb.matching_notes("Do oaks live long?", ())
    assert [note.ref for note in matching.notes] == ["memory:oak"]
    assert remote.matching_notes("Do oaks live long?", ["memory:oak"]).notes == []


@pytest.mark.medium
def test_it_saves_changes_forgets_and_restores(remote: KnowledgeBase, kb: KnowledgeBase, vault: Vault) -> None:
    saved = remote.remember("Ashes are grey.", "Ashes", tags=["tree"], fields={"importance": 0.9}, path="trees/ash.md")
    assert (saved.ref, saved.outcome) == ("memory:trees/ash", "created")
    assert "importance: 0.9" in vault.read("memories/trees/ash.md")
    assert remote.remember("Ashes are grey.").outcome == "duplicate"

    before = remote.note(saved.ref).version
    remote.update(saved.ref, "Ashes are tall.", category="fact", fields={"importance": None}, version=before)
    assert kb.note(saved.ref).body.strip() == "Ashes are tall."
    assert "importance" not in kb.note(saved.ref).metadata
    with pytest.raises(NoteConflictError) as conflict:
        remote.update(saved.ref, "Ashes are small.", version=before)
    assert conflict.value.present == "Ashes are tall.\n"

    newer = remote.remember("Ashes are dying out.", supersedes=saved.ref)
    assert remote.outdated(remote.note(saved.ref)) == f"superseded by {newer.ref}"
    assert remote.forget(newer.ref).ref == newer.ref
    assert remote.restore(newer.ref).outcome == "restored"
    with pytest.raises(UnknownRefError, match="did you mean memory:trees/ash") as unknown:
        remote.note("memory:trees/asj")
    assert unknown.value.closest[0] == saved.ref


def test_agent_tools_give_the_same_answers_over_a_server_in_one_request(
    remote: KnowledgeBase, kb: KnowledgeBase, team: Server
) -> None:
    here, there = Toolbox(kb, with_skills=False), Toolbox(remote, with_skills=False)
    asked = {"query": "oaks live long, elms like water", "weak": True}
    assert there.call("recall_memory", asked).data["hits"][1:], "more than one"
    with team.client() as asking:
        counted = [line for line in asking.get("/metrics").text.splitlines() if line.startswith("co_requests_total")]
    assert counted == ['co_requests_total{method="POST",route="/api/v1/tools/{name}",status="200"} 1']
    for name, arguments in (
        ("recall_memory", {"query": "how long do oaks live"}),
        ("search_knowledge", {"query": "pond", "detail": "full"}),
        ("read_note", {"ref": "article:park"}),
        ("list_memories", {}),
    ):
        answers = [one.call(name, arguments).text for one in (here, there)]
        assert answers[0] == answers[1], name
    saved = there.call("save_memory", {"content": "Mara prefers tea in the afternoon."})
    assert saved.data["found_again"]
    with pytest.raises(NoteConflictError, match="Next: read_note"):
        there.call("update_memory", {"ref": saved.data["ref"], "content": "Coffee.", "version": "0ld"})
    assert there.call("forget_memory", {"ref": saved.data["ref"]}).data["ref"] == saved.data["ref"]


def test_an_agent_uses_a_server_as_it_uses_a_folder(team: Server, token: str, kb: KnowledgeBase) -> None:
    seen: list[ModelMessage] = []

    def model(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        seen[:] = messages
        if len(messages) == 1:
            return ModelResponse([ToolCallPart("save_memory", {"content": "Mara prefers tea in the afternoon."})])
        return ModelResponse([TextPart("Saved.")])

    knowledge = Knowledge(server=team.url, token=token)
    assert token not in repr(knowledge)
    Agent(FunctionModel(model), capabilities=[knowledge]).run_sync("I prefer tea in the afternoon. I am Mara.")

    assert "Elms like water." in str(seen[0]), "a note that is always added"
    (saved,) = kb.search("tea", sources=["memory"], backend="fts5").hits
    assert note_history(kb.vault, saved.ref, limit=1).changes[0].front_end == "web:mara"


@pytest.mark.medium
def test_commands_work_over_a_server(
    team: Server, token: str, co: Co, vault: Vault, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CO_TOKEN", token)
    monkeypatch.setenv("CO_VAULT", "/nowhere")
    server = ("--server", team.url)

    assert "memory:oak" in co(*server, "search", "how long do oaks live").out
    shown = co(*server, "show", "1")
    assert "Oaks live long." in shown.out
    assert "memories/oak.md" in shown.out
    assert str(vault.root) not in shown.out
    assert "links: memory:elm" in shown.out
    assert co(*server, "show", "memory:oak", "--json").json["tags"] == ["tree", "old"]
    assert co("list", "--tag", "tree", "--json", "--server", f"{team.url}/api/v1/").json[0]["ref"] == "memory:oak"
    assert co(*server, "note", "tags").out.startswith("#")
    monkeypatch.delenv("CO_VAULT")
    assert co("init").code == 0
    assert "Elms like water." in co(*server, "note", "context").out, "what an agent with this server is given"
    ref = co(*server, "remember", "Ashes are grey.", "--json").json["ref"]
    assert co(*server, "edit", ref, "--add-tag", "grey").code == 0
    assert "grey" in vault.read("memories/ashes-are-grey.md")
    assert "where the vault is" in co(*server, "forget", "--erase", ref, "-y").err
    assert co(*server, "forget", ref).code == 0
    assert co(*server, "note", "restore", ref).code == 0
    ran = co(*server, "show", "oak", "--raw")
    assert (ran.code, ran.out) == (2, "")
    assert "where the vault is" in ran.err
    for command in (("search", "oaks", "--paths"), ("search", "oaks", "-0"), ("list", "--sort", "changed")):
        ran = co(*server, *command)
        assert (ran.code, ran.out, "the server" in ran.err) == (2, "", True), command
    for name, *given in (
        ("doctor",),
        ("index rebuild",),
        ("index watch",),
        ("init",),
        ("token list",),
        ("chat", "hello"),
        ("note why", "oaks", "memory:oak"),
        ("data export", "--to", "copy"),
    ):
        ran = co(*server, *name.split(), *given)
        assert ran == (2, "", f"co: `co {name}` does not work with --server: run it where the vault is\n")


def test_recalled_memories_are_shown_in_full_with_one_more_request(
    team: Server, token: str, co: Co, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CO_TOKEN", token)
    shown = co("--server", team.url, "note", "recall", "oaks live long, elms like water").out

    assert "Oaks live long. See [[elm]]." in shown
    assert "Elms like water." in shown
    with team.client() as asking:
        counted = [line for line in asking.get("/metrics").text.splitlines() if line.startswith("co_requests_total")]
    assert counted == [
        'co_requests_total{method="GET",route="/api/v1/bodies",status="200"} 1',
        'co_requests_total{method="POST",route="/api/v1/search",status="200"} 1',
    ]
    assert co("--server", team.url, "note", "recall", "zebra", "--tag", "none").code == 1


@pytest.mark.medium
def test_more_refs_than_an_address_can_hold_are_asked_for_in_turn(remote: KnowledgeBase) -> None:
    unknown = [f"memory:{'橡' * 50}-{number}" for number in range(200)]

    assert list(remote.bodies([*unknown, "memory:oak"])) == ["memory:oak"]


def test_what_goes_wrong_with_a_server_is_one_line_with_the_fix(
    team: Server, token: str, co: Co, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert "`co token create`" in co("--server", team.url, "search", "x").err
    monkeypatch.setenv("CO_TOKEN", "wrong")
    assert "does not know this token" in co("--server", team.url, "search", "x").err
    assert "not 'notes'" in co("--server", "notes", "search", "x").err
    with listen("127.0.0.1", 0) as unused:
        port = unused.getsockname()[1]
    ran = co("--server", f"http://127.0.0.1:{port}", "search", "x")
    assert ran.code == 3
    assert "is `co serve` running?" in ran.err
    monkeypatch.setenv("CO_TOKEN", token)
    ran = co("--server", f"{team.url}/another/page", "list")
    assert ran.code == 3
    assert "answered 200: is this the address of a `co serve`?" in ran.err
    assert "not available over a server" in co("--server", team.url, "list", "--trash").err


def test_what_needs_the_files_says_so(remote: KnowledgeBase) -> None:
    for use in (
        lambda: remote.local.store,
        lambda: remote.local.rebuild(),
        lambda: remote.local.why("oaks", "memory:oak"),
        lambda: remote.remember("x", tier="user"),
        lambda: remote.search("x", reranker=object()),
    ):
        with pytest.raises(InvalidInputError, match="server"):
            use()
    assert pickle.loads(pickle.dumps(remote)).note("memory:oak").title == "Oaks"


def test_a_tool_works_with_a_server_or_says_that_it_needs_the_files(remote: KnowledgeBase) -> None:
    assert get_type_hints(ToolCall)["kb"] is KnowledgeBase
    assert type(KnowledgeBase) is type(Protocol)
    call = ToolCall(remote, 500, [])

    assert save_memory.function(call, content="Ashes burn well.").data.found_again
    assert forget_memory.function(call, ref="memory:ashes-burn-well").data.ref == "memory:ashes-burn-well"
    with pytest.raises(InvalidInputError, match="run it where the vault is"):
        rate_memory.function(call, ref="memory:oak", verdict="good")


@pytest.mark.medium
def test_a_client_waits_when_the_server_limits_it(remote: KnowledgeBase) -> None:
    assert {remote.note("memory:oak").title for _ in range(70)} == {"Oaks"}


def test_a_server_that_is_gone_is_an_error_of_its_own(team: Server, token: str) -> None:
    with KnowledgeBase.connect(team.url, token) as remote:
        remote.note("memory:oak")
        team.close()
        with pytest.raises(ServerUnavailableError, match="does not answer"):
            remote.note("memory:oak")
