"""The file that lists MCP servers: what is read from it, and what is refused with the cure."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from co_cli.agent.loading_servers import McpServer, read_servers
from co_cli.errors import SettingsError


def written(folder: Path, content: Any) -> str:
    file = folder / "servers.json"
    file.write_text(content if isinstance(content, str) else json.dumps(content), "utf-8")
    return str(file)


def test_servers_are_read_in_the_layout_that_clients_share(tmp_path: Path) -> None:
    github = {
        "type": "stdio",
        "command": "~/bin/github-mcp",
        "args": ["stdio", "--host=${HOST:-github.com}"],
        "env": {"GITHUB_TOKEN": "${MY_TOKEN}"},
        "cwd": "work",
        "autoApprove": ["anything that other programs want"],
    }
    wiki = {
        "url": "https://wiki.example.org/mcp",
        "headers": {"Authorization": "Bearer ${MY_TOKEN}"},
        "tools": ["read"],
    }
    off = {"command": "off", "disabled": True}
    file = written(tmp_path, {"mcpServers": {"github": github, "wiki": wiki, "off": off}})

    read = read_servers(file, {"MY_TOKEN": "secret", "HOST": ""})

    home = str(Path.home())
    assert read == (
        McpServer(
            "github",
            f"{home}/bin/github-mcp",
            ("stdio", "--host=github.com"),
            {"GITHUB_TOKEN": "secret"},
            f"{tmp_path}/work",
        ),
        McpServer(
            "wiki",
            url="https://wiki.example.org/mcp",
            headers={"Authorization": "Bearer secret"},
            tools=("read",),
        ),
    )
    assert read[0].tools is None


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("{", ":1: not valid JSON: Expecting property name"),
        ("[]", ': no MCP servers in it; it looks like {"mcpServers"'),
        ({"mcpServers": {}}, ": no MCP servers in it"),
        ({"servers": {"x": {"command": "x"}}}, ": no MCP servers in it"),
        ({"mcpServers": {"x": "command"}}, ": server 'x': an object such as"),
        ({"mcpServers": {"x y": {"command": "x"}}}, ": server 'x y': a name has letters"),
        ({"mcpServers": {"x": {}}}, ": server 'x': it needs either a command or a url"),
        ({"mcpServers": {"x": {"command": "x", "url": "https://x"}}}, ": server 'x': it needs either"),
        ({"mcpServers": {"x": {"command": "x", "arg": []}}}, ": server 'x': unknown key 'arg': did you mean args?"),
        ({"mcpServers": {"x": {"command": "x", "args": "y"}}}, ": server 'x': args is a list of texts"),
        ({"mcpServers": {"x": {"command": "x", "args": [1]}}}, ": server 'x': args is a text, in quotation marks"),
        ({"mcpServers": {"x": {"command": "x", "env": ["A=1"]}}}, ": server 'x': env is an object of texts"),
        ({"mcpServers": {"x": {"command": "x", "env": {"A": 4711}}}}, ": server 'x': env.A is a text"),
        ({"mcpServers": {"x": {"command": ["x"]}}}, ": server 'x': command is a text"),
        ({"mcpServers": {"x": {"url": "file:///etc"}}}, ": server 'x': its url begins with http://"),
        ({"mcpServers": {"x": {"url": "https://x", "type": "sse"}}}, ": server 'x': its type is stdio or http"),
        (
            {"mcpServers": {"x": {"command": "${NOT_SET}"}}},
            "wants the variable NOT_SET, which is not set: export NOT_SET",
        ),
    ],
)
def test_a_mistake_is_one_line_with_file_and_server(tmp_path: Path, content: Any, words: str) -> None:
    file = written(tmp_path, content)

    with pytest.raises(SettingsError) as refused:
        read_servers(file, {})

    assert str(refused.value).startswith(file)
    assert words in str(refused.value)
    assert "\n" not in str(refused.value)
    assert "4711" not in str(refused.value)


def test_a_file_that_is_not_there_names_the_setting(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match=r"nowhere\.json: cannot be read: No such file .*loading_servers"):
        read_servers(str(tmp_path / "nowhere.json"))


def test_a_file_that_is_not_utf_8_says_so(tmp_path: Path) -> None:
    (tmp_path / "servers.json").write_bytes(b'{"mcpServers": {"\xff": {}}}')

    with pytest.raises(SettingsError, match="not UTF-8"):
        read_servers(str(tmp_path / "servers.json"))


GUIDE = Path(__file__).resolve().parents[2] / "docs" / "guides" / "loading.md"


@pytest.mark.skipif(not GUIDE.exists(), reason="an installed package has no docs beside it")
def test_the_example_of_the_guide_is_read(tmp_path: Path) -> None:
    blocks = re.findall(r"^```json\n(.*?)^```", GUIDE.read_text("utf-8"), re.MULTILINE | re.DOTALL)
    tokens = {"GITHUB_TOKEN": "one", "WIKI_TOKEN": "two"}

    servers = [server for block in blocks for server in read_servers(written(tmp_path, block), tokens)]

    assert [server.name for server in servers] == ["github", "wiki"]
    assert servers[1].headers == {"Authorization": "Bearer two"}
