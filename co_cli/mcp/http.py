"""The door over HTTP, on loopback: one address, POST only, behind a guard. No sessions: a restart loses nothing."""

from __future__ import annotations

import signal
import socket
from collections.abc import Generator, Sequence
from contextlib import closing, contextmanager
from typing import Any

import anyio
import uvicorn
from mcp.server.transport_security import TransportSecuritySettings

from co_cli.mcp.access import Guard
from co_cli.mcp.listening import PATH, port_of
from co_cli.mcp.server import McpDoor
from co_cli.mcp.stdio import log_to_stderr

GRACE = 5
"""Seconds that answers have to finish after a signal."""
MOST_CONNECTIONS = 128


def serve_http(door: McpDoor, listening: socket.socket, host: str, token: str, names: Sequence[str] = ()) -> None:
    """Answer clients until a signal comes; calls in progress are finished first."""
    log_to_stderr()
    inner = door.server.streamable_http_app(
        streamable_http_path=PATH,
        json_response=True,
        stateless_http=True,
        # the guard before it is stricter: it knows the port, and asks for the token
        transport_security=TransportSecuritySettings(enable_dns_rebinding_protection=False),
    )
    app: Any = Guard(inner, token, host, port_of(listening), names)  # type: ignore[arg-type]
    config = uvicorn.Config(
        app,
        log_config=None,
        access_log=False,
        lifespan="on",
        ws="none",
        server_header=False,
        limit_concurrency=MOST_CONNECTIONS,
        timeout_graceful_shutdown=GRACE,
    )
    with closing(listening), door.watching():
        anyio.run(_Server(config).serve, [listening])


class _Server(uvicorn.Server):
    """uvicorn, except that a signal ends it and is not raised once more: whoever runs it closes the vault."""

    @contextmanager
    def capture_signals(self) -> Generator[None]:
        before = {number: signal.signal(number, self.handle_exit) for number in (signal.SIGINT, signal.SIGTERM)}
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)
