"""docs/server.json, which tells the MCP registry about this package, agrees with the package."""

from __future__ import annotations

import json
import re
import tomllib
from typing import Any

import jsonschema
import pytest

from co_cli import __version__
from co_cli.settings import SETTINGS
from tests.house.package import REPOSITORY

FILE = REPOSITORY / "docs" / "server.json"
INPUT = {
    "name": {"type": "string"},
    "value": {"type": "string"},
    "valueHint": {"type": "string"},
    "description": {"type": "string"},
    "format": {"enum": ["string", "number", "boolean", "filepath"]},
    "isRequired": {"type": "boolean"},
    "isSecret": {"type": "boolean"},
    "type": {"enum": ["positional", "named"]},
}
SHAPE: dict[str, Any] = {
    "type": "object",
    "required": ["$schema", "name", "description", "version", "packages"],
    "additionalProperties": False,
    "properties": {
        "$schema": {"const": "https://static.modelcontextprotocol.io/schemas/2025-12-11/server.schema.json"},
        "name": {"type": "string", "pattern": r"^[a-zA-Z0-9.-]+/[a-zA-Z0-9._-]+$", "minLength": 3, "maxLength": 200},
        "title": {"type": "string", "minLength": 1, "maxLength": 100},
        "description": {"type": "string", "minLength": 1, "maxLength": 100},
        "version": {"type": "string", "maxLength": 255},
        "packages": {
            "type": "array",
            "minItems": 1,
            "items": {
                "type": "object",
                "required": ["registryType", "identifier", "version", "transport"],
                "additionalProperties": False,
                "properties": {
                    "registryType": {"const": "pypi"},
                    "identifier": {"type": "string"},
                    "version": {"type": "string", "pattern": r"^\d+\.\d+\.\d+"},
                    "runtimeHint": {"enum": ["uvx"]},
                    "transport": {"const": {"type": "stdio"}},
                    "packageArguments": {
                        "items": {
                            "properties": INPUT,
                            "required": ["type"],
                            "anyOf": [{"required": ["value"]}, {"required": ["valueHint"]}, {"required": ["name"]}],
                            "additionalProperties": False,
                        }
                    },
                    "environmentVariables": {
                        "items": {"properties": INPUT, "required": ["name"], "additionalProperties": False}
                    },
                },
            },
        },
    },
}
"""What the registry's schema of 2025-12-11 asks of a server that is a package on PyPI, and only the keys it knows."""

pytestmark = pytest.mark.skipif(not FILE.exists(), reason="an installed package has no docs beside it")


@pytest.fixture
def server() -> dict[str, Any]:
    return json.loads(FILE.read_text("utf-8"))


@pytest.fixture
def project() -> dict[str, Any]:
    return tomllib.loads((REPOSITORY / "pyproject.toml").read_text("utf-8"))["project"]


def test_it_has_the_shape_that_the_registry_accepts(server: dict[str, Any]) -> None:
    jsonschema.Draft202012Validator(SHAPE).validate(server)


def test_it_has_the_name_and_the_version_of_the_package(server: dict[str, Any], project: dict[str, Any]) -> None:
    (package,) = server["packages"]

    assert package["identifier"] == project["name"]
    assert server["version"] == package["version"] == __version__


def test_uvx_finds_a_program_of_the_packages_name(server: dict[str, Any], project: dict[str, Any]) -> None:
    """A client runs `uvx co-cli mcp`: uvx starts the program that is called like the package."""
    (package,) = server["packages"]

    assert project["scripts"][package["identifier"]] == project["scripts"]["co"]
    assert [argument["value"] for argument in package["packageArguments"]] == ["mcp"]


def test_the_readme_says_the_servers_name_so_that_the_registry_knows_the_owner(server: dict[str, Any]) -> None:
    readme = (REPOSITORY / "README.md").read_text("utf-8")

    assert re.findall(r"<!-- mcp-name: (\S+) -->", readme) == [server["name"]]


def test_its_variables_are_settings(server: dict[str, Any]) -> None:
    (package,) = server["packages"]
    known = {setting.environment for setting in SETTINGS} | {"CO_VAULT", "CO_DATA_DIR"}

    assert {variable["name"] for variable in package["environmentVariables"]} <= known
