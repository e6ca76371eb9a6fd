"""Who may speak to the HTTP door: a token to know, a host to have asked for, no foreign page behind the request.

A server on loopback can be reached by every program of every user of the machine, and by every web page that a browser
there shows. The token keeps out the programs; the check of Host and Origin keeps out pages, also those that point a
name of their own at 127.0.0.1 (DNS rebinding). Whoever is let in has a bounded share of the machine: so many requests a
second, so many bytes each, so long to send them.
"""

from __future__ import annotations

import hmac
import ipaddress
import json
import os
import secrets
import stat
import time
from collections.abc import Awaitable, Callable, Iterable, Mapping, MutableMapping
from typing import Any, NamedTuple

from co_cli.errors import InvalidInputError

VARIABLE = "CO_MCP_TOKEN"
SHORTEST_TOKEN = 16
LOOPBACK_NAMES = ("localhost", "127.0.0.1", "::1")

MOST_BYTES = 4_000_000
"""Of one request: a note is half as large at most."""
MOST_UNREAD = 4 * MOST_BYTES
"""Of one that is too large: so much is taken in and thrown away, so that its sender comes to read why."""
BODY_SECONDS = 30.0
RATE, BURST = 100.0, 400.0
"""Requests a second that are answered in the long run, and at once after a rest."""
WRONG_RATE, WRONG_BURST = 1.0, 20.0
"""The same of wrong tokens. Who knows the right one is never kept waiting by those who guess."""

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[Message, Receive, Send], Awaitable[None]]


class Token(NamedTuple):
    """What a client must say, and whether it was made for this run only."""

    value: str
    made: bool


def find_token(token_file: str | None, environ: Mapping[str, str]) -> Token:
    """From a file, else from the environment, else a new one. Never from the command line, which `ps` shows."""
    if token_file is not None:
        return Token(_checked(_read_private(token_file), token_file), made=False)
    if environ.get(VARIABLE):
        return Token(_checked(environ[VARIABLE].strip(), VARIABLE), made=False)
    return Token(secrets.token_urlsafe(32), made=True)


def _read_private(path: str) -> str:
    try:
        with open(path, encoding="utf-8") as stream:
            mode = os.fstat(stream.fileno()).st_mode
            text = stream.read(10_000).strip()
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not text"
        raise InvalidInputError(f"the token file {path} cannot be read: {reason}") from None
    if os.name != "nt" and mode & (stat.S_IRWXG | stat.S_IRWXO):
        raise InvalidInputError(f"other users can read the token file {path}: `chmod 600 {path}`")
    return text


def _checked(token: str, where: str) -> str:
    if len(token) < SHORTEST_TOKEN or not token.isascii() or any(letter.isspace() for letter in token):
        cure = 'python3 -c "import secrets; print(secrets.token_urlsafe(32))"'
        raise InvalidInputError(
            f"the token in {where} has to be {SHORTEST_TOKEN} or more letters without blanks: {cure}"
        )
    return token


