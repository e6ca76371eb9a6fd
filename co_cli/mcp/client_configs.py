"""Configuration that makes a client start `co mcp` for this vault, or connect to it: a command, or its file."""

from __future__ import annotations

import json
import os
import site
import sys
from collections.abc import Mapping, Sequence
from typing import Any

from co_cli.ground.errors import InvalidInputError
from co_cli.ground.paths import shell_line
from co_cli.ground.settings import SETTINGS, Settings

NAME = "co"
"""The server's name in a client."""
TOKEN_VARIABLE = "CO_MCP_TOKEN"
PATH = "/mcp"
CLIENTS = {
    "claude-code": "run this command, or put the output of --json into .mcp.json",
    "claude-desktop": "put this into claude_desktop_config.json (Settings > Developer > Edit Config opens it)",
    "codex": "put this into ~/.codex/config.toml, or into .codex/config.toml of one project",
    "cursor": "put this into ~/.cursor/mcp.json, or into .cursor/mcp.json of one project",
    "gemini": "put this into ~/.gemini/settings.json, or into .gemini/settings.json of one project",
    "goose": "put this into ~/.config/goose/config.yaml",
    "opencode": "put this into ~/.config/opencode/opencode.json, or into opencode.json of one project",
    "vscode": "put this into .vscode/mcp.json, or into yours (`MCP: Open User Configuration`)",
    "windsurf": "put this into ~/.codeium/windsurf/mcp_config.json",
    "zed": "put this into your settings (`zed: open settings file`), or into .zed/settings.json of one project",
}
"""Programs that speak MCP, and where their configuration goes."""
TOKENS = {
    "claude-code": f"${{{TOKEN_VARIABLE}}}",
    "codex": TOKEN_VARIABLE,
    "cursor": f"${{env:{TOKEN_VARIABLE}}}",
    "gemini": f"${TOKEN_VARIABLE}",
    "goose": f"${{{TOKEN_VARIABLE}}}",
    "opencode": f"{{env:{TOKEN_VARIABLE}}}",
    "vscode": "${input:co-token}",
    "windsurf": f"${{env:{TOKEN_VARIABLE}}}",
}
"""How a client's configuration names the token: it is never written to a file."""
NO_TOKENS = {
    "claude-desktop": "Claude Desktop starts its servers itself",
    "zed": "Zed's settings have no variables, so the token would be in the file",
}
TOKEN_INPUT = {"type": "promptString", "id": "co-token", "description": "Token for co mcp", "password": True}


def authority(host: str, port: int | None = None) -> str:
    """`::1` and 8765 as `[::1]:8765`."""
    name = f"[{host}]" if ":" in host else host
    return name if port is None else f"{name}:{port}"


def program() -> list[str]:
    """How a client starts co: with absolute paths, because it has its own PATH, and with -I, because it may have
    variables of a project, such as PYTHONPATH. What `pip install --user` installed is hidden by -I, so it is named."""
    own = site.getusersitepackages()
    if own not in sys.path:
        return [sys.executable, "-I", "-m", "co_cli"]
    code = f"import runpy, site; site.addsitedir({own!r}); runpy.run_module('co_cli', run_name='__main__')"
    return [sys.executable, "-I", "-c", code]


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
    """The configuration of a client that starts the command or, if there is an address, connects to that."""
    if address and client not in TOKENS:
        raise InvalidInputError(f"{NO_TOKENS[client]}: leave out --http")
    program: dict[str, Any] = {"command": command[0], "args": list(command[1:])} | ({"env": dict(env)} if env else {})
    headers = {"Authorization": f"Bearer {TOKENS[client]}"} if address else {}
    match client:
        case "claude-code":
            server = {"type": "http", "url": address, "headers": headers} if address else {"type": "stdio", **program}
        case "vscode":
            server = {"type": "http", "url": address, "headers": headers} if address else {"type": "stdio", **program}
            return {"inputs": [TOKEN_INPUT] if address else [], "servers": {NAME: server}}
        case "codex":
            server = {"url": address, "bearer_token_env_var": TOKENS[client]} if address else program
            return {"mcp_servers": {NAME: server}}
        case "gemini":
            server = {"httpUrl": address, "headers": headers} if address else program
        case "windsurf":
            server = {"serverUrl": address, "headers": headers} if address else program
        case "opencode":
            local = {"type": "local", "command": list(command)} | ({"environment": dict(env)} if env else {})
            server = {"type": "remote", "url": address, "headers": headers} if address else local
            return {"$schema": "https://opencode.ai/config.json", "mcp": {NAME: server}}
        case "goose":
            about = {"name": NAME, "description": "Notes in Markdown", "enabled": True, "timeout": 300}
            local = {"type": "stdio", "cmd": command[0], "args": list(command[1:]), "envs": dict(env or {})}
            remote = {"type": "streamable_http", "uri": address, "headers": headers, "env_keys": [TOKEN_VARIABLE]}
            return {"extensions": {NAME: about | (remote if address else local)}}
        case "zed":
            return {"context_servers": {NAME: program}}
        case _:
            server = {"url": address, "headers": headers} if address else program
    return {"mcpServers": {NAME: server}}


def config_text(client: str, config: dict[str, Any]) -> str | None:
    """The configuration as the client's file has it, where that is not JSON."""
    if client == "codex":
        ((table, servers),) = config.items()
        server = servers[NAME]
        lines = [f"[{table}.{NAME}]", *(f"{key} = {_toml(value)}" for key, value in server.items())]
        return "\n".join(lines)
    if client == "goose":
        import yaml  # 30 ms

        return yaml.safe_dump(config, sort_keys=False, allow_unicode=True).rstrip()
    return None


def _toml(value: str | list[str] | dict[str, str]) -> str:
    """TOML's strings are JSON's, without escapes for halves of characters."""
    if isinstance(value, dict):
        return "{ " + ", ".join(f"{key} = {_toml(one)}" for key, one in value.items()) + " }"
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")


def add_command(
    command: Sequence[str], address: str = "", token: str = "", env: Mapping[str, str] | None = None
) -> str:
    """The command that adds the server to Claude Code. Without a token, Claude Code reads it from the variable."""
    words = ["claude", "mcp", "add", "--scope", "user"]
    if not address:
        variables = [word for name, value in (env or {}).items() for word in ("--env", f"{name}={value}")]
        return shell_line(*words, NAME, *variables, "--", *command)
    header = f"Authorization: Bearer {token or TOKENS['claude-code']}"
    return shell_line(*words, "--transport", "http", NAME, address, "--header", header)
