"""The ASGI app of `co web`: sign-in, the routes of the API, the page's files, and headers that keep others out.

The printed address has a one-time code in its fragment, which no request has. The page exchanges it for a token, which
later runs know, too, so that a browser stays signed in. Everything but the page's own files needs the token.
"""

from __future__ import annotations

import asyncio
import hmac
import os
import secrets
import time
from collections.abc import AsyncGenerator, Callable, Collection, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from threading import Lock
from typing import Any, NamedTuple

from anyio import CapacityLimiter, to_thread
from starlette.applications import Starlette
from starlette.convertors import PathConvertor, register_url_convertor
from starlette.datastructures import MutableHeaders
from starlette.requests import HTTPConnection, Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route
from starlette.types import Message, Receive, Scope, Send

from co_cli.activity import acting
from co_cli.entrance.local import LocalKnowledgeBase, open_local
from co_cli.ground.access import Role, Token
from co_cli.ground.deadline import QueryDeadline, serving
from co_cli.ground.errors import KnowledgeError
from co_cli.ground.paths import sample_vault
from co_cli.http.http_server import REQUESTS, Bodies, TokenGuard, has_token
from co_cli.notes.files import change_json, read_json
from co_cli.server import (
    activity_api,
    attachment_api,
    audit,
    browse_api,
    clip_api,
    context_api,
    daily_api,
    health_api,
    map_api,
    note_api,
    review_api,
    routes,
    search_api,
    source_api,
    token_api,
)
from co_cli.server.attachment_api import LARGEST_BODY
from co_cli.server.clip_api import CLIPS
from co_cli.server.event_stream import Events, revision_of
from co_cli.server.page_files import send_clip_window, send_file, send_frame
from co_cli.server.routes import API, CALLER, KEY, ApiError, ErrorAnswer, error_answer, json_answer, read_body, route
from co_cli.tools.guidance import vault_name
from co_cli.vault.tiers import SAMPLE_QUESTIONS, is_own_vault
from co_cli.vault.vault import Opening
from co_cli.version import __version__

MODULES = (
    activity_api,
    attachment_api,
    audit,
    browse_api,
    clip_api,
    context_api,
    daily_api,
    health_api,
    map_api,
    note_api,
    review_api,
    search_api,
    source_api,
    token_api,
)
"""They register their routes when they are imported."""
OWNER = Token("", "admin", "")
"""The person who started the server."""
CLIPPER = Token("clipper", "clip", "")
"""The bookmarklet."""
SIGN_IN = f"{API}/session"
ABOUT_NOTES = ("/api/", "/mcp")
"""Beginnings of paths whose answers depend on the vault."""
PRIVATE = (*ABOUT_NOTES, "/metrics")
"""Beginnings of paths that need a token."""
READS = 4
"""Searches at once, and as many other reads. With more, none is faster, and saves wait for all of them."""
SEARCHES = ("/search", "/compare", "/context", "/given", "/tools/{name}", "/why")
"""What searches, and takes much longer than to show a note: that should not wait for all searches before it."""
KEPT_SECONDS = 30 * 86_400.0
"""How long a browser stays signed in to `co web`."""
SAMPLE = "x-co-vault"
"""The header that asks the sample vault: `X-Co-Vault: sample`."""
POLICY = "; ".join(
    (
        "default-src 'none'",
        "script-src 'self'",
        "style-src 'self'",
        "img-src 'self' blob:",
        "media-src blob:",
        "connect-src 'self'",
        "base-uri 'none'",
        "form-action 'none'",
        "frame-ancestors 'none'",
        "require-trusted-types-for 'script'",
        "trusted-types lit-html co",
    )
)
HEADERS = {
    "content-security-policy": POLICY,
    "x-frame-options": "DENY",
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
}


ELSEWHERE = PlainTextResponse("Only the page itself may request this", 403)
GONE = PlainTextResponse("The client has left", 499)


class AnyText(PathConvertor):
    """A rest of a path. Starlette's own `path` has no line breaks, and a file name may."""

    regex = "(?s:.*)"


register_url_convertor("any", AnyText())


class Session(NamedTuple):
    """What the page needs first."""

    vault: str
    name: str
    """What the page calls the vault."""
    notes: int
    """0: the page offers the sample vault."""
    version: str
    sample: bool
    """Whether this is the sample vault."""
    questions: Sequence[str]
    """To try on the sample vault."""
    role: Role
    """What the token may do."""
    caller: str
    """Whose token it is; empty for the person who started the server."""
    revision: str
    """What `GET /events` begins with, unless the index has changed since."""


def kept_token(data_dir: str, renew: bool = False) -> str:
    """The token of earlier runs, which only this user can read. A new one after a month, or to `renew` it."""
    file = os.path.join(data_dir, "web-token.json")
    now, token = time.time(), secrets.token_urlsafe(32)

    def keep(state: dict[str, Any]) -> None:
        known, made = state.get("token"), state.get("made")
        fresh = isinstance(made, float | int) and 0 <= now - made < KEPT_SECONDS
        if renew or not fresh or not isinstance(known, str) or len(known) < len(token):
            state.update(token=token, made=now)

    change_json(file, keep)
    return str(read_json(file)["token"])


