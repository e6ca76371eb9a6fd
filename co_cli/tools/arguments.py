"""Arguments as models really send them, into what a tool's schema asks for. Pure.

Forgiving where the meaning is plain (`"5"` for 5, a text for a list, `null`, `tag` for `tags`); where it is not, the
error says what would be right. Names that the tool does not know are left out and reported.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, NamedTuple, cast

from co_cli.errors import InvalidInputError
from co_cli.tools.tool import Schema

ALIASES = {
    "query": ("q", "question", "search", "search_query", "topic", "text", "keywords", "prompt", "task"),
    "content": ("text", "memory", "body", "note", "fact", "value", "markdown"),
    "ref": ("id", "reference", "slug", "note", "path", "name", "memory", "uri", "note_id", "memory_id"),
    "tags": ("tag", "labels", "label"),
    "sources": ("source", "kind", "kinds", "type"),
    "limit": ("n", "k", "top_k", "count", "max", "max_results", "num_results", "size"),
    "name": ("skill", "skill_name", "ref", "id", "slug"),
    "title": ("name", "heading", "subject"),
    "category": ("kind", "type"),
    "source_url": ("url", "link"),
}
NOTHING = ("null", "none", "undefined")
"""What models write for an argument that they do not mean to give."""
PLURALS = {"memories": "memory", "articles": "article"}


class Arguments(NamedTuple):
    """What a tool was asked for, in the types of its schema, and the names it did not know."""

    values: dict[str, Any]
    ignored: list[str]


def read_arguments(tool: str, schema: Schema, raw: Mapping[str, Any] | None) -> Arguments:
    properties: dict[str, Schema] = schema["properties"]
    values: dict[str, Any] = {}
    ignored: list[str] = []
    named = {_plain(str(name)): value for name, value in (raw or {}).items()}
    for name, value in named.items():
        target = name if name in properties else _alias(name, properties, named)
        if target is None or target in values:
            ignored.append(name)
        elif value is not None:
            required = target in schema.get("required", ())
            read = None if _nothing(value) and not required else _read(tool, target, properties[target], value)
            if read is not None:
                values[target] = read
    missing = [name for name in schema.get("required", ()) if name not in values]
    if missing:
        wanted = "; ".join(f"{name}: {properties[name]['description']}" for name in missing)
        raise InvalidInputError(f"{tool} needs {' and '.join(missing)} ({wanted})")
    return Arguments(values, ignored)


def _nothing(value: object) -> bool:
    return isinstance(value, str) and value.strip().lower() in NOTHING


def _plain(name: str) -> str:
    return name.strip().lower().replace("-", "_").replace(" ", "_")


def _alias(name: str, properties: dict[str, Schema], named: Mapping[str, Any]) -> str | None:
    for target, others in ALIASES.items():
        if name in others and target in properties and named.get(target) is None:
            return target
    return None


def _read(tool: str, name: str, schema: Schema, value: Any) -> Any:
    match schema["type"]:
        case "array":
            return _texts(tool, name, schema, value)
        case "integer" | "number":
            return _number(tool, name, schema, value)
        case _:
            return _text(tool, name, schema, value)


def _text(tool: str, name: str, schema: Schema, given: Any) -> str | None:
    value: object = given
    if isinstance(value, list) and all(isinstance(part, str | int | float) for part in cast("list[object]", value)):
        value = " ".join(str(part) for part in cast("list[object]", value))
    if isinstance(value, bool | dict | list):
        raise InvalidInputError(f"{tool}: {name} is a text, not {_shown(given)}")
    text = str(value)
    if "enum" in schema:
        return _choice(tool, name, schema["enum"], text)
    return text if text.strip() else None


def _choice(tool: str, name: str, choices: list[str], text: str) -> str | None:
    wanted = text.strip().lower()
    wanted = PLURALS.get(wanted, wanted)
    if not wanted:
        return None
    if wanted not in choices:
        raise InvalidInputError(f"{tool}: {name} is one of {', '.join(choices)}, not {_shown(text)}")
    return wanted


def _texts(tool: str, name: str, schema: Schema, value: Any) -> list[str] | None:
    if isinstance(value, str):
        value = _list_in(value)
    if isinstance(value, int | float) and not isinstance(value, bool):
        value = [value]
    if not isinstance(value, list | tuple):
        raise InvalidInputError(f"{tool}: {name} is a list of texts, not {_shown(value)}")
    texts: list[str] = []
    for part in cast("list[Any]", value):
        if isinstance(part, bool | dict | list):
            raise InvalidInputError(f"{tool}: {name} is a list of texts; {_shown(part)} is none")
        text = "" if part is None or _nothing(part) else str(part).strip()
        if text and "enum" in schema["items"]:
            if text.lower() in ("all", "any", "*"):
                return None
            text = _choice(tool, name, schema["items"]["enum"], text) or ""
        if text and text not in texts:
            texts.append(text)
    emptied = "minItems" in schema and not value  # not `""` or `[null]`, which say nothing: tags would be lost
    return texts if texts or emptied else None


def _list_in(text: str) -> list[object]:
    """A list that arrived as text: JSON, or parts between commas."""
    stripped = text.strip()
    if stripped.startswith("["):
        try:
            found: object = json.loads(stripped)
        except ValueError:
            stripped = stripped.strip("[]")
        else:
            if isinstance(found, list):
                return cast("list[object]", found)
    return [part.strip().strip("\"'") for part in stripped.split(",")]


def _number(tool: str, name: str, schema: Schema, value: Any) -> int | float | None:
    low, high = schema["minimum"], schema["maximum"]
    text = str(value).strip().lower()
    if not text:
        return None
    share = text.endswith("%")
    try:
        if isinstance(value, bool):
            raise ValueError
        number = float(text.rstrip("%")) / (100 if share else 1)
        if number != number:
            raise ValueError
    except ValueError:
        raise InvalidInputError(f"{tool}: {name} is a number from {low} to {high}, not {_shown(value)}") from None
    if schema["type"] == "integer":
        return int(min(max(number, low), high))  # a model that asks for 10,000 wants as many as it can get
    if not low <= number <= high:
        raise InvalidInputError(f"{tool}: {name} is a number from {low} to {high}, not {_shown(value)}")
    return number


def _shown(value: Any) -> str:
    shown = repr(value)
    return shown if len(shown) <= 60 else f"{shown[:57]}..."
