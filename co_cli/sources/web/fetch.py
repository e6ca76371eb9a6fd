"""Fetch a web page: public addresses only, checked for every connection and pinned.

httpcore makes the requests over a network backend of our own. The backend looks up the host, checks every address that
it has, and connects to one of those; nothing is looked up a second time. Each redirect is a new connection. TLS trusts
what the system trusts. Proxies, cookies and credentials are not used. Total time, header size and decompressed size are
limited.
"""

from __future__ import annotations

import re
import socket
import ssl
import threading
import time
import zlib
from collections.abc import Callable, Generator, Iterable, Sequence
from contextlib import contextmanager, suppress
from typing import Any, NamedTuple
from urllib.parse import urlsplit

import httpcore2

from co_cli.ground.errors import PageError, PageGoneError, PageRefusedError
from co_cli.sources.web.addresses import Exceptions, follow, read_url, why_refused

Resolver = Callable[[str, int], Sequence[str]]
"""All addresses of a host name. Raises OSError if it has none."""

TYPES = ("text/html", "application/xhtml+xml", "text/plain", "text/markdown", "text/x-markdown")
ACCEPT = "text/html, application/xhtml+xml, text/markdown, text/plain;q=0.9"
MOST_ADDRESSES = 8
CONNECT_SECONDS = 10.0
"""For one address; a host may have others that answer."""
MOST_HEADER_BYTES = 200_000
"""Of everything that comes before the body. httpcore itself limits one block of headers to 100 KB."""
LONGEST_VALIDATOR = 200


class Limits(NamedTuple):
    bytes: int = 10_000_000
    """Of the body, decompressed."""
    seconds: float = 30.0
    """For everything together: looking up names, redirects, and the last byte."""
    redirects: int = 5


class Validators(NamedTuple):
    """What a server recognises the version by that we have. Either is enough."""

    etag: str = ""
    last_modified: str = ""


class Fetched(NamedTuple):
    """A page as it came: bytes, and what the server says they are."""

    url: str
    """Where it was found, after redirects."""
    media_type: str
    charset: str
    """As the server declares it, or empty."""
    body: bytes
    validators: Validators


class Deadline:
    """Total time for a whole piece of work, not for each read."""

    def __init__(self, seconds: float) -> None:
        self.seconds, self._end = seconds, time.monotonic() + seconds

    def left(self) -> float:
        """Seconds; raises TimeoutError when there are none."""
        left = self._end - time.monotonic()
        if left <= 0:
            raise TimeoutError
        return left


