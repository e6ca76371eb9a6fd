"""Serve an ASGI app over HTTP to those who know a token, and to nobody else.

Clients without the token cannot hold a connection open, and nobody can use up what others need: `TokenGuard` and
`Bodies` are ASGI middleware, which work with any server and with a test client, and `GuardedConnection` limits what
comes before a request.
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
import hmac
import ipaddress
import json
import os
import re
import signal
import socket
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Collection, Generator, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, cast

import anyio
import uvicorn
from starlette.datastructures import Headers
from starlette.requests import HTTPConnection
from starlette.responses import JSONResponse, PlainTextResponse, Response
from uvicorn.protocols.http.h11_impl import H11Protocol

from co_cli.ground.errors import InvalidInputError

if TYPE_CHECKING:
    from types import FrameType

    from starlette.types import ASGIApp, Message, Receive, Scope, Send

GRACE = 5
"""Seconds that running requests have to finish after a signal."""
LEAVE_SECONDS = 4.0
"""How long a server that a proxy asks whether it is ready goes on after SIGTERM, so that the proxy hears that it is
not: a proxy loses a POST that it sends while the connection is closed."""
REQUESTS = 64
"""Requests of one token that may be open at once, without streams of events."""
STRANGERS = 128
"""Connections that have not sent the token yet; one more closes the oldest."""
ACCEPTED = 16
"""Connections accepted at a time: far fewer than STRANGERS, so that none is the oldest before it can send anything."""
IDLE_SECONDS = 8
"""After which a connection that sends nothing is closed: later than the five seconds after which many clients stop
using one, or some requests meet a connection that is just closed."""
HEADERS_SECONDS = 10
"""How long a connection has to send the complete headers of a request with the token."""
BODY_SECONDS = 30
"""How long a request with the token has to send its body."""
STRANGER_SECONDS, STRANGER_BYTES = 5, 1_000
"""The same for a request without one, such as a sign-in, and how long its body may be."""
DEEPEST = 64
"""Levels of JSON. Python's own limit depends on how deep the call is."""
SURROGATE = re.compile(rb"\xed[\xa0-\xbf][\x80-\xbf]")
"""Half an emoji as bytes, which UTF-8 does not have."""
HALF_CHARACTER = re.compile(rb"\\(?:u[dD][89abAB]\w\w\\u[dD][c-fC-F]\w\w|(u[dD][89a-fA-F]\w\w)|.)")
"""A JSON escape; group 1 is half of a surrogate pair without the other half."""
HALF = "\ufdd0"
"""Marks such a half where it must be refused: Unicode reserves this character for use inside programs."""
ADDRESSES = 10_000
"""Whose use `Buckets` remember at once."""
SHORTEST_TOKEN = 16


class TokenGuard:
    """Middleware that lets requests with a token through to an app, if they name one of these hosts."""

    def __init__(
        self,
        app: ASGIApp,
        identify: Callable[[HTTPConnection], Awaitable[str | None]],
        hosts: Collection[str],
        is_public: Callable[[HTTPConnection], bool] = lambda _: False,
        ways_in: Callable[[HTTPConnection], Mapping[str, str]] = lambda _: {},
    ) -> None:
        """`identify` names the token of a request; None if it has none, or an unknown one.

        `notes.example:*` in `hosts` stands for any port. `is_public`: requests that need no token. `ways_in`: where to
        get one, by the name of the way, for requests that are refused.
        """
        self._app, self._identify, self._hosts, self._is_public = app, identify, hosts, is_public
        self._ways_in = ways_in
        self._open: Counter[str] = Counter()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
            return
        request = HTTPConnection(scope)
        connection: GuardedConnection | None = scope["state"].get("connection")  # a test client has none
        with connection.identifying() if connection else contextlib.nullcontext():
            name = request.state.token_name = await self._identify(request)
        refused = self._refusal(request, name)
        with connection.answering(name is not None) if connection else contextlib.nullcontext():
            if refused or name is None:
                await (refused or self._app)(scope, receive, send)
            else:
                await self._answer(name, scope, receive, send)

    async def _answer(self, name: str, scope: Scope, receive: Receive, send: Send) -> None:
        """Count the request until it is answered, or until its answer turns out to be a stream."""
        self._open[name] += 1
        with contextlib.ExitStack() as held:
            held.callback(self._release, name)

            async def send_counted(message: Message) -> None:
                if message["type"] == "http.response.start" and _is_stream(message):
                    held.close()
                await send(message)

            await self._app(scope, receive, send_counted)

    def _release(self, name: str) -> None:
        self._open[name] -= 1
        if not self._open[name]:
            del self._open[name]

    def _refusal(self, request: HTTPConnection, name: str | None) -> Response | None:
        origin = request.headers.get("origin")
        if name is None and not self._is_public(request):
            is_known = self._is_known(request.headers.get("host", ""))
            ways: Mapping[str, str] = self._ways_in(request) if is_known else {}
            challenge = ", ".join(['Bearer error="invalid_token"', *(f'{way}="{url}"' for way, url in ways.items())])
            return JSONResponse({"error": "invalid_token", **ways}, 401, {"WWW-Authenticate": challenge})
        if not self._is_known(request.headers.get("host", "")):
            return PlainTextResponse("Invalid Host header", 421)
        if origin and not self._is_known(origin.removeprefix("http://").removeprefix("https://")):
            return PlainTextResponse("Invalid Origin header", 403)
        if name is not None and self._open[name] >= REQUESTS:
            return too_many(f"a token has {REQUESTS} open requests: wait until one is answered")
        return None

    def _is_known(self, host: str) -> bool:
        host = host.lower()
        return host in self._hosts or f"{host.rpartition(':')[0]}:*" in self._hosts


