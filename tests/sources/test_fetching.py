"""Fetching from a real server: what is asked, what is followed, what is read, and where it stops."""

from __future__ import annotations

import gzip
import socket
import threading
import time
import tracemalloc
import zlib
from pathlib import Path

import pytest

from co_cli.ground.errors import PageError, PageGoneError, PageRefusedError
from co_cli.sources.web.addresses import Exceptions, read_url
from co_cli.sources.web.fetch import Fetched, Fetcher, Limits, Validators
from tests.sources.web_server import Answer, Asked, Listener, Names, WebServer, Wire, endless, response

LOOPBACK = Exceptions.read(["127.0.0.1"])
QUICK = Limits(bytes=100_000, seconds=0.4)


def fetch(url: str, limits: Limits | None = None, known: Validators | None = None) -> Fetched | None:
    """As a person would who listed this machine as an exception."""
    return Fetcher(limits, LOOPBACK).fetch(read_url(url), known)


def refused(url: str, limits: Limits | None = None) -> str:
    with pytest.raises(PageError) as caught:
        fetch(url, limits)
    assert str(caught.value).startswith(url)
    return str(caught.value)


# -- asking ---------------------------------------------------------------------------------------------------------


def test_a_page_is_fetched_with_what_the_server_says_of_it(server: WebServer) -> None:
    url = server.page("/a?b=c", "<p>Oaks</p>", content_type='Text/HTML; Charset="ISO-8859-1"', etag='"v1"')

    assert fetch(url) == Fetched(read_url(url), "text/html", "iso-8859-1", b"<p>Oaks</p>", Validators('"v1"', ""))


def test_a_request_says_who_asks_and_carries_no_cookie_no_credential_and_no_referrer(
    server: WebServer, home: Path
) -> None:
    (home / ".netrc").write_text("machine 127.0.0.1 login ines password secret")
    server.page("/b", "Oaks")
    server.routes["/a"] = response(status="302 Found", location="/b", set_cookie="id=7; Path=/")

    fetch(server.url + "/a")

    names = {"host", "user-agent", "accept", "accept-encoding", "connection"}
    assert [set(asked.headers) for asked in server.asked] == [names, names]
    assert server.asked[0].headers["host"] == f"127.0.0.1:{server.port}"
    assert server.asked[0].headers["user-agent"].startswith("co-cli")


