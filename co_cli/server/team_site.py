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
from collections.abc import AsyncGenerator, Collection
from contextlib import AsyncExitStack, asynccontextmanager

import anyio
from anyio import to_thread
from starlette.applications import Starlette
from starlette.requests import ClientDisconnect, HTTPConnection, Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route
from starlette.types import Message, Receive, Scope, Send

from co_cli.access import Token
from co_cli.activity import acting
from co_cli.http_server import (
    STRANGER_SECONDS,
    Buckets,
    address_of_client,
    given_token,
    refusal,
    token_in,
    too_many,
)
from co_cli.local import LocalKnowledgeBase
from co_cli.mcp.clients import PATH
from co_cli.mcp.transports import http_app
from co_cli.server.access_tokens import AccessTokens, team_of
from co_cli.server.app import Access, Site
from co_cli.server.metrics import Gauge, Metrics
from co_cli.server.readiness import not_ready
from co_cli.tools import Toolbox

PER_SECOND = 60
"""Requests of one token; as many may come at once after a pause."""
SIGN_INS = 20
"""Sign-ins from one address that may fail at once; after that, one a second."""
LARGEST = 1_000_000
"""Bytes of a request."""
WEBHOOK = "/webhook"
WEBHOOK_SECRET = "CO_WEBHOOK_SECRET"
"""The variable with the secret of the webhook; without it there is none."""
READY_SECONDS = 3.0
"""After which a database that does not answer counts as away."""


class TeamAccess(Access):
    """Knows the tokens of the vault, besides the one of the person who started the server."""

    def __init__(self, tokens: AccessTokens) -> None:
        super().__init__()
        self._tokens = tokens

    async def caller(self, request: HTTPConnection) -> Token | None:
        return await super().caller(request) or await self._find(given_token(request))

    async def exchange(self, code: str) -> str | None:
        """A person signs in to the page with their token itself."""
        return code if await self._find(code) else await super().exchange(code)

    async def _find(self, secret: str) -> Token | None:
        return await to_thread.run_sync(self._tokens.find, secret) if secret else None


class TeamSite(Site):
    """Serves one vault to many."""

    largest, unread, strict = LARGEST, (WEBHOOK,), (PATH,)

    def __init__(self, kb: LocalKnowledgeBase, access: TeamAccess, hosts: Collection[str]) -> None:
        super().__init__(kb, access, hosts)
        self._team = team_of(kb.vault)
        self.metrics = Metrics()
        self._requests, self._sign_ins = Buckets(PER_SECOND, PER_SECOND), Buckets(SIGN_INS, 1)
        self._webhook_secret = token_in(WEBHOOK_SECRET).encode()
        self._reading, self._writing = (http_app(Toolbox(kb, read_only=read_only)) for read_only in (True, False))
        self.inner.routes[:0] = [
            Route("/livez", self.show_alive),
            Route("/readyz", self.show_ready),
            Route("/metrics", self.show_metrics),
            Route(WEBHOOK, self.hear_of_a_push, methods=["POST"]),
            Route(PATH, McpDoor(self._reading, self._writing), methods=["POST"]),
        ]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        started = time.perf_counter()

        async def send_measured(message: Message) -> None:
            if message["type"] == "http.response.start":
                route = scope["route"].path if "route" in scope else "none"
                method = scope["method"] if "route" in scope else "any"  # strangers may send any word
                self.metrics.observe(method, route, message["status"], time.perf_counter() - started)
            await send(message)

        await super().__call__(scope, receive, send_measured)

    async def admit(self, scope: Scope, receive: Receive, send: Send) -> None:
        name: str | None = scope.get("state", {}).get("token_name")
        if name is not None and not self._requests.take(name):
            answer = too_many(f"a token has {PER_SECOND} requests a second: wait a second")
            await answer(scope, receive, send)
            return
        await super().admit(scope, receive, send)

    async def sign_in(self, request: Request) -> Response:
        """Those that fail are limited for each address; people behind one proxy have addresses of their own."""
        address = address_of_client(request)
        if not self._sign_ins.take(address):
            return too_many("too many sign-ins from this address failed: wait a second")
        answer = await super().sign_in(request)
        if answer.status_code == 200:
            self._sign_ins.give_back(address)
        return answer

    @asynccontextmanager
    async def _lifespan(self, app: Starlette) -> AsyncGenerator[None]:
        async with AsyncExitStack() as stack:
            for tools in (self._reading, self._writing):
                await stack.enter_async_context(tools.router.lifespan_context(tools))
            async with super()._lifespan(app):
                if self._team:
                    from co_cli.team.keeper import Keeper  # PostgreSQL's packages are an extra

                    stop = threading.Event()
                    keeper = threading.Thread(target=Keeper(self._team).run, args=(stop,), name="co-keeper")
                    stack.push_async_callback(to_thread.run_sync, keeper.join)
                    stack.callback(stop.set)
                    keeper.start()
                yield

    async def show_alive(self, request: Request) -> Response:
        """Whether the process answers at all."""
        return PlainTextResponse("ok\n")

    async def show_ready(self, request: Request) -> Response:
        """Whether it should get requests, and if not, why."""
        problems = ["database: it does not answer"]
        with anyio.move_on_after(READY_SECONDS):
            problems = await to_thread.run_sync(not_ready, self.kb, abandon_on_cancel=True)
        return PlainTextResponse("".join(f"{problem}\n" for problem in problems) or "ok\n", 503 if problems else 200)

    async def show_metrics(self, request: Request) -> Response:
        return PlainTextResponse(self.metrics.text(await to_thread.run_sync(team_gauges, self.kb)))

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
        await (self._writing if caller.may("write") else self._reading)(scope, receive, send)


def team_gauges(kb: LocalKnowledgeBase) -> list[Gauge]:
    """How far git and the replica are behind the database."""
    team = team_of(kb.vault)
    if team is None:
        return []
    state = team.state()
    age = 0.0 if state.oldest is None else max(0.0, time.time() - state.oldest)
    lag: list[Gauge] = []
    if replica := team.engine.replica:
        replica.keeps_up()  # nobody else may have asked
        lag.append(Gauge("co_replica_behind_bytes", "What the replica has not replayed.", replica.behind))
    return [
        *lag,
        Gauge("co_outbox_changes", "Saved changes that are not pushed yet.", state.outbox),
        Gauge("co_outbox_age_seconds", "Time since the first of them was saved.", age),
        Gauge("co_commits_behind", "Commits of the remote that were not taken over yet.", state.behind),
    ]
