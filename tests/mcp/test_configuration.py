"""`co mcp --print-config`, the configurations in the docs, and docs/server.json for the MCP registry."""

from __future__ import annotations

import json
import os
import re
import shlex
import site
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml
from mcp import Client, StdioServerParameters

from co_cli import __version__
from co_cli.cli.mcp import HOST, PORT
from co_cli.cli.parsing import make_parser
from co_cli.ground.settings import SETTINGS
from tests.command import Co
from tests.folder import Vault
from tests.house.package import REPOSITORY
from tests.mcp.talking import connected


def server_in(config: dict[str, Any]) -> dict[str, Any]:
    (servers,) = (config[key] for key in ("mcpServers", "servers") if key in config)
    return servers["co"]


@pytest.mark.slow
def test_the_printed_command_serves_this_vault_from_any_folder(
    co: Co, vault: Vault, data_dir: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    vault.write("memories/oak.md", "Oaks live long.")
    vault.write("drafts/elm.md", "Elms get old, too.")
    monkeypatch.setenv("CO_KNOWLEDGE_EXCLUDE", "drafts/**")
    server = server_in(co("mcp", "--print-config", "claude-desktop", "--read-only").json)
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    monkeypatch.delenv("CO_KNOWLEDGE_EXCLUDE")
    variables = server.pop("env")
    parameters = StdioServerParameters(**server, cwd=elsewhere, env={"HOME": str(elsewhere), **variables})

    with connected(lambda: Client(parameters)) as talk:
        names = {tool.name for tool in talk.list_tools().tools}
        found = talk.call_tool("recall_memory", {"query": "how old do oaks get"})
        draft = talk.call_tool("search_knowledge", {"query": "elms"})

    assert names == {"recall_memory", "recall_article", "search_knowledge", "read_note", "list_memories"}
    assert '<note ref="memory:oak"' in found.content[0].text
    assert "Elms" not in draft.content[0].text
    assert (data_dir / "search.db").exists()
    assert variables["CO_KNOWLEDGE_EXCLUDE"] == "drafts/**"
    monkeypatch.setenv("CO_TEAM_VAULT", "team")
    monkeypatch.chdir(tmp_path)
    (tmp_path / "team").mkdir()
    assert f" --env CO_TEAM_VAULT={tmp_path}/team " in co("mcp", "--print-config", "claude-code").out


@pytest.mark.skipif(sys.prefix == sys.base_prefix, reason="needs the Python that this environment was made from")
def test_the_printed_command_finds_an_install_of_one_user_and_nothing_that_variables_name(
    home: Path, tmp_path: Path
) -> None:
    python = str(Path(sys.base_prefix, "bin", f"python3.{sys.version_info.minor}"))
    user = "import site; print(site.getusersitepackages())"
    packages = Path(subprocess.run([python, "-c", user], capture_output=True, text=True, check=True).stdout.strip())
    packages.mkdir(parents=True)
    assert packages.is_relative_to(home)
    (packages / "installed.pth").write_text(f"{REPOSITORY}\n{site.getsitepackages()[0]}\n")
    command = [python, "-m", "co_cli", "mcp", "--print-config", "claude-desktop"]
    printed = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, check=True).stdout
    server = server_in(json.loads(printed))
    for name in ("json.py", "usercustomize.py", f"{packages.relative_to(home / '.local')}/usercustomize.py"):
        (tmp_path / "clone" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "clone" / name).write_text("raise SystemExit('owned')")

    program = [server["command"], *server["args"][: server["args"].index("mcp")], "--version"]
    clone = str(tmp_path / "clone")
    env = {**os.environ, "PYTHONPATH": clone, "PYTHONUSERBASE": clone, "PYTHONHOME": clone}
    ran = subprocess.run(program, capture_output=True, text=True, cwd=clone, env=env, check=False)

    assert (ran.stdout, ran.stderr) == (f"co {__version__}\n", "")


