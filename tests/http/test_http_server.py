"""What whoever knows the token, and whoever does not, can keep of a server's connections and time."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Awaitable, Callable

import pytest
from starlette.applications import Starlette
from starlette.requests import HTTPConnection, Request
from starlette.responses import PlainTextResponse
from starlette.routing import Route
from starlette.testclient import TestClient
from starlette.types import Receive, Scope, Send

from co_cli.http import http_server
from co_cli.http.http_server import Bodies, TokenGuard, bearer, given_token, listen, make_server

REQUEST = b"GET / HTTP/1.1\r\nHost: here\r\nAuthorization: Bearer TOKEN\r\n\r\n"
POST = REQUEST.replace(b"GET", b"POST")
TOKEN = bearer("TOKEN")
STRANGE = REQUEST.replace(b"TOKEN", b"wrong")


class Served:
    """A server in this event loop, whose answers wait until `go` is set, and whose streams until `end` is."""

    def __init__(self, identify: Callable[[HTTPConnection], Awaitable[str | None]] = TOKEN) -> None:
        self.go, self.end, self.listening = asyncio.Event(), asyncio.Event(), listen("127.0.0.1", 0)
        self.writers: list[asyncio.StreamWriter] = []
        self.server = make_server(TokenGuard(Bodies(self.answer, 1_000), identify, ["here"]))

    async def answer(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            await self.go.wait()
            if scope["path"] == "/stream":
                kind = [(b"content-type", b"text/event-stream; charset=utf-8")]
                await send({"type": "http.response.start", "status": 200, "headers": kind})
                await send({"type": "http.response.body", "body": b"data", "more_body": True})
                await self.end.wait()
                await send({"type": "http.response.body", "body": b""})
                return
            await send({"type": "http.response.start", "status": 204, "headers": []})
            await send({"type": "http.response.body", "body": b""})

    async def __aenter__(self) -> Served:
        self.task = asyncio.create_task(self.server.serve([self.listening]))
        return self

    async def __aexit__(self, *_: object) -> None:
        self.go.set()
        self.server.should_exit = True
        await self.task

    async def send(self, data: bytes) -> asyncio.StreamReader:
        reader, writer = await asyncio.open_connection(*self.listening.getsockname())
        self.writers.append(writer)  # one that is forgotten closes the connection
        writer.write(data)
        return reader


async def is_closed(reader: asyncio.StreamReader) -> bool:
    try:
        async with asyncio.timeout(30):
            await reader.read()
    except ConnectionResetError:
        pass
    return True


@pytest.mark.medium
def test_a_connection_that_does_not_send_the_token_in_time_is_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http_server, "HEADERS_SECONDS", 1)
    half = STRANGE[:-2] + b"Content-Length: 9\r\n\r\nbo"

    async def talk() -> None:
        async with Served() as served:
            known = await served.send(REQUEST)
            sent = [await served.send(data) for data in (b"", REQUEST[:40], STRANGE, half, STRANGE * 20_000)]
            for reader in sent:
                assert await is_closed(reader)
            served.go.set()

            assert (await known.readline()).startswith(b"HTTP/1.1 204"), "it took longer, but it has the token"

    asyncio.run(talk())


def test_a_connection_with_the_token_has_the_same_time_for_each_further_request(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(http_server, "HEADERS_SECONDS", 1)

    async def talk() -> None:
        async with Served() as served:
            served.go.set()
            refused = POST[:-2] + b"Content-Length: 5000\r\n\r\n" + b"x" * 2_000  # the rest never comes
            for half in (REQUEST[:40], refused):
                reader = await served.send(REQUEST)
                assert (await reader.readuntil(b"\r\n\r\n")).startswith(b"HTTP/1.1 204")
                served.writers[-1].write(half)
                assert await is_closed(reader), half[:60]

    asyncio.run(talk())


@pytest.mark.slow
def test_an_idle_connection_is_good_for_longer_than_clients_keep_one() -> None:
    async def talk() -> None:
        async with Served() as served:
            served.go.set()
            reader = await served.send(REQUEST)
            assert (await reader.readuntil(b"\r\n\r\n")).startswith(b"HTTP/1.1 204")
            await asyncio.sleep(5.5)  # httpx closes one after 5 seconds
            served.writers[-1].write(REQUEST)
            assert (await reader.readuntil(b"\r\n\r\n")).startswith(b"HTTP/1.1 204")
            assert await is_closed(reader)

    asyncio.run(talk())


def test_a_body_that_does_not_come_is_refused_in_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http_server, "BODY_SECONDS", 0.2)

    async def talk() -> None:
        async with Served() as served:
            served.go.set()
            for length in (b"Content-Length: 9", b"Transfer-Encoding: chunked"):
                reader = await served.send(POST[:-2] + length + b"\r\n\r\n1")
                assert (await reader.readline()).startswith(b"HTTP/1.1 408")
                assert await is_closed(reader)

    asyncio.run(talk())


def test_one_token_s_open_requests_lock_out_no_other_and_streams_do_not_count(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http_server, "REQUESTS", 3)

    async def name_of(request: HTTPConnection) -> str | None:
        return given_token(request) or None

    async def talk() -> None:
        async with Served(name_of) as served:
            slow = POST[:-2] + b"Content-Length: 9\r\n\r\n1"
            waiting = [await served.send(slow) for _ in range(9)]
            heads = [asyncio.ensure_future(one.readline()) for one in waiting]
            async with asyncio.timeout(30):
                while sum(head.done() for head in heads) < 6:
                    await asyncio.sleep(0.01)
            served.go.set()
            other = REQUEST.replace(b"TOKEN", b"OTHER")
            assert (await (await served.send(other)).readline()).startswith(b"HTTP/1.1 204")
            refused = [head.result() for head in heads if head.done()]
            assert [line.split()[1] for line in refused] == [b"429"] * 6

            streams = [await served.send(other.replace(b"GET /", b"GET /stream")) for _ in range(9)]
            for reader in streams:
                assert (await reader.readuntil(b"data")).startswith(b"HTTP/1.1 200")
            assert (await (await served.send(other)).readline()).startswith(b"HTTP/1.1 204")
            served.end.set()

    asyncio.run(talk())


def app_of(largest: int = 1_000) -> TokenGuard:
    async def length(request: Request) -> PlainTextResponse:
        return PlainTextResponse(str(len(await request.body())))

    async def public(request: HTTPConnection) -> str | None:
        return None if request.url.path == "/public" else "name"

    inner = Starlette(routes=[Route("/{rest:path}", length, methods=["POST"])])
    return TokenGuard(Bodies(inner, largest), public, ["testserver"], lambda _: True)


def test_size_and_depth_are_limited_by_plain_middleware() -> None:
    with TestClient(app_of(1_000_000)) as client:
        for body, status in (
            (b"", 200),
            (b"no JSON [[[", 200),
            (b"[" * 100_000, 400),
            (b'{"a":' * 100_000, 400),
            (b"[" * 64 + b"1" + b"]" * 64, 200),
            (b"[" * 65 + b"]" * 65, 400),
            (("[" * 65 + "]" * 65).encode("utf-16-le"), 400),
            (b'{"a":' * 64 + b'"' + b"[" * 999 + b'"' + b"}" * 64, 200),
            (b"x" * 1_000_000, 200),
            (b"x" * 1_000_001, 413),
        ):
            assert client.post("/", content=body).status_code == status, body[:40]
        assert client.post("/public", content=b"x" * 1_000).status_code == 200
        assert client.post("/public", content=b"x" * 1_001).status_code == 413


def test_a_plain_test_client_meets_the_same_guard(monkeypatch: pytest.MonkeyPatch) -> None:
    guarded = TokenGuard(PlainTextResponse("in"), TOKEN, ["testserver"], lambda request: request.url.path == "/public")
    client = TestClient(guarded)
    known = {"Authorization": "Bearer TOKEN"}
    for path, headers, status in (
        ("/", {}, 401),
        ("/", {"Authorization": "Bearer wrong"}, 401),
        ("/", known, 200),
        ("/public", {}, 200),
        ("/public", {"Host": "elsewhere"}, 421),
        ("/", {**known, "Host": "elsewhere"}, 421),
        ("/", {**known, "Origin": "https://elsewhere"}, 403),
        ("/", {**known, "Origin": "http://testserver"}, 200),
    ):
        assert client.get(path, headers=headers).status_code == status, (path, headers)
    monkeypatch.setattr(http_server, "REQUESTS", 0)
    assert client.get("/", headers=known).status_code == 429
    assert client.get("/public").status_code == 200


def test_every_answer_gives_a_connection_that_sent_the_token_new_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http_server, "HEADERS_SECONDS", 2)
    monkeypatch.setattr(http_server, "REQUESTS", 0)

    async def talk() -> None:
        async with Served() as served:
            reader = await served.send(REQUEST)
            assert (await reader.readuntil(b"}}")).startswith(b"HTTP/1.1 429")
            for _ in range(3):
                await asyncio.sleep(0.8)
                served.writers[-1].write(STRANGE)
                assert (await reader.readuntil(b"}")).startswith(b"HTTP/1.1 401")
            assert await is_closed(reader)

    asyncio.run(talk())


def test_only_requests_with_the_token_count_towards_the_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http_server, "REQUESTS", 2)

    async def talk() -> None:
        async with Served() as served:
            strangers = [await served.send(data) for data in (b"", REQUEST[:40], STRANGE) * 3]
            known = [await served.send(REQUEST) for _ in range(3)]

            assert (await known[2].readline()).startswith(b"HTTP/1.1 429")
            served.go.set()
            for reader in known[:2]:
                assert (await reader.readline()).startswith(b"HTTP/1.1 204")
            assert (await strangers[-1].readline()).startswith(b"HTTP/1.1 401")

    asyncio.run(talk())


def test_the_body_of_an_answer_does_not_wait_until_its_head_is_acknowledged() -> None:
    """It would take 40 ms."""

    async def talk() -> None:
        async with Served() as served:
            await (await served.send(STRANGE)).readuntil(b"}")
            (connection,) = served.server.server_state.connections
            sending = connection.transport.get_extra_info("socket")
            assert sending.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)

    asyncio.run(talk())
