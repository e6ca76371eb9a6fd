"""A web address into the bytes of its page: public addresses only, checked at every step and pinned.

A name is looked up once for each step. Every address it has is checked, and the connection goes to one of those that
were checked: an answer of DNS that changes a moment later changes nothing. A redirect is a new step.
"""

from __future__ import annotations

import socket
import ssl
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import NamedTuple

from co_cli.errors import PageError, PageGoneError, PageRefusedError
from co_cli.sources.fetching_addresses import Exceptions, why_refused
from co_cli.sources.fetching_exchange import Answer, Deadline, Limits, exchange
from co_cli.sources.fetching_url import PageUrl, follow

Resolver = Callable[[str, int], Sequence[str]]
"""Every address of a name; raises OSError if it has none."""

REDIRECTS = (301, 302, 303, 307, 308)
GONE = (404, 410)
TYPES = ("text/html", "application/xhtml+xml", "text/plain", "text/markdown", "text/x-markdown")
ACCEPT = "text/html, application/xhtml+xml, text/markdown, text/plain;q=0.9"
MOST_ADDRESSES = 8
LONGEST_VALIDATOR = 200


class Validators(NamedTuple):
    """By which a server recognises the version we have: either is enough."""

    etag: str = ""
    last_modified: str = ""


class Fetched(NamedTuple):
    """A page as it came: bytes, and what the server says they are."""

    url: PageUrl
    """Where it was in the end, after redirects."""
    media_type: str
    charset: str
    """As the server names it; empty if it does not."""
    body: bytes
    validators: Validators


class Fetcher:
    """Fetches pages. `exceptions` are addresses inside that may be asked all the same."""

    def __init__(
        self,
        limits: Limits | None = None,
        exceptions: Exceptions | None = None,
        resolver: Resolver | None = None,
        tls: ssl.SSLContext | None = None,
        agent: str = "co-cli (keeps a page for one person)",
    ) -> None:
        self.limits, self.exceptions = limits or Limits(), exceptions or Exceptions()
        self._resolver, self._tls, self._agent = resolver or system_resolver, tls, agent

    def fetch(self, url: PageUrl, known: Validators | None = None) -> Fetched | None:
        """The page, or None if the server says it is still the one that is `known`.

        Raises PageGoneError, PageRefusedError or PageError, each of which names the address and the reason.
        """
        deadline = Deadline(self.limits.seconds)
        step = url
        try:
            for _ in range(self.limits.redirects + 1):
                addresses = self._checked_addresses(step, deadline)
                with exchange(step, addresses, self._headers(known), self._context(), self.limits, deadline) as answer:
                    if answer.status not in REDIRECTS:
                        return self._read(step, answer, known)
                    step = _next(step, answer)
            raise PageRefusedError(f"it redirects more than {self.limits.redirects} times")
        except PageError as error:
            where = str(url) if step == url else f"{url} leads to {step}"
            raise type(error)(f"{where}: {error}") from None

    def _headers(self, known: Validators | None) -> list[tuple[str, str]]:
        headers = [
            ("User-Agent", self._agent),
            ("Accept", ACCEPT),
            ("Accept-Encoding", "gzip, deflate"),
            ("Connection", "close"),
        ]
        etag, last_modified = map(validator, known or Validators())
        if etag:
            headers.append(("If-None-Match", etag))
        elif last_modified:
            headers.append(("If-Modified-Since", last_modified))
        return headers

    def _context(self) -> ssl.SSLContext:
        if self._tls is None:
            import truststore  # the system's own certificates, also on macOS and Windows

            self._tls = truststore.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        return self._tls

    def _checked_addresses(self, url: PageUrl, deadline: Deadline) -> Sequence[str]:
        """Every address of the host, none of which is refused. A single bad one among them condemns the name."""
        addresses = _literal(url.host) or self._look_up(url, deadline)
        for address in addresses:
            kind = why_refused(address, url.host, self.exceptions)
            if kind:
                at = "" if address == url.host else f"{url.host} is "
                raise PageRefusedError(
                    f"{at}{address}, {kind}; only public addresses are fetched (the setting web_allow lists exceptions)"
                )
        return addresses[:MOST_ADDRESSES]

    def _look_up(self, url: PageUrl, deadline: Deadline) -> Sequence[str]:
        """In a thread of its own, for a system's resolver knows no time limit."""
        found: list[Sequence[str] | Exception] = []

        def work() -> None:
            try:
                found.append(list(self._resolver(url.host, url.port)))
            except Exception as error:
                found.append(error)

        thread = threading.Thread(target=work, name="co-look-up", daemon=True)
        thread.start()
        with suppress(TimeoutError):
            thread.join(deadline.left())
        if not found:
            raise PageError(f"looking up {url.host} took longer than {deadline.seconds:g} seconds; try again later")
        if isinstance(found[0], OSError) or not found[0]:
            raise PageError(f"no host is called {url.host}, or this machine is offline")
        if isinstance(found[0], Exception):
            raise found[0]
        return found[0]

    def _read(self, url: PageUrl, answer: Answer, known: Validators | None) -> Fetched | None:
        if answer.status == 304 and known and (known.etag or known.last_modified):
            return None
        if answer.status in GONE:
            raise PageGoneError(f"there is no such page ({answer.status})")
        if answer.status not in (200, 203):
            raise PageError(_refusal(answer))
        media_type, charset = _content_type(answer.headers.get("content-type", ""))
        if media_type and media_type not in TYPES:
            raise PageRefusedError(_wrong_type(media_type))
        validators = Validators(*(validator(answer.headers.get(name, "")) for name in ("etag", "last-modified")))
        return Fetched(url, media_type, charset, answer.body(), validators)


