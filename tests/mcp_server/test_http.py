"""`co mcp --http` as a process: a token, no foreign pages, and a clean end."""

from __future__ import annotations

import json
import signal
import socket
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx2
import pytest
from mcp import MCPError

from tests.command import Co
from tests.mcp_server.talking import LEGACY, TOKEN, Place, Process, http_server, over_http

PING = {"jsonrpc": "2.0", "id": 1, "method": "ping"}
WELCOME = {"Authorization": f"Bearer {TOKEN}", "Accept": "application/json, text/event-stream"}


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Process, str]]:
    with http_server(Place(tmp_path_factory.mktemp("http"))) as started:
        yield started


def post(address: str, body: Any = PING, **headers: str) -> httpx2.Response:
    sent = body if isinstance(body, bytes) else json.dumps(body).encode()
    return httpx2.post(address, content=sent, headers={"Content-Type": "application/json", **headers}, timeout=20)


def test_who_knows_the_token_is_answered(server: tuple[Process, str]) -> None:
    answer = post(server[1], **WELCOME)

    assert answer.status_code == 200
    assert answer.json()["result"] == {}


@pytest.mark.parametrize("told", ["", "Bearer wrong", f"Basic {TOKEN}"])
def test_no_token_and_a_wrong_one_are_refused_with_a_challenge(server: tuple[Process, str], told: str) -> None:
    answer = post(server[1], **{**WELCOME, "Authorization": told})

    assert answer.status_code == 401
    assert answer.headers["www-authenticate"].startswith("Bearer ")
    assert "result" not in answer.text


def test_a_page_of_another_origin_is_refused_even_with_the_token(server: tuple[Process, str]) -> None:
    assert post(server[1], **WELCOME, Origin="https://evil.example").status_code == 403


def test_a_name_pointed_at_this_machine_is_refused_even_with_the_token(server: tuple[Process, str]) -> None:
    port = httpx2.URL(server[1]).port

    assert post(server[1], **WELCOME, Host=f"evil.example:{port}").status_code == 421


def test_nothing_but_a_post_to_its_address_is_answered(server: tuple[Process, str]) -> None:
    address = server[1]

    assert httpx2.get(address, headers=WELCOME).status_code == 405
    assert httpx2.delete(address, headers=WELCOME).status_code == 405
    assert post(address.removesuffix("/mcp") + "/", **WELCOME).status_code == 404


def test_a_body_without_end_is_refused(server: tuple[Process, str]) -> None:
    assert post(server[1], b" " * 5_000_000, **WELCOME).status_code == 413
    assert post(server[1], b"no json", **WELCOME).status_code == 400
    assert post(server[1], **WELCOME).status_code == 200


def test_a_body_that_does_not_say_how_long_it_is_is_bounded_too(server: tuple[Process, str]) -> None:
    def endless() -> Iterator[bytes]:
        while True:
            yield b" " * 100_000

    try:
        answer = httpx2.post(server[1], content=endless(), headers=WELCOME, timeout=20)
    except httpx2.TransportError:
        pass  # the server hung up while it was still being sent to
    else:
        assert answer.status_code == 413
    assert post(server[1], **WELCOME).status_code == 200


def test_requests_are_bounded_in_number_and_wrong_tokens_keep_nobody_out(place: Place) -> None:
    with http_server(place) as (_, address), httpx2.Client(timeout=20) as client:
        wrong = {**WELCOME, "Authorization": "Bearer guess"}
        guessed = [client.post(address, json=PING, headers=wrong).status_code for _ in range(30)]
        assert client.post(address, json=PING, headers=WELCOME).status_code == 200

        assert set(guessed) == {401, 429}
        assert guessed[0] == 401


def test_a_client_of_the_older_protocol_is_answered_too(server: tuple[Process, str]) -> None:
    with over_http(server[1], LEGACY) as talk:
        assert talk.client.protocol_version == "2025-11-25"
        saved = talk.call_tool("save_memory", {"content": "Terns nest on the shingle."})

        assert saved.structured_content["outcome"] == "created"


def test_the_client_of_the_sdk_is_refused_without_the_token(server: tuple[Process, str]) -> None:
    refused = pytest.RaisesGroup(
        pytest.RaisesExc(MCPError, match="error response"), flatten_subgroups=True, allow_unwrapped=True
    )
    with refused, over_http(server[1], LEGACY, token="not-the-token"):
        pass


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no signals to send")
def test_a_made_token_is_shown_once_is_not_in_the_command_and_works_until_a_signal_ends_it(place: Place) -> None:
    with http_server(place, CO_MCP_TOKEN="") as (process, address):
        assert process.stderr is not None
        told = [process.stderr.readline() for _ in range(2)]
        token = told[1].split("Bearer ")[1].strip().rstrip('"')
        assert post(address, **{**WELCOME, "Authorization": f"Bearer {token}"}).status_code == 200
        assert post(address, **WELCOME).status_code == 401

        code, out, err = process.end(signal.SIGTERM)

    assert (code, out, err) == (0, "", "")
    assert "claude mcp add" in told[1]
    assert address in told[1]
    assert token not in str(process.args)


def test_a_port_that_is_taken_is_one_line(co: Co) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        ran = co("mcp", "--http", "--port", str(taken.getsockname()[1]))

    assert (ran.code, ran.out) == (2, "")
    assert "--port 0" in ran.err
    assert len(ran.err.splitlines()) == 1


def test_a_token_of_yours_is_asked_for_before_it_listens_to_the_network(co: Co, tmp_path: Path) -> None:
    file = tmp_path / "token"
    file.write_text("short")
    file.chmod(0o600)

    assert "set a token of yours" in co("mcp", "--http", "--host", "0.0.0.0").err
    assert "16 or more" in co("mcp", "--http", "--token-file", str(file)).err
