"""Activity and context: what was asked, given and saved, and what an agent would be given."""

from __future__ import annotations

import time
from typing import Any

import pytest
from starlette.testclient import TestClient

from co_cli.entrance.knowledge_base import KnowledgeBase
from co_cli.entrance.local import LocalKnowledgeBase
from co_cli.notes.transcripts import SpokenTurn
from co_cli.saving.turns import KeptSession, keep_turns
from tests.command import Co
from tests.server.api import ask

GIVEN = [
    {"ref": "memory:no-updates-near-springs", "why": "recalled", "tokens": 61},
    {"ref": "memory:not-for-navigation", "why": "always", "tokens": 88},
]


def work_of_agents(kb: LocalKnowledgeBase, now: float) -> None:
    """Claude Code is given notes, looks something up and saves it over MCP; two hours before, another client asked."""
    activity = kb.activity

    def at(moment: float, front_end: str) -> None:
        activity.clock, activity.front_end = lambda: moment, front_end

    at(now - 7_200, "mcp")
    kb.search("bell at night", limit=3, track=True, read=False, backend="fts5")
    at(now - 600, "claude-code")
    activity.injected(GIVEN, "c0ffee", prompt="May I push an update today?", given="Notes from co: not near springs.")
    at(now - 580, "mcp")
    kb.search("when may we not push new software", limit=3, track=True, read=False, backend="fts5")
    at(now - 500, "mcp")
    kb.remember("The next spring tide is on Friday.", "Next spring tide")
    at(now - 400, "claude-code")
    activity.injected(GIVEN[:1], "c0ffee", prompt="And tomorrow?", given="Notes from co: see above.")
    at(now, "web")
    kb.search("how long is the guarantee", limit=3, track=True, read=False, backend="fts5")


@pytest.mark.medium
def test_the_feed_names_notes_with_their_titles_and_pages(api: TestClient, sample: KnowledgeBase) -> None:
    sample.search("blue pool", track=True, read=False)
    sample.search("zygomorphic quasar", track=True, read=False, backend="fts5")
    sample.remember("Oaks live long.", "Oaks")

    first = api.get("/api/v1/activity", params={"limit": 2}).json()
    rest = api.get("/api/v1/activity", params={"limit": 2, "before": first["next"]}).json()

    assert [(one["kind"], one["text"]) for one in first["entries"]] == [
        ("saved", "Oaks"),
        ("asked", "zygomorphic quasar"),
    ]
    assert [one["text"] for one in rest["entries"]] == ["blue pool"]
    assert rest["titles"][rest["entries"][0]["notes"][0]["ref"]]
    assert (first["entries"][0]["front_end"], first["query_log"], rest["next"]) == ("web", "on", None)
    only = api.get("/api/v1/activity", params={"kind": "saved", "front_end": "web"}).json()
    assert [one["outcome"] for one in only["entries"]] == ["created"]
    assert api.get("/api/v1/activity", params={"kind": "dreamed"}).status_code == 400


@pytest.mark.medium
def test_the_statistics_are_those_of_the_command_line(api: TestClient, sample: KnowledgeBase, co: Co) -> None:
    sample.search("zygomorphic quasar", track=True, read=False, backend="fts5")
    place = ("--vault", sample.root, "--data-dir", sample.settings.data_dir)

    shown = api.get("/api/v1/activity/stats", params={"days": 7}).json()

    assert [one["text"] for one in shown["found_nothing"]] == ["zygomorphic quasar"]
    assert co("feedback", "stats", "--days", "7", "--json", *place).json == shown
    assert api.get("/api/v1/activity/stats", params={"days": 0}).status_code == 400


def test_every_memory_is_counted_on_the_day_it_was_written(api: TestClient, sample: KnowledgeBase) -> None:
    days = api.get("/api/v1/activity/memories").json()

    assert sum(days.values()) == len(sample.notes("memory"))
    assert list(days) == sorted(days)