class Access:
    """The token of the person who started the server, and the one-time code that is exchanged for it."""

    def __init__(
        self, on_new_code: Callable[[str], None] = lambda _: None, token: str = "", clip_token: str = ""
    ) -> None:
        """`on_new_code` is called with a fresh code, for another browser, whenever one is used."""
        self.token, self.code = token or secrets.token_urlsafe(32), secrets.token_urlsafe(16)
        self.clip_token = clip_token
        self._on_new_code = on_new_code

    async def caller(self, request: HTTPConnection) -> Token | None:
        """Who sent a request; None if it has no token, or an unknown one."""
        if has_token(request, self.token):
            return OWNER
        return CLIPPER if self.clip_token and has_token(request, self.clip_token) else None

    async def exchange(self, code: str) -> str | None:
        """The token, once for each code."""
        if not hmac.compare_digest(code.encode(), self.code.encode()):
            return None
        self.code = secrets.token_urlsafe(16)
        self._on_new_code(self.code)
        return self.token


class Site:
    """The app: refuses what it should, adds the security headers, and answers."""

    largest = 10_000_000
    """Bytes of a request."""
    unread: Collection[str] = ()
    """Paths that read the body of a request themselves."""
    strict: Collection[str] = ()
    """Paths that refuse half a character."""

    def __init__(self, kb: LocalKnowledgeBase, access: Access, hosts: Collection[str]) -> None:
        """`hosts` are the names and ports that the page is opened under."""
        self.kb, self.access, self.events = kb, access, Events(kb, self._is_known)
        self._opened: list[LocalKnowledgeBase] = []
        self._opening = Lock()
        self._sample: LocalKnowledgeBase | None = None
        self._searches, self._reads = CapacityLimiter(READS), CapacityLimiter(READS)
        self._saves = CapacityLimiter(REQUESTS)  # they may wait for a push, and searches need threads, too
        described = [self._starlette_route(endpoint) for endpoint in routes.ROUTES]
        described.append(Route(SIGN_IN, self.sign_in, methods=["POST"]))
        described.append(Route(f"{API}/events", self.events.stream, methods=["GET"]))
        described.append(Route(f"{API}/{{rest:any}}", self.unknown, methods=["GET", "POST", "PUT", "PATCH", "DELETE"]))
        if access.clip_token:
            described.append(Route("/clip", send_clip_window, methods=["GET"]))
        files = Route("/page/{rest:any}", send_file, methods=["GET"])
        page = Route("/{rest:any}", send_frame, methods=["GET"])
        self.inner = Starlette(
            routes=[*described, files, page], lifespan=self._lifespan, exception_handlers={KnowledgeError: _explain}
        )
        larger: dict[str, int] = {f"{API}{path}": LARGEST_BODY for path in ("/files/", "/documents", CLIPS)}
        self._bodies = Bodies(self.answer, self.largest, self.unread, self.strict, larger)
        self._guarded = TokenGuard(self.admit, self._identify, hosts, _is_public, self.ways_in)

    async def _is_known(self, request: HTTPConnection) -> bool:
        return await self._identify(request) is not None

    async def _identify(self, request: HTTPConnection) -> str | None:
        caller = request.state.caller = await self.access.caller(request)
        return None if caller is None else caller.name

    def ways_in(self, request: HTTPConnection) -> Mapping[str, str]:
        """Where somebody without a token gets one."""
        return {}

    async def admit(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Take a request that is public, or whose caller is known, before its body is read."""
        caller: Token | None = scope.get("state", {}).get("caller")
        path = scope.get("path", "")  # there is none in the messages about starting and ending
        needed: Role = "clip" if path == f"{API}{CLIPS}" else "read"
        if caller and not caller.may(needed) and path.startswith(ABOUT_NOTES):
            await _forbidden(caller, needed)(scope, receive, send)
            return
        await self._bodies(scope, receive, send)

    async def answer(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request that is complete, with what other processes changed until now."""
        known = scope.get("state", {}).get("token_name") is not None
        if known and scope["path"].startswith(ABOUT_NOTES):
            await to_thread.run_sync(self.kb.catch_up)
        await self.inner(scope, receive, send)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._guarded(scope, receive, send)
            return
        cache = "no-store" if scope["path"].startswith(API) else "no-cache"
        started = False

        async def send_with_headers(message: Message) -> None:
            nonlocal started
            if message["type"] == "http.response.start":
                started = True
                headers = MutableHeaders(scope=message)
                for name, value in {**HEADERS, "cache-control": cache}.items():
                    headers.setdefault(name, value)
            await send(message)

        app = self._guarded if _is_ours(HTTPConnection(scope)) else ELSEWHERE
        try:
            await app(scope, receive, send_with_headers)
        except Exception as error:  # such as a database with the tokens that is away
            if started:
                raise
            await error_answer(error)(scope, receive, send_with_headers)

    @asynccontextmanager
    async def _lifespan(self, app: Starlette) -> AsyncGenerator[None]:
        self.events.start()
        try:
            yield
        finally:
            await to_thread.run_sync(self.events.close)
            for kb in self._opened:
                kb.close()

    def open_sample(self) -> LocalKnowledgeBase:
        """The sample vault, with an index of its own. Opened once."""
        with self._opening:
            if self._sample is None:
                folder = os.path.join(self.kb.settings.data_dir, "demo")
                self._sample = open_local(sample_vault(), folder, opening=Opening("web"))
                self._opened.append(self._sample)
                self._sample.sync()
            return self._sample

    def _starlette_route(self, endpoint: routes.Route) -> Route:
        async def answer(request: Request) -> Response:
            caller: Token = request.state.caller
            CALLER.set(caller)
            routes.CLIP_TOKEN.set(self.access.clip_token)
            KEY.set(request.headers.get("idempotency-key", ""))
            if not caller.may(endpoint.role):
                return _forbidden(caller, endpoint.role)
            if caller.name:
                acting.set(f"{self.kb.vault.opening.front_end}:{caller.name}")
            asked = await endpoint.read(request)
            is_sample = request.headers.get(SAMPLE) == "sample"
            if endpoint.role != "read":
                if is_sample:
                    return json_answer(ErrorAnswer(ApiError("read_only", "the sample vault cannot be changed")), 403)
                return await to_thread.run_sync(endpoint.call, self.kb, asked, limiter=self._saves)
            if is_sample:
                CALLER.set(replace(caller, role="read"))
            limiter = self._searches if endpoint.path in SEARCHES else self._reads
            kb = self.open_sample if is_sample else lambda: self.kb
            return await self._read(request, lambda: endpoint.call(kb(), asked), limiter)

        return Route(API + endpoint.path.replace(":path}", ":any}"), answer, methods=[endpoint.method])

    async def _read(self, request: Request, read: Callable[[], Response], limiter: CapacityLimiter) -> Response:
        """Answer in a thread of those that read. What a client asked ends when the client leaves."""
        with serving() as deadline:
            watching = asyncio.create_task(_cancel_without_client(request, deadline))
            try:
                return await to_thread.run_sync(lambda: GONE if deadline.cancelled else read(), limiter=limiter)
            finally:
                watching.cancel()

    def busy(self) -> list[str]:
        """Why a search has to wait, if it has to."""
        now = self._searches.statistics()
        full = now.borrowed_tokens >= now.total_tokens and now.tasks_waiting
        return [f"searches: all {READS} at once are busy, and {now.tasks_waiting} more wait"] if full else []

    async def sign_in(self, request: Request) -> Response:
        token = await self.access.exchange(str((await read_body(request)).get("code", "")))
        if token is None:
            message = "this code was used, or is from an earlier run: open the newest address that the server printed"
            return json_answer(ErrorAnswer(ApiError("sign_in", message)), 403)
        return json_answer({"token": token})

    async def unknown(self, request: Request) -> Response:
        return json_answer(ErrorAnswer(ApiError("unknown_route", f"no route {request.method} {request.url.path}")), 404)


async def _cancel_without_client(request: Request, deadline: QueryDeadline) -> None:
    while (await request.receive())["type"] != "http.disconnect":
        pass
    deadline.cancelled = True


async def _explain(request: Request, error: Exception) -> Response:
    return error_answer(error)


def _forbidden(caller: Token, needed: Role) -> Response:
    message = f"the token {caller.name} has the role {caller.role}: this needs one with the role {needed}"
    return json_answer(ErrorAnswer(ApiError("forbidden", message)), 403)


def _is_ours(request: HTTPConnection) -> bool:
    """Whether the request comes from the page, the user or a program. Another site may link to the page, no more."""
    asking = request.headers.get("sec-fetch-site", "same-origin")
    if asking == "same-origin":
        return True
    opens = request.headers.get("sec-fetch-dest") == "document" and request.scope["method"] == "GET"
    return opens and not request.scope["path"].startswith(API)


def _is_public(request: HTTPConnection) -> bool:
    path = request.scope["path"]
    return not path.startswith(PRIVATE) or (path == SIGN_IN and request.scope["method"] == "POST")


@route("GET", "/session")
def show_session(kb: LocalKnowledgeBase) -> Session:
    """Show which vault this is, and how many notes it has."""
    is_sample = kb.root == os.path.realpath(sample_vault())
    revision = revision_of(kb)
    notes = sum(index.notes.state().notes for index in (kb.index, *map(kb.index.of, kb.index.linked)))
    name = "Your notes" if is_own_vault(kb.root) else vault_name(kb)
    caller = CALLER.get()
    return Session(kb.root, name, notes, __version__, is_sample, SAMPLE_QUESTIONS, caller.role, caller.name, revision)
