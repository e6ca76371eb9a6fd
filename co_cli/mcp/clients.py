"""Configuration that makes a client start `co mcp` for this vault, or connect to it: a command, or JSON."""

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import Sequence
from typing import Any, NamedTuple

from co_cli.errors import InvalidInputError
from co_cli.settings import Settings

NAME = "co"
"""The server's name in a client."""
TOKEN_VARIABLE = "CO_MCP_TOKEN"
PATH = "/mcp"


class Client(NamedTuple):
    """A program that speaks MCP, and where its configuration goes."""

    name: str
    title: str
    place: str


CLIENTS = {
    client.name: client
    for client in (
        Client("claude-code", "Claude Code", "run this command, or put the output of --json into .mcp.json"),
        Client(
            "claude-desktop",
            "Claude Desktop",
            "put this into claude_desktop_config.json (Settings > Developer > Edit Config opens it)",
        ),
        Client("cursor", "Cursor", "put this into ~/.cursor/mcp.json, or into .cursor/mcp.json of one project"),
        Client("vscode", "VS Code", "put this into .vscode/mcp.json, or into yours (`MCP: Open User Configuration`)"),
    )
}


def authority(host: str, port: int | None = None) -> str:
    """`::1` and 8765 as `[::1]:8765`."""
    name = f"[{host}]" if ":" in host else host
    return name if port is None else f"{name}:{port}"


def http_address(host: str, port: int) -> str:
    return f"http://{authority(host, port)}{PATH}"


def program() -> list[str]:
    """How this program was started: a client may not have our PATH."""
    started = os.path.abspath(sys.argv[0])
    if os.path.splitext(os.path.basename(started))[0] in ("co", "co-cli") and os.path.isfile(started):
        return [started]
    return [sys.executable, "-m", "co_cli"]


def command_line(settings: Settings, options: Sequence[str]) -> list[str]:
    """The complete command. It names the vault, because a client starts it in a folder of its own."""
    words = [*program(), "mcp", "--vault", os.path.abspath(settings.vault)]
    if settings.origins["data_dir"] != "default":
        words += ["--data-dir", os.path.abspath(settings.data_dir)]
    return [*words, *options]


def stdio_config(client: str, command: Sequence[str]) -> dict[str, Any]:
    server: dict[str, Any] = {"command": command[0], "args": list(command[1:])}
    if client == "vscode":
        return {"servers": {NAME: {"type": "stdio", **server}}}
    if client == "claude-code":
        return {"mcpServers": {NAME: {"type": "stdio", **server}}}
    return {"mcpServers": {NAME: server}}


def http_config(client: str, address: str) -> dict[str, Any]:
    """The client reads the token from the environment or asks for it: it is never written to a file."""
    match client:
        case "claude-code":
            headers = {"Authorization": f"Bearer ${{{TOKEN_VARIABLE}}}"}
            return {"mcpServers": {NAME: {"type": "http", "url": address, "headers": headers}}}
        case "cursor":
            headers = {"Authorization": f"Bearer ${{env:{TOKEN_VARIABLE}}}"}
            return {"mcpServers": {NAME: {"url": address, "headers": headers}}}
        case "vscode":
            asked = {"type": "promptString", "id": "co-token", "description": "Token for co mcp", "password": True}
            headers = {"Authorization": "Bearer ${input:co-token}"}
            return {"inputs": [asked], "servers": {NAME: {"type": "http", "url": address, "headers": headers}}}
        case _:
            raise InvalidInputError("Claude Desktop starts its servers itself: leave out --http")


def stdio_command(command: Sequence[str]) -> str:
    """The command that adds the server to Claude Code, for all your projects."""
    return _shell(["claude", "mcp", "add", "--scope", "user", NAME, "--", *command])


def http_command(address: str, token: str | None = None) -> str:
    """The same over HTTP. Without a token it names the variable, for the shell to fill in."""
    words = _shell(["claude", "mcp", "add", "--scope", "user", "--transport", "http", NAME, address])
    return f'{words} --header "Authorization: Bearer {token or "$" + TOKEN_VARIABLE}"'


def _shell(words: Sequence[str]) -> str:
    if os.name == "nt":
        import subprocess

        return subprocess.list2cmdline(words)
    return shlex.join(words)