class Fetcher:
    """Fetches pages. `exceptions` are addresses that may be contacted although they are not public."""

    def __init__(
        self,
        limits: Limits | None = None,
        exceptions: Exceptions | None = None,
        resolver: Resolver | None = None,
        tls: ssl.SSLContext | None = None,
        agent: str = "co-cli",
    ) -> None:
        self.limits, self.exceptions, self.agent = limits or Limits(), exceptions or Exceptions(), agent
        self._resolver, self._tls = resolver or system_resolver, tls

    def fetch(self, url: str, known: Validators | None = None) -> Fetched | None:
        """The page, or None if the server says that it is still the `known` version.

        Raises PageGoneError, PageRefusedError or PageError. The message names the URL and the reason.
        """
        url = step = read_url(url)
        deadline = Deadline(self.limits.seconds)
        try:
            for _ in range(self.limits.redirects + 1):
                found = self._step(step, known, deadline)
                if not isinstance(found, str):
                    return found
                step = found
            raise PageRefusedError(f"it redirects more than {self.limits.redirects} times")
        except PageError as error:
            where = url if step == url else f"{url} leads to {step}"
            raise type(error)(f"{where}: {error}") from None

    def checked_addresses(self, host: str, port: int, deadline: Deadline) -> Sequence[str]:
        """The addresses of a host. A single one that is not public is reason enough to refuse all of them."""
        is_address = ":" in host or host.replace(".", "").isdecimal()
        addresses = [host] if is_address else self._look_up(host, port, deadline)
        for address in addresses:
            if kind := why_refused(address, host, self.exceptions):
                at = "" if is_address else f"{host} is "
                raise PageRefusedError(
                    f"{at}{address}, {kind}; only public addresses are fetched (the setting web_allow lists exceptions)"
                )
        return addresses[:MOST_ADDRESSES]

    def _look_up(self, host: str, port: int, deadline: Deadline) -> Sequence[str]:
        """In a thread, because the system's resolver has no time limit."""
        found: list[str] = []

        def work() -> None:
            with suppress(OSError, UnicodeError):
                found.extend(self._resolver(host, port))

        thread = threading.Thread(target=work, name="co-look-up", daemon=True)
        thread.start()
        with suppress(TimeoutError):
            thread.join(deadline.left())
        if thread.is_alive():
            raise PageError(f"looking up {host} took longer than {deadline.seconds:g} seconds; try again later")
        if not found:
            raise PageError(f"the host {host} was not found, or this machine is offline")
        return found

    def _step(self, url: str, known: Validators | None, deadline: Deadline) -> Fetched | str | None:
        """One request: the page, None if it did not change, or the URL that it redirects to."""
        known = Validators(*map(validator, known or Validators()))
        sent = {"Host": urlsplit(url).netloc, "User-Agent": self.agent, "Accept": ACCEPT}
        sent |= {"Accept-Encoding": "gzip", "Connection": "close"}
        if known.etag:
            sent["If-None-Match"] = known.etag
        elif known.last_modified:
            sent["If-Modified-Since"] = known.last_modified
        network = _Network(self, deadline)
        with (
            _translated(deadline),
            httpcore2.ConnectionPool(ssl_context=self._tls, network_backend=network) as pool,
            pool.stream("GET", url, headers=[*sent.items()]) as response,
        ):
            network.header_bytes_left = None
            headers = {name.decode("latin-1").lower(): value.decode("latin-1") for name, value in response.headers}
            match response.status:
                case 301 | 302 | 303 | 307 | 308:
                    return follow(url, _location(headers, response.status))
                case 304 if any(known):
                    return None
                case 404 | 410:
                    raise PageGoneError(f"there is no such page ({response.status})")
                case 200 | 203:
                    media_type, charset = _content_type(headers.get("content-type", ""))
                    body = _decompressed(response.iter_stream(), headers, self.limits.bytes)
                    found = Validators(*(validator(headers.get(name, "")) for name in ("etag", "last-modified")))
                    return Fetched(url, media_type, charset, body, found)
                case _:
                    raise PageError(_refusal(response.status))


class _Network(httpcore2.NetworkBackend):
    """Connections to checked addresses, with one deadline."""

    def __init__(self, fetcher: Fetcher, deadline: Deadline) -> None:
        self.fetcher, self.deadline = fetcher, deadline
        self.header_bytes_left: int | None = MOST_HEADER_BYTES

    def connect_tcp(self, host: str, port: int, *_: object, **__: object) -> httpcore2.NetworkStream:
        problem = OSError("no address")
        for address in self.fetcher.checked_addresses(host, port, self.deadline):
            try:
                seconds = min(self.deadline.left(), CONNECT_SECONDS)
                return _Stream(self, socket.create_connection((address, port), seconds))
            except OSError as error:
                problem = error
        raise problem


class _Stream(httpcore2.NetworkStream):
    def __init__(self, network: _Network, wire: socket.socket) -> None:
        self.network, self.wire = network, wire

    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        self.wire.settimeout(self.network.deadline.left())
        data = self.wire.recv(max_bytes)
        if self.network.header_bytes_left is not None:
            self.network.header_bytes_left -= len(data)
            if self.network.header_bytes_left < 0:
                raise httpcore2.RemoteProtocolError("its headers are too long")
        return data

    def write(self, buffer: bytes, timeout: float | None = None) -> None:
        self.wire.settimeout(self.network.deadline.left())
        self.wire.sendall(buffer)

    def start_tls(self, ssl_context: ssl.SSLContext, server_hostname: str | None = None, *_: Any, **__: Any) -> _Stream:
        self.wire.settimeout(self.network.deadline.left())
        return _Stream(self.network, ssl_context.wrap_socket(self.wire, server_hostname=server_hostname))

    def close(self) -> None:
        self.wire.close()


