"""Who may speak to the HTTP door, and where its token comes from."""

from __future__ import annotations

import os
from collections import Counter
from pathlib import Path
from typing import Any

import anyio
import pytest

from co_cli.errors import InvalidInputError
from co_cli.mcp.access import (
    BURST,
    MOST_BYTES,
    MOST_UNREAD,
    RATE,
    WRONG_BURST,
    WRONG_RATE,
    Allowance,
    Guard,
    find_token,
    is_loopback,
)

TOKEN = "a-token-that-only-tests-know"
BEARER = f"Bearer {TOKEN}"
PATIENCE = 20.0
"""Seconds after which a guard that waits for ever has failed."""


async def nobody(*_: Any) -> None:
    raise AssertionError("a refused request reached the server")


def refusal(headers: dict[str, str], method: str = "POST", host: str = "127.0.0.1", names: tuple[str, ...] = ()) -> int:
    """The status that a request is refused with; 200 if it is welcome."""
    guard = Guard(nobody, TOKEN, host, 8765, names)
    refused = guard.refuse(method, {name: [value] for name, value in headers.items()})
    return refused.status if refused else 200


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"host": "127.0.0.1:8765", "authorization": BEARER}, 200),
        ({"host": "localhost:8765", "authorization": BEARER}, 200),
        ({"host": "LOCALHOST:8765", "authorization": f"bearer {TOKEN}"}, 200),
        ({"host": "[::1]:8765", "authorization": BEARER}, 200),
        ({"host": "127.0.0.1:8765", "authorization": BEARER, "origin": "http://127.0.0.1:8765"}, 200),
        ({"host": "127.0.0.1:8765"}, 401),
        ({"host": "127.0.0.1:8765", "authorization": "Bearer"}, 401),
        ({"host": "127.0.0.1:8765", "authorization": "Bearer wrong"}, 401),
        ({"host": "127.0.0.1:8765", "authorization": f"Bearer {TOKEN}x"}, 401),
        ({"host": "127.0.0.1:8765", "authorization": f"Bearer {TOKEN[:-1]}"}, 401),
        ({"host": "127.0.0.1:8765", "authorization": f"Basic {TOKEN}"}, 401),
        ({"host": "127.0.0.1:8765", "authorization": TOKEN}, 401),
        ({"host": "127.0.0.1:8765", "authorization": "Bearer \u00fcber"}, 401),
        ({"host": "127.0.0.1:8765", "authorization": BEARER, "origin": "null"}, 403),
        ({"host": "127.0.0.1:8765", "authorization": BEARER, "origin": ""}, 403),
        ({"host": "127.0.0.1:8765", "authorization": BEARER, "origin": "https://evil.example"}, 403),
        ({"host": "127.0.0.1:8765", "authorization": BEARER, "origin": "http://localhost:8765"}, 403),
        ({"host": "127.0.0.1:8765", "authorization": BEARER, "origin": "http://127.0.0.1:3000"}, 403),
        ({"host": "127.0.0.1:8765", "authorization": BEARER, "origin": "http://127.0.0.1:8765.evil.example"}, 403),
        ({"host": "evil.example", "authorization": BEARER}, 421),
        ({"host": "evil.example:8765", "authorization": BEARER}, 421),
        ({"host": "evil.example:8765", "authorization": BEARER, "origin": "http://evil.example:8765"}, 421),
        ({"host": "127.0.0.1:9999", "authorization": BEARER}, 421),
        ({"host": "127.0.0.1", "authorization": BEARER}, 421),
        ({"host": "localhost.evil.example:8765", "authorization": BEARER}, 421),
        ({"host": "localhost:8765@evil.example", "authorization": BEARER}, 421),
        ({"host": "10.0.0.7:8765", "authorization": BEARER}, 421),
        ({"host": "", "authorization": BEARER}, 421),
        ({"authorization": BEARER}, 421),
    ],
)
def test_a_request_must_know_the_token_and_come_from_nowhere_else(headers: dict[str, str], status: int) -> None:
    assert refusal(headers) == status


@pytest.mark.parametrize("method", ["GET", "DELETE", "OPTIONS", "PUT"])
def test_only_posts_are_answered(method: str) -> None:
    assert refusal({"host": "127.0.0.1:8765", "authorization": BEARER}, method) == 405
    assert refusal({"host": "127.0.0.1:8765"}, method) == 401


