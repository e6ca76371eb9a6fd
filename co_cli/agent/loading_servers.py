"""The file that lists MCP servers for the loading agent, in the layout that MCP clients share, into values.

    {"mcpServers": {"github": {"command": "github-mcp", "args": ["stdio"], "env": {"TOKEN": "${GITHUB_TOKEN}"}},
                    "wiki": {"url": "https://wiki.example.org/mcp", "tools": ["read_page"]}}}

`${NAME}` and `${NAME:-otherwise}` stand for variables of the environment, so that no secret has to be written down.
What is wrong is told with the file and the server.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping
from difflib import get_close_matches
from typing import Any, NamedTuple, cast

from co_cli.errors import SettingsError

VARIABLE = re.compile(r"\$\{(\w+)(?::-([^}]*))?\}")
KEYS = ("command", "args", "env", "cwd", "url", "headers", "type", "tools", "disabled")
TYPES = ("stdio", "http", "streamable-http", "streamableHttp")
NAME = re.compile(r"[\w.-]{1,40}\Z", re.ASCII)
EXAMPLE = '{"mcpServers": {"wiki": {"command": "wiki-mcp", "args": []}}}'


class McpServer(NamedTuple):
    """One server: a command that speaks on standard input and output, or an address."""

    name: str
    command: str = ""
    args: tuple[str, ...] = ()
    env: Mapping[str, str] = {}
    cwd: str | None = None
    url: str = ""
    headers: Mapping[str, str] = {}
    tools: tuple[str, ...] | None = None
    """The tools that the person allows; None allows those that say that they only read."""


def read_servers(file: str, environ: Mapping[str, str] | None = None) -> tuple[McpServer, ...]:
    """Every server of the file that is not disabled. Raises SettingsError."""
    environ = os.environ if environ is None else environ
    try:
        with open(file, encoding="utf-8-sig") as stream:
            content: object = json.load(stream)
    except OSError as error:
        raise SettingsError(f"{file}: cannot be read: {error.strerror} (the setting loading_servers)") from None
    except UnicodeDecodeError:
        raise SettingsError(f"{file}: not UTF-8 text; save it as UTF-8") from None
    except json.JSONDecodeError as error:
        raise SettingsError(f"{file}:{error.lineno}: not valid JSON: {error.msg}") from None
    listed = _object(_object(content).get("mcpServers"))
    if not listed:
        raise SettingsError(f"{file}: no MCP servers in it; it looks like {EXAMPLE}")
    found = [_read_server(_Place(file, name), value, environ) for name, value in listed.items()]
    return tuple(server for server in found if server is not None)


class _Place(NamedTuple):
    file: str
    server: str

    def wrong(self, problem: str) -> SettingsError:
        return SettingsError(f"{self.file}: server {self.server!r}: {problem}")


def _read_server(place: _Place, value: object, environ: Mapping[str, str]) -> McpServer | None:
    if not NAME.match(place.server):
        raise place.wrong("a name has letters, digits, - _ and . only, 40 at most")
    if not isinstance(value, dict):
        raise place.wrong('an object such as {"command": "wiki-mcp"} is wanted')
    table = _object(cast("object", value))
    for key in table:  # what only other programs read stands in the same files
        meant = [] if key in KEYS else get_close_matches(key, KEYS, n=1)
        if meant:
            raise place.wrong(f"unknown key {key!r}: did you mean {meant[0]}?")
    if table.get("disabled") is True:
        return None
    if bool(table.get("command")) == bool(table.get("url")):
        raise place.wrong("it needs either a command or a url")
    if table.get("type", TYPES[0]) not in TYPES:
        raise place.wrong(f"its type is stdio or http, not {table['type']!r}")

    def text(key: str) -> str:
        return _expanded(place, key, table.get(key, ""), environ)

    def texts(key: str) -> tuple[str, ...]:
        listed: object = table.get(key, [])
        if not isinstance(listed, list):
            raise place.wrong(f"{key} is a list of texts")
        return tuple(_expanded(place, key, item, environ) for item in cast("list[object]", listed))

    def pairs(key: str) -> dict[str, str]:
        named: object = table.get(key, {})
        if not isinstance(named, dict):
            raise place.wrong(f"{key} is an object of texts")
        items = cast("dict[str, object]", named)
        return {name: _expanded(place, f"{key}.{name}", item, environ) for name, item in items.items()}

    url, folder = text("url"), text("cwd")
    if url and not url.startswith(("http://", "https://")):
        raise place.wrong("its url begins with http:// or https://")
    return McpServer(
        name=place.server,
        command=os.path.expanduser(text("command")),
        args=texts("args"),
        env=pairs("env"),
        cwd=os.path.join(os.path.dirname(place.file), os.path.expanduser(folder)) if folder else None,
        url=url,
        headers=pairs("headers"),
        tools=texts("tools") if "tools" in table else None,
    )


def _object(value: object) -> dict[str, Any]:
    """A JSON object; anything else counts as an empty one."""
    return cast("dict[str, Any]", value) if isinstance(value, dict) else {}


def _expanded(place: _Place, key: str, value: object, environ: Mapping[str, str]) -> str:
    if not isinstance(value, str):
        raise place.wrong(f"{key} is a text, in quotation marks")  # the value may be a secret: it is never repeated

    def one(found: re.Match[str]) -> str:
        name, otherwise = found[1], found[2]
        if environ.get(name):
            return environ[name]
        if otherwise is None:
            raise place.wrong(f"{key} wants the variable {name}, which is not set: export {name}=...")
        return otherwise

    return VARIABLE.sub(one, value)