def system_resolver(host: str, port: int) -> list[str]:
    found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(str(address[0]) for *_, address in found))


def _literal(host: str) -> list[str]:
    """The host itself, if it is an address: every odd spelling of one was straightened out before."""
    return [host] if ":" in host or host.replace(".", "").isdecimal() else []


def _next(url: PageUrl, answer: Answer) -> PageUrl:
    location = answer.headers.get("location", "")
    if not location:
        raise PageError(f"it redirects ({answer.status}) without saying where to")
    with suppress(UnicodeDecodeError):  # some servers send it as it is
        location = location.encode("latin-1").decode("utf-8")
    return follow(url, location)


def _refusal(answer: Answer) -> str:
    match answer.status:
        case 401 | 403 | 407:
            return f"the server wants a login ({answer.status}); save the page from your browser, then `co add FILE`"
        case 429 | 503:
            later = answer.headers.get("retry-after", "")
            when = f"in {later} seconds" if later.isdecimal() and len(later) < 7 else "later"
            return f"the server is busy ({answer.status}); try again {when}"
        case _:
            return f"the server answers {answer.status} instead of a page; try again later"


def _content_type(header: str) -> tuple[str, str]:
    """`text/html; charset="utf-8"` as its two halves."""
    media_type, *parameters = header.split(";")
    charset = ""
    for parameter in parameters:
        name, _, value = parameter.partition("=")
        if name.strip().lower() == "charset":
            charset = value.strip().strip("\"'").lower()
    return media_type.strip().lower(), charset


def _wrong_type(media_type: str) -> str:
    if media_type == "application/pdf":
        return "it is a PDF, not a web page; download it, then `co add FILE.pdf`"
    shown = media_type if media_type.isprintable() and len(media_type) < 80 else "something else"
    return f"it is {shown}, not a web page; HTML, Markdown and plain text can be kept"


def validator(value: str) -> str:
    """As the server wrote it, if it can stand in a note and in a request."""
    value = value.strip()
    return value if len(value) <= LONGEST_VALIDATOR and value.isascii() and value.isprintable() else ""
