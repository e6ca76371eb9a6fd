"""`co mcp --http` as a process: token, Host and Origin checks, limits, and a clean end."""

from __future__ import annotations

import contextlib
import json
import signal
import socket
import sys
from collections.abc import Iterator
from typing import Any

import httpx2
import pytest

from co_cli.http.http_server import STRANGERS
from tests.command import Co
from tests.mcp.talking import HALF_A_CHARACTER, TOKEN, Place, http_server

PING = {"jsonrpc": "2.0", "id": 1, "method": "ping"}
QUICK: dict[str, Any] = {"timeout": 60, "verify": False}
"""Loading certificates takes longer than the request."""
GOOD = {"Authorization": f"Bearer {TOKEN}", "Accept": "application/json, text/event-stream"}


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with http_server(Place(tmp_path_factory.mktemp("http")), "--allow-host", "notes.example") as (_, address):
        yield address


def post(address: str, body: Any = PING, **headers: str) -> httpx2.Response:
    sent = body if isinstance(body, bytes) else json.dumps(body).encode()
    return httpx2.post(address, content=sent, headers={"Content-Type": "application/json", **headers}, **QUICK)


def connect(address: str, data: bytes) -> socket.socket:
    connection = socket.create_connection(("127.0.0.1", httpx2.URL(address).port or 0), timeout=60)
    connection.sendall(data)
    return connection


def test_a_request_without_the_token_is_refused(address: str) -> None:
    for token in ("", "Bearer", "Bearer wrong", f"Bearer {TOKEN}x", f"Basic {TOKEN}", TOKEN):
        answer = post(address, **{**GOOD, "Authorization": token})

        assert answer.status_code == 401, token
        assert answer.headers["www-authenticate"].startswith("Bearer ")
        assert "result" not in answer.text


def test_foreign_hosts_and_origins_are_refused_even_with_the_token(address: str) -> None:
    port = str(httpx2.URL(address).port)
    for headers, status in (
        ({}, 200),
        ({"Host": "localhost:PORT"}, 200),
        ({"Host": "[::1]:PORT"}, 200),
        ({"Host": "notes.example"}, 200),
        ({"Host": "notes.example:8443", "Origin": "https://notes.example:8443"}, 200),
        ({"Origin": "http://127.0.0.1:PORT"}, 200),
        ({"Origin": "https://evil.example"}, 403),
        ({"Origin": "null"}, 403),
        ({"Origin": "http://127.0.0.1:3000"}, 403),
        ({"Origin": "http://127.0.0.1:PORT.evil.example"}, 403),
        ({"Host": "evil.example:PORT"}, 421),
        ({"Host": "evil.example:PORT", "Origin": "http://evil.example:PORT"}, 421),
        ({"Host": "localhost.evil.example:PORT"}, 421),
        ({"Host": "127.0.0.1:9999"}, 421),
        ({"Host": "notes.example.evil.example"}, 421),
    ):
        sent = {name: value.replace("PORT", port) for name, value in headers.items()}
        for protocol in ("2025-11-25", "2026-07-28"):
            answer = post(address, **GOOD, **{"MCP-Protocol-Version": protocol}, **sent)

            bare_ping = protocol == "2026-07-28" and status == 200  # past the checks, and unknown there
            assert answer.status_code == (400 if bare_ping else status), (headers, protocol)


def test_a_body_that_is_too_large_is_refused_whether_or_not_it_declares_its_length(address: str) -> None:
    for body in (b" " * 5_000_000, (b" " * 100_000 for _ in range(50))):
        try:
            answer = httpx2.post(address, content=body, headers=GOOD, **QUICK)
        except httpx2.TransportError:
            continue  # the server closed the connection before everything was sent
        assert answer.status_code == 413
    assert post(address, b"no json", **GOOD).status_code == 400
    assert post(address, **GOOD).json()["result"] == {}


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no signals to send")
def test_a_generated_token_is_printed_and_works_until_a_signal(place: Place) -> None:
    with http_server(place, CO_MCP_TOKEN="") as (process, address):
        assert process.stderr is not None
        printed = [process.stderr.readline() for _ in range(2)]
        token = printed[1].split("Bearer ")[1].strip().rstrip("'")
        assert post(address, **{**GOOD, "Authorization": f"Bearer {token}"}).status_code == 200
        assert post(address, **GOOD).status_code == 401
        with connect(address, b"\x00 no request\r\n\r\n") as stranger:
            assert stranger.recv(12) == b"HTTP/1.1 400"  # and not a line on stderr, which nobody may read

        code, out, err = process.end(signal.SIGINT)

    assert (code, out, err) == (0, "", "")
    assert "claude mcp add" in printed[1]
    assert address in printed[1]
    assert token not in str(process.args)


@pytest.mark.parametrize("half", [b"\\ud83e", b"\xed\xa0\xbe"], ids=["escaped", "as bytes"])
def test_half_an_emoji_is_an_error_with_the_id_of_the_request(address: str, half: bytes) -> None:
    arguments = b'{"content": "Half an otter %s swims.", "title": "Half"}' % half
    call = b'{"jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": {"name": "save_memory", "arguments": %s}}'
    recall = b'{"name": "recall_memory", "arguments": {"query": "otter"}}'

    answer = post(address, call % arguments, **GOOD)
    wrong = post(address, b'{"jsonrpc": "2.0", "id": 8, "method": "tools/%s", "params": {}}' % half, **GOOD)
    found = post(address, b'{"jsonrpc": "2.0", "id": 9, "method": "tools/call", "params": %s}' % recall, **GOOD)

    error = {"code": -32602, "message": f"tools/call: {HALF_A_CHARACTER}"}
    assert answer.json() == {"jsonrpc": "2.0", "id": 7, "error": error}
    assert (wrong.json()["id"], "error" in wrong.json()) == (8, True)
    assert "Half an otter" not in found.text


def test_connections_without_the_token_lock_nobody_out(address: str) -> None:
    half = b"POST /mcp HTTP/1.1\r\nHost: localhost\r\n"
    with contextlib.ExitStack() as strangers:
        for number in range(STRANGERS + 40):
            strangers.enter_context(connect(address, half if number % 2 else b""))

        assert post(address, **GOOD).status_code == 200
        assert post(address).status_code == 401


def test_a_weak_token_is_refused(co: Co, monkeypatch: pytest.MonkeyPatch) -> None:
    for token in ("short", "with spaces in the middle of it", "ünïcödé-is-no-good-in-a-header"):
        monkeypatch.setenv("CO_MCP_TOKEN", token)

        ran = co("mcp", "--http")

        assert (ran.code, ran.out) == (2, ""), token
        assert "token_urlsafe" in ran.err


def test_the_server_accepts_no_web_socket_and_does_not_name_its_software(address: str) -> None:
    upgrade = {"Connection": "Upgrade", "Upgrade": "websocket", "Sec-WebSocket-Version": "13"}
    asked = httpx2.get(address, headers={**GOOD, **upgrade, "Sec-WebSocket-Key": "MDEyMzQ1Njc4OWFiY2RlZg=="}, **QUICK)

    assert asked.status_code == 405
    for answer in (asked, post(address, **GOOD), post(address)):
        assert "server" not in answer.headers
