"""Activity and context: what was asked, given and saved, and what an agent would be given."""

from __future__ import annotations

from typing import Any

from starlette.testclient import TestClient

from co_cli.knowledge_base import KnowledgeBase
from tests.command import Co


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
