"""Operators in a query are filters on every front end; and one that leaves nothing hides nothing."""

from __future__ import annotations

import pytest

from co_cli.entrance.knowledge_base import KnowledgeBase
from tests.folder import Vault


@pytest.fixture
def notes(vault: Vault) -> Vault:
    vault.write("memories/blue.md", "---\ntags: [ops/deploy, pools]\n---\nBlue takes traffic first.")
    vault.write("memories/green.md", "---\ntags: [ops]\n---\nGreen takes traffic second.")
    vault.write("memories/road.md", "Traffic on the bridge is slow. Ask docker.")
    vault.write("articles/city/roads 2026.md", "Traffic in the city.")
    return vault


@pytest.fixture
def tagged(kb: KnowledgeBase, notes: Vault) -> KnowledgeBase:
    kb.sync()
    return kb


def refs(kb: KnowledgeBase, query: str, **options: object) -> set[str]:
    return {hit.ref.partition("#")[0] for hit in kb.search(query, **options).hits}  # type: ignore[arg-type]


@pytest.mark.parametrize("backend", ["hybrid", "fts5", "grep"])
def test_a_tag_in_a_query_narrows_as_the_option_does(tagged: KnowledgeBase, backend: str) -> None:
    for query, tag in (("tag:ops traffic", "ops"), ("traffic #Pools", "Pools")):
        found, asked = tagged.search(query, backend=backend), tagged.search("traffic", tags=[tag], backend=backend)

        assert [(hit.ref, hit.score) for hit in found.hits] == [(hit.ref, hit.score) for hit in asked.hits]
        assert found.hits
        if backend != "grep":
            assert found.understood == (f"only notes with tag:{tag} were searched",)


def test_path_and_file_narrow_to_where_notes_are(tagged: KnowledgeBase) -> None:
    article = "article:city/roads 2026"
    expected = {
        **{query: {article} for query in ("path:city", "PATH:City", "file:2026", 'file:"roads 2026"')},
        "file:road": {article, "memory:road"},
        "file:road path:memories": {"memory:road"},
    }
    for backend in ("hybrid", "fts5", "grep"):
        assert {query: refs(tagged, f"traffic {query}", backend=backend) for query in expected} == expected, backend


def test_all_tags_of_the_query_and_the_option_are_required(tagged: KnowledgeBase) -> None:
    assert refs(tagged, "traffic tag:ops tag:pools") == {"memory:blue"}
    assert refs(tagged, "traffic tag:pools", tags=["ops"]) == {"memory:blue"}


def test_a_query_that_is_nothing_but_a_filter_lists_its_notes(tagged: KnowledgeBase, notes: Vault) -> None:
    notes.write("memories/gone.md", "---\ntags: [ops]\nsuperseded_by: green\n---\nRed takes traffic.")
    tagged.sync()

    assert refs(tagged, "tag:ops") == {"memory:blue", "memory:green"}
    assert refs(tagged, "tag:ops", outdated=True) == {"memory:blue", "memory:green", "memory:gone"}
    assert refs(tagged, "tag:ops -second") == {"memory:blue"}
    assert refs(tagged, "", tags=["pools"]) == {"memory:blue"}


def test_a_tag_that_nobody_uses_hides_nothing_and_the_right_one_is_suggested(tagged: KnowledgeBase) -> None:
    found = tagged.search("tag:pool traffic on the bridge")

    assert found.hits[0].ref == "memory:road"
    assert found.understood == (
        "nothing was found with tag:pool: all notes were searched",
        "no note has the tag pool (did you mean pools?)",
    )


def test_why_asks_as_the_search_does(tagged: KnowledgeBase) -> None:
    assert tagged.why("tag:pools traffic", "memory:road").lost_in == "filters"
    assert tagged.why("tag:pools traffic", "memory:blue").rank == 1
    assert tagged.why("tag:unknown traffic", "memory:road").rank
    assert tagged.why("tag:pools docker", "memory:road", backend="fts5").rank, "nothing was found with it"
    assert not tagged.why("traffic tag:pools", "memory:blue", tags=["elsewhere"], any_tag=True).rank
    assert tagged.why("tag:pools traffic", "memory:blue").query == "tag:pools traffic"


def test_a_very_long_tag_matches_nothing(tagged: KnowledgeBase) -> None:
    """SQLite refuses long patterns."""
    assert tagged.search("traffic", tags=["x" * 100_000]).hits == []
    assert tagged.notes(tags=["ops*", "x" * 100_000]) == []
    assert tagged.search(f"traffic tag:{'x' * 100_000}").hits
