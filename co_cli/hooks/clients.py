"""The coding agents that `co setup` knows: their programs, files and commands, and what each has of co."""

from __future__ import annotations

import glob
import json
import os
import re
import shlex
import shutil
import sys
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, cast

from co_cli.hooks.plugins import MARKET, NAME

PLUGIN = f"{NAME}@{MARKET}"
PROMPTS = ("UserPromptSubmit", "BeforeAgent", "beforeSubmitPrompt")
EDITORS = ("vscode", "cursor")
EXTENDED = ("gemini", "qwen")
"""Clients with extensions: Qwen Code began as a copy of Gemini CLI."""
OPENCODE_COMMAND = re.compile(r"^const COMMAND = (\[.*\])$", re.MULTILINE)


class Client(NamedTuple):
    """One coding agent. Paths are below its folder."""

    name: str
    title: str
    program: str
    home: Callable[[], str]
    add: Sequence[Sequence[str]] = ()
    """Commands that install the plugin; DIR is its folder."""
    remove: Sequence[Sequence[str]] = ()
    changed: Sequence[str] = ()
    """Files that these commands change."""
    cache: str = ""
    """The client's copy of the plugin, which it may keep."""
    made: Sequence[str] = ()
    """Folders that it makes for plugins, and leaves empty."""
    edits: Sequence[str] = ()
    """The files to edit or to write, for a client without such commands; the first one has the hooks."""
    memories: Sequence[str] = ()
    """The client's own memories, as patterns."""
    remark: str = ""
    """What the person must do."""

    @property
    def installed(self) -> bool:
        editor = self.name in EDITORS and os.path.isdir(self.home())  # its command need not be on the PATH
        return editor or shutil.which(self.program) is not None

    def path(self, *parts: str) -> str:
        return os.path.join(self.home(), *map(os.path.expanduser, parts))

    def hook_command(self) -> str:
        """The command of the prompt hook that this client has from us; empty if it has none."""
        for pattern in self._hook_files():
            for file in sorted(glob.glob(pattern), key=os.path.getmtime, reverse=True):
                found = _prompt_command(file)
                if found:
                    return found
        return ""

    def _hook_files(self) -> list[str]:
        if self.edits:
            return [self.path(self.edits[0])]
        if self.name in EXTENDED:
            return [self.path("extensions", NAME, "hooks", "hooks.json")]
        cache = self.path("plugins", "cache", MARKET, NAME)
        orphaned = glob.glob(os.path.join(cache, "*", ".orphaned_at"))
        return [] if orphaned else [os.path.join(cache, "*", "hooks", "hooks.json")]

    def own_memories(self, project: str) -> list[str]:
        """Files and folders with what the client remembers by itself, of the person and of a project."""
        patterns = [pattern if os.path.isabs(pattern) else self.path(pattern) for pattern in self.memories]
        found = [path for pattern in patterns for path in sorted(glob.glob(pattern))]
        names = {"claude-code": "CLAUDE.md", "gemini": "GEMINI.md", "qwen": "QWEN.md"}
        found.append(os.path.join(project, names.get(self.name, "AGENTS.md")))
        return [path for path in found if os.path.isfile(path) or (os.path.isdir(path) and os.listdir(path))]


def _home(variable: str, folder: str) -> Callable[[], str]:
    return lambda: os.environ.get(variable) or os.path.join(os.path.expanduser("~"), folder)


def _applications() -> str:
    """Where applications keep their settings."""
    home = os.path.expanduser("~")
    if sys.platform == "win32":
        return os.environ.get("APPDATA") or os.path.join(home, "AppData", "Roaming")
    if sys.platform == "darwin":
        return os.path.join(home, "Library", "Application Support")
    return os.environ.get("XDG_CONFIG_HOME") or os.path.join(home, ".config")


def _prompt_command(file: str) -> str:
    """The command with `co hook` that a file of hooks has for prompts."""
    try:
        with open(file, encoding="utf-8") as stream:
            text = stream.read()
        if words := OPENCODE_COMMAND.search(text):
            return f"{shlex.join(json.loads(words[1]))} || true"
        table = json.loads(text)["hooks"]
        entries = [entry for event in PROMPTS for entry in table.get(event, [])]
        commands = [str(hook.get("command", "")) for entry in entries for hook in entry.get("hooks", [entry])]
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return ""
    return next((command for command in commands if " hook " in command and command.endswith("|| true")), "")


