"""Run the server over standard input and output, or over HTTP with a bearer token."""

from __future__ import annotations

import contextlib
import hmac
import io
import ipaddress
import logging
import os
import re
import secrets
import signal
import socket
import sys
import threading
import time
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
from co_cli.mcp.clients import PATH, TOKEN_VARIABLE, add_command, authority
from co_cli.mcp.server import VaultServer
from co_cli.notes.files import discard_unfinished
from co_cli.tools import Toolbox

GRACE = 5
"""Seconds that running calls have to finish after a signal."""
CONNECTIONS = 128
SHORTEST_TOKEN = 16
ESCAPE = re.compile(rb"\\(?:u[dD][89abAB]\w\w\\u[dD][c-fC-F]\w\w|(u[dD][89a-fA-F]\w\w)|.)")
"""A JSON escape; group 1 is half of a surrogate pair without the other half."""


class RequestReader(io.BufferedReader):
    r"""Standard input with half emoji, which JavaScript writes as `\ud83d`, replaced by U+FFFD.

    The SDK drops a line with half an emoji, and the client waits for an answer that never comes.
    """

    def read1(self, size: int = -1, /) -> bytes:
        return ESCAPE.sub(lambda found: rb"\ufffd" if found[1] else found[0], self.readline())


def serve_stdio(toolbox: Toolbox, structured: bool) -> None:
    """Answer one client until it closes standard input, or until a signal."""
    _log_to_stderr()
    requests = os.dup(0)
    with open(os.devnull, "rb") as nothing:
        os.dup2(nothing.fileno(), 0)  # a child process must not read requests
    sys.stdin = io.TextIOWrapper(cast("Any", RequestReader(io.FileIO(requests))), encoding="utf-8")
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
        anyio.run(server.run_stdio_async)
    except* OSError as errors:  # the client closed our output
        logging.getLogger(__name__).debug("the client is gone: %r", errors)


class OneToken:
    """Accepts one token. Compares in constant time."""

    def __init__(self, token: str) -> None:
        self._token = token.encode()

    async def verify_token(self, token: str) -> AccessToken | None:
        if hmac.compare_digest(token.strip().encode("utf-8", "replace"), self._token):
            return AccessToken(token=token, client_id="co", scopes=[])
        return None


def serve_http(toolbox: Toolbox, structured: bool, host: str, port: int, allowed: Sequence[str]) -> None:
    """Answer clients until a signal. `allowed` are more host names that clients may use, on any port.

    There are no sessions, so a restart loses nothing. That leaves nothing to stream, so only POST is answered.
    """
    _log_to_stderr()
    token = os.environ.get(TOKEN_VARIABLE, "").strip()
    if token and (len(token) < SHORTEST_TOKEN or not token.isascii() or " " in token):
        make = 'python3 -c "import secrets; print(secrets.token_urlsafe(32))"'
        raise InvalidInputError(f"{TOKEN_VARIABLE} needs {SHORTEST_TOKEN} ASCII characters or more, no spaces: {make}")
    with _listen(host, port) as listening, contextlib.suppress(KeyboardInterrupt):
        address, port = listening.getsockname()[:2]
        url, is_local = f"http://{authority(host, port)}{PATH}", ipaddress.ip_address(address).is_loopback
        if not (token or is_local):
            raise InvalidInputError(f"--host {host} opens the vault to the network: set {TOKEN_VARIABLE} first")
        if address in ("0.0.0.0", "::") and not allowed:
            raise InvalidInputError(f"--host {host} needs --allow-host with the name or address that clients use")
        made = "" if token else secrets.token_urlsafe(32)
        about = [f"{url} serves {toolbox.kb.root}"]
        about += [f"this token is for this run only; set {TOKEN_VARIABLE} to keep one"] if made else []
        about += [] if is_local else ["this is plain HTTP: put a proxy with TLS in front of it"]
        for line in (*about, add_command((), url, made)):
            print(f"co mcp: {line}", file=sys.stderr, flush=True)
        hosts = [authority(name, port) for name in ("localhost", "127.0.0.1", "::1", address, host)]
        hosts += [pattern for name in allowed for pattern in (authority(name), f"{authority(name)}:*")]
        origins = [f"{scheme}://{name}" for scheme in ("http", "https") for name in hosts]
        auth = AuthSettings(issuer_url=AnyHttpUrl(f"http://{hosts[0]}"), resource_server_url=None)
        security = TransportSecuritySettings(allowed_hosts=hosts, allowed_origins=origins)
        server = VaultServer(toolbox, structured, token_verifier=OneToken(made or token), auth=auth)
        app = server.streamable_http_app(json_response=True, stateless_http=True, transport_security=security)
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
        anyio.run(uvicorn.Server(config).serve, [listening])


def _listen(host: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        return socket.create_server((host, port), family=family, backlog=CONNECTIONS)
    except (OSError, OverflowError) as error:
        raise InvalidInputError(f"cannot listen on {host} port {port} ({error}): choose another with --port") from None


def _log_to_stderr() -> None:
    """Standard output belongs to the protocol. Call this before the SDK sets up logging of its own."""
    logging.basicConfig(stream=sys.stderr, level=logging.WARNING, format="co mcp: %(message)s")
