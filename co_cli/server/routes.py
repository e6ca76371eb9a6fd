"""The routes of the JSON API: a table that the API modules fill, requests into values, and OpenAPI from it.

A route is a synchronous function with a decorator. It gets the knowledge base and, if it has a second parameter, a
pydantic model whose fields come from the path and from the query (GET, DELETE) or the JSON body (POST, PUT):

    @route("GET", "/notes/{ref:path}")
    def show_note(kb: LocalKnowledgeBase, asked: ShowNote) -> ShownNote:
        \"""Show one note.\"""
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from contextvars import ContextVar
from functools import cached_property
from inspect import signature
from typing import Any, NamedTuple, get_type_hints

from pydantic import BaseModel, TypeAdapter, ValidationError, create_model
from pydantic.json_schema import GenerateJsonSchema, JsonSchemaValue
from pydantic_core import core_schema, to_jsonable_python
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from co_cli.entrance.local import LocalKnowledgeBase
from co_cli.ground.access import Role, Token
from co_cli.ground.errors import (
    DiskFullError,
    IndexUnavailableError,
    InvalidInputError,
    KeyReusedError,
    KnowledgeError,
    NoteConflictError,
    UnknownRefError,
    error_kind,
)
from co_cli.ground.paths import NO_ROOM
from co_cli.ground.values import plain
from co_cli.notes.logbook import crashed
from co_cli.version import __version__

API = "/api/v1"
ROUTES: list[Route] = []
CALLER: ContextVar[Token] = ContextVar("caller")
"""Who asks, while a route answers."""
CLIP_TOKEN: ContextVar[str] = ContextVar("clip_token")
"""The one that this process accepts. Another process may have made a new one."""
KEY: ContextVar[str] = ContextVar("key", default="")
"""The Idempotency-Key of the request."""
STATUSES: dict[type[KnowledgeError], int] = {
    UnknownRefError: 404,
    NoteConflictError: 409,
    KeyReusedError: 422,
    IndexUnavailableError: 503,
    DiskFullError: 507,
}
"""Other mistakes of the caller are 400, and all else is 500."""


def is_owner() -> bool:
    """Whether the person who started `co web` asks. Tokens of a server have names."""
    caller = CALLER.get()
    return not caller.name and caller.may("admin")


class ApiError(NamedTuple):
    """What went wrong, and the fix, on one line."""

    kind: str
    message: str
    present: str | None = None
    """The present text of a note that changed in the meantime."""
    closest: tuple[str, ...] = ()
    """Refs that are spelled like an unknown one."""


class ErrorAnswer(NamedTuple):
    error: ApiError


class ObjectSchema(GenerateJsonSchema):
    """Describes a NamedTuple as an object with all of its fields, which is how the API and `--json` write it."""

    def named_tuple_schema(self, schema: Any) -> JsonSchemaValue:
        return self._object(schema["fields"])

    def arguments_schema(self, schema: core_schema.ArgumentsSchema) -> JsonSchemaValue:
        return self._object(schema["arguments_schema"])  # a NamedTuple of pydantic before 2.14

    def _object(self, fields: Any) -> JsonSchemaValue:
        properties = {field["name"]: self.generate_inner(field["schema"]) for field in fields}
        return {"type": "object", "properties": properties, "required": [*properties], "additionalProperties": False}


class Route:
    """One function of the API."""

    def __init__(self, method: str, path: str, function: Callable[..., Any], role: Role, keyed: bool = False) -> None:
        """`keyed`: it can be repeated with an Idempotency-Key."""
        self.method, self.path, self.function, self.keyed = method, path, function, keyed
        self.role: Role = role
        """What a caller needs. The sample vault answers what needs `read`."""
        hints = get_type_hints(function)
        answer, given = hints.pop("return"), list(hints.values())[1:]
        self.model: type[BaseModel] | None = given[0] if given else None
        self.answer: Any = None if isinstance(answer, type) and issubclass(answer, Response) else answer

    @cached_property
    def asked_schema(self) -> dict[str, Any]:
        return self.model.model_json_schema() if self.model else {"type": "object", "properties": {}}

    @cached_property
    def in_path(self) -> list[str]:
        return re.findall(r"{(\w+)[:}]", self.path)

    async def read(self, request: Request) -> BaseModel | None:
        """The values of a request. Raises InvalidInputError."""
        if self.model is None:
            return None
        given: dict[str, Any] = dict(request.path_params)
        if self.method in ("POST", "PUT"):
            given |= await read_body(request)
        else:
            for name, schema in self.asked_schema["properties"].items():
                if name in request.query_params and name not in given:
                    is_list = '"array"' in json.dumps(schema)
                    given[name] = request.query_params.getlist(name) if is_list else request.query_params[name]
            given |= {name: None for name in request.query_params if name not in self.asked_schema["properties"]}
        unknown = given.keys() - self.asked_schema["properties"].keys()
        if unknown:
            raise InvalidInputError(f"{self.path} takes no {', '.join(sorted(unknown))}")
        try:
            return self.model.model_validate(given)
        except ValidationError as error:
            first = error.errors(include_url=False, include_context=False)[0]
            where = ".".join(str(part) for part in first["loc"])
            raise InvalidInputError(f"{where}: {first['msg']}" if where else first["msg"]) from None

    def call(self, kb: LocalKnowledgeBase, asked: BaseModel | None) -> Response:
        """Answer in the thread of the caller. Errors become answers too."""
        try:
            answer = self.function(kb) if asked is None else self.function(kb, asked)
        except Exception as error:
            return error_answer(error)
        return answer if isinstance(answer, Response) else json_answer(answer)


def route(
    method: str, path: str, role: Role | None = None, keyed: bool = False
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Register a function as a route below /api/v1. By default GET needs the role `read`, all others `write`."""

    def register(function: Callable[..., Any]) -> Callable[..., Any]:
        ROUTES.append(Route(method, path, function, role or ("read" if method == "GET" else "write"), keyed))
        return function

    return register


