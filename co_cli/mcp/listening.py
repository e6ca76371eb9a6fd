"""A socket to listen on, and the address that clients know it by. Imports nothing slow: a taken port is told early."""

from __future__ import annotations

import socket

from co_cli.errors import InvalidInputError

PATH = "/mcp"


def listen(host: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        return socket.create_server((host, port), family=family, backlog=128)
    except OSError as error:
        reason = error.strerror or str(error)
        raise InvalidInputError(
            f"cannot listen on {host} port {port}: {reason}; --port chooses another, and --port 0 a free one"
        ) from None


def port_of(listening: socket.socket) -> int:
    return int(listening.getsockname()[1])


def http_address(host: str, port: int) -> str:
    return f"http://{f'[{host}]' if ':' in host else host}:{port}{PATH}"
