"""One request and its answer, on one connection to one address that was checked before.

No name is looked up here, no proxy, cookie or credential is used, and nothing is followed. Everything an answer may do
is bounded: the time of the whole exchange, the bytes of its head, and the bytes of its body after decompression.
"""

from __future__ import annotations

import socket
import ssl
import time
import zlib
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from typing import NamedTuple

import h11

from co_cli.errors import PageError, PageRefusedError
from co_cli.sources.fetching_url import PageUrl

RECEIVE = 65_536
CONNECT_SECONDS = 10.0
"""For one of several addresses; a name may have one that does not answer."""
ENCODINGS = ("", "identity", "gzip", "x-gzip", "deflate")


class Limits(NamedTuple):
    """How much of time and space a page may take."""

    bytes: int = 10_000_000
    """Of the body, decompressed."""
    seconds: float = 30.0
    """For everything: looking the name up, every redirect, and the last byte."""
    redirects: int = 5
    header_bytes: int = 64_000


class Deadline:
    """When it is over. The clock runs for all that happens, not for each read."""

    def __init__(self, seconds: float) -> None:
        self.seconds, self._end = seconds, time.monotonic() + seconds

    @property
    def passed(self) -> bool:
        return time.monotonic() >= self._end

    def left(self) -> float:
        """Seconds; raises TimeoutError when there are none."""
        left = self._end - time.monotonic()
        if left <= 0:
            raise TimeoutError
        return left


class Answer:
    """The head of an answer, and its body as long as the connection is open."""

    def __init__(self, connection: h11.Connection, wire: socket.socket, limits: Limits, deadline: Deadline) -> None:
        self._connection, self._wire, self._limits, self._deadline = connection, wire, limits, deadline
        self.headers: dict[str, str] = {}
        self.status = 0
        read = 0
        while not self.status:
            event = connection.next_event()
            if event is h11.NEED_DATA:
                read += self._receive()
                if read > limits.header_bytes + RECEIVE:  # endless answers before the answer
                    raise h11.RemoteProtocolError("too long")
            elif isinstance(event, h11.Response):
                self.status = event.status_code
                for name, value in event.headers:
                    self.headers.setdefault(name.decode("latin-1"), value.decode("latin-1"))
            elif not isinstance(event, h11.InformationalResponse):
                raise h11.RemoteProtocolError("no answer")

    def body(self) -> bytes:
        """All of it, decompressed; stops reading at the first byte too many."""
        length = self.headers.get("content-length", "")
        if length.isdecimal() and int(length) > self._limits.bytes:
            raise too_large(self._limits)
        decoder = Decoder(self.headers.get("content-encoding", "").strip().lower(), self._limits)
        received = bytearray()
        while True:
            event = self._connection.next_event()
            if event is h11.NEED_DATA:
                self._receive()
            elif isinstance(event, h11.Data):
                received += decoder.feed(bytes(event.data))
            else:
                decoder.end()
                return bytes(received)

    def _receive(self) -> int:
        self._wire.settimeout(self._deadline.left())
        data = self._wire.recv(RECEIVE)
        self._connection.receive_data(data)
        return len(data)


class Decoder:
    """Decompresses as it reads, and never more than is allowed: 300 KB of gzip can stand for 300 MB."""

    def __init__(self, encoding: str, limits: Limits) -> None:
        if encoding not in ENCODINGS:
            raise PageRefusedError(f"it is compressed as {encoding!r}, though gzip was asked for")
        self._limits, self._done, self._fed = limits, 0, 0
        self._zipped = encoding not in ("", "identity")
        self._may_be_raw = encoding == "deflate"
        self._inflate = zlib.decompressobj(47)  # with the header of zlib or gzip

    def feed(self, data: bytes) -> bytes:
        self._fed += len(data)
        if self._fed > self._limits.bytes + RECEIVE:  # what stands for nothing (padding, empty parts) is not endless
            raise too_large(self._limits)
        if not self._zipped:
            self._count(len(data))
            return data
        found = bytearray()
        while data:
            try:
                piece = self._inflate.decompress(data, self._limits.bytes - self._done + 1)
            except zlib.error:
                if not self._may_be_raw or self._done:
                    raise PageError("its compression is broken") from None
                self._may_be_raw, self._inflate = False, zlib.decompressobj(-15)  # as some servers send it
                continue
            self._count(len(piece))
            found += piece
            data = self._inflate.unconsumed_tail
            if self._inflate.eof:
                data = self._inflate.unused_data
                if not data.startswith(b"\x1f\x8b"):  # nothing, or padding
                    break
                self._inflate = zlib.decompressobj(47)
        return bytes(found)

    def end(self) -> None:
        if self._zipped and self._done and not self._inflate.eof:
            raise PageError("it broke off in the middle; try again")

    def _count(self, number: int) -> None:
        self._done += number
        if self._done > self._limits.bytes:
            raise too_large(self._limits)


def too_large(limits: Limits) -> PageRefusedError:
    return PageRefusedError(f"it is larger than {limits.bytes:,} bytes (the setting web_max_bytes)")


@contextmanager
def exchange(
    url: PageUrl,
    addresses: Sequence[str],
    headers: Sequence[tuple[str, str]],
    tls: ssl.SSLContext,
    limits: Limits,
    deadline: Deadline,
) -> Generator[Answer]:
    """Ask for a page at the first of these addresses that takes the connection. The name stays that of the page."""
    with _translated(deadline), _connect(addresses, url.port, deadline) as plain:
        wire: socket.socket = plain
        if url.scheme == "https":
            plain.settimeout(deadline.left())
            wire = tls.wrap_socket(plain, server_hostname=url.host)
        try:
            connection = h11.Connection(h11.CLIENT, max_incomplete_event_size=limits.header_bytes)
            request = h11.Request(method="GET", target=url.target, headers=[("Host", url.authority), *headers])
            wire.settimeout(deadline.left())
            wire.sendall((connection.send(request) or b"") + (connection.send(h11.EndOfMessage()) or b""))
            yield Answer(connection, wire, limits, deadline)
        finally:
            wire.close()


def _connect(addresses: Sequence[str], port: int, deadline: Deadline) -> socket.socket:
    problem: OSError = OSError("no address")
    for address in addresses:
        wire = socket.socket(socket.AF_INET6 if ":" in address else socket.AF_INET, socket.SOCK_STREAM)
        try:
            wire.settimeout(min(deadline.left(), CONNECT_SECONDS))
            wire.connect((address, port))
            return wire
        except OSError as error:
            wire.close()
            problem = error
    raise problem


@contextmanager
def _translated(deadline: Deadline) -> Generator[None]:
    """What a network, a server or TLS can do to a request, in words."""
    try:
        yield
    except TimeoutError:
        if not deadline.passed:
            raise PageError("no connection: nobody answers there; try again later") from None
        raise PageError(f"it was not there after {deadline.seconds:g} seconds (the setting web_seconds)") from None
    except ssl.SSLCertVerificationError as error:
        raise PageError(f"its certificate is not accepted: {error.verify_message or error.reason}") from None
    except ssl.SSLError as error:
        raise PageError(f"no secure connection: {error.reason or error}") from None
    except h11.RemoteProtocolError as error:
        raise PageError(f"the server does not speak HTTP as it should: {error}") from None
    except OSError as error:
        raise PageError(f"no connection: {error.strerror or error}") from None
