"""Run the server over standard input and output, or over HTTP with a bearer token."""

from __future__ import annotations

import contextlib
import io
import ipaddress
import logging
import os
import secrets
import signal
import socket
import sys
import threading
import time
from collections.abc import AsyncGenerator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, cast

import anyio
import mcp_types as types
from mcp.server.stdio import stdio_server
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from mcp.server.transport_security import TransportSecuritySettings
from mcp.shared.message import SessionMessage
from pydantic import ValidationError
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.routing import Route

from co_cli.ground.errors import InvalidInputError
from co_cli.http.http_server import (
    GRACE,
    HALF,
    Bodies,
    TokenGuard,
    bearer,
    listen,
    receive_again,
    serve,
    token_in,
    whole_characters,
)
from co_cli.mcp.client_configs import PATH, TOKEN_VARIABLE, add_command, authority
from co_cli.mcp.server import VaultServer
from co_cli.notes.files import discard_unfinished
from co_cli.tools.toolbox import Toolbox

if TYPE_CHECKING:
    from starlette.types import Receive, Scope, Send

CHECKED_BEFORE = TransportSecuritySettings(enable_dns_rebinding_protection=False)
"""TokenGuard looks at Host and Origin, before the SDK is asked."""
MOST_BYTES = 4_000_000
"""The largest body of a request; the SDK's own limit is 4 MiB."""


class RequestLines(io.BufferedReader):
    """Standard input without empty lines, and with half emoji marked, so that they can be refused."""

    def read1(self, size: int = -1, /) -> bytes:
        while (line := self.readline()).isspace():
            pass
        return whole_characters(line, HALF)


def serve_stdio(toolbox: Toolbox, structured: bool) -> None:
    """Answer one client until it closes standard input, or until a signal."""
    _log_to_stderr()
    requests = os.dup(0)
    with open(os.devnull, "rb") as nothing:
        os.dup2(nothing.fileno(), 0)  # a child process must not read requests
    sys.stdin = io.TextIOWrapper(cast("Any", RequestLines(io.FileIO(requests))), encoding="utf-8")
    server = VaultServer(toolbox, structured)

    def finish() -> None:
        """Let running calls finish, then exit: nothing can interrupt the thread that reads standard input."""
        ends = time.monotonic() + GRACE
        while server.threads.borrowed_tokens and time.monotonic() < ends:
            time.sleep(0.05)
        time.sleep(0.1)  # for the last answers to be written
        discard_unfinished()
        os._exit(0)

    def stop(*_: object) -> None:
        threading.Thread(target=finish, daemon=True).start()

    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, stop)
    try:
        anyio.run(_serve_streams, server)
    except* OSError as errors:  # the client closed our output
        logging.getLogger(__name__).debug("the client is gone: %r", errors)


async def _serve_streams(server: VaultServer) -> None:
    async with stdio_server() as (lines, answers), anyio.create_task_group() as tasks:
        forward, requests = anyio.create_memory_object_stream[SessionMessage | Exception]()

        async def refuse_mistakes() -> None:
            """Answer what is no request: the SDK drops it, and a client that waits for an answer never learns why."""
            async with forward:
                async for line in lines:
                    if isinstance(line, ValidationError):
                        await answers.send(SessionMessage(_refusal(line)))
                    else:
                        await forward.send(line)

        tasks.start_soon(refuse_mistakes)
        await server.run(requests, answers, server.create_initialization_options())
        tasks.cancel_scope.cancel()


def _refusal(mistake: ValidationError) -> types.JSONRPCError:
    first = mistake.errors(include_url=False, include_context=False, include_input=False)[0]
    if first["type"] == "json_invalid":
        error = types.ErrorData(code=types.PARSE_ERROR, message=first["msg"])
    else:
        error = types.ErrorData(code=types.INVALID_REQUEST, message="not a JSON-RPC 2.0 message: send one per line")
    return types.JSONRPCError(jsonrpc="2.0", id=None, error=error)


class Address(NamedTuple):
    """Where a server listens."""

    url: str
    is_local: bool
    """Whether only this machine can connect."""
    hosts: list[str]
    """What clients may write in `Host`: `notes.example:*` stands for any port."""


def address_of(listening: socket.socket, host: str, allowed: Sequence[str]) -> Address:
    """`allowed` are more host names that clients may use, on any port."""
    address, port = listening.getsockname()[:2]
    if address in ("0.0.0.0", "::") and not allowed:
        raise InvalidInputError(f"--host {host} needs --allow-host with the name or address that clients use")
    hosts = [authority(name, port) for name in ("localhost", "127.0.0.1", "::1", address, host)]
    hosts += [pattern for name in allowed for pattern in (authority(name), f"{authority(name)}:*")]
    return Address(f"http://{authority(host, port)}", ipaddress.ip_address(address).is_loopback, hosts)


class HttpAnswers:
    """Answers MCP over HTTP: as JSON, or as a stream of events to a client that reads one and asks for progress.

    There are no sessions, so a restart loses nothing.
    """

    def __init__(self, server: VaultServer) -> None:
        self._as_json, self._as_events = (
            StreamableHTTPSessionManager(
                server, json_response=as_json, stateless=True, security_settings=CHECKED_BEFORE
            )
            for as_json in (True, False)
        )

    @contextlib.asynccontextmanager
    async def run(self, _: Starlette) -> AsyncGenerator[None]:
        async with self._as_json.run(), self._as_events.run():
            yield

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        request = Request(scope, receive)
        body = await request.body()
        has_progress = b'"progressToken"' in body and "text/event-stream" in request.headers.get("accept", "")
        answers = self._as_events if has_progress else self._as_json
        await answers.handle_request(scope, receive_again(body, receive), send)


def http_app(toolbox: Toolbox, structured: bool = False) -> Starlette:
    """MCP at /mcp. Nothing is sent that was not asked for, so there is only POST."""
    answers = HttpAnswers(VaultServer(toolbox, structured))
    return Starlette(routes=[Route(PATH, answers, methods=["POST"])], lifespan=answers.run)


def serve_http(toolbox: Toolbox, structured: bool, host: str, port: int, allowed: Sequence[str]) -> None:
    """Answer clients until a signal."""
    _log_to_stderr()
    token = token_in(TOKEN_VARIABLE)
    with listen(host, port) as listening:
        at = address_of(listening, host, allowed)
        url = f"{at.url}{PATH}"
        if not (token or at.is_local):
            raise InvalidInputError(f"--host {host} opens the vault to the network: set {TOKEN_VARIABLE} first")
        made = "" if token else secrets.token_urlsafe(32)
        about = [f"{url} serves {toolbox.kb.root}"]
        about += [f"this token is for this run only; set {TOKEN_VARIABLE} to keep one"] if made else []
        about += [] if at.is_local else ["this is plain HTTP: put a proxy with TLS in front of it"]
        for line in (*about, add_command((), url, made)):
            print(f"co mcp: {line}", file=sys.stderr, flush=True)
        app = Bodies(http_app(toolbox, structured), MOST_BYTES, strict=(PATH,))
        serve(TokenGuard(app, bearer(made or token), at.hosts), listening)


def _log_to_stderr() -> None:
    """Standard output belongs to the protocol."""
    logging.basicConfig(stream=sys.stderr, level=logging.WARNING, format="co mcp: %(message)s")