@pytest.mark.parametrize("name", ["host", "origin", "authorization"])
def test_a_header_that_is_said_twice_is_refused(name: str) -> None:
    headers = {"host": ["127.0.0.1:8765"], "authorization": [BEARER], "origin": ["http://127.0.0.1:8765"]}

    refused = Guard(nobody, TOKEN, "127.0.0.1", 8765).refuse("POST", {**headers, name: headers[name] * 2})

    assert refused is not None
    assert refused.status == 400


def test_on_every_address_of_a_machine_an_address_is_enough_and_a_name_must_be_allowed() -> None:
    told = {"authorization": BEARER}

    assert refusal({**told, "host": "10.0.0.7:8765"}, host="0.0.0.0") == 200
    assert refusal({**told, "host": "[fd00::7]:8765"}, host="0.0.0.0") == 200
    assert refusal({**told, "host": "notes.example:8765"}, host="0.0.0.0") == 421
    assert refusal({**told, "host": "notes.example:8765"}, host="0.0.0.0", names=("Notes.example",)) == 200
    assert refusal({**told, "host": "notes.example"}, host="127.0.0.1", names=("notes.example",)) == 200
    assert (
        refusal({**told, "host": "notes.example", "origin": "https://notes.example"}, names=("notes.example",)) == 200
    )


def test_a_web_socket_is_refused() -> None:
    sent: list[Any] = []

    async def knock() -> None:
        async def send(message: Any) -> None:
            sent.append(message)

        await Guard(nobody, TOKEN, "127.0.0.1", 8765)({"type": "websocket", "headers": []}, nobody, send)

    anyio.run(knock)

    assert sent[0]["status"] == 400


def test_a_token_is_made_when_none_is_set_and_is_another_one_each_time() -> None:
    one, other = find_token(None, {}), find_token(None, {"CO_MCP_TOKEN": ""})

    assert (one.made, other.made) == (True, True)
    assert one.value != other.value
    assert len(one.value) >= 43


def test_a_token_comes_from_a_file_before_the_environment(tmp_path: Path) -> None:
    file = tmp_path / "token"
    file.write_text(TOKEN + "\n")
    file.chmod(0o600)

    assert find_token(str(file), {"CO_MCP_TOKEN": "another-token-of-some-length"}) == (TOKEN, False)
    assert find_token(None, {"CO_MCP_TOKEN": TOKEN}) == (TOKEN, False)


@pytest.mark.parametrize("token", ["short", "with blanks in the middle of it", "ünïcödé-is-no-good-in-a-header"])
def test_a_token_that_is_easy_to_guess_or_cannot_be_sent_is_refused(token: str) -> None:
    with pytest.raises(InvalidInputError, match="token_urlsafe"):
        find_token(None, {"CO_MCP_TOKEN": token})


@pytest.mark.skipif(os.name == "nt", reason="Windows has no such mode bits")
def test_a_token_file_that_others_can_read_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "token"
    file.write_text(TOKEN)
    file.chmod(0o644)

    with pytest.raises(InvalidInputError, match="chmod 600"):
        find_token(str(file), {})


def test_a_token_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(InvalidInputError, match=r"nothing-here cannot be read: No such file"):
        find_token(str(tmp_path / "nothing-here"), {})


@pytest.mark.parametrize(
    ("host", "loopback"),
    [
        *((host, True) for host in ("127.0.0.1", "127.9.9.9", "::1", "localhost")),
        *((host, False) for host in ("0.0.0.0", "::", "10.0.0.7", "example.org", "")),
    ],
)
def test_loopback_is_known(host: str, loopback: bool) -> None:
    assert is_loopback(host) is loopback


