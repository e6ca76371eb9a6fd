"""What `co serve` writes to stderr: a line for each request, whole, and without anything that a person wrote."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import httpx2
import pytest

from co_cli.entrance.knowledge_base import KnowledgeBase
from co_cli.server.routes import API
from tests.folder import Vault
from tests.postgres import kill_server, own_server, start_server
from tests.server.browser import PATIENCE, wait_for
from tests.server.conftest import token
from tests.server.processes import QUIETLY, serving
from tests.vault.team.servers import Team

pty = pytest.importorskip("pty", reason="Windows has no such terminals")
ZEBRA = "zebra"
"""In every query and note of these tests."""


BROKEN = """
from co_cli.server import routes, search_api
def broken(kb): raise ValueError("a bug")
next(one for one in routes.ROUTES if one.path == "/filters").function = broken
"""


@pytest.fixture
def environment(vault: Vault, data_dir: Path) -> dict[str, str]:
    vault.write("memories/stripes.md", f"The {ZEBRA} lives in the cellar.")
    return {"CO_VAULT": str(vault.root), "CO_DATA_DIR": str(data_dir)}


@pytest.mark.slow
@pytest.mark.medium
def test_each_request_is_a_json_line_that_says_who_asked_what_route_and_not_what_was_asked(
    environment: dict[str, str], kb: KnowledgeBase
) -> None:
    secret = token(kb)
    with serving(environment) as server, server.client(secret) as asking:
        found = asking.get(f"{API}/search", params={"q": f"where is the {ZEBRA}"}, headers={"X-Request-Id": "abc-1.2"})
        assert (found.status_code, found.headers["x-request-id"]) == (200, "abc-1.2")
        saved = asking.post(
            f"{API}/notes", json={"content": f"A {ZEBRA} eats grass."}, headers={"X-Request-Id": "no\tid"}
        )
        made = saved.headers["x-request-id"]
        assert made != "no\tid"
        assert len(made) == 16
        assert asking.get(f"{API}/notes/{saved.json()['ref']}").status_code == 200
        assert asking.get("/livez").text == "ok\n"

        line = server.line(request="abc-1.2")
        about = {name: line[name] for name in ("level", "token", "method", "route", "status")}
        assert about == {
            "level": "info",
            "token": "mara",
            "method": "GET",
            "route": f"{API}/search",
            "status": 200,
        }
        assert line["ms"] > 0
        assert line["at"].endswith("Z")
        assert server.line(request=made)["route"] == f"{API}/notes"
        assert server.line(method="GET", route=f"{API}/notes/{{ref:any}}")["status"] == 200
        assert [line for line in server.lines if line.get("route") == "/livez"] == []
        for private in (ZEBRA, secret, "code="):
            assert private not in server.text


@pytest.mark.medium
def test_what_clients_do_wrong_is_a_status_and_never_a_traceback(
    environment: dict[str, str], kb: KnowledgeBase
) -> None:
    secret = token(kb)
    with serving(environment) as server, server.client(secret) as asking, server.client() as stranger:
        assert asking.get(f"{API}/search", params={"q": ZEBRA, "limit": "many"}).status_code == 400
        assert asking.post(f"{API}/notes", content=b"{").status_code == 400
        assert asking.get(f"{API}/notes/memory:{ZEBRA}").status_code == 404
        assert asking.post("/mcp", content=b"[").status_code == 400
        assert stranger.get(f"{API}/search", params={"q": ZEBRA}).status_code == 401
        assert stranger.post(f"{API}/session", json={"code": ZEBRA}).status_code == 403
        assert asking.get("/metrics").status_code == 200
        server.line(route="/metrics")
        assert [line["status"] for line in server.lines[1:]] == [400, 400, 404, 400, 401, 403, 200]
        refused = server.line(status=401)
        assert (refused["token"], refused["route"], refused["method"]) == (None, None, None)
        assert server.traces() == []
        assert ZEBRA not in server.text


@pytest.mark.slow
def test_a_client_that_goes_away_is_a_line_and_never_a_traceback(
    environment: dict[str, str], kb: KnowledgeBase
) -> None:
    secret = token(kb)
    with serving(environment) as server:
        host = server.url.removeprefix("http://")
        head = f"Host: {host}\r\nAuthorization: Bearer {secret}\r\n"
        half = f"POST {API}/notes HTTP/1.1\r\n{head}Content-Length: 100\r\n\r\n{{"
        asked = f"GET {API}/search?q={ZEBRA} HTTP/1.1\r\n{head}\r\n"
        listening = f"GET {API}/events HTTP/1.1\r\n{head}\r\n"
        for sent, answer in ((half, b""), (asked, b""), (listening, b": connected")):
            with socket.create_connection(host.split(":"), PATIENCE) as connection:
                connection.sendall(sent.encode())
                got = b""
                while answer not in got:
                    got += connection.recv(1_000)
        assert server.line(route=f"{API}/events")["status"] == 200
        wait_for(lambda: len(server.lines) == 4)
        assert server.line(status=499)["token"] == "mara"  # of the half; the search may have been answered already
        assert server.traces() == []


@pytest.mark.slow
@pytest.mark.medium
def test_a_bug_is_one_traceback_with_the_id_of_the_request(environment: dict[str, str], kb: KnowledgeBase) -> None:
    secret = token(kb)
    with serving(environment, BROKEN) as server, server.client(secret) as asking:
        answer = asking.get(f"{API}/filters", headers={"X-Request-Id": "the-bug"})
        assert (answer.status_code, answer.json()["error"]["kind"]) == (500, "crash")
        assert server.line(request="the-bug", status=500)["level"] == "info"
        (line,) = server.traces()
        assert (line["request"], line["level"], line["error"]) == ("the-bug", "error", "ValueError: a bug")
        assert line["trace"][-1].endswith("in broken")


@pytest.mark.slow
def test_signing_in_logs_neither_the_token_nor_a_code_and_a_terminal_shows_text(
    environment: dict[str, str], kb: KnowledgeBase
) -> None:
    secret = token(kb)
    with serving(environment) as server, server.client() as asking:
        assert asking.post(f"{API}/session", json={"code": secret}).status_code == 403
        assert server.line(method="POST", route=f"{API}/session")["status"] == 403
        assert secret not in server.text

    terminal, inside = pty.openpty()
    command = [sys.executable, "-m", "co_cli", "serve", "--port", "0"]
    with subprocess.Popen(command, env={**os.environ, **QUIETLY, **environment}, stderr=inside) as process:
        try:
            with os.fdopen(terminal, encoding="utf-8") as shown:
                where, code = shown.readline(), shown.readline().split()[5]
                assert where.startswith("co serve: ")
                url, _, code = code.partition("/#code=")
                signed_in = httpx2.post(f"{url}{API}/session", json={"code": code}, verify=False)
                assert signed_in.status_code == 200
                assert shown.readline().startswith(f"co serve: POST {API}/session 200 ms=")
                process.send_signal(signal.SIGINT)
                assert process.wait(PATIENCE) == 0
        finally:
            process.kill()


@pytest.mark.slow
def test_requests_are_answered_although_nobody_reads_the_log(environment: dict[str, str]) -> None:
    command = [sys.executable, "-m", "co_cli", "serve", "--port", "0"]
    with subprocess.Popen(command, env={**os.environ, **QUIETLY, **environment}, stderr=subprocess.PIPE) as process:
        try:
            assert process.stderr
            url = json.loads(process.stderr.readline())["url"]
            with httpx2.Client(base_url=url, verify=False, timeout=PATIENCE) as asking:
                assert {asking.get(f"{API}/session").status_code for _ in range(600)} == {401}
                assert all(process.stderr.readline() for _ in range(5))
                assert asking.get(f"{API}/session").status_code == 401
            process.send_signal(signal.SIGTERM)
            said = [json.loads(line)["text"] for line in process.stderr]
            assert process.wait(PATIENCE) == 0
            assert any("lines were left out" in text for text in said), said
        finally:
            process.kill()


@pytest.mark.slow
@pytest.mark.postgres
def test_a_database_that_is_killed_is_a_status_and_never_a_traceback(tmp_path: Path) -> None:
    with own_server() as (folder, address):
        team = Team(tmp_path, address)
        secret = token(team.server("one"))
        team.close()
        environment = {"CO_ENGINE": address, "CO_VAULT": str(tmp_path / "one"), "CO_DATA_DIR": str(tmp_path / "state")}
        with serving(environment) as server, server.client(secret) as asking:
            assert asking.get(f"{API}/search", params={"q": "oaks"}).status_code == 200
            kill_server(folder)
            assert asking.get(f"{API}/search", params={"q": "oaks"}).status_code == 503
            assert asking.post(f"{API}/notes", json={"content": "Elms like water."}).status_code == 503
            start_server(folder, "")
            wait_for(lambda: asking.get(f"{API}/search", params={"q": "oaks"}).status_code == 200)
            assert server.line(status=503)["level"] == "info"
            assert server.traces() == []


@pytest.mark.slow
@pytest.mark.postgres
def test_a_database_that_was_away_for_long_is_used_again_within_seconds(tmp_path: Path) -> None:
    with own_server() as (folder, address):
        team = Team(tmp_path, address)
        team.server("one").close()
        team.close()
        environment = {"CO_ENGINE": address, "CO_VAULT": str(tmp_path / "one"), "CO_DATA_DIR": str(tmp_path / "state")}
        with serving(environment) as server:

            def is_ready() -> bool:
                with server.client() as stranger:
                    return stranger.get("/readyz").status_code == 200

            wait_for(is_ready)
            kill_server(folder)
            back = time.monotonic() + 42
            wait_for(lambda: not is_ready() and time.monotonic() > back)
            start_server(folder, "")
            back = time.monotonic()
            wait_for(is_ready)
            assert time.monotonic() - back < 10