class Bodies:
    """Middleware that gives an app a request whose body is complete, and no JSON that an app cannot use."""

    def __init__(
        self,
        app: ASGIApp,
        largest: int,
        unread: Collection[str] = (),
        strict: Collection[str] = (),
        larger: Mapping[str, int] | None = None,
    ) -> None:
        """`largest`: bytes, for a request with a token. `unread`: paths whose bodies the app reads itself.

        `strict`: paths that refuse half a character, which is HALF for them. Others get U+FFFD for it.
        `larger`: beginnings of paths that take more bytes.
        """
        self._app, self._largest, self._unread, self._strict = app, largest, unread, strict
        self._larger = larger or {}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["path"] in self._unread:
            await self._app(scope, receive, send)
            return
        known = scope.get("state", {}).get("token_name") is not None
        most = max((size for start, size in self._larger.items() if scope["path"].startswith(start)), default=0)
        largest = max(self._largest, most) if known else STRANGER_BYTES
        seconds = BODY_SECONDS if known else STRANGER_SECONDS
        body: bytes | Response | None
        try:
            async with asyncio.timeout(seconds):
                body = await _read(receive, largest)
        except TimeoutError:
            body = refusal(408, "too_slow", f"the body was not complete after {seconds} seconds")
            body.headers["Connection"] = "close"  # the rest may never come
        if body is None:  # the client is gone
            return
        if isinstance(body, bytes):
            body = whole_characters(body, HALF if scope["path"] in self._strict else "\ufffd")
            if _is_deep(body):
                body = refusal(400, "invalid_input", f"the JSON has more than {DEEPEST} levels")
        if isinstance(body, Response):
            await body(scope, receive, send)
            return
        await self._app(scope, receive_again(body, receive), send)


def receive_again(body: bytes, receive: Receive) -> Receive:
    """What an app calls for a body that was read already; after it comes what the client sends next."""
    whole: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]

    async def receive_next() -> Message:
        return whole.pop() if whole else await receive()

    return receive_next


class Buckets:
    """How many requests each of many has left. A bucket fills up again over time."""

    def __init__(self) -> None:
        self._left: dict[str, tuple[float, float]] = {}

    def take(self, name: str, size: int, per_second: float) -> bool:
        now = time.monotonic()
        left, at = self._left.pop(name, (size, now))
        left = min(size, left + (now - at) * per_second)
        self._left[name] = (left - 1 if left >= 1 else left, now)
        if len(self._left) > ADDRESSES:
            del self._left[next(iter(self._left))]  # the one that took nothing for the longest time
        return left >= 1

    def give_back(self, name: str) -> None:
        left, at = self._left[name]
        self._left[name] = (left + 1, at)


