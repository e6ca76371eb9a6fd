"""Turn a typed Python function into a tool: its schemas for a model, and its arguments from what a model sends.

Pydantic builds the schemas and validates. Before that, common mistakes of models are corrected: other argument names,
`"null"`, text for a list. Unknown arguments are left out and reported.
"""

from __future__ import annotations

import inspect
import json
import reprlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache, partial
from typing import Any, Generic, NamedTuple, TypeVar, cast, get_args, get_type_hints

from pydantic import ConfigDict, TypeAdapter, ValidationError, create_model

from co_cli.errors import InvalidInputError
from co_cli.knowledge_base import KnowledgeBase
from co_cli.values import to_utf8

Schema = dict[str, Any]
Data = TypeVar("Data")

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
EMPTY = ("", "null", "none", "undefined")
"""What models write for an argument that they leave out."""
SINGULAR = {"memories": "memory", "articles": "article"}
MOST_ITEMS, LONGEST_NAME = 100, 60
"""Items of a list that are accepted, and characters of an unknown argument's name that are reported."""


class ToolResult(NamedTuple, Generic[Data]):
    """A tool's answer: text for a model, and the same as plain values for a program."""

    text: str
    data: Data


@dataclass(frozen=True, slots=True)
class ToolContext:
    """What every tool works with besides its arguments."""

    kb: KnowledgeBase
    budget: int
    """Maximum tokens of the answer."""
    provenance: str
    """Recorded as the author of what is saved."""
    degraded: list[str]
    """Why the index may lack recent changes; empty if it is up to date."""


class Tool:
    """One thing an agent can do with a vault, independent of any agent library.

    The function's docstring is the description that models read. Its first parameter is a ToolContext; the others are
    the arguments, and those of `**shared: Unpack[SomeTypedDict]` are optional ones.
    """

    def __init__(
        self,
        function: Callable[..., ToolResult[Any]],
        title: str,
        read_only: bool = False,
        destructive: bool = False,
        idempotent: bool = True,
    ) -> None:
        self.function, self.name, self.title = function, function.__name__, title
        self.read_only, self.destructive, self.idempotent = read_only, destructive, idempotent
        self.description = " ".join((function.__doc__ or "").split())
        hints = get_type_hints(function, include_extras=True)
        fields: dict[str, Any] = {}
        for name, parameter in [*inspect.signature(function).parameters.items()][1:]:
            if parameter.kind is parameter.VAR_KEYWORD:
                shared = get_type_hints(get_args(hints[name])[0], include_extras=True)
                fields |= {key: (hint, None) for key, hint in shared.items()}
            else:
                fields[name] = (hints[name], ... if parameter.default is parameter.empty else parameter.default)
        config = ConfigDict(coerce_numbers_to_str=True, allow_inf_nan=False)
        self._model = create_model(self.name, __config__=config, **fields)
        self.parameters: Schema = _lean(self._model.model_json_schema(), arguments=True)
        """JSON schema of the arguments."""
        self.returns: Schema = _schema_of(get_args(hints["return"])[0])
        """JSON schema of `ToolResult.data`."""

    def read_arguments(self, sent: Mapping[str, Any] | None) -> tuple[dict[str, Any], list[str]]:
        """The arguments as the function takes them, and the names that it does not have."""
        properties: dict[str, Schema] = self.parameters["properties"]
        required: list[str] = self.parameters.get("required", [])
        sent = sent or {}
        named = {name.strip().lower().replace("-", "_").replace(" ", "_"): sent[name] for name in sent}
        given: dict[str, Any] = {}
        ignored: list[str] = []
        for name, value in named.items():
            target = name if name in properties else _alias(name, properties, named)
            if target is None or target in given:
                ignored.append(to_utf8(name[:LONGEST_NAME]))
                continue
            value = _lenient(value, properties[target])
            if value is not None and (target in required or not _is_empty(value)):
                given[target] = value
        missing = [name for name in required if name not in given]
        if missing:
            wanted = "; ".join(f"{name}: {properties[name]['description']}" for name in missing)
            raise InvalidInputError(f"{self.name} needs {' and '.join(missing)} ({wanted})")
        try:
            model = self._model.model_validate(given)
        except ValidationError as error:
            first = error.errors(include_url=False)[0]
            message = f"{first['loc'][0]}: {first['msg']}, not {reprlib.repr(first['input'])}"
            raise InvalidInputError(f"{self.name}: {message}") from None
        return {name: getattr(model, name) for name in given}, ignored


def tool(title: str, **hints: bool) -> Callable[[Callable[..., ToolResult[Any]]], Tool]:
    return partial(Tool, title=title, **hints)


@cache
def _schema_of(data: Any) -> Schema:
    return _lean(TypeAdapter(data).json_schema())


def _lean(schema: Any, arguments: bool = False) -> Any:
    """The schema without what costs tokens and says nothing: titles and, for arguments, null."""
    if isinstance(schema, list):
        return [_lean(part, arguments) for part in cast("list[Any]", schema)]
    if not isinstance(schema, dict):
        return schema
    kept = cast("Schema", schema)
    kept = {key: value for key, value in kept.items() if key != "title" or not isinstance(value, str)}
    if arguments:
        kept = {**cast("list[Schema]", kept.pop("anyOf", [{}]))[0], **kept}
        kept = {key: value for key, value in kept.items() if value is not None}
    return {key: _lean(value, arguments) for key, value in kept.items()}


def _alias(name: str, properties: dict[str, Schema], named: Mapping[str, Any]) -> str | None:
    fitting = (target for target, others in ALIASES.items() if name in others and target in properties)
    return next((target for target in fitting if named.get(target) is None), None)


def _is_empty(value: object) -> bool:
    return value is None or (isinstance(value, str) and value.strip().lower() in EMPTY)


def _lenient(value: Any, schema: Schema) -> Any:
    """What the model most likely meant, for pydantic to validate; None for nothing."""
    match schema["type"], value:
        case "array", str() | int() | float() | list():
            parts = cast("list[Any]", value) if isinstance(value, list) else _split(str(value))
            return _texts(parts, "enum" in schema["items"])
        case "object", str():
            return _from_json(value)
        case "string", list() if all(isinstance(part, str | int) for part in cast("list[object]", value)):
            return to_utf8(" ".join(map(str, cast("list[object]", value))))
        case "integer", int() | float() if value == value:
            return min(max(value, schema["minimum"]), schema["maximum"])  # 10,000 means as many as possible
        case _, str():
            return (_choice(value) if "enum" in schema else to_utf8(value)) if value.strip() else None
        case _:
            return value


def _texts(parts: list[Any], choices: bool) -> list[Any] | None:
    """A list without parts that say nothing. An empty list stays: it removes tags."""
    if len(parts) > MOST_ITEMS:
        raise InvalidInputError(f"a list of {len(parts):,} is too long; the limit is {MOST_ITEMS}")
    texts = [to_utf8(part).strip() if isinstance(part, str) else part for part in parts if not _is_empty(part)]
    texts = [_choice(part) for part in texts] if choices else texts
    return texts if (texts or not parts) and not (choices and "all" in texts) else None


def _choice(value: Any) -> Any:
    return SINGULAR.get(value.strip().lower(), value.strip().lower()) if isinstance(value, str) else value


def _split(text: str) -> list[Any]:
    found = _from_json(text)
    if isinstance(found, list):
        return cast("list[Any]", found)
    return [part.strip("\"' ") for part in text.strip("[] \n").split(",")]


def _from_json(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text
