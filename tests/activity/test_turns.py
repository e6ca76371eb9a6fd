"""Which notes are added to prompts, which are cited and who saves what is recorded, as far as the settings allow."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from mcp import Client
from pydantic_ai import Agent

from co_cli.activity import Activity, query_log
from co_cli.activity.feed import Entry, FeedQuery, Kind, read_feed
from co_cli.activity.versions import move_vault
from co_cli.agent import Knowledge
from co_cli.entrance.knowledge_base import KnowledgeBase
from co_cli.entrance.local import LocalKnowledgeBase
from co_cli.ground.values import DAY
from co_cli.mcp.server import VaultServer
from co_cli.tools import Toolbox
from co_cli.vault.vault import Opening
from tests.activity.conftest import NOON, Opener, answer, rows
from tests.agent.conftest import offline_and_patient as offline_and_patient
from tests.agent.scripted import Script
from tests.command import Co
from tests.folder import Vault

NOTES = [
    {"ref": "memory:profile", "why": "always", "tokens": 40, "evidence": None},
    {"ref": "article:deploy#L3-9", "why": "contextual", "tokens": 60, "evidence": 0.6},
]
TURNS = "select front_end, conversation, notes, tokens, injected, cited from turns order by id"
ALL: tuple[Kind, ...] = ("asked", "given", "saved")


def feed(activity: Activity, kinds: tuple[Kind, ...] = ALL, front_end: str | None = None) -> list[Entry]:
    with activity.written().reading() as connection:
        return read_feed(connection, activity.root, FeedQuery(kinds, front_end, NOON + DAY, 50)).entries


@pytest.fixture
def profile(vault: Vault) -> None:
    """A note that every agent is given."""
    vault.write("memories/profile.md", "---\ntitle: Profile\nloading: always\n---\nMara is the user.")


def test_citations_join_what_the_same_run_was_given(activity: Activity) -> None:
    activity.injected(NOTES, "talk", "run 1")
    activity.injected(NOTES[:1], "talk", "run 2")
    activity.cited("See memory:profile and memory:oak.", "talk", "run 2")
    activity.cited("Only article:deploy.", "talk", "run 3")

    given = [["memory:profile", "always", 40], ["article:deploy#L3-9", "contextual", 60]]
    assert [(*row[:4], *(json.loads(one or "null") for one in row[4:])) for row in rows(activity, TURNS)] == [
        ("python", "talk", 2, 100, given, None),
        ("python", "talk", 1, 40, given[:1], ["memory:profile", "memory:oak"]),
        ("python", "talk", 0, 0, [], ["article:deploy"]),
    ]


def test_notes_of_every_kind_and_tier_can_be_cited(activity: Activity) -> None:
    activity.cited("See entity:mara (conversation:tea#L3-9), `resource:arches` and user:memory:tone.")

    [(*_, cited)] = rows(activity, TURNS)
    assert json.loads(cited) == ["entity:mara", "conversation:tea#L3-9", "resource:arches", "user:memory:tone"]


def test_settings_leave_out_names_or_everything_and_secrets_are_masked(open_activity: Opener) -> None:
    token = "ghp_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"
    with open_activity(query_log="no-text", count_use="off") as activity:
        activity.injected(NOTES, "talk", "run", prompt="Deploy it", given="Notes: blue first.")
        activity.cited("memory:profile", "talk", "run")
        assert rows(activity, TURNS) == [("python", "talk", 2, 100, None, None)]
        assert rows(activity, "select prompt, given from turns") == [(None, None)]
    with open_activity(query_log="off", count_use="off") as activity:
        activity.injected(NOTES, "talk", "run")
        activity.cited("memory:profile", "talk", "run")
        assert len(rows(activity, TURNS)) == 1
    with open_activity() as activity:
        activity.cited(f"memory:{token}")
        activity.injected(NOTES, "talk", "run", prompt=f"Deploy it with {token}", given="Notes: blue first.")
        assert token not in str(rows(activity, "select * from turns"))
        assert rows(activity, "select given from turns where given is not null") == [("Notes: blue first.",)]


def test_turns_are_bounded_and_cleared_with_the_log(activity: Activity, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(query_log, "MOST_ROWS", 3)
    activity.clock = lambda: NOON - 400 * DAY
    activity.injected(NOTES, "old", None)
    activity.clock = lambda: NOON
    for number in range(5):
        activity.injected(NOTES, f"talk {number}", None)
    assert [row[1] for row in rows(activity, TURNS)] == ["talk 2", "talk 3", "talk 4"]

    with activity.database.writing() as connection:
        query_log.clear_log(connection, activity.root)
    assert rows(activity, TURNS) == []


def test_turns_follow_a_vault_that_moves(activity: Activity) -> None:
    activity.injected(NOTES, "talk", None)
    with activity.written().writing() as connection:
        move_vault(connection, activity.root, "/elsewhere")

    assert rows(activity, "select root from turns join vaults on vaults.id = vault_id") == [("/elsewhere",)]


def test_the_feed_says_what_was_asked_given_cited_and_saved_newest_first(activity: Activity, vault: Vault) -> None:
    activity.searched(answer(vault.root, "How old do oaks get?", "oak", "elm"))
    activity.clock = lambda: NOON + 1
    activity.injected(NOTES, "talk", "run")
    activity.clock = lambda: NOON + 2
    activity.cited("As memory:oak says. See article:deploy too.", "talk", "run")
    activity.clock = lambda: NOON + 7_200
    activity.searched(answer(vault.root, "oaks", "oak"))

    later, given, asked = feed(activity)

    assert (asked.text, asked.outcome, asked.total) == ("How old do oaks get?", "found", 2)
    assert [(note.ref, note.cited) for note in asked.notes] == [("memory:oak", True), ("memory:elm", False)]
    assert [note.cited for note in later.notes] == [False]
    assert (given.outcome, given.total, given.tokens, given.conversation) == ("given", 2, 100, "talk")
    assert [(note.ref, note.why, note.cited) for note in given.notes] == [
        ("memory:profile", "always", False),
        ("article:deploy#L3-9", "contextual", True),
        ("memory:oak", None, True),
    ]


def test_the_feed_continues_where_a_page_ended(activity: Activity, vault: Vault) -> None:
    for number in range(7):
        activity.clock = lambda number=number: NOON + number // 2
        activity.searched(answer(vault.root, f"question {number}"))
    seen: list[str | None] = []
    before: float | None = NOON + DAY
    while before is not None:
        with activity.written().reading() as connection:
            page = read_feed(connection, activity.root, FeedQuery(ALL, None, before, 2))
        seen += [entry.text for entry in page.entries]
        before = page.next

    assert sorted(filter(None, seen)) == [f"question {number}" for number in range(7)]


@pytest.fixture
def kb(vault: Vault, data_dir: Path, request: pytest.FixtureRequest) -> Iterator[LocalKnowledgeBase]:
    """Opened by the front end that the test names."""
    with KnowledgeBase.open(vault.root, data_dir, opening=Opening(getattr(request, "param", "python"))) as opened:
        yield opened


@pytest.mark.parametrize("kb", ["mcp"], indirect=True)
def test_saves_name_their_front_end_and_changed_files_do_not(kb: KnowledgeBase, vault: Vault, co: Co) -> None:
    vault.write("memories/yew.md", "Yews grow slowly.")
    kb.sync()
    kb.remember("Oaks live long.", "Oaks")
    vault.write("memories/elm.md", "Elms fall ill.")
    vault.write("memories/ash.md", "Ashes burn well.")
    kb.sync()

    entries = [(one.front_end, one.outcome, one.total, one.text) for one in feed_now(kb)]

    assert entries == [("file", "created", 2, None), ("mcp", "created", 1, "Oaks")]
    kb.close()
    assert co("feedback", "stats", "--json").json["saves"] == {"file": 2, "mcp": 1}
    assert "by mcp" in co("note", "history", "oaks").out


def feed_now(kb: KnowledgeBase) -> list[Entry]:
    with kb.activity.written().reading() as connection:
        return read_feed(connection, kb.root, FeedQuery(("saved",), None, float("inf"), 50)).entries


@pytest.mark.usefixtures("profile")
@pytest.mark.parametrize("kb", ["agent"], indirect=True)
def test_an_agent_records_what_it_was_given_and_what_it_cites(kb: KnowledgeBase) -> None:
    kb.sync()
    script = Script("You are Mara [memory:profile].", "Hello again.")
    agent = Agent(script.model, capabilities=[Knowledge(knowledge_base=kb)])

    first = agent.run_sync("Who am I?", conversation_id="talk")
    agent.run_sync("Hello", message_history=first.all_messages(), conversation_id="talk")

    [(front_end, conversation, notes, tokens, injected, cited)] = rows(kb.activity, TURNS)
    assert (front_end, conversation, notes) == ("agent", "talk", 1)
    assert json.loads(injected) == [["memory:profile", "always", tokens]]
    assert json.loads(cited) == ["memory:profile"]


@pytest.mark.usefixtures("profile")
@pytest.mark.parametrize("kb", ["mcp"], indirect=True)
@pytest.mark.anyio
async def test_the_context_prompt_of_mcp_records_what_it_gives(kb: KnowledgeBase, data_dir: Path) -> None:
    async with Client(VaultServer(Toolbox(kb))) as client:
        await client.get_prompt("context", {})

    assert [(row[0], row[2]) for row in rows(kb.activity, TURNS)] == [("mcp", 1)]