def is_loopback(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


class Refusal(NamedTuple):
    """How a request is turned away."""

    status: int
    reason: str
    headers: dict[str, str] = {}  # noqa: RUF012 - nobody writes to it


HTTP_ONLY = Refusal(400, "HTTP only")
TOO_LARGE = Refusal(413, f"a request has {MOST_BYTES:,} bytes at most", {"connection": "close"})
TOO_SLOW = Refusal(408, f"a request is sent within {BODY_SECONDS:g} s", {"connection": "close"})
TOO_OFTEN = Refusal(429, "too many requests: wait a second", {"retry-after": "1"})


class Allowance:
    """So many a second, and a store of them for those who come all at once."""

    def __init__(self, rate: float, burst: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._rate, self._burst, self._clock = rate, burst, clock
        self._left, self._seen = burst, clock()

    def take(self) -> bool:
        now = self._clock()
        self._left = min(self._burst, self._left + (now - self._seen) * self._rate)
        self._seen = now
        if self._left < 1:
            return False
        self._left -= 1
        return True


class Guard:
    """Lets a request through if it names a host that is ours, comes from no foreign page, and knows the token."""

    def __init__(
        self,
        app: App,
        token: str,
        host: str,
        port: int,
        names: Iterable[str] = (),
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._app, self._token, self._port = app, token.encode(), port
        self._own = {*LOOPBACK_NAMES, host.lower()}
        self._allowed = {name.lower() for name in names}
        self._any_address = not is_loopback(host)
        self._requests, self._wrong = Allowance(RATE, BURST, clock), Allowance(WRONG_RATE, WRONG_BURST, clock)

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
            return
        refusal = self.refuse(scope["method"], _headers(scope)) if scope["type"] == "http" else HTTP_ONLY
        if scope["type"] == "http" and _length(scope) > MOST_BYTES and refusal is None:
            refusal = TOO_LARGE
        elif (refusal is None and not self._requests.take()) or (
            refusal and refusal.status == 401 and not self._wrong.take()
        ):
            refusal = TOO_OFTEN
        if refusal:
            await _answer(send, refusal, receive)
            return
        body = await _body(receive)
        if isinstance(body, Refusal):
            await _answer(send, body, receive)
        elif body is not None:
            await self._app(scope, _again(body, receive), send)

    def refuse(self, method: str, headers: dict[str, list[str]]) -> Refusal | None:
        """Why this request is refused; None if it is welcome."""
        if any(len(headers.get(name, ())) > 1 for name in ("host", "origin", "authorization")):
            return Refusal(400, "host, origin and authorization may be said once")
        host = headers.get("host", [""])[0].lower()
        if not self._is_ours(host):
            return Refusal(421, "this server does not answer for that host")
        origin = headers.get("origin", [None])[0]
        if origin is not None and origin.lower() not in (f"http://{host}", f"https://{host}"):
            return Refusal(403, "requests from other origins are refused")
        scheme, _, token = headers.get("authorization", [""])[0].partition(" ")
        known = hmac.compare_digest(token.strip().encode("utf-8", "replace"), self._token)
        if scheme.lower() != "bearer" or not known:
            wrong = ', error="invalid_token"' if scheme else ""
            challenge = f'Bearer realm="co mcp"{wrong}'
            return Refusal(401, "say the token: `Authorization: Bearer ...`", {"www-authenticate": challenge})
        if method != "POST":
            return Refusal(405, "this server answers POST; it opens no stream of its own", {"allow": "POST"})
        return None

    def _is_ours(self, host: str) -> bool:
        name, port = _split(host)
        if name in self._allowed:  # something stands in front of us, on a port of its own
            return True
        if port != self._port:
            return False
        return name in self._own or (self._any_address and _is_address(name))  # only a name can be pointed elsewhere


def _length(scope: Message) -> int:
    said = _headers(scope).get("content-length", ["0"])[0]
    return int(said) if said.isascii() and said.isdigit() else 0


async def _body(receive: Receive) -> bytes | Refusal | None:
    """All that a client sends, if it is not too much and does not take too long; None if it hung up."""
    import anyio  # slow, and whoever only makes a token does without

    parts: list[bytes] = []
    size = 0
    with anyio.move_on_after(BODY_SECONDS):
        while True:
            message = await receive()
            if message["type"] == "http.disconnect":
                return None
            parts.append(message.get("body", b""))
            size += len(parts[-1])
            if size > MOST_BYTES:
                return TOO_LARGE
            if not message.get("more_body"):
                return b"".join(parts)
    return TOO_SLOW


def _again(body: bytes, receive: Receive) -> Receive:
    """What was received, for the one behind us; then whatever else happens, such as that the client hangs up."""
    waiting = [body]

    async def once() -> Message:
        return {"type": "http.request", "body": waiting.pop(), "more_body": False} if waiting else await receive()

    return once


def _split(host: str) -> tuple[str, int]:
    """`[::1]:8765` into `::1` and 8765. Without a port it is HTTP's own; one that is no number is nobody's."""
    if host.startswith("["):
        name, _, rest = host[1:].partition("]")
        port = rest.removeprefix(":")
    else:
        name, _, port = host.partition(":")
    if not port:
        return name, 80
    return name, int(port) if port.isascii() and port.isdigit() and len(port) < 6 else -1


def _is_address(name: str) -> bool:
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True


def _headers(scope: Message) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for name, value in scope["headers"]:
        found.setdefault(name.decode("latin-1").lower(), []).append(value.decode("latin-1"))
    return found


async def _answer(send: Send, refusal: Refusal, receive: Receive) -> None:
    body = json.dumps({"error": refusal.reason}).encode()
    head = {"content-type": "application/json", "content-length": str(len(body)), **refusal.headers}
    pairs = [(name.encode(), value.encode()) for name, value in head.items()]
    await send({"type": "http.response.start", "status": refusal.status, "headers": pairs})
    if refusal is TOO_LARGE:  # who hangs up on one that still sends takes the answer back
        await send({"type": "http.response.body", "body": body, "more_body": True})
        await _thrown_away(receive)
        body = b""
    await send({"type": "http.response.body", "body": body})


async def _thrown_away(receive: Receive) -> None:
    """The rest of a request, up to a bound."""
    import anyio

    size = 0
    with anyio.move_on_after(BODY_SECONDS):
        while size < MOST_UNREAD:
            message = await receive()
            size += len(message.get("body", b""))
            if message["type"] == "http.disconnect" or not message.get("more_body"):
                return