CLIENTS = {
    client.name: client
    for client in (
        Client(
            "claude-code",
            "Claude Code",
            "claude",
            _home("CLAUDE_CONFIG_DIR", ".claude"),
            add=(("plugin", "marketplace", "add", "DIR"), ("plugin", "install", PLUGIN)),
            remove=(("plugin", "uninstall", PLUGIN), ("plugin", "marketplace", "remove", MARKET)),
            changed=("settings.json", "plugins/installed_plugins.json", "plugins/known_marketplaces.json"),
            cache=f"plugins/cache/{MARKET}",
            made=("plugins/marketplaces", "plugins/cache", "plugins"),
            memories=("CLAUDE.md", "projects/*/memory"),
        ),
        Client(
            "codex",
            "Codex",
            "codex",
            _home("CODEX_HOME", ".codex"),
            add=(("plugin", "marketplace", "add", "DIR"), ("plugin", "add", PLUGIN)),
            remove=(("plugin", "remove", PLUGIN), ("plugin", "marketplace", "remove", MARKET)),
            changed=("config.toml",),
            cache=f"plugins/cache/{MARKET}",
            made=("plugins/cache", "plugins"),
            memories=("AGENTS.md", "memories"),
            remark="Codex runs no hook before you trust it: open /hooks in Codex and trust those of co-memory. "
            "`codex exec` does not wait for MCP servers: with mcp_optional_startup_grace_ms = 5000 at the beginning of "
            "config.toml, its first request has our tools.",
        ),
        Client(
            "gemini",
            "Gemini CLI",
            "gemini",
            _home("GEMINI_CLI_HOME", ".gemini"),
            add=(("extensions", "install", "DIR", "--consent"),),
            remove=(("extensions", "uninstall", NAME),),
            changed=("trustedFolders.json", "extensions/extension-enablement.json", "extension_integrity.json"),
            made=("extensions",),
            memories=("GEMINI.md",),
        ),
        Client(
            "qwen",
            "Qwen Code",
            "qwen",
            _home("QWEN_HOME", ".qwen"),
            add=(("extensions", "install", "DIR", "--consent"),),
            remove=(("extensions", "uninstall", NAME),),
            changed=(
                "settings.json",
                "extensions/extension-enablement.json",
                "extension-store/state.json",
                "extension-store/state.previous.json",
            ),
            made=("extensions", "extension-store"),
            memories=("QWEN.md",),
        ),
        Client(
            "opencode",
            "opencode",
            "opencode",
            lambda: os.path.join(
                os.environ.get("XDG_CONFIG_HOME") or os.path.join(os.path.expanduser("~"), ".config"), "opencode"
            ),
            edits=(f"plugin/{NAME}.js",),
            made=("plugin",),
            memories=("AGENTS.md",),
        ),
        Client(
            "copilot",
            "GitHub Copilot CLI",
            "copilot",
            _home("COPILOT_HOME", ".copilot"),
            edits=(f"hooks/{NAME}.json", "mcp-config.json"),
            made=("hooks",),
            memories=("copilot-instructions.md",),
        ),
        Client(
            "vscode",
            "VS Code with GitHub Copilot",
            "code",
            lambda: os.path.join(_applications(), "Code", "User"),
            edits=(f"~/.copilot/hooks/{NAME}.json", "mcp.json"),
            made=("~/.copilot/hooks", "~/.copilot"),
            remark="VS Code asks whether it may start the server co. Some versions keep what hooks say from the model.",
        ),
        Client(
            "cursor",
            "Cursor",
            "cursor",
            lambda: os.path.join(os.path.expanduser("~"), ".cursor"),
            edits=("hooks.json", "mcp.json"),
            remark="Cursor asks once whether it may start the server co: open its settings, Tools & MCP.",
        ),
    )
}


def read_settings(file: str) -> dict[str, Any]:
    """A client's settings; empty if there are none. Raises ValueError."""
    try:
        with open(file, encoding="utf-8") as stream:
            found: object = json.load(stream)
    except FileNotFoundError:
        return {}
    if not isinstance(found, dict):
        raise ValueError("not a JSON object")
    return cast("dict[str, Any]", found)