def system_resolver(host: str, port: int) -> list[str]:
    found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(str(address[0]) for *_, address in found))


def validator(value: str) -> str:
    """As the server wrote it, if it can be stored in a note and sent in a request."""
    value = value.strip()
    return value if len(value) <= LONGEST_VALIDATOR and value.isascii() and value.isprintable() else ""


def _decompressed(chunks: Iterable[bytes], headers: dict[str, str], most: int) -> bytes:
    """The whole body. Stops at the first byte too many: 300 KB of gzip can become 300 MB."""
    too_large = PageRefusedError(f"it is larger than {most:,} bytes (the setting web_max_bytes)")
    length, encoding = headers.get("content-length", ""), headers.get("content-encoding", "").strip().lower()
    if encoding not in ("", "identity", "gzip", "x-gzip"):
        raise PageRefusedError(f"it is compressed as {encoding!r}, though gzip was asked for")
    if length.isdecimal() and int(length) > most:
        raise too_large
    body, received = bytearray(), 0
    inflate = zlib.decompressobj(31) if "gzip" in encoding else None
    for data in chunks:
        received += len(data)
        try:
            body += inflate.decompress(data, most - len(body) + 1) if inflate else data
            while inflate and inflate.unused_data.startswith(b"\x1f\x8b") and len(body) <= most:
                data, inflate = inflate.unused_data, zlib.decompressobj(31)  # one more gzip member
                body += inflate.decompress(data, most - len(body) + 1)
        except zlib.error:
            raise PageError("its compression is broken") from None
        if len(body) > most or received > most + 65_536:  # padding does not go on forever
            raise too_large
    if inflate and body and not inflate.eof:
        raise PageError("the download was cut off; try again")
    return bytes(body)


def _location(headers: dict[str, str], status: int) -> str:
    location = headers.get("location", "")
    if not location:
        raise PageError(f"it redirects ({status}) without saying where to")
    with suppress(UnicodeDecodeError):  # some servers send it unquoted
        return location.encode("latin-1").decode("utf-8")
    return location


def _content_type(header: str) -> tuple[str, str]:
    """The two parts of `text/html; charset="utf-8"`. Raises PageRefusedError for what is no web page."""
    media_type, _, parameters = header.lower().partition(";")
    media_type = media_type.strip()
    if media_type == "application/pdf":
        raise PageRefusedError("it is a PDF, not a web page; download it, then `co add FILE.pdf`")
    if media_type and media_type not in TYPES:
        shown = media_type if media_type.isprintable() and len(media_type) < 80 else "something else"
        raise PageRefusedError(f"it is {shown}, not a web page; only HTML, Markdown and plain text can be saved")
    charset = re.search(r"charset\s*=\s*[\"']?([\w.:-]+)", parameters)
    return media_type, charset[1] if charset else ""


def _refusal(status: int) -> str:
    match status:
        case 401 | 403 | 407:
            return f"the server wants a login ({status}); save the page from your browser, then `co add FILE`"
        case 429 | 503:
            return f"the server is busy ({status}); try again later"
        case _:
            return f"the server answers {status} instead of a page; try again later"


@contextmanager
def _translated(deadline: Deadline) -> Generator[None]:
    """Turn what a network, a server or TLS can do to a request into a PageError."""
    try:
        yield
    except TimeoutError:
        limit = f"{deadline.seconds:g} seconds"
        raise PageError(f"no answer in time; try again later (the setting web_seconds is {limit})") from None
    except ssl.SSLCertVerificationError as error:
        raise PageError(f"its certificate is not accepted: {error.verify_message or error.reason}") from None
    except ssl.SSLError as error:
        raise PageError(f"no secure connection: {error.reason or error}") from None
    except httpcore2.RemoteProtocolError as error:
        raise PageError(f"the server sent invalid HTTP: {error}") from None
    except OSError as error:
        raise PageError(f"no connection: {error.strerror or error}") from None