class GuardedConnection(asyncio.Protocol):
    """A connection that is closed unless a TokenGuard says in time, for each request, that it sent the token.

    An ASGI app cannot do this: it hears of a connection only when the headers are complete. Nor can a setting of
    uvicorn: `timeout_keep_alive` ends with the next byte, `limit_concurrency` counts those with the token, too, and
    `h11_max_incomplete_event_size` is no time. So this one stands between asyncio and uvicorn's own.
    """

    def __init__(self, strangers: dict[GuardedConnection, None], app_state: dict[str, Any], **given: Any) -> None:
        """`strangers` are the connections of a server that have not sent the token, the oldest first."""
        self._strangers, self._known = strangers, 0
        # uvicorn copies the state into each request
        self._inner = H11Protocol(app_state={**app_state, "connection": self}, **given)
        self.eof_received, self.data_received = self._inner.eof_received, self._inner.data_received
        self.pause_writing, self.resume_writing = self._inner.pause_writing, self._inner.resume_writing

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)
        # asyncio does not, for sockets of `create_server`; without it each answer takes 40 ms longer
        transport.get_extra_info("socket").setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._inner.connection_made(self._transport)
        self._deadline = asyncio.get_running_loop().call_later(HEADERS_SECONDS, self.abort)
        self._strangers[self] = None
        if len(self._strangers) > STRANGERS:
            next(iter(self._strangers)).abort()

    def connection_lost(self, exc: Exception | None) -> None:
        self._forget()
        self._inner.connection_lost(exc)

    def abort(self) -> None:
        self._forget()
        self._transport.abort()

    @contextlib.contextmanager
    def identifying(self) -> Generator[None]:
        """The clock stands still: a database that is away, or a sign-in provider, may take longer than a client may."""
        loop, ticking = asyncio.get_running_loop(), not self._deadline.cancelled()
        left = self._deadline.when() - loop.time()
        self._deadline.cancel()
        try:
            yield
        finally:
            if ticking and not self._transport.is_closing():
                self._deadline = loop.call_later(left, self.abort)

    @contextlib.contextmanager
    def answering(self, known: bool) -> Generator[None]:
        """While a request with the token (`known`) is answered, there is no deadline. Two may overlap for a moment."""
        if known:
            self._forget()
        self._known += known
        try:
            yield
        finally:
            self._known -= known
            # or the rest of a body, or half of the next headers, would keep it open forever
            if not self._known and self not in self._strangers and not self._transport.is_closing():
                self._start_deadline()

    def _start_deadline(self) -> None:
        self._deadline.cancel()
        self._deadline = asyncio.get_running_loop().call_later(HEADERS_SECONDS, self.abort)

    def _forget(self) -> None:
        self._deadline.cancel()
        self._strangers.pop(self, None)


class GuardedServer(uvicorn.Server):
    """Lets more connections wait to be accepted than asyncio accepts in one go."""

    def __init__(
        self,
        config: uvicorn.Config,
        on_stop: Callable[[], None],
        on_reload: Callable[[], None] | None,
        leave: Callable[[], bool],
    ) -> None:
        super().__init__(config)
        self._on_stop, self._on_reload, self._leave = on_stop, on_reload, leave
        self._leaving = False

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        if self._on_reload and (hangup := getattr(signal, "SIGHUP", None)):  # Windows has none
            asyncio.get_running_loop().add_signal_handler(hangup, self._on_reload)
        await super().startup(sockets)
        for listener in sockets or ():
            listener.listen(STRANGERS)

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        if sig == signal.SIGTERM and not self._leaving and self._leave():
            self._leaving = True  # the next signal ends it at once
            asyncio.get_running_loop().call_later(LEAVE_SECONDS, super().handle_exit, sig, frame)
        else:
            super().handle_exit(sig, frame)

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        self._on_stop()
        await super().shutdown(sockets)


def given_token(request: HTTPConnection) -> str:
    """The bearer token in the Authorization header of a request; empty if there is none."""
    scheme, _, given = request.headers.get("authorization", "").partition(" ")
    return given.strip() if scheme.lower() == "bearer" else ""


def has_token(request: HTTPConnection, token: str) -> bool:
    """Whether a request has this token, compared in constant time."""
    return hmac.compare_digest(given_token(request).encode(), token.encode())


def bearer(token: str) -> Callable[[HTTPConnection], Awaitable[str | None]]:
    """Identifies the one token of a server, for a TokenGuard."""

    async def identify(request: HTTPConnection) -> str | None:
        return "" if has_token(request, token) else None

    return identify


def address_of_client(request: HTTPConnection) -> str:
    """Where a request comes from. Of one through a proxy in a private network, also what the proxy says about it.

    The last address in X-Forwarded-For is the one that the proxy itself saw; clients can write the others.
    """
    peer = request.client.host if request.client else ""
    said = request.headers.getlist("x-forwarded-for") if _is_private(peer) else []
    return f"{peer} {said[-1].rpartition(',')[2].strip()}" if said else peer