def served(messages: list[dict[str, Any]], headers: dict[str, str] | None = None) -> tuple[int, bytes]:
    """The status that a request got, and the body that reached the server behind the guard."""
    reached: list[bytes] = []
    statuses: list[int] = []

    async def app(scope: Any, receive: Any, send: Any) -> None:
        reached.append((await receive())["body"])
        await send({"type": "http.response.start", "status": 200, "headers": []})

    async def receive() -> dict[str, Any]:
        if not messages:
            await anyio.sleep(PATIENCE)
            raise AssertionError("nobody had enough of waiting")
        return messages.pop(0)

    async def send(message: Any) -> None:
        if "status" in message:
            statuses.append(message["status"])

    told = {"host": "127.0.0.1:8765", "authorization": BEARER, **(headers or {})}
    pairs = [(name.encode(), value.encode()) for name, value in told.items()]
    guard = Guard(app, TOKEN, "127.0.0.1", 8765)
    anyio.run(guard, {"type": "http", "method": "POST", "headers": pairs}, receive, send)
    return (statuses or [0])[0], b"".join(reached)


def part(body: bytes, more: bool = True) -> dict[str, Any]:
    return {"type": "http.request", "body": body, "more_body": more}


def test_a_request_reaches_the_server_whole() -> None:
    assert served([part(b"one "), part(b"two", more=False)]) == (200, b"one two")


def test_a_request_that_is_too_large_reaches_nobody() -> None:
    assert served([part(b" " * 1_000_000) for _ in range(50)]) == (413, b"")
    assert served([part(b"", more=False)], {"content-length": str(MOST_BYTES + 1)}) == (413, b"")


def test_a_request_that_is_never_sent_to_its_end_reaches_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("co_cli.mcp.access.BODY_SECONDS", 0.2)

    assert served([part(b"{")]) == (408, b"")
    assert served([part(b"{"), {"type": "http.disconnect"}]) == (0, b"")


def test_an_allowance_is_used_up_and_comes_back_with_time() -> None:
    now = [0.0]
    allowance = Allowance(2.0, 3.0, lambda: now[0])

    assert [allowance.take() for _ in range(4)] == [True, True, True, False]
    now[0] = 0.5
    assert [allowance.take() for _ in range(2)] == [True, False]
    now[0] = 100.0
    assert [allowance.take() for _ in range(4)] == [True, True, True, False]


def knocking(guard: Guard, authorization: str, times: int) -> Counter[int]:
    """How often each status was the answer to so many requests."""
    statuses: Counter[int] = Counter()

    async def receive() -> dict[str, Any]:
        return part(b"{}", more=False)

    async def send(message: Any) -> None:
        statuses.update([message["status"]] if "status" in message else [])

    async def many() -> None:
        pairs = [(b"host", b"127.0.0.1:8765"), (b"authorization", authorization.encode())]
        for _ in range(times):
            await guard({"type": "http", "method": "POST", "headers": pairs}, receive, send)

    anyio.run(many)
    return statuses


async def welcoming(scope: Any, receive: Any, send: Any) -> None:
    await send({"type": "http.response.start", "status": 200, "headers": []})


def test_too_many_requests_are_refused_though_they_know_the_token() -> None:
    now = [0.0]
    guard = Guard(welcoming, TOKEN, "127.0.0.1", 8765, clock=lambda: now[0])

    assert knocking(guard, BEARER, 1_000) == {200: BURST, 429: 1_000 - BURST}
    now[0] = 2.0
    assert knocking(guard, BEARER, 1_000) == {200: 2 * RATE, 429: 1_000 - 2 * RATE}


def test_wrong_tokens_are_bounded_by_themselves_and_keep_nobody_out() -> None:
    now = [0.0]
    guard = Guard(welcoming, TOKEN, "127.0.0.1", 8765, clock=lambda: now[0])

    assert knocking(guard, "Bearer guess", 1_000) == {401: WRONG_BURST, 429: 1_000 - WRONG_BURST}
    now[0] = 3.0
    assert knocking(guard, "", 1_000) == {401: 3 * WRONG_RATE, 429: 1_000 - 3 * WRONG_RATE}
    assert knocking(guard, BEARER, int(BURST)) == {200: BURST}


def test_who_sends_too_much_is_heard_out_to_a_bound_and_reads_why() -> None:
    rest = [part(b" " * 1_000_000) for _ in range(8)] + [part(b"", more=False)]
    assert served(rest) == (413, b"")
    assert rest == []

    endless = [part(b" " * 1_000_000) for _ in range(100)]
    assert served(endless) == (413, b"")
    assert len(endless) > 100 - (MOST_BYTES + MOST_UNREAD) // 1_000_000 - 3
