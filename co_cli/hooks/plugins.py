"""The plugin for each client, as files: its hooks, the MCP server, and one short skill (`SKILL.md`).

The commands have absolute paths and no version: Codex asks again whether a hook is trusted if its command changes. They
end with `|| true`, because a client drops the prompt if an older co, which has no hooks, ends with 2.
"""

from __future__ import annotations

import json
import os
import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

NAME, MARKET = "co-memory", "co-local"
ABOUT = "Your own notes, recalled before each prompt and saved when you ask"
VERSION = "1.1.0"
"""Of the plugin's files. Clients copy them, so raise it when they change."""
SECONDS = 5
"""The client's limit for a hook, which has a shorter one of its own."""
EVENTS = ("SessionStart", "UserPromptSubmit", "Stop", "PreCompact", "SessionEnd")
GEMINI_EVENTS = ("SessionStart", "BeforeAgent", "AfterAgent", "PreCompress", "SessionEnd")
README = f"""\
# {NAME}

{ABOUT}. Written by `co setup`; `co setup CLIENT --undo` removes it. The hooks start `co hook`, which adds notes that
are about a prompt, calls no model, takes at most two seconds, and never stops a prompt. The MCP server `co` has the
tools to recall and save notes.
"""


class Started(NamedTuple):
    """How clients start co."""

    program: Sequence[str]
    data_dir: str
    vault: str | None
    """A vault that the user named; None: the project's, or the user's own."""
    env: Mapping[str, str]
    """For the MCP server. Hooks read theirs from the data folder."""

    @property
    def _places(self) -> list[str]:
        return ["--data-dir", self.data_dir, *(["--vault", self.vault] if self.vault else [])]

    def hook_words(self, client: str) -> list[str]:
        return [*self.program, "hook", client, *self._places]

    def hook(self, client: str) -> str:
        return f"{shlex.join(self.hook_words(client))} || true"

    def server(self, **more: Any) -> dict[str, Any]:
        words = [*self.program, "mcp", *self._places]
        return {"command": words[0], "args": words[1:], **({"env": dict(self.env)} if self.env else {}), **more}


def hooks_of(client: str, started: Started) -> dict[str, Any]:
    """The table of hooks, as clients have it in hooks.json and in their settings."""
    if client == "gemini":
        entry: dict[str, Any] = {"name": "co", "timeout": SECONDS * 1_000}
    else:
        entry = {"timeout": SECONDS}
    hook = {"type": "command", "command": started.hook(client), **entry}
    return {event: [{"hooks": [hook]}] for event in (GEMINI_EVENTS if client == "gemini" else EVENTS)}


def plugin_files(client: str, started: Started) -> dict[str, str]:
    """The files of a client's plugin by their paths; none for a client whose settings have it all."""
    inside = {"skills/memory/SKILL.md": _text("SKILL.md"), "README.md": README}
    inside["hooks/hooks.json"] = _json({"hooks": hooks_of(client, started)})
    about = {"name": NAME, "version": VERSION, "description": ABOUT}
    if client in ("gemini", "qwen"):
        extension = {**about, "mcpServers": {"co": started.server()}}
        return {**inside, f"{client}-extension.json": _json(extension)}
    if client == "claude-code":
        servers, folder, where = started.server(alwaysLoad=True), ".claude-plugin", ".claude-plugin"
        plugin: dict[str, Any] = {**about, "author": {"name": "co-cli"}, "license": "MIT"}
        entry: dict[str, Any] = {"name": NAME, "source": f"./plugins/{NAME}", "description": ABOUT}
        market: dict[str, Any] = {"name": MARKET, "owner": {"name": "co-cli"}, "metadata": {"description": ABOUT}}
    elif client == "codex":
        servers, folder, where = started.server(), ".codex-plugin", ".agents/plugins"
        parts = {"skills": "./skills/", "hooks": "./hooks/hooks.json", "mcpServers": "./.mcp.json"}
        plugin, market = {**about, **parts}, {"name": MARKET}
        policy = {"installation": "AVAILABLE", "authentication": "ON_INSTALL"}
        source = {"source": "local", "path": f"./plugins/{NAME}"}
        entry = {"name": NAME, "source": source, "policy": policy, "category": "Productivity"}
    elif client == "opencode":
        return {path: inside[path] for path in ("skills/memory/SKILL.md", "README.md")}
    else:
        return {}
    inside |= {".mcp.json": _json({"mcpServers": {"co": servers}}), f"{folder}/plugin.json": _json(plugin)}
    files = {f"plugins/{NAME}/{path}": text for path, text in inside.items()}
    return {**files, f"{where}/marketplace.json": _json({**market, "plugins": [entry]})}


def opencode_plugin(started: Started, folder: str) -> str:
    """opencode's own file: a plugin that asks `co hook`, and adds the server and the skill to the configuration.

    `folder` is where the files of `plugin_files` are.
    """
    server = started.server()
    local = {"type": "local", "command": [server["command"], *server["args"]], "enabled": True}
    local |= {"environment": server["env"]} if "env" in server else {}
    values = {"command": started.hook_words("opencode"), "server": local, "skills": os.path.join(folder, "skills")}
    return _text("opencode.js") % {name: json.dumps(value) for name, value in values.items()}


def hook_name(client: str) -> str:
    """VS Code and the Copilot CLI read the same files, so that they have one hook."""
    return "copilot" if client == "vscode" else client


def with_settings(client: str, file: str, settings: dict[str, Any], started: Started) -> dict[str, Any]:
    """A file of settings with our hooks or our server; whatever else is there stays."""
    settings = without_settings(client, settings)
    if "mcp" not in os.path.basename(file):
        hooks = {**settings.get("hooks", {})}
        entry = {"type": "command", "command": started.hook(hook_name(client)), "timeout": SECONDS}
        for event in (
            ("sessionStart", "beforeSubmitPrompt") if client == "cursor" else ("SessionStart", "UserPromptSubmit")
        ):
            hooks[event] = [*hooks.get(event, []), entry]
        return {"version": 1, **settings, "hooks": hooks}
    key = "servers" if client == "vscode" else "mcpServers"
    more: dict[str, Any] = {"vscode": {"type": "stdio"}, "copilot": {"type": "local", "tools": ["*"]}}.get(client, {})
    return {**settings, key: {**settings.get(key, {}), "co": started.server(**more)}}


def without_settings(client: str, settings: dict[str, Any]) -> dict[str, Any]:
    """The settings without what `with_settings` added, also in an older version."""
    found, tables = dict(settings), ("hooks", "mcpServers", "servers")
    if "hooks" in settings:
        hooks = {
            event: [entry for entry in entries if not _is_ours(hook_name(client), entry)]
            for event, entries in settings["hooks"].items()
        }
        found["hooks"] = {event: entries for event, entries in hooks.items() if entries}
    for key in tables[1:]:
        if key in settings:
            found[key] = {name: server for name, server in settings[key].items() if name != "co"}
    return {key: value for key, value in found.items() if value or key not in tables}


def _is_ours(client: str, entry: dict[str, Any]) -> bool:
    commands = [str(hook.get("command")) for hook in entry.get("hooks", [entry])]
    return len(commands) == 1 and f" hook {client} --data-dir " in commands[0] and commands[0].endswith(" || true")


def _json(value: Any) -> str:
    return json.dumps(value, indent=2, ensure_ascii=False) + "\n"


def _text(name: str) -> str:
    return (Path(__file__).parent / name).read_text("utf-8")
