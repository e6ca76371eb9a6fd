"""Serve an ASGI app over HTTP to those who know a token, and to nobody else.

Clients without the token cannot hold a connection open or use up the limit of running requests. uvicorn's own limits
count every connection, so they are not used.
"""

from __future__ import annotations

import asyncio
import contextlib
import hmac
import os
import signal
import socket
from collections.abc import Awaitable, Callable, Collection
from typing import TYPE_CHECKING, cast

import anyio
import uvicorn
from starlette.requests import HTTPConnection
from starlette.responses import JSONResponse, PlainTextResponse, Response
from uvicorn.protocols.http.h11_impl import H11Protocol

from co_cli.errors import InvalidInputError

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Receive, Scope, Send

GRACE = 5
"""Seconds that running requests have to finish after a signal."""
REQUESTS = 128
"""Requests with the token that may run at once."""
STRANGERS = 128
"""Connections that have not sent the token yet; one more closes the oldest."""
ACCEPTED = 16
"""Connections accepted at a time: far fewer than STRANGERS, so that none is the oldest before it can send anything."""
HEADERS_SECONDS = 10
"""How long a connection has to send the complete headers of a request with the token."""
SHORTEST_TOKEN = 16


class TokenGuard:
    """Lets requests with the token through to an app, if they name one of these hosts."""

    def __init__(
        self,
        app: ASGIApp,
        has_token: Callable[[HTTPConnection], Awaitable[bool]],
        hosts: Collection[str],
        is_public: Callable[[HTTPConnection], bool] = lambda _: False,
    ) -> None:
        """`notes.example:*` in `hosts` stands for any port. `is_public`: requests that need no token."""
        self._app, self._has_token, self._hosts, self._is_public = app, has_token, hosts, is_public
        self._running = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
            return
        request = HTTPConnection(scope)
        known = await self._has_token(request)
        refusal = self._refusal(request, known)
        if refusal is not None or not known:
            await (refusal or self._app)(scope, receive, send)
            return
        scope["state"]["keep_connection"]()
        self._running += 1
        try:
            await self._app(scope, receive, send)
        finally:
            self._running -= 1

    def _refusal(self, request: HTTPConnection, known: bool) -> Response | None:
        origin = request.headers.get("origin")
        if not (known or self._is_public(request)):
            challenge = {"WWW-Authenticate": 'Bearer error="invalid_token"'}
            return JSONResponse({"error": "invalid_token"}, 401, challenge)
        if not self._is_known(request.headers.get("host", "")):
            return PlainTextResponse("Invalid Host header", 421)
        if origin and not self._is_known(origin.removeprefix("http://").removeprefix("https://")):
            return PlainTextResponse("Invalid Origin header", 403)
        if known and self._running >= REQUESTS:
            return PlainTextResponse("Too many requests are running", 503, {"Retry-After": "1"})
        return None

    def _is_known(self, host: str) -> bool:
        return host in self._hosts or f"{host.rpartition(':')[0]}:*" in self._hosts


class GuardedConnection(H11Protocol):
    """A connection that is closed unless a TokenGuard says in time that it sent the token."""

    deadline: asyncio.TimerHandle

    def connection_made(self, transport: asyncio.Transport) -> None:  # pyright: ignore[reportIncompatibleMethodOverride]
        super().connection_made(transport)
        # asyncio does not, for sockets of `create_server`; without it each answer takes 40 ms longer
        transport.get_extra_info("socket").setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.deadline = self.loop.call_later(HEADERS_SECONDS, transport.abort)
        # uvicorn copies this into the state of each request
        self.app_state = {**self.app_state, "keep_connection": self.deadline.cancel}
        everybody = cast("set[GuardedConnection]", self.connections)
        strangers = [one for one in everybody if not one.deadline.cancelled()]
        if len(strangers) > STRANGERS:
            oldest = min(strangers, key=lambda one: one.deadline.when())
            oldest.deadline.cancel()
            oldest.transport.abort()

    def connection_lost(self, exc: Exception | None) -> None:
        self.deadline.cancel()
        super().connection_lost(exc)


class GuardedServer(uvicorn.Server):
    """Lets more connections wait to be accepted than asyncio accepts in one go."""

    def __init__(self, config: uvicorn.Config, on_stop: Callable[[], None]) -> None:
        super().__init__(config)
        self._on_stop = on_stop

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        for one in sockets or ():
            one.listen(STRANGERS)

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        self._on_stop()
        await super().shutdown(sockets)


def given_token(request: HTTPConnection) -> str:
    """The bearer token in the Authorization header of a request; empty if there is none."""
    scheme, _, given = request.headers.get("authorization", "").partition(" ")
    return given.strip() if scheme.lower() == "bearer" else ""


def bearer(token: str) -> Callable[[HTTPConnection], Awaitable[bool]]:
    """Whether a request has this token, compared in constant time."""

    async def has_token(request: HTTPConnection) -> bool:
        return hmac.compare_digest(given_token(request).encode(), token.encode())

    return has_token


def token_in(variable: str) -> str:
    """The token in an environment variable; empty if there is none."""
    token = os.environ.get(variable, "").strip()
    if token and (len(token) < SHORTEST_TOKEN or not token.isascii() or " " in token):
        make = 'python3 -c "import secrets; print(secrets.token_urlsafe(32))"'
        raise InvalidInputError(f"{variable} needs {SHORTEST_TOKEN} ASCII characters or more, no spaces: {make}")
    return token


def listen(host: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        return socket.create_server((host, port), family=family)
    except (OSError, OverflowError) as error:
        raise InvalidInputError(f"cannot listen on {host} port {port} ({error}): choose another with --port") from None


def serve(app: ASGIApp, listening: socket.socket, on_stop: Callable[[], None] = lambda: None) -> None:
    """Answer requests until a signal. `on_stop` ends answers that would go on for ever."""
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # uvicorn raises the signal again when it is done
    with contextlib.suppress(KeyboardInterrupt):
        anyio.run(make_server(app, on_stop).serve, [listening])


def make_server(app: ASGIApp, on_stop: Callable[[], None] = lambda: None) -> uvicorn.Server:
    config = uvicorn.Config(
        app,
        http=GuardedConnection,
        ws="none",
        log_config=None,
        log_level="error",  # strangers must not fill the log, or a pipe that nobody reads
        access_log=False,
        server_header=False,
        backlog=ACCEPTED,
        timeout_graceful_shutdown=GRACE,
    )
    return GuardedServer(config, on_stop)