def model_of(kind: type, *without: str) -> type[BaseModel]:
    """A model with the fields of a NamedTuple or a dataclass."""
    hints = get_type_hints(kind)
    fields: dict[str, Any] = {
        name: (hints[name], ... if parameter.default is parameter.empty else parameter.default)
        for name, parameter in signature(kind).parameters.items()
        if name not in without
    }
    return create_model(kind.__name__, **fields)


async def read_body(request: Request) -> dict[str, Any]:
    """A JSON object. Raises InvalidInputError."""
    try:
        body = json.loads((await request.body()).decode("utf-8-sig") or "{}")  # of bytes, it also takes other encodings
    except ValueError:
        raise InvalidInputError("the body is not JSON") from None
    if not isinstance(body, dict):
        raise InvalidInputError("the body is not a JSON object")
    return body  # pyright: ignore[reportUnknownVariableType]


def json_answer(value: Any, status: int = 200) -> Response:
    text = json.dumps(plain(value), ensure_ascii=False, separators=(",", ":"), default=to_jsonable_python)
    return Response(text.encode("utf-8", "replace"), status, media_type="application/json")


def error_answer(error: Exception) -> Response:
    """The message for the user, with its status."""
    if isinstance(error, OSError) and error.errno in NO_ROOM:
        error = DiskFullError(f"cannot write {error.filename or 'a file'}: {error.strerror}; free some space")
    if not isinstance(error, KnowledgeError):
        return json_answer(ErrorAnswer(ApiError("crash", crashed(error))), 500)
    present, closest = getattr(error, "present", None), tuple(getattr(error, "closest", ()))
    answer = ApiError(error_kind(type(error)), " ".join(str(error).split()), present, closest)
    otherwise = 400 if error.exit_code == 2 else 500
    status = next((status for kind, status in STATUSES.items() if isinstance(error, kind)), otherwise)
    return json_answer(ErrorAnswer(answer), status)


