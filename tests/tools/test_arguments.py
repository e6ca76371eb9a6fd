"""Arguments as models send them."""

from __future__ import annotations

from itertools import product
from typing import Any

import pytest

from co_cli.errors import InvalidInputError, KnowledgeError
from co_cli.tools import Toolbox
from co_cli.tools.toolbox import EVERY_TOOL

TOOL = {tool.name: tool for tool in EVERY_TOOL}


def read(tool: str, arguments: dict[str, Any] | None) -> dict[str, Any]:
    return TOOL[tool].read_arguments(arguments)[0]


@pytest.mark.parametrize(
    ("sent", "read_as"),
    [
        ({"query": "x", "limit": "5"}, {"query": "x", "limit": 5}),
        ({"query": "x", "limit": 5.0}, {"query": "x", "limit": 5}),
        ({"query": "x", "limit": None}, {"query": "x"}),
        ({"query": "x", "limit": "null"}, {"query": "x"}),
        ({"query": "x", "limit": 100_000}, {"query": "x", "limit": 50}),
        ({"query": "x", "limit": 10**400}, {"query": "x", "limit": 50}),
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
        ({"query": "x", "tags": ["a", None, 7, " "]}, {"query": "x", "tags": ["a", "7"]}),
        ({"query": "x", "tags": 2026}, {"query": "x", "tags": ["2026"]}),
        ({"query": "x", "tags": None, "category": ""}, {"query": "x"}),
        ({"query": "x", "category": "null", "tags": "None"}, {"query": "x"}),
        ({"query": "x", "tags": ["null"]}, {"query": "x"}),
        ({"query": "null"}, {"query": "null"}),
        ({"query": "x", "profile": "Fresh "}, {"query": "x", "profile": "fresh"}),
        ({"query": "x", "min_score": "0.4"}, {"query": "x", "min_score": 0.4}),
        ({"query": "x", "weights": {"recency": "0.2"}}, {"query": "x", "weights": {"recency": 0.2}}),
        ({"query": "x", "weights": '{"recency": 0.2}'}, {"query": "x", "weights": {"recency": 0.2}}),
    ],
)
def test_common_mistakes_of_models_are_corrected(sent: dict[str, Any], read_as: dict[str, Any]) -> None:
    assert read("recall_memory", sent) == read_as


def test_an_empty_list_of_tags_removes_the_tags_of_a_note() -> None:
    assert read("update_memory", {"ref": "memory:x", "tags": []}) == {"ref": "memory:x", "tags": []}


@pytest.mark.parametrize("nothing", ["", " ", "null", [None], [""]])
def test_tags_that_say_nothing_remove_no_tags(nothing: Any) -> None:
    assert read("update_memory", {"ref": "memory:x", "tags": nothing, "content": "null"}) == {"ref": "memory:x"}


@pytest.mark.parametrize(
    ("tool", "sent", "problem"),
    [
        ("recall_memory", {}, "recall_memory needs query"),
        ("recall_memory", None, "recall_memory needs query"),
        ("recall_memory", {"query": "  "}, "recall_memory needs query"),
        ("recall_memory", {"query": {"a": 1}}, "recall_memory: query: Input should be a valid string, not {'a': 1}"),
        ("recall_memory", {"query": "x", "limit": "many"}, "limit: Input should be a valid integer.*, not 'many'"),
        ("recall_memory", {"query": "x", "limit": "nan"}, "limit: Input should be a valid integer"),
        ("recall_memory", {"query": "x", "tags": {"a": 1}}, "tags: Input should be a valid list"),
        ("recall_memory", {"query": "x", "tags": [["a"]]}, "tags: Input should be a valid string"),
        ("recall_memory", {"query": "x", "profile": "best"}, "profile: Input should be 'default', .* or 'fresh'"),
        ("recall_memory", {"query": "x", "weights": "high"}, "weights: Input should be a valid dictionary"),
        ("recall_memory", {"query": "x", "weights": {"words": "high"}}, "weights: Input should be a valid number"),
        ("recall_memory", {"query": "x", "min_score": "nan"}, "min_score: Input should be a finite number"),
        ("search_knowledge", {"query": "x", "sources": "web"}, "sources: Input should be 'memory', 'article'"),
        ("search_knowledge", {"query": "x", "detail": "long"}, "detail: Input should be 'scan' or 'full'"),
        ("save_memory", {"content": "x", "importance": 8}, "importance: Input should be less than or equal to 1"),
        ("save_article", {"content": "x"}, "save_article needs title"),
    ],
)
def test_an_argument_that_cannot_be_read_is_refused_with_what_would_be_right(
    tool: str, sent: dict[str, Any] | None, problem: str
) -> None:
    with pytest.raises(InvalidInputError, match=problem):
        read(tool, sent)


def test_arguments_that_a_tool_does_not_have_are_ignored_and_named(toolbox: Toolbox) -> None:
    result = toolbox.call("recall_memory", {"query": "x", "reason": "I wonder", "n" * 1_000: 1})

    assert result.data["ignored"] == ["reason", "n" * 60]
    assert f"(Not arguments of recall_memory, ignored: reason, {'n' * 60}.)" in result.text


def nested(depth: int) -> list[Any]:
    value: list[Any] = []
    for _ in range(depth):
        value = [value]
    return value


HOSTILE: list[Any] = [
    "x" * 1_000_000,
    "a\0b\n\0",
    "\ud800",
    "line\n" * 50,
    {"a": [{"b": {"c": None}}]},
    nested(5_000),
    "[" * 100_000,
    ["x"] * 10_000,
    [None, {}, [], True, 1e308],
    *(True, 10**400, float("nan"), "1e999"),
]


@pytest.mark.parametrize("tool", EVERY_TOOL, ids=lambda tool: tool.name)
def test_hostile_arguments_are_answered_or_refused_in_one_short_line(kb: Any, tool: Any) -> None:
    toolbox = Toolbox(kb, with_skills=True)
    required = dict.fromkeys(tool.parameters.get("required", ()), "x")
    if "verdict" in required:
        required["verdict"] = "good"
    errors: list[str] = []
    for name, value in product(tool.parameters["properties"], HOSTILE):
        try:
            toolbox.call(tool.name, {**required, name: value})
        except KnowledgeError as error:
            errors.append(str(error))

    assert [error for error in errors if len(error.splitlines()) != 1 or len(error) > 2_100] == []
