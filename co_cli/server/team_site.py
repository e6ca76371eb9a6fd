"""The app of `co serve`: the app of `co web` for everybody who has a token, with MCP, limits, health and metrics.

For a team vault it also runs the keeper, which commits and pushes saves, and before each request it writes to the
folder what others saved. Several servers may do so at once.
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import hmac
import threading
import time
from collections.abc import AsyncGenerator, Callable, Collection, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import replace
from typing import TYPE_CHECKING

import anyio
from anyio import to_thread
from starlette.applications import Starlette
from starlette.datastructures import MutableHeaders
from starlette.requests import ClientDisconnect, HTTPConnection, Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route
from starlette.types import Message, Receive, Scope, Send

from co_cli.activity import RequestRecord, acting, request_record
from co_cli.entrance.local import LocalKnowledgeBase
from co_cli.ground.access import PER_SECOND, Token
from co_cli.ground.deadline import serving
from co_cli.ground.errors import IndexUnavailableError
from co_cli.ground.settings import SETTINGS, Settings
from co_cli.ground.values import moment_text
from co_cli.http.http_server import (
    STRANGER_SECONDS,
    Buckets,
    address_of_client,
    address_of_site,
    given_token,
    refusal,
    token_in,
    too_many,
)
from co_cli.mcp.client_configs import PATH
from co_cli.mcp.transports import http_app
from co_cli.notes.logbook import logger
from co_cli.server.access_tokens import AccessTokens, team_of
from co_cli.server.audit import Audit, AuditEntry
from co_cli.server.metrics import Metrics, gauges
from co_cli.server.readiness import not_ready
from co_cli.server.server_log import LoggedRequest
from co_cli.server.sign_in import RESOURCE, SIGN_IN, SignInRoutes
from co_cli.server.web_app import ABOUT_NOTES, Access, Site
from co_cli.tools.guidance import vault_name
from co_cli.tools.toolbox import Toolbox

if TYPE_CHECKING:
    from co_cli.server.open_id import OpenId  # its packages are an extra

SIGN_INS = 20
"""Sign-ins from one address that may fail at once, and refused strangers that are audited; after that, one a second."""
LARGEST = 1_000_000
"""Bytes of a request."""
SESSION = "x-co-session"
"""The header with a newer text of the session, if the caller has one."""
REFUSALS, LONGEST_REF = (401, 403, 421, 429), 200
WEBHOOK = "/webhook"
WEBHOOK_SECRET = "CO_WEBHOOK_SECRET"
"""The variable with the secret of the webhook; without it there is none."""
INDEX_SECONDS = 600.0
"""Between two looks at whether vectors have an index."""
log = logger("server")
RELOADED = ("audit_days", "most_notes", "oidc_issuer", "oidc_client", "oidc_scope", "oidc_claim", "oidc_groups")
"""Settings that a running server takes over when it is told to read them again."""
READY_SECONDS = 3.0
"""After which a database that does not answer counts as away."""
ASKED_SECONDS = 60.0
"""Within which a proxy or an orchestrator asks again whether the server is ready."""
PROGRESS_SECONDS = 10.0
"""Between two lines about the first sync."""


class TeamAccess(Access):
    """Knows the tokens of the vault, besides the one of the person who started the server."""

    def __init__(self, tokens: AccessTokens, open_id: OpenId | None = None) -> None:
        super().__init__()
        self.tokens, self.open_id = tokens, open_id

    async def caller(self, request: HTTPConnection) -> Token | None:
        given = given_token(request)
        known = await super().caller(request) or await self._find(given)
        if known or not self.open_id:
            return known
        caller, request.state.renewed = await self.open_id.caller(given, f"{address_of_site(request)}{PATH}")
        return caller

    async def exchange(self, code: str) -> str | None:
        """For what a sign-in elsewhere ended with, too. Never for a token: a link must not sign anybody in for long."""
        return (self.open_id.exchange(code) if self.open_id else None) or await super().exchange(code)

    async def _find(self, secret: str) -> Token | None:
        return await to_thread.run_sync(self.tokens.find, secret) if secret else None


class TeamSite(Site):
    """Serves one vault to many."""

    largest, unread, strict = LARGEST, (WEBHOOK,), (PATH,)

    def __init__(
        self,
        kb: LocalKnowledgeBase,
        access: TeamAccess,
        hosts: Collection[str],
        on_ready: Callable[[TeamSite], object] | None = None,
    ) -> None:
        """`on_ready` is called when the vault is indexed; before that, requests about notes are refused."""
        super().__init__(kb, access, hosts)
        self._on_ready = on_ready
        self._leaving, self._asked_at = False, -ASKED_SECONDS
        self._team = team_of(kb.vault)
        self.inner.state.team = vault_name(kb)
        self.metrics = Metrics()
        self._requests, self._sign_ins, self._strangers = Buckets(), Buckets(), Buckets()
        self._vault = access.tokens.vault
        self._audit = Audit(kb.settings.audit) if kb.settings.audit else None
        self._webhook_secret = token_in(WEBHOOK_SECRET).encode()
        self._reading, self._writing = (http_app(Toolbox(kb, read_only=read_only)) for read_only in (True, False))
        self._open_id = access.open_id
        self.inner.routes[:0] = [
            *(SignInRoutes(access.open_id).routes if access.open_id else ()),
            Route("/livez", self.show_alive),
            Route("/readyz", self.show_ready),
            Route("/metrics", self.show_metrics),
            Route(WEBHOOK, self.hear_of_a_push, methods=["POST"]),
            Route(PATH, McpDoor(self._reading, self._writing)),  # every method, or GET would be answered by the page
        ]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await super().__call__(scope, receive, send)
            return
        request, done = LoggedRequest(scope), RequestRecord()
        request_record.set(done)

        async def send_measured(message: Message) -> None:
            if message["type"] == "http.response.start":
                request.begin_answer(message)
                if renewed := scope.get("state", {}).get("renewed"):
                    MutableHeaders(scope=message)[SESSION] = renewed
                method, route = request.method or "any", request.route or "none"
                self.metrics.observe(method, route, request.status, request.seconds)
            await send(message)

        try:
            await super().__call__(scope, receive, send_measured)
        finally:
            request.end()
            self._record(scope, request, done)

    def _record(self, scope: Scope, request: LoggedRequest, done: RequestRecord) -> None:
        """For the audit: requests about notes, and whatever was refused."""
        refused = done.refused or request.status in REFUSALS
        if not self._audit or not (refused or scope["path"].startswith(ABOUT_NOTES)):
            return
        address = address_of_client(HTTPConnection(scope))
        if refused and request.who is None and not self._strangers.take(address, SIGN_INS, 1):
            return  # or whoever likes could fill the disk
        if refused and request.who is not None and "ref" in scope.get("path_params", {}):
            done.notes[scope["path_params"]["ref"][:LONGEST_REF]] = None
        entry = AuditEntry(
            at=moment_text(time.time()),
            vault=self._vault,
            who=request.who,
            action=done.tool or request.text,
            notes=[*done.notes],
            address=address,
            allowed=not refused,
            status=request.status,
            request=request.id,
        )
        self._audit.write(entry)

    async def admit(self, scope: Scope, receive: Receive, send: Send) -> None:
        caller: Token | None = scope.get("state", {}).get("caller")
        most = (caller and caller.per_second) or PER_SECOND
        if caller and not self._requests.take(caller.name, most, most):
            answer = too_many(f"this token may send {most} requests a second: wait a second")
            await answer(scope, receive, send)
            return
        if scope["type"] == "http" and scope["path"].startswith(ABOUT_NOTES) and (starting := self._starting()):
            answer = refusal(503, "unavailable", f"the server has just started and is {starting}: try again")
            answer.headers["Retry-After"] = "2"
            await answer(scope, receive, send)
            return
        await super().admit(scope, receive, send)

    def reload(self, settings: Settings) -> None:
        """Take over limits, secrets and who may sign in. Raises KnowledgeError if they are wrong, and keeps the old."""
        webhook_secret, now = token_in(WEBHOOK_SECRET).encode(), self.kb.settings
        if self._open_id:
            from co_cli.server.open_id import SECRET  # its packages are an extra

            self._open_id.configure(settings, token_in(SECRET))
        changed = {
            setting.name: getattr(settings, setting.name)
            for setting in SETTINGS
            if getattr(settings, setting.name) != getattr(now, setting.name)
        }
        later = {name for name in changed if name not in RELOADED or (name.startswith("oidc_") and not self._open_id)}
        used = {name: value for name, value in changed.items() if name not in later}
        set_by = {**now.set_by, **{name: settings.set_by[name] for name in used}}
        self._webhook_secret = webhook_secret
        self.kb.reload(replace(now, **used, set_by=set_by))
        log.info("%s: settings were read again; changed: %s", self.kb.root, ", ".join(used) or "none")
        if later:
            log.warning("%s: start the server again to change %s", self.kb.root, ", ".join(sorted(later)))

    async def sign_in(self, request: Request) -> Response:
        """Those that fail are limited for each address; people behind one proxy have addresses of their own."""
        address = address_of_client(request)
        if not self._sign_ins.take(address, SIGN_INS, 1):
            return too_many("too many sign-ins from this address failed: wait a second")
        answer = await super().sign_in(request)
        if answer.status_code == 200:
            self._sign_ins.give_back(address)
        else:
            self.metrics.failed_sign_ins += 1
        return answer

    def ways_in(self, request: HTTPConnection) -> Mapping[str, str]:
        """As MCP's clients and the page look for them."""
        site = address_of_site(request)
        return {"resource_metadata": f"{site}{RESOURCE}{PATH}", "sign_in": f"{site}{SIGN_IN}"} if self._open_id else {}

    @asynccontextmanager
    async def _lifespan(self, app: Starlette) -> AsyncGenerator[None]:
        async with AsyncExitStack() as stack:
            for tools in (self._reading, self._writing):
                await stack.enter_async_context(tools.router.lifespan_context(tools))
            async with super()._lifespan(app):
                stop = threading.Event()
                keeper = threading.Thread(target=self._keep, args=(stop,), name="co-keeper")
                stack.callback(log.info, "%s is no longer served", self.kb.root)
                stack.push_async_callback(to_thread.run_sync, keeper.join)
                stack.callback(stop.set)
                keeper.start()
                if self._team:
                    threading.Thread(target=self._index_vectors, args=(stop,), name="co-vectors", daemon=True).start()
                yield

    def _keep(self, stop: threading.Event) -> None:
        """Wait until the vault is indexed, say so, and keep it if it is a team's."""
        said = time.monotonic()
        while self._on_ready and not self.events.synced.wait(0.1):
            if stop.is_set():
                return
            if time.monotonic() - said > PROGRESS_SECONDS:
                said = time.monotonic()
                log.info("%s: %s", self.kb.root, self._starting())
        if self._on_ready:
            self._on_ready(self)
        if self._team:
            from co_cli.vault.team.keeper import Keeper  # PostgreSQL's packages are an extra

            Keeper(self._team, lambda: self.kb.settings.audit_days).run(stop)

    def _starting(self) -> str:
        """Why requests about notes are refused; empty once the vault is indexed."""
        if not self._on_ready or self.events.synced.is_set():
            return ""
        done, total = self.events.progress
        return f"indexing {done:,} of {total:,} files" if total else "looking for changed files"

    def _index_vectors(self, stop: threading.Event) -> None:
        """Build the index of vectors where nobody has, or where a build failed. It may take minutes."""
        engine = self.kb.vault.engine
        while not stop.is_set():
            try:
                if engine.unindexed():
                    engine.compact()
            except IndexUnavailableError as error:
                log.warning("%s", error)
            stop.wait(INDEX_SECONDS)

    async def show_alive(self, request: Request) -> Response:
        """Whether the process answers at all."""
        return PlainTextResponse("ok\n")

    def leave(self) -> bool:
        """Be ready no more, because the server is about to stop. Whether somebody will ask."""
        self._leaving = True
        return time.monotonic() - self._asked_at < ASKED_SECONDS

    async def show_ready(self, request: Request) -> Response:
        """Whether it should get requests, and if not, why."""
        self._asked_at = time.monotonic()
        problems = ["database: it does not answer"]
        if self._leaving:
            return PlainTextResponse("server: it is about to stop\n", 503)
        if starting := self._starting():
            return PlainTextResponse(f"index: {starting}\n", 503)
        with anyio.move_on_after(READY_SECONDS):
            problems = await to_thread.run_sync(not_ready, self.kb, abandon_on_cancel=True)
        problems += self.busy()
        if self._audit and self._audit.problem:
            self._audit.flush()
            problems += ["audit: it cannot be written"] if self._audit.problem else []
        return PlainTextResponse("".join(f"{problem}\n" for problem in problems) or "ok\n", 503 if problems else 200)

    async def show_metrics(self, request: Request) -> Response:
        return PlainTextResponse(self.metrics.text(await to_thread.run_sync(gauges, self.kb)))

    async def hear_of_a_push(self, request: Request) -> Response:
        """Let the keeper look at the remote now. GitHub and Gitea sign a request; GitLab sends the secret."""
        if not (self._webhook_secret and self._team and await self._is_signed(request)):
            return refusal(403, "forbidden", f"the webhook of a team vault needs the secret in {WEBHOOK_SECRET}")
        await to_thread.run_sync(self._team.wake)
        return PlainTextResponse("ok\n")

    async def _is_signed(self, request: Request) -> bool:
        """Whether the sender knows the secret. The body may be large, and anybody may send one: it is not kept."""
        if hmac.compare_digest(request.headers.get("x-gitlab-token", "").encode(), self._webhook_secret):
            return True
        given = request.headers.get("x-hub-signature-256", "")
        if not given:
            return False
        signature = hmac.new(self._webhook_secret, digestmod=hashlib.sha256)
        with contextlib.suppress(ClientDisconnect, TimeoutError):  # then it is the signature of another text
            async with asyncio.timeout(STRANGER_SECONDS):
                async for part in request.stream():
                    signature.update(part)
        return hmac.compare_digest(given.encode(), f"sha256={signature.hexdigest()}".encode())


class McpDoor:
    """Answers with the tools that the caller's role allows."""

    def __init__(self, reading: Starlette, writing: Starlette) -> None:
        self._reading, self._writing = reading, writing

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        caller: Token = scope["state"]["caller"]
        acting.set(f"mcp:{caller.name}" if caller.name else "mcp")
        with serving():
            await (self._writing if caller.may("write") else self._reading)(scope, receive, send)
