"""Arguments as models really send them."""

from __future__ import annotations

from typing import Any

import pytest

from co_cli.errors import InvalidInputError
from co_cli.tools.arguments import ALIASES, read_arguments
from co_cli.tools.toolbox import EVERY_TOOL

SCHEMA = {tool.name: tool.parameters for tool in EVERY_TOOL}


def read(tool: str, arguments: dict[str, Any] | None) -> dict[str, Any]:
    return read_arguments(tool, SCHEMA[tool], arguments).values


@pytest.mark.parametrize(
    ("sent", "read_as"),
    [
        ({"query": "x", "limit": "5"}, {"query": "x", "limit": 5}),
        ({"query": "x", "limit": 5.0}, {"query": "x", "limit": 5}),
        ({"query": "x", "limit": None}, {"query": "x"}),
        ({"query": "x", "limit": "null"}, {"query": "x"}),
        ({"query": "x", "limit": 100_000}, {"query": "x", "limit": 50}),
        ({"query": "x", "limit": 0}, {"query": "x", "limit": 1}),
        ({"q": "x"}, {"query": "x"}),
        ({"Query": "x"}, {"query": "x"}),
        ({"question": "x", "top_k": 3}, {"query": "x", "limit": 3}),
        ({"query": None, "q": "x"}, {"query": "x"}),
        ({"query": ["blue", "pool"]}, {"query": "blue pool"}),
        ({"query": 42}, {"query": "42"}),
        ({"query": "x", "tags": "deploy"}, {"query": "x", "tags": ["deploy"]}),
        ({"query": "x", "tags": "deploy, ops"}, {"query": "x", "tags": ["deploy", "ops"]}),
        ({"query": "x", "tags": '["deploy", "ops"]'}, {"query": "x", "tags": ["deploy", "ops"]}),
        ({"query": "x", "tags": "[deploy, 'ops']"}, {"query": "x", "tags": ["deploy", "ops"]}),
        ({"query": "x", "tag": "deploy"}, {"query": "x", "tags": ["deploy"]}),
        ({"query": "x", "tags": ["a", None, "a", " "]}, {"query": "x", "tags": ["a"]}),
        ({"query": "x", "tags": []}, {"query": "x"}),
        ({"query": "x", "tags": 2026}, {"query": "x", "tags": ["2026"]}),
        ({"query": "x", "tags": None, "category": ""}, {"query": "x"}),
        ({"query": "x", "category": "null", "tags": "None"}, {"query": "x"}),
        ({"query": "x", "tags": ["null"]}, {"query": "x"}),
        ({"query": "null"}, {"query": "null"}),
    ],
)
def test_what_a_model_means_is_understood(sent: dict[str, Any], read_as: dict[str, Any]) -> None:
    assert read("recall_memory", sent) == read_as


def test_sources_may_be_plural_and_all_means_no_filter() -> None:
    assert read("search_knowledge", {"query": "x", "source": "Memories"})["sources"] == ["memory"]
    assert "sources" not in read("search_knowledge", {"query": "x", "sources": ["all"]})


def test_an_empty_list_of_tags_takes_the_tags_of_a_note_away() -> None:
    assert read("update_memory", {"ref": "memory:x", "tags": []}) == {"ref": "memory:x", "tags": []}


@pytest.mark.parametrize("nothing", ["", " ", "null", [None], [""]])
def test_tags_that_say_nothing_take_no_tags_away(nothing: Any) -> None:
    assert read("update_memory", {"ref": "memory:x", "tags": nothing, "content": "null"}) == {"ref": "memory:x"}


def test_a_share_may_be_a_percentage() -> None:
    assert read("save_memory", {"content": "x", "importance": "80%"})["importance"] == pytest.approx(0.8)


@pytest.mark.parametrize(
    ("tool", "sent", "cure"),
    [
        ("recall_memory", {}, "recall_memory needs query"),
        ("recall_memory", None, "recall_memory needs query"),
        ("recall_memory", {"query": "  "}, "recall_memory needs query"),
        ("recall_memory", {"query": {"a": 1}}, "query is a text"),
        ("recall_memory", {"query": "x", "limit": "many"}, "limit is a number from 1 to 50"),
        ("recall_memory", {"query": "x", "limit": True}, "limit is a number from 1 to 50"),
        ("recall_memory", {"query": "x", "limit": "nan"}, "limit is a number from 1 to 50"),
        ("recall_memory", {"query": "x", "tags": {"a": 1}}, "tags is a list of texts"),
        ("recall_memory", {"query": "x", "tags": [["a"]]}, "tags is a list of texts"),
        ("search_knowledge", {"query": "x", "sources": "web"}, "sources is one of memory, article"),
        ("search_knowledge", {"query": "x", "detail": "long"}, "detail is one of scan, full"),
        ("save_memory", {"content": "x", "importance": 8}, "importance is a number from 0 to 1"),
        ("save_article", {"content": "x"}, "save_article needs title"),
    ],
)
def test_what_cannot_be_understood_is_refused_with_what_would_be_right(
    tool: str, sent: dict[str, Any] | None, cure: str
) -> None:
    with pytest.raises(InvalidInputError, match=cure):
        read(tool, sent)


def test_names_that_a_tool_does_not_know_are_reported() -> None:
    read_as = read_arguments("recall_memory", SCHEMA["recall_memory"], {"query": "x", "reason": "I wonder"})

    assert read_as.values == {"query": "x"}
    assert read_as.ignored == ["reason"]


def test_a_second_name_for_the_same_argument_is_reported() -> None:
    read_as = read_arguments("recall_memory", SCHEMA["recall_memory"], {"q": "oaks", "question": "elms"})

    assert read_as.values == {"query": "oaks"}
    assert read_as.ignored == ["question"]


def test_an_alias_never_takes_the_place_of_what_was_named_properly() -> None:
    assert read("save_memory", {"content": "the text", "text": "another"}) == {"content": "the text"}
    assert read("save_memory", {"text": "another", "content": "the text"}) == {"content": "the text"}


def test_every_alias_stands_for_an_argument_that_some_tool_has() -> None:
    known = {name for schema in SCHEMA.values() for name in schema["properties"]}

    assert set(ALIASES) <= known
