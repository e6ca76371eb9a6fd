"""Arguments as models send them."""

from __future__ import annotations

from itertools import product
from pathlib import Path
from typing import Any

import pytest

from co_cli.entrance.knowledge_base import KnowledgeBase
from co_cli.ground.errors import InvalidInputError, KnowledgeError
from co_cli.tools import Toolbox
from co_cli.tools.toolbox import EVERY_TOOL
from tests.folder import Vault

TOOL = {tool.name: tool for tool in EVERY_TOOL}


def read(tool: str, arguments: dict[str, Any] | None) -> dict[str, Any]:
    return TOOL[tool].read_arguments(arguments)[0]


def test_common_mistakes_of_models_are_corrected() -> None:
    wrong = [
        sent for sent, meant in CORRECTED if read("recall_memory", {"query": "x", **sent}) != {"query": "x", **meant}
    ]

    assert wrong == []


CORRECTED: list[tuple[dict[str, Any], dict[str, Any]]] = [
    ({"limit": "5"}, {"limit": 5}),
    ({"limit": "null"}, {}),
    ({"limit": 10**400}, {"limit": 50}),
    ({"limit": 0}, {}),
    ({"limit": -3}, {}),
    ({"query": 42}, {"query": "42"}),
    ({"query": "null"}, {"query": "null"}),
    ({"tags": "deploy, ops"}, {"tags": ["deploy", "ops"]}),
    ({"tags": "[deploy, 'ops']"}, {"tags": ["deploy", "ops"]}),
    ({"tags": ["a", None, 7, " "]}, {"tags": ["a", "7"]}),
    ({"tags": ["null"], "category": ""}, {}),
    ({"weights": '{"recency": "0.2"}'}, {"weights": {"recency": 0.2}}),
]


def test_a_number_that_is_corrected_is_named_and_one_that_means_nothing_is_not(toolbox: Toolbox) -> None:
    said = [toolbox.call("list_memories", {"limit": limit}).text for limit in (100_000, -1, 10**400, 0, 20)]

    assert said[0].endswith("\n(limit must be 1 to 200, not 100000: 200 was used.)")
    assert said[1].endswith("\n(limit must be 1 to 200, not -1: it was left out.)")
    assert "was used" in said[2]
    assert len(said[2]) < 200
    assert not any("limit must" in text for text in said[3:])


def test_a_list_of_nothing_is_an_argument_that_was_left_out() -> None:
    for nothing in ([], "[]", "", " ", "null", [None], [""]):
        assert read("update_memory", {"ref": "memory:x", "tags": nothing, "content": "null"}) == {"ref": "memory:x"}


def test_nothing_is_changed_by_what_a_strict_model_sends_for_arguments_that_it_leaves_out() -> None:
    for name in ("save_memory", "update_memory", "list_memories", "recall_memory", "search_knowledge", "save_article"):
        schema = TOOL[name].parameters
        empty = {"string": "", "integer": 0, "number": 0, "array": []}
        optional = {key: field for key, field in schema["properties"].items() if key not in schema.get("required", ())}
        sent = {key: empty[field["type"]] for key, field in optional.items() if field["type"] != "boolean"}
        sent = {key: value for key, value in sent.items() if "enum" not in optional[key]}

        given = read(name, {**dict.fromkeys(schema.get("required", ()), "x"), **sent})

        assert len(sent) >= 3
        assert {key for key in given if given[key]} == set(schema.get("required", ())), name


REFUSED: list[tuple[str, dict[str, Any] | None, str]] = [
    ("recall_memory", None, "recall_memory needs query"),
    ("recall_memory", {"query": "  "}, "recall_memory needs query"),
    ("recall_memory", {"query": {"a": 1}}, "recall_memory: query: Input should be a valid string, not {'a': 1}"),
    ("recall_memory", {"query": "x", "limit": "many"}, "limit: Input should be a valid integer.*, not 'many'"),
    ("recall_memory", {"query": "x", "tags": [["a"]]}, "tags: Input should be a valid string"),
    ("recall_memory", {"query": "x", "profile": "best"}, "profile: Input should be 'default', .* or 'fresh'"),
    ("recall_memory", {"query": "x", "weights": {"words": "high"}}, "weights: Input should be a valid number"),
    ("save_memory", {"content": "x", "importance": "nan"}, "importance: Input should be a finite number"),
    ("search_knowledge", {"query": "x", "kind": "web"}, "kind: Input should be 'memory', 'article'"),
    ("save_memory", {"content": "x", "importance": 8}, "importance: Input should be less than or equal to 1"),
    ("save_article", {"content": "x"}, "save_article needs title"),
]


def test_an_argument_that_cannot_be_read_is_refused_with_what_would_be_right() -> None:
    for tool, sent, problem in REFUSED:
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
    "x" * 100_000,
    "a\0b\n\0",
    "\ud800",
    "line\n" * 50,
    {"a": [{"b": {"c": None}}]},
    nested(5_000),
    "[" * 20_000,
    ["x"] * 2_000,
    [None, {}, [], True, 1e308],
    *(True, 10**400, float("nan"), "1e999"),
]


@pytest.mark.slow
@pytest.mark.medium
def test_hostile_arguments_are_answered_or_refused_in_one_short_line(tmp_path: Path) -> None:
    errors: list[tuple[str, str]] = []
    for tool in EVERY_TOOL:
        required = dict.fromkeys(tool.parameters.get("required", ()), "x")
        if "verdict" in required:
            required["verdict"] = "good"
        with KnowledgeBase.open(Vault(tmp_path / tool.name).root, tmp_path / f"{tool.name} data") as kb:
            toolbox = Toolbox(kb, names=["default", tool.name], with_skills=True)
            for name, value in list(product(tool.parameters["properties"], HOSTILE))[::3]:
                try:
                    toolbox.call(tool.name, {**required, name: value})
                except KnowledgeError as error:
                    errors.append((tool.name, str(error)))

    assert {tool for tool, _ in errors} >= {"read_note", "save_memory"}
    assert [(tool, error) for tool, error in errors if len(error.splitlines()) != 1 or len(error) > 2_100] == []
