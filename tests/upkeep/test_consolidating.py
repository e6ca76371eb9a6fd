"""A model proposes, and only what keeps the facts and invents none can be accepted. Sources stay."""

from __future__ import annotations

import json
from collections.abc import Callable

import pexpect
import pytest
from pydantic_ai.messages import ModelMessage, ModelResponse, ToolCallPart
from pydantic_ai.models.function import AgentInfo, FunctionModel

from co_cli.agent.consolidating import ModelRewriter
from co_cli.errors import KnowledgeError
from co_cli.knowledge_base import KnowledgeBase
from co_cli.service.consolidating import accept, added_facts, candidates, kept_share, proposals
from tests.chat_server import ChatServer, calls, fails
from tests.command import Co
from tests.upkeep.terminal import terminal
from tests.vault import Vault

ONE = "Deploys of the harbour service go to the blue pool first, at 9 on Tuesdays, says Bex."
TWO = "The harbour service deploys to the blue pool first; Bex watches it for 20 minutes."
BOTH = f"{ONE[:-11]}; Bex watches it for 20 minutes, and says so."


def answering(content: str, title: str = "Harbour deploys") -> FunctionModel:
    def answer(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        return ModelResponse([ToolCallPart(info.output_tools[0].name, {"title": title, "content": content})])

    return FunctionModel(answer)


@pytest.fixture
def two(kb: KnowledgeBase, vault: Vault) -> list[str]:
    """Two memories that belong together, and one that does not."""
    vault.write("memories/one.md", f"---\ncreated: 2024-01-01\ntags: [deploy]\n---\n{ONE}\n")
    vault.write("memories/two.md", f"---\ncreated: 2025-01-01\ntags: [bex]\n---\n{TWO}\n")
    vault.write("memories/other.md", "---\ncreated: 2025-01-01\n---\nOaks live long.\n")
    kb.sync()
    return ["memory:one", "memory:two"]


@pytest.mark.parametrize(
    ("old", "new", "share"),
    [
        (["Bex pays 20 euros."], "Bex pays 20 euros.", 1.0),
        (["Bex pays 20 euros."], "Bex pays.", 0.0),
        (["We ask Bex and Anselm."], "We ask Bex.", 0.5),
        (["Oaks live long."], "Oaks live.", 2 / 3),
        ([], "Anything.", 1.0),
        (["Two cats."], "2 cats.", 1.0),
    ],
)
def test_the_share_of_facts_that_is_kept(old: list[str], new: str, share: float) -> None:
    assert kept_share(old, new) == pytest.approx(share)


@pytest.mark.parametrize(
    ("new", "added"),
    [
        ("Bex pays 20 euros. Later more.", set[str]()),
        ("Bex pays 30 euros.", {"30"}),
        ("We ask Anselm to pay 20 euros.", {"anselm"}),
    ],
)
def test_numbers_and_names_that_no_source_has(new: str, added: set[str]) -> None:
    assert added_facts(["Bex pays 20 euros."], new) == added


def test_memories_that_belong_together_are_grouped(kb: KnowledgeBase, two: list[str]) -> None:
    assert [[note.ref for note in group] for group in candidates(kb, 2e9)] == [two]


def test_an_accepted_proposal_supersedes_its_sources_and_changes_none(
    kb: KnowledgeBase, vault: Vault, two: list[str]
) -> None:
    before = {path: vault.read(path) for path in vault.notes()}
    (proposal,) = proposals(kb, ModelRewriter(answering(BOTH)), 10)

    saved = accept(kb, proposal)

    note = kb.note(saved.ref)
    assert (note.title, list(note.supersedes), note.provenance) == ("Harbour deploys", two, "agent")
    assert set(note.tags) == {"deploy", "bex"}
    assert {path: vault.read(path) for path in before} == before
    assert [hit.ref for hit in kb.search("harbour deploys blue pool").hits][:1] == [saved.ref]
    assert list(proposals(kb, ModelRewriter(answering(BOTH)), 10)) == []


@pytest.mark.parametrize(
    ("content", "why"),
    [
        ("The harbour service has deploys.", "facts are left"),
        (BOTH.replace("20", "25") + " Once it took 20.", "no source says 25"),
        (BOTH + " We ask Anselm.", "no source says anselm"),
    ],
)
def test_a_rewrite_that_loses_or_invents_facts_is_refused(
    kb: KnowledgeBase, vault: Vault, two: list[str], content: str, why: str
) -> None:
    (proposal,) = proposals(kb, ModelRewriter(answering(content)), 10)

    assert proposal.refused is not None
    assert why in proposal.refused
    with pytest.raises(KnowledgeError, match="refused"):
        accept(kb, proposal)
    assert len(vault.notes()) == 3


def test_a_model_may_leave_them_apart(kb: KnowledgeBase, two: list[str]) -> None:
    assert list(proposals(kb, ModelRewriter(answering("")), 10)) == []


def test_the_model_reads_notes_as_data(kb: KnowledgeBase, two: list[str]) -> None:
    told: list[str] = []

    def answer(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        told.append(str(messages[-1].parts[-1].content))  # type: ignore[union-attr]
        return ModelResponse([ToolCallPart(info.output_tools[0].name, {"title": "", "content": ""})])

    list(proposals(kb, ModelRewriter(FunctionModel(answer)), 10))

    assert told[0].startswith('<note ref="memory:one"')
    assert 'created="2024-01-01"' in told[0]


@pytest.fixture
def served(co: Co, monkeypatch: pytest.MonkeyPatch) -> Callable[[ChatServer], None]:
    def use(server: ChatServer) -> None:
        monkeypatch.setenv("OLLAMA_BASE_URL", server.url)
        monkeypatch.setenv("CO_MODEL", "ollama:qwen3")

    return use


def final(content: str) -> tuple[str, str]:
    return "final_result", json.dumps({"title": "Harbour deploys", "content": content})


def test_the_command_shows_a_diff_and_writes_only_with_yes(
    co: Co, vault: Vault, two: list[str], served: Callable[[ChatServer], None]
) -> None:
    with ChatServer([calls(final(BOTH)), calls(final(BOTH))]) as server:
        served(server)
        shown = co("consolidate")
        assert len(vault.notes()) == 3
        written = co("consolidate", "--yes", "--json")

    assert shown.code == 0
    assert f"-{ONE}" in shown.out
    assert f"+{BOTH}" in shown.out
    assert "nothing was written" in shown.out
    assert written.json[0]["refs"] == two
    assert written.json[0]["saved"] == "memory:harbour-deploys"
    assert len(vault.notes()) == 4


def test_in_a_terminal_a_key_accepts(
    co: Co, vault: Vault, two: list[str], served: Callable[[ChatServer], None]
) -> None:
    with ChatServer([calls(final(BOTH))]) as server:
        served(server)
        with terminal(co.folder, "consolidate") as child:
            child.expect_exact("[y] accept")
            child.send("y")
            child.expect_exact("created memory:harbour-deploys")
            child.expect(pexpect.EOF)

    assert len(vault.notes()) == 4


def test_a_model_that_does_not_answer_is_one_line(co: Co, two: list[str], served: Callable[[ChatServer], None]) -> None:
    with ChatServer([fails(404)]) as server:
        served(server)
        ran = co("consolidate")

    assert ran.code == 3
    assert "ollama pull qwen3" in ran.err
    assert ran.err.count("\n") == 1


def test_without_a_model_it_says_how_to_get_one(co: Co) -> None:
    ran = co("consolidate")

    assert ran.code == 2
    assert "co consolidate --model" in ran.err


def test_nothing_to_consolidate_is_said_without_asking_anybody(
    co: Co, served: Callable[[ChatServer], None], vault: Vault
) -> None:
    vault.write("memories/oak.md", "Oaks live long.\n")
    with ChatServer([]) as server:
        served(server)
        ran = co("consolidate")
        assert server.requests == []

    assert (ran.code, ran.out) == (1, "Nothing to consolidate.\n")