def test_proxies_of_the_environment_are_ignored(
    server: WebServer, listener: Listener, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("http_proxy", "HTTP_PROXY", "https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY"):
        monkeypatch.setenv(name, f"http://127.0.0.1:{listener.port}")

    assert fetch(server.page("/", "Oaks"))
    assert listener.accepted == 0


def test_a_page_that_did_not_change_is_not_sent_again(server: WebServer) -> None:
    def answer(wire: Wire, asked: Asked) -> None:
        same = asked.headers.get("if-none-match") == '"v1"' or "if-modified-since" in asked.headers
        wire.sendall(response(status="304 Not Modified", content_type="") if same else response(b"Oaks"))

    server.routes["/"] = answer

    assert fetch(server.url + "/", known=Validators('"v1"', "")) is None
    assert fetch(server.url + "/", known=Validators("", "Sun, 15 Nov 2026 06:13:56 GMT")) is None
    assert fetch(server.url + "/", known=Validators('"v0"', "")) is not None
    assert fetch(server.url + "/", known=Validators('"v1"\r\nX: y', "")) is not None  # no header of its own making
    assert "x" not in server.asked[-1].headers


def test_an_answer_that_is_not_a_page_is_explained(server: WebServer) -> None:
    expected = {
        "401 Unauthorized": "wants a login",
        "429 Too Many Requests": "try again later",
        "500 Internal Server Error": "answers 500",
        "304 Not Modified": "answers 304",
        "302 Found": "without saying where to",
        "410 Gone": "there is no such page (410)",
    }
    said: dict[str, str] = {}
    for status in expected:
        server.routes["/"] = response(b"", status=status, **({"content_length": ""} if status[:3] == "304" else {}))
        said[status] = refused(server.url + "/")

    assert {status: words for status, words in said.items() if expected[status] not in words} == {}
    with pytest.raises(PageGoneError):
        fetch(server.url + "/")


# -- redirects ------------------------------------------------------------------------------------------------------


def test_redirects_end_and_lead_only_to_pages(server: WebServer) -> None:
    server.redirect("/a", "/b")
    server.redirect("/b", "/a")
    assert "redirects more than 5 times" in refused(server.url + "/a")
    assert len(server.asked) == 6

    for target in ("file:///etc/passwd", "ftp://127.0.0.1/", "javascript:alert(1)", "gopher://a/"):
        server.redirect("/", target)
        assert "only http:// and https://" in refused(server.url + "/"), target
    server.redirect("/", "http://ines:secret@example.org/")
    assert "secret" not in refused(server.url + "/")


# -- limits ---------------------------------------------------------------------------------------------------------


def timed(url: str, limits: Limits) -> tuple[str, float]:
    started = time.monotonic()
    words = refused(url, limits)
    return words, time.monotonic() - started


def silence(wire: Wire, _: Asked) -> None:
    wire.sendall(response(content_length="1000000000"))
    wire.recv(1)  # until the other side hangs up


def test_a_server_that_drips_is_left_when_the_time_is_up(server: WebServer) -> None:
    for answer in (
        silence,
        endless(response(content_length="90000"), b"x", 0.05),
        endless(b"HTTP/1.1 200 OK\r\n", b"X-Drip: x\r\n", 0.05),
        endless(b"", b"H", 0.05),
    ):
        server.routes["/"] = answer
        words, took = timed(server.url + "/", Limits(bytes=2_000_000_000, seconds=0.2))

        assert "0.2 seconds" in words or "sent invalid HTTP" in words
        assert took < 20


def test_a_resolver_that_hangs_is_left_when_the_time_is_up() -> None:
    released = threading.Event()

    def hangs(host: str, port: int) -> list[str]:
        released.wait(120)
        return ["127.0.0.1"]

    started = time.monotonic()
    with pytest.raises(PageError, match=r"looking up pages\.example took longer than 0\.4 seconds"):
        Fetcher(QUICK, LOOPBACK, hangs).fetch(read_url("http://pages.example/"))
    released.set()

    assert time.monotonic() - started < 20


def test_an_endless_body_is_read_up_to_the_limit_and_no_further(server: WebServer) -> None:
    sent: list[int] = []

    def answer(wire: Wire, asked: Asked) -> None:
        wire.sendall(response(content_length="", transfer_encoding="chunked"))
        piece = b"10000\r\n" + b"x" * 0x10000 + b"\r\n"
        for _ in range(20_000):  # 1.3 GB
            wire.sendall(piece)
            sent.append(len(piece))

    server.routes["/"] = answer

    words = refused(server.url + "/", Limits(bytes=1_000_000, seconds=20))

    assert "larger than 1,000,000 bytes" in words
    assert sum(sent) < 20_000_000  # what the system's buffers hold


@pytest.mark.medium
def test_a_bomb_costs_no_more_than_the_limit(server: WebServer) -> None:
    for encoding, bits in (("gzip", 31), ("x-gzip", 31)):
        squeeze = zlib.compressobj(9, zlib.DEFLATED, bits)
        bomb = b"".join([*(squeeze.compress(bytes(1_000_000)) for _ in range(50)), squeeze.flush()])
        url = server.page("/", bomb, content_encoding=encoding)
        tracemalloc.start()
        try:
            words = refused(url, Limits(bytes=200_000, seconds=20))
            _, peak = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()

        assert len(bomb) < 60_000
        assert "larger than 200,000 bytes" in words
        assert peak < 3_000_000
    head = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Encoding: gzip\r\n\r\n"
    for filler in (bytes(50_000), gzip.compress(b"") * 2_500):  # which stands for nothing
        server.routes["/"] = endless(head + gzip.compress(b"<p>Hello.</p>"), filler)
        assert "larger than 200,000 bytes" in refused(server.url + "/", Limits(bytes=200_000, seconds=20))


def test_a_server_that_breaks_http_is_reported(server: WebServer) -> None:
    answers: dict[str, Answer] = {
        "many headers": endless(b"HTTP/1.1 200 OK\r\n", b"X-Long: " + b"x" * 10_000 + b"\r\n"),
        "one long header": endless(b"HTTP/1.1 200 OK\r\nX-Long: ", b"x" * 10_000),
        "endless hints": endless(b"", b"HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n" * 100),
        "ssh": b"SSH-2.0-OpenSSH_9.2\r\n",
        "nothing": b"",
        "two lengths": b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\nhello",
        "bad chunk": b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
        "cut off": b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: 500\r\n\r\nhello",
    }
    said: dict[str, str] = {}
    for name, server.routes["/"] in answers.items():
        said[name] = refused(server.url + "/", Limits(seconds=20))

    assert {name: words for name, words in said.items() if "sent invalid HTTP" not in words} == {}


def test_a_server_or_a_name_that_does_not_exist_is_reported() -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]

    assert "no connection" in refused(f"http://127.0.0.1:{port}/")
    with pytest.raises(PageError, match=r"the host nowhere\.example was not found"):
        Fetcher(resolver=Names()).fetch(read_url("http://nowhere.example/"))


# -- bodies ---------------------------------------------------------------------------------------------------------


def test_a_compressed_page_is_decompressed(server: WebServer) -> None:
    bodies = {
        "plain": ("identity", b"Oaks live long."),
        "gzip": ("gzip", gzip.compress(b"Oaks live long.", mtime=0)),
        "x-gzip": ("x-gzip", gzip.compress(b"Oaks live long.", mtime=0)),
        "two members": ("gzip", gzip.compress(b"Oaks ") + gzip.compress(b"live long.") + bytes(100)),
    }

    found = {name: fetch(server.page("/", body, content_encoding=one)) for name, (one, body) in bodies.items()}

    assert {name: page and page.body for name, page in found.items()} == dict.fromkeys(bodies, b"Oaks live long.")


def test_what_is_not_a_page_is_not_read(server: WebServer) -> None:
    for media_type in ("image/png", "application/json", "application/octet-stream", "video/mp4", "text/css"):
        with pytest.raises(PageRefusedError, match="not a web page"):
            fetch(server.page("/", b"data", content_type=media_type))
    assert "\x1b" not in refused(server.page("/", b"data", content_type="x\x1b[2J"))
    assert "`co add FILE.pdf`" in refused(server.page("/a.pdf", b"%PDF-1.7", content_type="application/pdf"))
    found = fetch(server.page("/", "Oaks", content_type=""))
    assert found is not None
    assert found.media_type == ""
