"""The schemas of all tools: short, and in the form that every provider's API accepts."""

from __future__ import annotations

import copy
import json
from typing import Any

import pytest

from co_cli.ground.errors import InvalidInputError
from co_cli.tools import TOOLS, Toolbox
from co_cli.tools.budget import estimate_tokens
from co_cli.tools.toolbox import EVERY_TOOL
from tests.folder import Vault


def test_the_default_tools_cost_a_model_no_more_than_5600_bytes() -> None:
    described = [{"name": tool.name, "description": tool.description, "parameters": tool.parameters} for tool in TOOLS]

    assert len(json.dumps(described, separators=(",", ":")).encode()) <= 5_600


@pytest.mark.slow
@pytest.mark.medium
def test_every_schema_can_be_made_strict_as_openai_agents_does_it() -> None:
    strict_schema = pytest.importorskip("agents.strict_schema", reason="openai-agents is not installed")

    for tool in EVERY_TOOL:
        for schema in objects_in(strict_schema.ensure_strict_json_schema(copy.deepcopy(tool.parameters))):
            assert schema["additionalProperties"] is False, tool.name
            assert set(schema["required"]) == set(schema["properties"]), tool.name


@pytest.mark.medium
def test_every_schema_has_only_what_gemini_documents() -> None:
    gemini = pytest.importorskip("google.genai.types", reason='pip install "co-cli[gemini]"')  # importing it takes long

    for tool in EVERY_TOOL:
        asked = gemini.JSONSchema.model_validate(tool.parameters)
        declared = gemini.Schema.from_json_schema(json_schema=asked, raise_error_on_unsupported_field=True)

        assert set(declared.properties or ()) == set(tool.parameters["properties"]), tool.name
        for schema in objects_in(tool.parameters):
            assert schema.get("properties"), f"Gemini's API refuses an object without properties: {tool.name}"


def objects_in(schema: Any) -> list[dict[str, Any]]:
    """A schema and all schemas inside it that describe objects."""
    inside = schema.values() if isinstance(schema, dict) else schema if isinstance(schema, list) else ()
    own = [schema] if isinstance(schema, dict) and schema.get("type") == "object" else []
    return own + [found for part in inside for found in objects_in(part)]


def test_weights_and_profile_are_in_no_schema_and_still_accepted(vault: Vault, toolbox: Toolbox) -> None:
    vault.write("memories/oak.md", "Oaks live long.")

    for name in ("recall_memory", "search_knowledge"):
        tool = next(tool for tool in TOOLS if tool.name == name)
        assert not {"weights", "profile"} & tool.parameters["properties"].keys()
        found = toolbox.call(name, {"query": "oaks", "profile": "rrf"})
        assert (found.data["ignored"], found.data["meta"]["profile"]) == ([], "rrf")
        weighed = toolbox.call(name, {"query": "oaks", "weights": '{"words": 1, "meaning": 0}'})
        assert weighed.data["ignored"] == []
        with pytest.raises(InvalidInputError, match="a weight must be for one of"):
            toolbox.call(name, {"query": "oaks", "weights": {"nonsense": 1}})


def test_answers_are_short(toolbox: Toolbox) -> None:
    plain = toolbox.call("save_memory", {"content": "Bo prefers metric units for drawings."})
    for code in (1111, 2222, 3333):
        toolbox.call("save_memory", {"content": f"The code of the door is {code}."})
    related = toolbox.call("save_memory", {"content": "The code of the door is 4444."})
    found = toolbox.call("recall_memory", {"query": "which units does Bo prefer", "limit": 1})
    hit = found.text[found.text.index("<note") :]

    assert len(related.data["related"]) == 3
    assert estimate_tokens(plain.text) <= 30
    assert estimate_tokens(related.text) <= 120
    assert estimate_tokens(hit) <= 45
    assert hit.count("Bo prefers metric units") == 1
    assert "title=" not in hit
    assert "score=" not in hit
