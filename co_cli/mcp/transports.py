"""Run the server over standard input and output, or over HTTP with a bearer token."""

from __future__ import annotations

import contextlib
import hmac
import io
import logging
import os
import re
import signal
import socket
import sys
from collections.abc import Sequence
from typing import Any, cast

import anyio
import uvicorn
from mcp.server.auth.provider import AccessToken
from mcp.server.auth.settings import AuthSettings
from mcp.server.transport_security import TransportSecuritySettings
from pydantic import AnyHttpUrl
from starlette.routing import Route

from co_cli.errors import InvalidInputError
from co_cli.mcp.clients import PATH, authority
from co_cli.mcp.server import VaultServer
from co_cli.notes.files import discard_unfinished
from co_cli.tools import Toolbox

GRACE = 5
"""Seconds that running calls have to finish after a signal."""
CONNECTIONS = 128
ESCAPE = re.compile(rb"\\(?:u[dD][89abAB]\w\w\\u[dD][c-fC-F]\w\w|(u[dD][89a-fA-F]\w\w)|.)")
"""A JSON escape; group 1 is half of a surrogate pair without the other half."""


class RequestReader(io.BufferedReader):
    r"""Standard input with half emoji replaced by U+FFFD.

    JavaScript writes a string that was cut inside an emoji as `\ud83d`. That is not valid Unicode, so the SDK drops the
    line, and the client waits for an answer that never comes.
    """

    def read1(self, size: int = -1, /) -> bytes:
        return ESCAPE.sub(lambda found: rb"\ufffd" if found[1] else found[0], self.readline())


def serve_stdio(toolbox: Toolbox, structured: bool) -> None:
    """Answer one client until it closes standard input, or until a signal."""
    _log_to_stderr()
    private = os.dup(0)
    with open(os.devnull, "rb") as nothing:
        os.dup2(nothing.fileno(), 0)  # as the SDK does for a stream that it opens: no child may read requests
    sys.stdin = io.TextIOWrapper(cast("Any", RequestReader(io.FileIO(private))), encoding="utf-8")
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, _exit)
    try:
        anyio.run(VaultServer(toolbox, structured).run_stdio_async)
    except* OSError as errors:  # the client closed our output
        logging.getLogger(__name__).debug("the client is gone: %r", errors)


def _exit(*_: object) -> None:
    """Exit at once: a thread waits in a read of standard input that nothing can interrupt."""
    discard_unfinished()
    os._exit(0)


class OneToken:
    """Accepts one token. Compares in constant time."""

    def __init__(self, token: str) -> None:
        self._token = token.encode()

    async def verify_token(self, token: str) -> AccessToken | None:
        if hmac.compare_digest(token.strip().encode("utf-8", "replace"), self._token):
            return AccessToken(token=token, client_id="co", scopes=[])
        return None


def listen(host: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        return socket.create_server((host, port), family=family, backlog=CONNECTIONS)
    except OSError as error:
        raise InvalidInputError(
            f"cannot listen on {host} port {port}: {error.strerror}; choose another with --port, or a free one with 0"
        ) from None


def serve_http(toolbox: Toolbox, structured: bool, listening: socket.socket, token: str, names: Sequence[str]) -> None:
    """Answer clients until a signal. `names` are hosts that clients may use besides loopback, on any port.

    There are no sessions, so a restart loses nothing. That leaves nothing to stream, so only POST is answered.
    """
    _log_to_stderr()
    address, port = listening.getsockname()[:2]
    hosts = [authority(host, port) for host in ("localhost", "127.0.0.1", "::1", address)]
    hosts += [pattern for name in names for pattern in (authority(name), f"{authority(name)}:*")]
    origins = [f"{scheme}://{host}" for scheme in ("http", "https") for host in hosts]
    auth = AuthSettings(issuer_url=AnyHttpUrl(f"http://{hosts[0]}"), resource_server_url=None)
    app = VaultServer(toolbox, structured, token_verifier=OneToken(token), auth=auth).streamable_http_app(
        streamable_http_path=PATH,
        json_response=True,
        stateless_http=True,
        transport_security=TransportSecuritySettings(allowed_hosts=hosts, allowed_origins=origins),
    )
    cast("Route", app.routes[0]).methods = {"POST"}
    config = uvicorn.Config(
        app,
        log_config=None,
        access_log=False,
        ws="none",
        server_header=False,
        limit_concurrency=CONNECTIONS,
        timeout_graceful_shutdown=GRACE,
    )
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # uvicorn raises the signal again when it is done
    with listening, contextlib.suppress(KeyboardInterrupt):
        anyio.run(uvicorn.Server(config).serve, [listening])


def _log_to_stderr() -> None:
    """Standard output belongs to the protocol. Call this before the SDK sets up logging of its own."""
    logging.basicConfig(stream=sys.stderr, level=logging.WARNING, format="co mcp: %(message)s")
