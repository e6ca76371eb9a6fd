"""Turn a typed Python function into a tool: schemas for a model, and validation of what a model sends.

Pydantic builds the schemas and validates. Before that, common mistakes of models are corrected: other argument names,
`"null"`, text for a list. Unknown arguments are ignored and reported.
"""

from __future__ import annotations

import inspect
import json
import reprlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, Generic, NamedTuple, TypeVar, cast, get_args, get_type_hints

from pydantic import ConfigDict, TypeAdapter, ValidationError, create_model
from pydantic.json_schema import GenerateJsonSchema, JsonSchemaValue
from pydantic_core import core_schema

from co_cli.errors import InvalidInputError
from co_cli.knowledge_base import KnowledgeBase
from co_cli.values import to_utf8

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
MAX_ITEMS, MAX_NAME = 100, 60
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
    degraded: list[str]
    """Why the index may lack recent changes; empty if it is up to date."""
    provenance: str = "agent"
    """Recorded as the author of what is saved."""


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
        self.parameters = self._model.model_json_schema(schema_generator=_LeanSchema)
        """JSON schema of the arguments."""
        del self.parameters["title"]
        self.returns = TypeAdapter[Any](get_args(hints["return"])[0]).json_schema()
        """JSON schema of `ToolResult.data`."""

    def read_arguments(self, sent: Mapping[str, Any] | None) -> tuple[dict[str, Any], list[str]]:
        """The arguments as the function takes them, and the names that it does not have."""
        properties: dict[str, dict[str, Any]] = self.parameters["properties"]
        sent = {name.strip().lower().replace("-", "_").replace(" ", "_"): value for name, value in (sent or {}).items()}
        given: dict[str, Any] = {}
        ignored: list[str] = []
        for name, value in sent.items():
            aliased = (key for key, names in ALIASES.items() if name in names and key in properties)
            target = name if name in properties else next((key for key in aliased if sent.get(key) is None), None)
            if target is None or target in given:
                ignored.append(to_utf8(name[:MAX_NAME]))
                continue
            required = target in self.parameters.get("required", ())
            value = None if _is_empty(value) and not (required and value) else _correct(value, properties[target])
            if value is not None:
                given[target] = value
        try:
            model = self._model.model_validate(given)
        except ValidationError as error:
            first = error.errors(include_url=False)[0]
            name = str(first["loc"][0])
            if first["type"] == "missing":
                raise InvalidInputError(f"{self.name} needs {name} ({properties[name]['description']})") from None
            message = f"{name}: {first['msg']}, not {reprlib.repr(first['input'])}"
            raise InvalidInputError(f"{self.name}: {message}") from None
        return {name: getattr(model, name) for name in given}, ignored


def tool(title: str, **hints: bool) -> Callable[[Callable[..., ToolResult[Any]]], Tool]:
    return partial(Tool, title=title, **hints)


class _LeanSchema(GenerateJsonSchema):
    """Without what costs tokens and says nothing to a model: titles, null and null defaults."""

    def field_title_should_be_set(self, schema: Any) -> bool:
        return False

    def nullable_schema(self, schema: core_schema.NullableSchema) -> JsonSchemaValue:
        return self.generate_inner(schema["schema"])

    def default_schema(self, schema: core_schema.WithDefaultSchema) -> JsonSchemaValue:
        found = super().default_schema(schema)
        return {key: value for key, value in found.items() if key != "default" or value is not None}


def _is_empty(value: object) -> bool:
    return value is None or (isinstance(value, str) and value.strip().lower() in EMPTY)


def _correct(value: Any, schema: dict[str, Any]) -> Any:
    """What the model most likely meant, for pydantic to validate; None for nothing."""
    if isinstance(value, str):
        value = to_utf8(value) if value.strip() else None
    kind = schema["type"]
    if kind in ("array", "object") and isinstance(value, str):
        try:
            value = json.loads(value)
        except (ValueError, RecursionError):
            value = [part.strip("\"' ") for part in value.strip("[] \n").split(",")] if kind == "array" else value
    if kind == "array" and isinstance(value, str | int | float):
        value = [value]
    parts = cast("list[Any]", value) if isinstance(value, list) else []
    if kind == "array" and isinstance(value, list):
        if len(parts) > MAX_ITEMS:
            raise InvalidInputError(f"a list of {len(parts):,} is too long; the limit is {MAX_ITEMS}")
        items = [_choice(item, schema["items"]) for item in parts if not _is_empty(item)]
        items = [to_utf8(item).strip() if isinstance(item, str) else item for item in items]
        # an empty list removes tags, a list of nothing does not
        return None if (parts and not items) or ("all" in items and "enum" in schema["items"]) else items
    if kind == "string" and parts and all(isinstance(part, str | int) for part in parts):
        return to_utf8(" ".join(map(str, parts)))
    if kind == "integer" and isinstance(value, int | float) and value == value:
        return min(max(value, schema["minimum"]), schema["maximum"])  # 10,000 means as many as possible
    return _choice(value, schema)


def _choice(value: Any, schema: dict[str, Any]) -> Any:
    """One of the allowed values, also in upper case or in the plural."""
    if not isinstance(value, str) or "enum" not in schema:
        return value
    return SINGULAR.get(value.strip().lower(), value.strip().lower())
