"""What whoever knows the token, and whoever does not, can keep of a server's connections and time."""

from __future__ import annotations

import asyncio
import socket

import pytest
from starlette.types import Receive, Scope, Send

from co_cli import http_server
from co_cli.http_server import TokenGuard, bearer, listen, make_server

REQUEST = b"GET / HTTP/1.1\r\nHost: here\r\nAuthorization: Bearer TOKEN\r\n\r\n"
STRANGE = REQUEST.replace(b"TOKEN", b"wrong")


class Served:
    """A server in this event loop, whose answers wait until `go` is set."""

    def __init__(self) -> None:
        self.go, self.listening = asyncio.Event(), listen("127.0.0.1", 0)
        self.writers: list[asyncio.StreamWriter] = []
        self.server = make_server(TokenGuard(self.answer, bearer("TOKEN"), ["here"]))

    async def answer(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            await self.go.wait()
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


def test_a_connection_that_does_not_send_the_token_in_time_is_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http_server, "HEADERS_SECONDS", 0.2)

    async def talk() -> None:
        async with Served() as served:
            known = await served.send(REQUEST)
            for data in (b"", REQUEST[:40], STRANGE, STRANGE[:-2] + b"Content-Length: 9\r\n\r\nbo", STRANGE * 20_000):
                assert await is_closed(await served.send(data)), data[:60]
            served.go.set()

            assert (await known.readline()).startswith(b"HTTP/1.1 204"), "it took longer, but it has the token"

    asyncio.run(talk())


def test_only_requests_with_the_token_count_towards_the_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http_server, "REQUESTS", 2)

    async def talk() -> None:
        async with Served() as served:
            strangers = [await served.send(data) for data in (b"", REQUEST[:40], STRANGE) * 3]
            known = [await served.send(REQUEST) for _ in range(3)]

            assert (await known[2].readline()).startswith(b"HTTP/1.1 503")
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
