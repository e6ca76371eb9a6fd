"""`tag:NAME` in a query is the filter, through every door; and a tag that nobody uses hides nothing."""

from __future__ import annotations

import pytest

from co_cli.knowledge_base import KnowledgeBase
from co_cli.service.narrowing import tags_in
from tests.command import Co
from tests.vault import Vault


@pytest.fixture
def notes(vault: Vault) -> Vault:
    vault.write("memories/blue.md", "---\ntags: [ops/deploy, pools]\n---\nBlue takes traffic first.")
    vault.write("memories/green.md", "---\ntags: [ops]\n---\nGreen takes traffic second.")
    vault.write("memories/road.md", "Traffic on the bridge is slow. Ask docker.")
    return vault


@pytest.fixture
def tagged(kb: KnowledgeBase, notes: Vault) -> KnowledgeBase:
    kb.sync()
    return kb


@pytest.mark.parametrize("backend", ["hybrid", "fts5", "grep"])
@pytest.mark.parametrize(("query", "tags"), [("tag:ops traffic", ["ops"]), ("traffic Tag:#Pools.", ["Pools"])])
def test_a_tag_that_a_query_names_narrows_as_the_option_does(
    tagged: KnowledgeBase, query: str, tags: list[str], backend: str
) -> None:
    found, asked = tagged.search(query, backend=backend), tagged.search("traffic", tags=tags, backend=backend)

    assert [(hit.ref, hit.score) for hit in found.hits] == [(hit.ref, hit.score) for hit in asked.hits]
    assert found.hits
    assert found.query == query
    assert found.understood == (f"tag:{tags[0]}, and only that was searched",)


def test_several_tags_are_all_wanted_beside_those_of_the_option(tagged: KnowledgeBase) -> None:
    assert [hit.ref for hit in tagged.search("traffic tag:ops tag:pools").hits] == ["memory:blue"]
    assert [hit.ref for hit in tagged.search("traffic tag:pools", tags=["ops"]).hits] == ["memory:blue"]


def test_a_query_that_is_nothing_but_a_tag_finds_its_notes(tagged: KnowledgeBase) -> None:
    assert {hit.ref for hit in tagged.search("tag:ops").hits} == {"memory:blue", "memory:green"}


def test_a_tag_that_nobody_uses_hides_nothing_and_is_told(tagged: KnowledgeBase) -> None:
    found = tagged.search("tag:pool traffic on the bridge")

    assert found.hits[0].ref == "memory:road"
    assert found.understood == ("tag:pool, but no note has the tag pool (did you mean pools?): all were searched",)


def test_a_tag_whose_notes_say_nothing_of_it_is_told(tagged: KnowledgeBase) -> None:
    found = tagged.search("tag:pools docker", backend="fts5")

    assert found.understood == ("tag:pools, but nothing was found so: all were searched",)


@pytest.mark.parametrize(
    ("query", "tags", "rest"),
    [
        ('"tag:ops" traffic', [], '"tag:ops" traffic'),
        ('tag:ops "tag:b" x', ["ops"], '"tag:b" x'),
        ("git tag: how to move one", [], "git tag: how to move one"),
        ("the hashtag:ops of a page", [], "the hashtag:ops of a page"),
        ("-tag:ops traffic", [], "-tag:ops traffic"),
        ('x tag:"ops" "tag:b', [], 'x tag:"ops" "tag:b'),
        ("tag:ops/deploy", ["ops/deploy"], "ops deploy"),
        ("tag:a x tag:a", ["a"], "x"),
        ("x (tag:ops)", ["ops"], "x ( )"),
    ],
)
def test_quotes_are_the_way_out_and_only_a_whole_word_names_a_tag(query: str, tags: list[str], rest: str) -> None:
    found, left = tags_in(query)

    assert (found, left.strip()) == (tags, rest)


def test_why_asks_as_the_search_does(tagged: KnowledgeBase) -> None:
    assert tagged.why("tag:pools traffic", "memory:road").fell == "filters"
    assert tagged.why("tag:pools traffic", "memory:blue").rank == 1
    assert tagged.why("tag:unknown traffic", "memory:road").rank
    assert tagged.why("tag:pools docker", "memory:road", backend="fts5").rank, "nothing was found so"
    assert not tagged.why("traffic tag:pools", "memory:blue", tags=["elsewhere"], any_tag=True).rank
    assert tagged.why("tag:pools traffic", "memory:blue").query == "tag:pools traffic"


def test_the_command_says_what_it_understood(co: Co, notes: Vault) -> None:
    assert "understood tag:pools, and only that was searched" in co("search", "traffic tag:pools").out
    assert co("search", '"tag:pools"').code == 1


def test_a_tag_of_any_length_is_only_a_tag_that_nobody_has(tagged: KnowledgeBase) -> None:
    """SQLite refuses long patterns."""
    assert tagged.search("traffic", tags=["x" * 100_000]).hits == []
    assert tagged.notes(tags=["ops*", "x" * 100_000]) == []
    assert tagged.search(f"traffic tag:{'x' * 100_000}").hits
