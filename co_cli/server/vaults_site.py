"""Several vaults in one server: each has a host name, and with it its own page, tokens, database and limits.

A browser keeps what belongs to one host from the others, and PostgreSQL what belongs to one database.
"""

from __future__ import annotations

import os
import tomllib
from collections.abc import AsyncGenerator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any, NamedTuple, cast

from starlette.applications import Starlette
from starlette.datastructures import Headers
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route
from starlette.types import Receive, Scope, Send

from co_cli.ground.errors import InvalidInputError, SettingsError
from co_cli.ground.settings import Settings, load_settings
from co_cli.server.team_site import TeamSite

ALIVE = "/livez"


class ServedVault(NamedTuple):
    """A vault that the file of a server lists."""

    name: str
    host: str
    settings: Settings


class VaultsSite:
    """Hands each request to the vault of its host."""

    def __init__(self, sites: Mapping[str, TeamSite]) -> None:
        self._sites = sites
        self._any = Starlette(routes=[Route(ALIVE, _say_alive)], lifespan=self._lifespan)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        host = Headers(scope=scope).get("host", "").rpartition(":") if scope["type"] == "http" else ("", "", "")
        name = (host[0] or host[2]).lower()
        site = self._sites.get(name)
        if site:
            scope.setdefault("state", {})["vault"] = name  # for the log
            await site(scope, receive, send)
        elif scope["type"] == "lifespan" or scope["path"] == ALIVE:
            await self._any(scope, receive, send)
        else:
            await PlainTextResponse("No vault has this host name\n", 421)(scope, receive, send)

    def stop_streams(self) -> None:
        for site in self._sites.values():
            site.events.stop_streams()

    def leave(self) -> bool:
        asked = [site.leave() for site in self._sites.values()]
        return any(asked)

    @asynccontextmanager
    async def _lifespan(self, app: Starlette) -> AsyncGenerator[None]:
        async with AsyncExitStack() as stack:
            for site in self._sites.values():
                await stack.enter_async_context(site.inner.router.lifespan_context(site.inner))
            yield


async def _say_alive(request: Request) -> Response:
    return PlainTextResponse("ok\n")


def read_vaults(path: str) -> list[ServedVault]:
    """What a TOML file lists: a table for each vault, with its `host`, its folder as `vault`, and other settings."""
    try:
        with open(path, "rb") as file:
            tables: dict[str, Any] = tomllib.load(file)
    except OSError as error:
        raise InvalidInputError(f"{path} cannot be read: {error.strerror}") from None
    except ValueError as error:
        raise InvalidInputError(f"{path} is not TOML: {error}") from None
    found = [_vault(path, name, table) for name, table in tables.items()]
    if not found:
        raise InvalidInputError(
            f'{path} lists no vault: add [NAME] with host = "NAME.notes.example" and vault = "FOLDER"'
        )
    for what, of in (("host", [vault.host for vault in found]), ("vault", [vault.settings.vault for vault in found])):
        twice = next((value for value in of if of.count(value) > 1), None)
        if twice:
            raise InvalidInputError(f"{path}: two vaults have the {what} {twice}")
    return found


def _vault(path: str, name: str, table: object) -> ServedVault:
    given = dict(cast("dict[str, Any]", table)) if isinstance(table, dict) else {}
    host = given.pop("host", "")
    if not isinstance(host, str) or not host or "vault" not in given:
        raise InvalidInputError(f"{path}: [{name}] needs host and vault")
    if ":" in host or "/" in host:
        raise InvalidInputError(f"{path}: [{name}]: host is a name such as {name}.notes.example, without a port")
    try:
        settings = load_settings(given, start=os.path.dirname(os.path.abspath(path)))
    except SettingsError as error:
        raise InvalidInputError(f"{path}: [{name}]: {error}") from None
    return ServedVault(name, host.lower(), settings)