def openapi() -> dict[str, Any]:
    """OpenAPI 3.1 of all routes."""
    described: list[tuple[Any, Any, TypeAdapter[Any]]] = [("error", "serialization", TypeAdapter(ErrorAnswer))]
    described += [
        (endpoint, "serialization", TypeAdapter(endpoint.answer)) for endpoint in ROUTES if endpoint.answer is not None
    ]
    described += [(endpoint, "validation", TypeAdapter(endpoint.model)) for endpoint in ROUTES if endpoint.model]
    template = "#/components/schemas/{model}"
    schemas, found = TypeAdapter.json_schemas(described, ref_template=template, schema_generator=ObjectSchema)
    definitions = found.get("$defs", {})
    mistake = _content("A mistake, and how to fix it.", schemas["error", "serialization"])
    paths: dict[str, dict[str, Any]] = {}
    for endpoint in ROUTES:
        asked = schemas.get((endpoint, "validation"), {"properties": {}})
        asked = definitions[asked["$ref"].rpartition("/")[2]] if "$ref" in asked else asked
        answer = schemas.get((endpoint, "serialization"))
        file: dict[str, Any] = {"description": "A file.", "content": {"*/*": {}}}
        success = _content("The answer.", answer) if answer else file
        operation = _operation(endpoint, asked)
        operation["responses"] = {"200": success, "default": mistake}
        paths.setdefault(re.sub(r":\w+}", "}", endpoint.path), {})[endpoint.method.lower()] = operation
    text = {"type": "string"}
    code = {"required": ["code"], "type": "object", "properties": {"code": text}}
    token = {"required": ["token"], "type": "object", "properties": {"token": text}}
    paths["/session"]["post"] = {
        "operationId": "sign_in",
        "summary": "Exchange the one-time code of the printed address for the token",
        "parameters": [],
        "security": [],
        "requestBody": {"required": True, "content": {"application/json": {"schema": code}}},
        "responses": {"200": _content("The token of this run.", token), "403": mistake},
    }
    paths["/events"] = {
        "get": {
            "operationId": "listen",
            "summary": "Stream server-sent events: `changed` with refs of notes, `activity`, and `notice` with a text",
            "parameters": [],
            "responses": {"200": {"description": "A stream.", "content": {"text/event-stream": {}}}},
        }
    }
    return {
        "openapi": "3.1.0",
        "info": {"title": "co", "version": __version__, "description": "Search, read and change your notes."},
        "servers": [{"url": API}],
        "security": [{"token": []}],
        "paths": paths,
        "components": {"schemas": definitions, "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}}},
    }


def _operation(endpoint: Route, asked: dict[str, Any]) -> dict[str, Any]:
    summary, _, description = (endpoint.function.__doc__ or "").strip().partition("\n")
    required, in_body = asked.get("required", []), endpoint.method in ("POST", "PUT")
    operation: dict[str, Any] = {
        "operationId": endpoint.function.__name__,
        "summary": summary.rstrip("."),
        "description": " ".join(description.split()),
        "parameters": [
            {
                "name": name,
                "in": "path" if name in endpoint.in_path else "query",
                "required": name in endpoint.in_path or name in required,
                "schema": schema,
            }
            for name, schema in asked["properties"].items()
            if name in endpoint.in_path or not in_body
        ],
    }
    if endpoint.keyed:
        header = {"name": "Idempotency-Key", "in": "header", "required": False, "schema": {"type": "string"}}
        operation["parameters"].append(header)
    if in_body and endpoint.model:
        body = {name: schema for name, schema in asked["properties"].items() if name not in endpoint.in_path}
        needed = [name for name in required if name in body]
        schema = {"type": "object", "properties": body, "required": needed}
        operation["requestBody"] = {"required": True, "content": {"application/json": {"schema": schema}}}
    return operation


def _content(description: str, schema: dict[str, Any]) -> dict[str, Any]:
    return {"description": description, "content": {"application/json": {"schema": schema}}}


@route("GET", "/openapi.json")
def describe_api(kb: LocalKnowledgeBase) -> JSONResponse:
    """This description."""
    return JSONResponse(openapi())