def test_given_is_what_the_command_line_shows(api: TestClient, sample: KnowledgeBase, co: Co) -> None:
    sample.remember("Mara is the user.", "Profile", fields={"loading": "always"})
    prompt = "What time do we deploy?"
    place = ("--vault", sample.root, "--data-dir", sample.settings.data_dir)

    given: dict[str, Any] = api.post("/api/v1/given", json={"prompt": prompt, "tokens": 300}).json()

    assert given == co("note", "context", prompt, "--tokens", "300", "--json", *place).json
    assert given["report"]["injected"][0]["reason"] == "it is marked `loading: always`"
    assert "Mara is the user." in given["knowledge"]
    assert api.post("/api/v1/given", json={"prompt": prompt, "tokens": 0}).status_code == 400
    entries = api.get("/api/v1/activity", params={"kind": "given"}).json()["entries"]
    assert entries == []


def test_what_agents_did_is_grouped_by_session_and_tools_over_mcp_belong_to_the_client(
    api: TestClient, sample: LocalKnowledgeBase
) -> None:
    now = time.time()
    work_of_agents(sample, now)

    listed = ask(api, "GET", "/activity/sessions")
    session, earlier = listed["sessions"]
    shown = ask(api, "GET", f"/activity/sessions/{session['id']}")

    assert listed["total"] == 2, "what a person asks on the page is no session of an agent"
    assert (session["front_end"], session["conversation"], session["prompts"]) == ("claude-code", "c0ffee", 2)
    assert (session["notes"], session["tokens"], session["asked"], session["saved"]) == (3, 210, 1, 1)
    assert session["prompt"] == "May I push an update today?"
    assert (earlier["front_end"], earlier["notes"], earlier["asked"]) == ("mcp", 0, 1)
    assert [one["kind"] for one in shown["entries"]] == ["given", "asked", "saved", "given"]
    first, asked, saved, _ = shown["entries"]
    assert (first["prompt"], first["given"]) == ("May I push an update today?", "Notes from co: not near springs.")
    assert [(note["why"], note["tokens"]) for note in first["notes"]] == [("recalled", 61), ("always", 88)]
    assert asked["text"] == "when may we not push new software"
    assert (saved["text"], saved["outcome"]) == ("Next spring tide", "created")
    assert shown["titles"]["memory:not-for-navigation"]
    assert shown["talk"] is None
    refused = ask(api, "GET", "/activity/sessions/claude-code/gone", 400)
    assert "no session" in refused["error"]["message"]


def test_a_conversation_reads_turn_by_turn_and_belongs_to_its_session(
    api: TestClient, sample: LocalKnowledgeBase
) -> None:
    now = time.time()
    work_of_agents(sample, now)
    said = [
        SpokenTurn("User", "May I push an update today?", now - 600),
        SpokenTurn("Assistant", "No: <script>alert(1)</script> not **near** springs.", now - 590, (GIVEN[0]["ref"],)),
    ]
    kept = keep_turns(sample.vault, KeptSession("c0ffee", "Claude Code", "Updates", project="clock"), said)

    listed = ask(api, "GET", "/activity/sessions")
    shown = ask(api, "GET", f"/activity/sessions/{listed['sessions'][0]['id']}")
    lines = ask(api, "GET", "/conversations")

    assert listed["conversations"] == {listed["sessions"][0]["id"]: kept.ref}
    assert [(turn["role"], turn["at"]) for turn in shown["talk"]["turns"]] == [
        ("person", int(now - 600)),
        ("agent", int(now - 590)),
    ]
    answer = shown["talk"]["turns"][1]
    assert "<strong>near</strong>" in answer["html"]
    assert "<script>" not in answer["html"]
    assert shown["talk"]["titles"][answer["given"][0]]
    assert kept.ref in [one["ref"] for one in lines]
    assert ask(api, "GET", f"/conversations/{kept.ref}") == shown["talk"]
    assert ask(api, "GET", f"/conversations/{kept.ref}", offset=1, limit=1)["turns"] == [answer]
    refused = ask(api, "GET", "/conversations/memory:not-for-navigation", 400)
    assert "is not a conversation" in refused["error"]["message"]
    ask(api, "GET", "/conversations/conversation:gone", 404)
