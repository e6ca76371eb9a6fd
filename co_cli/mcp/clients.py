"""Configuration that makes a client start `co mcp` for this vault, or connect to it: a command, or JSON."""

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import Mapping, Sequence
from typing import Any

from co_cli.errors import InvalidInputError
from co_cli.settings import SETTINGS, Settings

NAME = "co"
"""The server's name in a client."""
TOKEN_VARIABLE = "CO_MCP_TOKEN"
PATH = "/mcp"
CLIENTS = {
    "claude-code": "run this command, or put the output of --json into .mcp.json",
    "claude-desktop": "put this into claude_desktop_config.json (Settings > Developer > Edit Config opens it)",
    "cursor": "put this into ~/.cursor/mcp.json, or into .cursor/mcp.json of one project",
    "vscode": "put this into .vscode/mcp.json, or into yours (`MCP: Open User Configuration`)",
}
"""Programs that speak MCP, and where their configuration goes."""
TOKENS = {
    "claude-code": f"${{{TOKEN_VARIABLE}}}",
    "cursor": f"${{env:{TOKEN_VARIABLE}}}",
    "vscode": "${input:co-token}",
}
"""How a client's configuration names the token: it is never written to a file."""
TOKEN_INPUT = {"type": "promptString", "id": "co-token", "description": "Token for co mcp", "password": True}


def authority(host: str, port: int | None = None) -> str:
    """`::1` and 8765 as `[::1]:8765`."""
    name = f"[{host}]" if ":" in host else host
    return name if port is None else f"{name}:{port}"


def program() -> list[str]:
    """How a client starts co: with absolute paths, because it has its own PATH."""
    started = os.path.abspath(sys.argv[0])
    installed = os.path.splitext(os.path.basename(started))[0] in ("co", "co-cli") and os.path.isfile(started)
    return [started] if installed else [sys.executable, "-m", "co_cli"]


def command_line(settings: Settings, options: Sequence[str]) -> list[str]:
    """The complete command: a client starts it in its own folder."""
    words = [*program(), "mcp"]
    words += ["--vault", os.path.abspath(settings.vault)]
    if settings.set_by["data_dir"] != "default":
        words += ["--data-dir", os.path.abspath(settings.data_dir)]
    return [*words, *options]


def environment(settings: Settings) -> dict[str, str]:
    """The settings that come from variables, which a client may not have; paths are absolute."""
    values = vars(settings)
    env: dict[str, str] = {}
    for setting in SETTINGS:
        if settings.set_by[setting.name] == setting.environment and setting.name not in ("vault", "data_dir"):
            paths = {"path": [values[setting.name]], "paths": values[setting.name]}.get(setting.kind)
            env[setting.environment] = ",".join(paths) if paths else os.environ[setting.environment]
    return env


def client_config(
    client: str, command: Sequence[str], address: str = "", env: Mapping[str, str] | None = None
) -> dict[str, Any]:
    """The JSON for a client that starts the command or, if there is an address, connects to that."""
    server: dict[str, Any] = {"command": command[0], "args": list(command[1:])} | ({"env": env} if env else {})
    if address:
        if client not in TOKENS:
            raise InvalidInputError("Claude Desktop starts its servers itself: leave out --http")
        server = {"url": address, "headers": {"Authorization": f"Bearer {TOKENS[client]}"}}
    if client in ("claude-code", "vscode"):
        server = {"type": "http" if address else "stdio", **server}
    if client == "vscode":
        return {"inputs": [TOKEN_INPUT] if address else [], "servers": {NAME: server}}
    return {"mcpServers": {NAME: server}}


def add_command(
    command: Sequence[str], address: str = "", token: str = "", env: Mapping[str, str] | None = None
) -> str:
    """The command that adds the server to Claude Code. Without a token, the shell reads it from the variable."""
    words = ["claude", "mcp", "add", "--scope", "user"]
    if not address:
        variables = [word for name, value in (env or {}).items() for word in ("--env", f"{name}={value}")]
        return shlex.join([*words, NAME, *variables, "--", *command])
    connect = shlex.join([*words, "--transport", "http", NAME, address])
    return f'{connect} --header "Authorization: Bearer {token or "$" + TOKEN_VARIABLE}"'
