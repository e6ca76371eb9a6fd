"""Turn a typed Python function into a tool: schemas for a model, and validation of what a model sends.

Pydantic builds the schemas and validates. Before that, what models often send is corrected: `"null"` for nothing, text
for a list, a limit that is too high. Unknown arguments are ignored and reported.
"""

from __future__ import annotations

import inspect
import json
import reprlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any, Generic, NamedTuple, TypeVar, cast, get_args, get_type_hints

from pydantic import BaseModel, ConfigDict, TypeAdapter, ValidationError, create_model
from pydantic.json_schema import GenerateJsonSchema, JsonSchemaValue
from pydantic_core import core_schema

from co_cli.entrance.knowledge_base import KnowledgeBase
from co_cli.ground.errors import InvalidInputError
from co_cli.ground.values import to_utf8

Data = TypeVar("Data")

EMPTY = ("", "null", "none", "undefined")
"""What models write for an argument that they leave out."""
OMITTED = ("minimum", "maximum", "additionalProperties")
"""Parts of a schema that are checked, but cost a model more tokens than a mistake would."""
MAX_ITEMS, MAX_NAME, MAX_NAMED = 100, 60, 10
"""Items of a list that are accepted; of unknown arguments, how much of a name and how many names are reported."""


class ToolResult(NamedTuple, Generic[Data]):
    """A tool's answer: text for a model, and the same as plain values for a program."""

    text: str
    data: Data


@dataclass(frozen=True, slots=True)
class ToolCall:
    """What every tool works with besides its arguments."""

    kb: KnowledgeBase
    """`kb.local` for what works only next to the files."""
    budget: int
    """Maximum tokens of the answer."""
    degraded: list[str]
    """Why the index may lack recent changes; empty if it is up to date."""
    provenance: str = "agent"
    """Recorded as the author of what is saved."""
    prefix: str = ""
    """What an agent has before the names of the tools, for answers that name one."""


class Tool:
    """One thing an agent can do with a vault, independent of any agent library.

    The function's docstring is the description that models read. Its first parameter is a ToolCall; the others are
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

    @cached_property
    def _model(self) -> type[BaseModel]:
        """The arguments. Models and schemas are made when a client first asks: they take longer than all else here."""
        hints = get_type_hints(self.function, include_extras=True)
        fields: dict[str, Any] = {}
        for name, parameter in [*inspect.signature(self.function).parameters.items()][1:]:
            if parameter.kind is parameter.VAR_KEYWORD:
                shared = get_type_hints(get_args(hints[name])[0], include_extras=True)
                fields |= {key: (hint, None) for key, hint in shared.items()}
            else:
                fields[name] = (hints[name], ... if parameter.default is parameter.empty else parameter.default)
        config = ConfigDict(coerce_numbers_to_str=True, allow_inf_nan=False)
        return create_model(self.name, __config__=config, **fields)

    @cached_property
    def _schema(self) -> dict[str, Any]:
        return self._model.model_json_schema(schema_generator=_LeanSchema)

    @cached_property
    def parameters(self) -> dict[str, Any]:
        """JSON schema of the arguments, as short as a model needs it: every request carries it.

        It lacks arguments with `Field(exclude=True)`, which programs may send.
        """
        lean = {
            name: {key: field[key] for key in field if key not in OMITTED}
            for name, field in self._schema["properties"].items()
            if not self._model.model_fields[name].exclude
        }
        required = {"required": self._schema["required"]} if "required" in self._schema else {}
        return {"type": "object", "properties": lean} | required

    @cached_property
    def returns(self) -> dict[str, Any]:
        """JSON schema of `ToolResult.data`."""
        hints = get_type_hints(self.function, include_extras=True)
        return TypeAdapter[Any](get_args(hints["return"])[0]).json_schema()

    def read_arguments(self, sent: Mapping[str, Any] | None) -> tuple[dict[str, Any], list[str], list[str]]:
        """The arguments as the function takes them, the names that it does not have, and numbers that were changed."""
        properties = self._schema["properties"]
        required = self.parameters.get("required", ())
        given: dict[str, Any] = {}
        ignored: list[str] = []
        changed: list[str] = []
        for name, value in (sent or {}).items():
            if name not in properties:
                ignored.append(to_utf8(name[:MAX_NAME]))
            elif not _is_empty(value) or (name in required and str(value or "").strip()):
                value, before = _correct(value, properties[name]), value
                given |= {} if value is None else {name: value}
                changed += _out_of_range(name, before, properties[name])
        try:
            model = self._model.model_validate(given)
        except ValidationError as error:
            first = error.errors(include_url=False)[0]
            name = str(first["loc"][0])
            if first["type"] == "missing":
                unknown = f", and has no argument {', '.join(map(repr, ignored[:MAX_NAMED]))}" if ignored else ""
                raise InvalidInputError(f"{self.name} needs {name}{unknown}") from None
            message = f"{name}: {first['msg']}, not {reprlib.repr(first['input'])}"
            raise InvalidInputError(f"{self.name}: {message}") from None
        return {name: getattr(model, name) for name in given}, ignored, changed


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


def _out_of_range(name: str, value: Any, schema: dict[str, Any]) -> list[str]:
    """What a model is told if it sent a number that was corrected; 0 is how strict ones leave out a number."""
    if schema["type"] != "integer" or not isinstance(value, int | float) or value in (0, schema.get("default")):
        return []
    least, most = schema["minimum"], schema["maximum"]
    done = f"{most} was used" if value > most else "it was left out"
    return [] if least <= value <= most else [f"{name} must be {least} to {most:,}, not {reprlib.repr(value)}: {done}"]


def _correct(value: Any, schema: dict[str, Any]) -> Any:
    """What the model most likely meant, for pydantic to validate; None for nothing."""
    kind, value = schema["type"], to_utf8(value) if isinstance(value, str) else value
    if kind in ("array", "object") and isinstance(value, str):
        try:
            value = json.loads(value)
        except RecursionError:
            raise InvalidInputError("the JSON has too many levels: send a flat list") from None
        except ValueError:
            value = value.strip("[] \n").split(",") if kind == "array" else value
    if kind == "array" and isinstance(value, str | int | float):
        value = [value]
    if kind == "array" and isinstance(value, list):
        parts = cast("list[Any]", value)
        if len(parts) > MAX_ITEMS:
            raise InvalidInputError(f"a list of {len(parts):,} is too long; the limit is {MAX_ITEMS}")
        items = [
            to_utf8(part).strip("\"' ") if isinstance(part, str) else part for part in parts if not _is_empty(part)
        ]
        return items or None  # in OpenAI's strict mode a model must send every list, also those that it leaves as is
    if kind in ("integer", "number") and value in (0, "0") and schema.get("default") != 0:
        return None  # a strict model sends 0 for a number that it leaves out; 0 results mean nothing
    if kind == "integer" and isinstance(value, int | float) and value == value:
        # 10,000 means as many as possible, and -1 nothing that can be known
        return min(value, schema["maximum"]) if value >= schema["minimum"] else None
    return value
