"""The routes of a sign-in with OpenID Connect: to the provider, back from it, and where MCP clients learn of it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextlib import nullcontext
from typing import TYPE_CHECKING

from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, RedirectResponse, Response
from starlette.routing import Route

from co_cli.http.http_server import GuardedConnection, address_of_site

if TYPE_CHECKING:
    from co_cli.server.open_id import OpenId  # its packages are an extra

SIGN_IN, CALLBACK = "/sign-in", "/sign-in/callback"
RESOURCE = "/.well-known/oauth-protected-resource"
COOKIE = "co-sign-in"


class SignInRoutes:
    """Nobody needs a token for them."""

    def __init__(self, open_id: OpenId) -> None:
        self._open_id = open_id
        self.routes = [
            Route(SIGN_IN, self._explained(self.begin)),
            Route(CALLBACK, self._explained(self.finish)),
            Route(f"{RESOURCE}{{path:any}}", self.describe),
        ]

    async def begin(self, request: Request) -> Response:
        site = address_of_site(request)
        url, kept = await self._open_id.begin(f"{site}{CALLBACK}")
        answer = RedirectResponse(url, 303, {"Cache-Control": "no-store"})
        is_safe = site.startswith("https:")
        answer.set_cookie(_cookie(site), kept, max_age=600, secure=is_safe, httponly=True, samesite="lax")
        return answer

    async def finish(self, request: Request) -> Response:
        """The fragment is in no request and in no log, and the page removes it from the address."""
        site = address_of_site(request)
        kept = request.cookies.get(_cookie(site), "")
        code = await self._open_id.finish(request.query_params, kept, f"{site}{CALLBACK}")
        answer = RedirectResponse(f"/#code={code}", 303, {"Cache-Control": "no-store"})
        answer.delete_cookie(_cookie(site), secure=site.startswith("https:"), httponly=True, samesite="lax")
        return answer

    async def describe(self, request: Request) -> Response:
        """RFC 9728: whose access tokens this server takes."""
        about = {
            "resource": f"{address_of_site(request)}{request.path_params['path']}",
            "authorization_servers": [self._open_id.issuer],
            "bearer_methods_supported": ["header"],
            "scopes_supported": ["openid"],
        }
        return JSONResponse(about)

    @staticmethod
    def _explained(answer: Callable[[Request], Awaitable[Response]]) -> Callable[[Request], Awaitable[Response]]:
        from co_cli.server.open_id import SignInError

        async def answer_or_explain(request: Request) -> Response:
            connection: GuardedConnection | None = request.scope["state"].get("connection")  # a test client has none
            try:
                with connection.identifying() if connection else nullcontext():  # it waits for the provider
                    return await answer(request)
            except SignInError as error:
                return PlainTextResponse(f"{error}\n", error.status)

        return answer_or_explain


def _cookie(site: str) -> str:
    """Over TLS, no other host may set it."""
    return f"__Host-{COOKIE}" if site.startswith("https:") else COOKIE