def test_over_http_the_token_is_named_and_never_written(co: Co, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CO_MCP_TOKEN", "a-token-that-only-tests-know")
    names = {"claude-code": "${CO_MCP_TOKEN}", "cursor": "${env:CO_MCP_TOKEN}", "vscode": "${input:co-token}"}
    for client, name in names.items():
        ran = co("mcp", "--print-config", client, "--http", "--port", "9000", "--json")

        server = server_in(ran.json)
        assert (server["url"], server["headers"]) == ("http://127.0.0.1:9000/mcp", {"Authorization": f"Bearer {name}"})
        assert "only-tests-know" not in ran.out + ran.err
        if client == "vscode":
            assert (ran.json["inputs"][0]["id"], ran.json["inputs"][0]["password"]) == ("co-token", True)


NAMED = {
    "codex": "CO_MCP_TOKEN",
    "gemini": "Bearer $CO_MCP_TOKEN",
    "goose": "Bearer ${CO_MCP_TOKEN}",
    "opencode": "Bearer {env:CO_MCP_TOKEN}",
    "windsurf": "Bearer ${env:CO_MCP_TOKEN}",
}
"""How each client reads the token from a variable."""


@pytest.mark.parametrize("client", [*NAMED, "zed"])
def test_each_client_gets_the_format_of_its_file_and_the_token_by_name(
    co: Co, vault: Vault, client: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CO_MCP_TOKEN", "a-token-that-only-tests-know")
    monkeypatch.setenv("CO_KNOWLEDGE_EXCLUDE", 'drafts/**,"odd"')
    read = {"codex": tomllib.loads, "goose": yaml.safe_load}.get(client, json.loads)
    local = co("mcp", "--print-config", client)

    config = read(local.out)

    assert "config" in local.err or "settings" in local.err
    (servers,) = (value for value in config.values() if isinstance(value, dict))
    server = servers["co"]
    program = server.get("command", server.get("cmd"))
    words = program if isinstance(program, list) else [program, *server["args"]]
    variables = next(server[name] for name in ("env", "envs", "environment") if name in server)
    assert words[-5:-3] == ["mcp", "--vault"]
    assert words[-3] == str(vault.root)
    assert variables["CO_KNOWLEDGE_EXCLUDE"] == 'drafts/**,"odd"'
    over_http = co("mcp", "--print-config", client, "--http", "--port", "9000")
    assert "only-tests-know" not in over_http.out + over_http.err
    if client == "zed":
        assert (over_http.code, "leave out --http" in over_http.err) == (2, True)
        return
    (server,) = (value["co"] for value in read(over_http.out).values() if isinstance(value, dict))
    assert "http://127.0.0.1:9000/mcp" in server.values()
    assert NAMED[client] in (server.get("bearer_token_env_var"), server.get("headers", {}).get("Authorization"))


def test_the_command_for_claude_code_leaves_the_token_to_its_variable(co: Co) -> None:
    command = shlex.split(co("mcp", "--print-config", "claude-code", "--http").out)

    assert command[-1] == "Authorization: Bearer ${CO_MCP_TOKEN}"


def test_the_configurations_in_the_guide_are_valid() -> None:
    file = REPOSITORY / "docs/guides/mcp.md"
    if not file.exists():
        pytest.skip("an installed package has no docs beside it")
    shown = [json.loads(block) for block in re.findall(r"^```json\n(.*?)^```", file.read_text("utf-8"), re.M | re.S)]
    servers = [server_in(block) for block in shown if "mcpServers" in block or "servers" in block]

    assert servers
    for server in servers:
        if "url" in server:
            assert server["url"] == f"http://{HOST}:{PORT}/mcp"
            continue
        command = shlex.join([Path(server["command"]).name, *server["args"]])
        assert command.startswith(("co mcp", "python -I -m co_cli mcp"))
        make_parser("mcp").parse_args(shlex.split(command.partition(" mcp")[2]))


def test_the_registry_entry_matches_the_package() -> None:
    """A client runs `uvx co-cli mcp`, and the registry looks for the server's name in the README."""
    if not (REPOSITORY / "pyproject.toml").exists():
        pytest.skip("an installed package has no docs beside it")
    server = json.loads((REPOSITORY / "docs" / "server.json").read_text("utf-8"))
    project = tomllib.loads((REPOSITORY / "pyproject.toml").read_text("utf-8"))["project"]
    (package,) = server["packages"]

    assert package["identifier"] == project["name"]
    assert server["version"] == package["version"] == __version__
    assert len(server["description"]) <= 100, "the registry's limit"
    assert project["scripts"][package["identifier"]] == project["scripts"]["co"]
    assert [argument["value"] for argument in package["packageArguments"]] == ["mcp"]
    assert re.findall(r"<!-- mcp-name: (\S+) -->", (REPOSITORY / "README.md").read_text("utf-8")) == [server["name"]]
    known = {setting.environment for setting in SETTINGS} | {"CO_VAULT", "CO_DATA_DIR"}
    assert {variable["name"] for variable in package["environmentVariables"]} <= known
