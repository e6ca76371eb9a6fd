"""`co add` and `co source refresh` for web pages."""

from __future__ import annotations

import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from tests.command import Co
from tests.folder import Vault
from tests.sources.web_server import Asked, WebServer, Wire, article

OAKS = article("Oaks", "Oaks live for centuries and feed hundreds of kinds of insects.")


def test_a_page_is_added_and_found(co: Co, vault: Vault, server: WebServer) -> None:
    url = server.page("/oaks", OAKS)

    ran = co("add", url, "--tag", "trees")

    assert (ran.code, ran.out, ran.err) == (0, f"{url}  created article:oaks\nin the vault {vault.root}\n", "")
    assert "tags: [trees]\nprovenance: web\n" in vault.read("articles/oaks.md")
    assert "article:oaks" in co("search", "insects", "--no-sync").out
    assert server.asked[0].headers["user-agent"].startswith("co-cli/")
    assert [(row["source"], row["notes"]) for row in co("source", "list", "--json").json] == [("article", 1)]


def test_by_default_a_page_inside_is_refused_on_one_line(
    co: Co, vault: Vault, server: WebServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    url = server.page("/oaks", OAKS)
    monkeypatch.delenv("CO_WEB_ALLOW")

    ran = co("add", url)

    assert (ran.code, ran.out) == (2, "")
    assert ran.err.count("\n") == 1
    assert "this machine's own address; only public addresses are fetched (the setting web_allow" in ran.err
    assert server.accepted == 0
    assert vault.notes() == []


def test_each_result_is_printed_and_the_worst_one_decides_the_exit_code(co: Co, server: WebServer) -> None:
    good = server.page("/oaks", OAKS)
    busy = server.page("/busy", "x", status="503 Busy")

    ran = co("add", good, server.url + "/nowhere")
    assert (ran.code, ran.err) == (1, f"missing: {server.url}/nowhere: there is no such page (404)\n")

    ran = co("add", good, "ftp://example.org/x")
    assert (ran.code, ran.out) == (
        2,
        f"{good}  skipped article:oaks: saved already; `co source refresh` fetches it again\n",
    )
    assert ran.err == "failed: ftp://example.org/x: only http:// and https:// pages can be fetched\n"

    ran = co("add", "ftp://example.org/x", busy)
    assert ran.code == 3
    assert "the server is busy (503)" in ran.err


def test_mistakes_are_one_line_and_nothing_is_fetched(co: Co, vault: Vault, home: Path) -> None:
    (home / "file.md").write_text("Text.")
    expected = {
        ("add",): "missing URL|PATH",
        ("add", "-"): "co note article add -",
        ("add", "example.org/guide"): "no such file or folder; the address of a web page begins with https://",
        ("add", ""): "an empty name: there is no such file",
        ("add", "file.md", "--tag", "x"): "--tag: only for web pages",
        ("add", "file.md", "https://example.org", "--name", "x"): "--name: only for files and folders",
        ("add", "http://127.0.0.1:9/", "--on-conflict", "merge"): "not 'merge'",
        ("source", "refresh"): "or give --all",
        ("source", "refresh", "article:x", "--all"): "--all alone",
        ("source", "refresh", "article:nowhere"): "no note",
        ("source", "refresh", "http://127.0.0.1:9/"): "is not saved here",
    }

    ran = {arguments: co(*arguments) for arguments in expected}

    assert [a for a, one in ran.items() if (one.code, one.out, one.err.count("\n")) != (2, "", 1)] == []
    assert {a: one.err for a, one in ran.items() if expected[a] not in one.err} == {}
    assert vault.notes() == []


def test_escape_sequences_of_a_page_are_not_kept(co: Co, vault: Vault, server: WebServer) -> None:
    url = server.page("/", article("Red \x1b[31m oaks", "Oaks \x1b]0;title\x07 live &#27;[2J long and die slowly."))

    ran = co("add", url)

    assert ran.code == 0
    assert not set("\x1b\x07\x9b") & set(ran.out + vault.read("articles/red-31m-oaks.md"))


@pytest.mark.medium
@pytest.mark.skipif(sys.platform == "win32", reason="there is no SIGINT to send there")
def test_ctrl_c_keeps_what_was_done(co: Co, vault: Vault, server: WebServer, home: Path) -> None:
    reached = threading.Event()

    def hang(wire: Wire, _: Asked) -> None:
        reached.set()
        wire.recv(1)

    server.routes["/hangs"] = hang
    first = server.page("/oaks", OAKS)
    command = [sys.executable, "-m", "co_cli", "add", first, server.url + "/hangs", server.url + "/never"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=home) as running:
        assert reached.wait(120)
        running.send_signal(signal.SIGINT)
        out, err = running.communicate(timeout=120)

    assert (running.returncode, out) == (130, f"{first}  created article:oaks\n")
    told = [line for line in err.splitlines() if not line.startswith("adding ")]  # how far it is, on a slow machine
    assert told == ["co: stopped; nothing is broken, run it again to finish"]
    assert vault.notes() == ["articles/oaks.md"]
    assert [asked.target for asked in server.asked] == ["/oaks", "/hangs"]
