"""What to write where, so that a client starts `co mcp` for this vault: the exact command, or the exact JSON."""

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import Sequence
from typing import Any, NamedTuple

from co_cli.errors import InvalidInputError
from co_cli.settings import Settings

NAME = "co"
"""What a client calls the server."""
VARIABLE = "CO_MCP_TOKEN"


class Client(NamedTuple):
    """A program that speaks MCP, and where it keeps its servers."""

    name: str
    title: str
    place: str


CLIENTS = {
    client.name: client
    for client in (
        Client("claude-code", "Claude Code", "run this command, or put the JSON that --json prints into .mcp.json"),
        Client(
            "claude-desktop",
            "Claude Desktop",
            "goes into claude_desktop_config.json: Settings > Developer > Edit Config opens it",
        ),
        Client("cursor", "Cursor", "goes into ~/.cursor/mcp.json, or .cursor/mcp.json of one project"),
        Client("vscode", "VS Code", "goes into .vscode/mcp.json; `MCP: Open User Configuration` opens your own"),
    )
}


def program() -> list[str]:
    """How this program was started, so that a client finds it without our PATH."""
    started = os.path.abspath(sys.argv[0])
    if os.path.splitext(os.path.basename(started))[0] in ("co", "co-cli") and os.path.isfile(started):
        return [started]
    return [sys.executable, "-m", "co_cli"]


def command_line(settings: Settings, options: Sequence[str]) -> list[str]:
    """The whole command: a client starts it in a folder of its own, so the vault is always named."""
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
    """The token stays out of the file where the client can read it from the environment, or ask for it."""
    match client:
        case "claude-code":
            headers = {"Authorization": f"Bearer ${{{VARIABLE}}}"}
            return {"mcpServers": {NAME: {"type": "http", "url": address, "headers": headers}}}
        case "cursor":
            headers = {"Authorization": f"Bearer ${{env:{VARIABLE}}}"}
            return {"mcpServers": {NAME: {"url": address, "headers": headers}}}
        case "vscode":
            asked = {"type": "promptString", "id": "co-token", "description": "Token of co mcp", "password": True}
            headers = {"Authorization": "Bearer ${input:co-token}"}
            return {"inputs": [asked], "servers": {NAME: {"type": "http", "url": address, "headers": headers}}}
        case _:
            raise InvalidInputError("Claude Desktop starts its servers itself: leave --http out")


def stdio_command(command: Sequence[str]) -> str:
    """The line that tells Claude Code, for all of your projects."""
    return _shell(["claude", "mcp", "add", "--scope", "user", NAME, "--", *command])


def http_command(address: str, token: str | None = None) -> str:
    """The same for a server over HTTP; without a token it names the variable, for the shell to fill in."""
    words = _shell(["claude", "mcp", "add", "--scope", "user", "--transport", "http", NAME, address])
    return f'{words} --header "Authorization: Bearer {token or "$" + VARIABLE}"'


def _shell(words: Sequence[str]) -> str:
    if os.name == "nt":
        import subprocess

        return subprocess.list2cmdline(words)
    return shlex.join(words)