def address_of_site(request: HTTPConnection) -> str:
    """What a client calls this site, such as `https://notes.example`: a proxy in a private network knows it."""
    peer = request.client.host if request.client else ""
    said = request.headers.get("x-forwarded-proto", "").strip() if _is_private(peer) else ""
    return f"{said if said in ('http', 'https') else request.url.scheme}://{request.headers.get('host', '')}"


def _is_private(peer: str) -> bool:
    try:
        return ipaddress.ip_address(peer).is_private
    except ValueError:
        return False


def refusal(status: int, kind: str, message: str) -> Response:
    """An error as every route of the API answers it."""
    return JSONResponse({"error": {"kind": kind, "message": message, "present": None, "closest": []}}, status)


def too_many(message: str) -> Response:
    answer = refusal(429, "too_many_requests", message)
    answer.headers["Retry-After"] = "1"
    return answer


def token_in(variable: str) -> str:
    """The token in an environment variable; empty without it."""
    token = os.environ.get(variable, "").strip()
    if token and (len(token) < SHORTEST_TOKEN or not token.isascii() or " " in token):
        make = 'python3 -c "import secrets; print(secrets.token_urlsafe(32))"'
        raise InvalidInputError(f"{variable} needs {SHORTEST_TOKEN} ASCII characters or more, no spaces: {make}")
    return token


def whole_characters(data: bytes, half: str) -> bytes:
    r"""JSON with half emoji, which JavaScript writes as `\ud83d` and others as bytes, replaced by `half`."""
    data = SURROGATE.sub(half.encode(), data) if b"\xed" in data else data
    return HALF_CHARACTER.sub(lambda found: half.encode() if found[1] else found[0], data) if b"\\u" in data else data


def listen(host: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        return socket.create_server((host, port), family=family)
    except (OSError, OverflowError) as error:
        why = "it is in use" if isinstance(error, OSError) and error.errno == errno.EADDRINUSE else error
        raise InvalidInputError(f"cannot listen on {host} port {port}: {why}; choose another with --port") from None


def serve(
    app: ASGIApp,
    listening: socket.socket,
    on_stop: Callable[[], None] = lambda: None,
    on_reload: Callable[[], None] | None = None,
    leave: Callable[[], bool] = lambda: False,
) -> None:
    """Answer requests until a signal.

    `on_stop` ends streams, which would never end. SIGHUP calls `on_reload`. `leave` tells those who ask whether the
    server is ready that it will stop, and returns whether somebody asks.
    """
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # uvicorn raises the signal again when it is done
    with contextlib.suppress(KeyboardInterrupt):
        anyio.run(make_server(app, on_stop, on_reload, leave).serve, [listening])


def make_server(
    app: ASGIApp,
    on_stop: Callable[[], None] = lambda: None,
    on_reload: Callable[[], None] | None = None,
    leave: Callable[[], bool] = lambda: False,
) -> uvicorn.Server:
    config = uvicorn.Config(
        app,
        http=cast("Any", partial(GuardedConnection, {})),
        ws="none",
        proxy_headers=False,  # `address_of_client` reads them
        log_config=None,
        log_level="error",  # strangers must not fill the log, or a pipe that nobody reads
        access_log=False,
        server_header=False,
        backlog=ACCEPTED,
        timeout_keep_alive=IDLE_SECONDS,
        timeout_graceful_shutdown=GRACE,
    )
    return GuardedServer(config, on_stop, on_reload, leave)


async def _read(receive: Receive, largest: int) -> bytes | Response | None:
    """The body of a request, or why it is refused; None if the client went away."""
    body, more = bytearray(), True
    while more:
        message = await receive()
        if message["type"] != "http.request":
            return None
        body += message.get("body", b"")
        more = message.get("more_body", False)
        if len(body) > largest:
            return refusal(413, "too_large", f"a request has at most {largest:,} bytes")
    return bytes(body)


def _is_deep(body: bytes) -> bool:
    """Whether it is JSON with more levels than an app can rely on. What is no JSON at all, an app says itself."""
    try:
        inside: list[Any] = [[json.loads(body)]] if body else []
    except RecursionError:
        return True
    except ValueError:
        return False
    for _ in range(DEEPEST + 1):
        members: list[Any] = [
            item for container in inside for item in (container.values() if hasattr(container, "values") else container)
        ]
        inside = [member for member in members if isinstance(member, dict | list)]
    return bool(inside)


def _is_stream(start: Message) -> bool:
    return Headers(raw=start["headers"]).get("content-type", "").startswith("text/event-stream")
