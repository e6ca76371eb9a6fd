"""Add and refresh a web page with a loading agent: a model over HTTP, an MCP server over stdin and stdout."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from pydantic_ai import models

from tests.chat_server import HOLD, ChatServer, Turn, calls, fails, text
from tests.command import Co
from tests.folder import Vault
from tests.sources.web_server import WebServer, article

SERVER = Path(__file__).with_name("library_server.py")
LIBRARY = "https://library.example.org"
OAKS = article("Oaks", "Oaks live for centuries and feed hundreds of kinds of insects.")


@pytest.fixture
def model(monkeypatch: pytest.MonkeyPatch) -> Iterator[ChatServer]:
    """A server of ours that speaks as a model's would: the only one that may be asked."""
    monkeypatch.setattr(models, "ALLOW_MODEL_REQUESTS", True)
    with ChatServer() as server:
        monkeypatch.setenv("OLLAMA_BASE_URL", server.url)
        yield server


@pytest.fixture
def marks(tmp_path: Path, home: Path) -> Path:
    """The person's own settings name a model and a file of servers, which lies beside them."""
    marks = tmp_path / "marks"
    marks.mkdir()
    settings = home / ".config" / "co-cli"
    settings.mkdir(parents=True)
    (settings / "settings.toml").write_text('loading_model = "qwen3"\nloading_servers = "servers.json"\n')
    library = {"command": sys.executable, "args": [str(SERVER), str(marks)], "env": {"LIBRARY_TOKEN": "${MY_TOKEN:-t}"}}
    (settings / "servers.json").write_text(json.dumps({"mcpServers": {"library": library}}))
    return marks


def read(name: str) -> Turn:
    return calls(("library__read_page", {"name": name}))


def accept() -> Turn:
    return calls(("accept", {"content": 1}))


@pytest.mark.slow
def test_a_document_behind_a_tool_is_added_found_and_refreshed(
    co: Co, vault: Vault, model: ChatServer, server: WebServer, marks: Path
) -> None:
    oaks = server.page("/oaks", OAKS)
    fix = "give the token of `library` access to Nowhere"
    model.turns = [
        *(read("Mooring"), accept()),
        *(calls(("use_http", {"reason": "an ordinary page"})),),
        *(read("Nowhere"), calls(("fail", {"reason": "the library says 404", "fix": fix}))),
    ]

    ran = co(
        "add", f"{LIBRARY}/Mooring", oaks, f"{LIBRARY}/Nowhere", "--tag", "boats", "--prompt-addition", "Be quick."
    )

    added = f"in the vault {vault.root}\n"
    assert ran.out == f"{LIBRARY}/Mooring  created article:mooring\n{oaks}  created article:oaks\n{added}"
    assert ran.err.splitlines()[-1] == f"failed: {LIBRARY}/Nowhere: the library says 404; {fix}"
    assert ran.code == 3
    note = vault.read("articles/mooring.md")
    assert f"provenance: web\nsource_url: {LIBRARY}/Mooring\n" in note
    assert "fetched_with: library/read_page\n" in note
    assert note.endswith("The very last words.\n")
    assert note.count("Rope is rope.") == 900
    assert len(json.dumps(model.requests)) < 40_000
    assert max(json.dumps(request).count("Rope is rope.") for request in model.requests) < 200
    assert "Be quick." in model.said("system")
    assert (marks / "token").read_text() == "t"
    assert "article:mooring" in co("search", "the very last words", "--no-sync").out

    (marks / "Mooring.md").write_text("# Mooring\n\nUse two short lines.")
    model.play(read("Mooring"), accept())

    ran = co("source", "refresh", "--all")

    assert ran.code == 0
    assert f"{LIBRARY}/Mooring  updated article:mooring\n" in ran.out
    assert f"{oaks}  unchanged article:oaks\n" in ran.out
    assert len(model.requests) == 2  # the page that came by plain HTTP was nothing to ask about
    assert "Last time, library/read_page returned it." in model.said("user")
    assert vault.read("articles/mooring.md").endswith("Use two short lines.\n")


@pytest.mark.slow
@pytest.mark.medium
def test_plain_http_replaces_a_broken_loading_agent_and_says_so(
    co: Co, model: ChatServer, server: WebServer, marks: Path, home: Path
) -> None:
    settings = home / ".config" / "co-cli"
    model.turns = [fails(404)]
    oaks, elms = server.page("/oaks", OAKS), server.page("/elms", OAKS.replace("Oaks", "Elms"))

    ran = co("add", oaks)

    assert ran.code == 0
    why = "because the loading agent failed: Ollama does not have qwen3: `ollama pull qwen3`"
    assert ran.out.startswith(f"{oaks}  created article:oaks: by plain HTTP, {why}")
    assert ran.out.count("\n") == 2, "one line for it, and the vault"

    (settings / "servers.json").write_text('{"mcpServers": {"docs": {"command": "/nowhere/docs-mcp"}}}')
    row = co("add", elms, "--json").json[0]

    assert (row["outcome"], row["ref"]) == ("created", "article:elms")
    assert row["detail"] == (
        "by plain HTTP, because the MCP server docs cannot be started: "
        "[Errno 2] No such file or directory: '/nowhere/docs-mcp'"
    )


@pytest.mark.medium
@pytest.mark.usefixtures("marks")
def test_a_wrong_configuration_is_one_line_and_nothing_is_fetched(
    co: Co, vault: Vault, home: Path, server: WebServer
) -> None:
    folder = home / ".config" / "co-cli"
    for file, content, words in (
        ("servers.json", "{", "servers.json: not a JSON list of MCP servers"),
        ("servers.json", None, "servers.json: cannot be read: No such file"),
        ("settings.toml", 'loading_model = "qwen3"', "loading_model is set but loading_servers is not: set both"),
        ("settings.toml", 'loading_servers = "servers.json"', "loading_servers is set but loading_model is not"),
    ):
        (folder / file).unlink()
        if content is not None:
            (folder / file).write_text(content)

        ran = co("add", server.page("/oaks", OAKS))

        assert (ran.code, ran.out, ran.err.count("\n")) == (2, "", 1)
        assert words in ran.err
    assert server.asked == []
    assert vault.notes() == []


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="there is no SIGINT to send there")
def test_ctrl_c_ends_the_servers_too(co: Co, vault: Vault, model: ChatServer, marks: Path) -> None:
    model.turns = [text("Let me think ", HOLD)]
    command = [sys.executable, "-m", "co_cli", "add", f"{LIBRARY}/Mooring"]
    pipes: dict[str, Any] = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    with subprocess.Popen(command, cwd=co.folder, **pipes) as running:
        assert model.held.wait(120)
        server = int((marks / "process").read_text())
        running.send_signal(signal.SIGINT)
        out, err = running.communicate(timeout=120)

    assert (running.returncode, out) == (130, "")
    assert err.splitlines()[-1] == "co: stopped; nothing is broken, run it again to finish"
    assert vault.notes() == []
    with suppress(ProcessLookupError):
        os.kill(server, 0)
        pytest.fail("the MCP server still runs")
