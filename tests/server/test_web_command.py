"""`co web` as a process: it opens the browser, serves until Ctrl-C, and then ends at once."""

from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import httpx2
import pytest

from co_cli.cli.web import PORT
from co_cli.http.http_server import listen
from co_cli.server.web_app import kept_token
from tests.command import Co
from tests.folder import Vault
from tests.server.browser import PATIENCE, wait_for
from tests.server.processes import web_process

NEVER_GIVE_UP = """
from co_cli.http import http_server
from co_cli.cli.app import run
http_server.GRACE = 3600
run()
"""
"""`co`, except that an open stream would keep the server from ending for an hour, and not for five seconds."""


@pytest.mark.slow
@pytest.mark.medium
@pytest.mark.skipif(sys.platform == "win32", reason="a Windows process gets no SIGINT")
def test_it_opens_the_browser_and_ctrl_c_ends_it_although_a_page_listens(vault: Vault, co: Co, tmp_path: Path) -> None:
    vault.write("memories/oak.md", "Oaks live long.")
    opened, opener = tmp_path / "opened", tmp_path / "browser"
    opener.write_text(f'#!/bin/sh\necho "$1" > {opened}.new && mv {opened}.new {opened}\n')
    opener.chmod(0o755)
    busy = socket.socket()
    with suppress(OSError):  # else it is in use already
        busy.bind(("127.0.0.1", PORT))
        busy.listen()
    command = [sys.executable, "-c", NEVER_GIVE_UP, "web"]
    environment = {**os.environ, "BROWSER": f"{opener} %s"}
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env=environment) as process:
        assert process.stderr
        address = re.search(r"http://127\.0\.0\.1:(\d+)/#code=(\S+)", process.stderr.readline())
        assert address
        assert int(address[1]) != PORT
        assert wait_for(lambda: opened.exists() and opened.read_text().strip()) == address[0]
        url = f"http://127.0.0.1:{address[1]}/api/v1"
        with httpx2.Client(base_url=url, verify=False, timeout=PATIENCE) as client:
            token = client.post("/session", json={"code": address[2]}).json()["token"]
            assert "for another browser: http://127.0.0.1:" in process.stderr.readline()
            headers = {"Authorization": f"Bearer {token}"}
            session = client.get("/session", headers=headers).json()
            assert (session["vault"], session["notes"]) == (str(vault.root), 1)
            with client.stream("GET", "/events", headers=headers) as stream:
                lines = stream.iter_lines()
                assert next(lines).startswith(": connected")
                process.send_signal(signal.SIGINT)
                assert [line for line in lines if line] == []
        assert process.wait(PATIENCE) == 0
        assert process.stderr.read() == ""
    busy.close()


@pytest.mark.slow
@pytest.mark.medium
def test_a_folder_that_is_added_meanwhile_is_searched_by_the_next_request_until_it_is_removed(
    vault: Vault, co: Co, tmp_path: Path
) -> None:
    handbook = tmp_path / "handbook"
    handbook.mkdir()
    (handbook / "deploy.txt").write_text("The walrus goes to staging first.")
    with web_process() as (url, code), httpx2.Client(base_url=url, verify=False, timeout=PATIENCE) as client:
        token = client.post("/session", json={"code": code}).json()["token"]
        client.headers["Authorization"] = f"Bearer {token}"

        def found() -> list[str]:
            return [hit["ref"] for hit in client.get("/search", params={"q": "walrus staging"}).json()["hits"]]

        with client.stream("GET", "/events") as stream:
            lines = stream.iter_lines()
            for _ in range(2):
                assert found() == []
                assert co.process("add", str(handbook)).code == 0
                assert found() == ["folder:handbook/deploy.txt#L1-1"]
                assert "folder:handbook" in client.get("/filters").json()["sources"]
                assert next(line for line in lines if "folder:handbook is now watched" in line)

                assert co.process("source", "remove", "handbook").code == 0
                assert "folder:handbook" not in client.get("/filters").json()["sources"]
                assert next(line for line in lines if "folder:handbook is no longer watched" in line)


def test_a_port_that_is_in_use_is_one_line_with_the_fix(vault: Vault, co: Co) -> None:
    with listen("127.0.0.1", 0) as listening:
        ran = co("web", "--no-open", "--port", str(listening.getsockname()[1]))

    assert ran.code == 2
    assert "choose another with --port" in ran.err


@pytest.mark.slow
def test_a_browser_stays_signed_in_when_it_is_started_again_until_it_signs_out(vault: Vault, co: Co) -> None:
    vault.write("memories/oak.md", "Oaks live long.")
    with web_process() as (url, code):
        token = httpx2.post(f"{url}/session", json={"code": code}, verify=False).json()["token"]
    headers = {"Authorization": f"Bearer {token}"}
    with web_process() as (url, _):
        assert httpx2.get(f"{url}/session", headers=headers, verify=False).json()["notes"] == 1
    with web_process("--sign-out") as (url, _):
        assert httpx2.get(f"{url}/session", headers=headers, verify=False).status_code == 401


def test_the_kept_token_is_private_and_lasts_a_month(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = kept_token(str(tmp_path))
    assert kept_token(str(tmp_path)) == first
    if os.name == "posix":
        assert {file.stat().st_mode & 0o077 for file in tmp_path.glob("web-token.json")} == {0}
    monkeypatch.setattr("co_cli.server.web_app.KEPT_SECONDS", 0.0)
    assert kept_token(str(tmp_path)) != first
    (tmp_path / "web-token.json").write_text('{"token": "", "made": 1e18}')
    assert len(kept_token(str(tmp_path))) > 30


def test_a_port_that_is_in_use_is_named_with_the_way_out(co: Co) -> None:
    with listen("127.0.0.1", 0) as busy:
        port = busy.getsockname()[1]
        ran = co("web", "--no-open", "--port", str(port))

    assert (ran.code, ran.err) == (
        2,
        f"co: cannot listen on 127.0.0.1 port {port}: it is in use; choose another with --port\n",
    )
