"""Sign-in to `co serve` with OpenID Connect, besides tokens: the groups of a person say what they may do.

The page signs in by the authorization code flow with PKCE. Nothing is stored: what belongs to one sign-in is in a
sealed cookie until the provider sends the person back, and a session is a sealed text that says who has which role
until when, with what the provider is asked with every few minutes whether that is still so. Then the page gets a new
text. Every server of a team has the client's secret, and so the key. MCP clients may send an access token of the same
provider, if it is a signed JWT for this server.
"""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import re
import secrets
import time
from collections.abc import Awaitable, Mapping
from typing import Any, TypeVar, cast

import httpx2
from authlib.common.errors import AuthlibBaseError
from authlib.integrations.httpx_client import AsyncOAuth2Client
from joserfc import jwt
from joserfc.errors import JoseError
from joserfc.jwe import JWERegistry
from joserfc.jwk import KeySet, OctKey

from co_cli.ground.access import ROLES, Role, Token
from co_cli.ground.errors import InvalidInputError
from co_cli.ground.settings import Settings
from co_cli.notes.logbook import logger

Answer = TypeVar("Answer")
log = logger("server")
ALGORITHMS = ["RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "Ed25519", "EdDSA"]
"""How a provider may sign: never with a key that a client has, too."""
SEAL = {"alg": "dir", "enc": "A256GCM"}
"""Nobody but our servers can read or write such a text."""
OWN_ISSUER = "co"
ENDPOINTS = ("authorization_endpoint", "token_endpoint", "jwks_uri")
SIGN_IN_SECONDS, CODE_SECONDS, SESSION_SECONDS = 600, 60, 8 * 3_600
"""How long a sign-in may take, its result waits for the page, and a person stays signed in at most."""
CHECK_SECONDS, AWAY_SECONDS = 240, 30.0
"""After which the provider is asked again about a person, and how long it is left alone if it does not answer."""
GRANTS = ("refresh_token", "access_token")
"""What it is asked with: the first of these that it gave."""
METADATA_SECONDS, KEYS_SECONDS, AGAIN_SECONDS = 3_600.0, 60.0, 2.0
"""How long the provider's metadata and keys are good for, how often keys are fetched for a text that none fits, and
when a provider that was away is asked for them again."""
LEEWAY = 60
PROVIDER_SECONDS = 5.0
"""For all that one request asks of the provider: nobody waits longer for a page."""
NONSENSE = (JoseError, ValueError, TypeError, KeyError, AttributeError)
"""What texts raise that nobody signed, and answers that are not what OpenID Connect says."""
ENDED = ("invalid_grant", "access_denied")
"""How a provider says that a session is over. Other refusals are about the server, not about the person."""
NOT_IN_A_NAME, LONGEST_NAME = re.compile(r"[^\w.@-]"), 40
SECRET = "CO_OIDC_SECRET"
"""The variable with the client's secret."""


class SignInError(Exception):
    """Why somebody cannot sign in, on one line, for that person."""

    def __init__(self, message: str, status: int = 403) -> None:
        super().__init__(message)
        self.status = status


class SignedIn:
    """What this server knows newest about one session."""

    def __init__(self, claims: dict[str, Any]) -> None:
        self.claims, self.is_over = claims, False
        self.asking, self.ask_again = asyncio.Lock(), 0.0


class OpenId:
    """One provider, for one vault."""

    def __init__(self, settings: Settings, secret: str, vault: str) -> None:
        self._vault = vault
        self._fetching = asyncio.Lock()
        self._used: dict[str, float] = {}
        """Codes that were exchanged here, and when."""
        self._sessions: dict[str, SignedIn] = {}
        self.issuer = ""
        self.configure(settings, secret)

    def configure(self, settings: Settings, secret: str) -> None:
        """Use these settings from now on. Sessions last until the secret changes."""
        if not settings.oidc_issuer or not settings.oidc_client or not secret:
            raise InvalidInputError(f"sign-in with OpenID Connect needs oidc_issuer, oidc_client and {SECRET}")
        self._claim, self._roles = settings.oidc_claim, _roles(settings.oidc_groups)
        self._scope = settings.oidc_scope
        self._client_id, self._secret = settings.oidc_client, secret
        self._key = OctKey.import_key(hmac.digest(secret.encode(), f"co session {self._vault}".encode(), "sha256"))
        if settings.oidc_issuer != self.issuer:
            self.issuer = settings.oidc_issuer
            self._metadata: dict[str, Any] = {}
            self._keys: KeySet | None = None
            self._asked_at = self._keys_at = -METADATA_SECONDS

    # -- the page ------------------------------------------------------------------------------------------------------

    async def begin(self, back: str) -> tuple[str, str]:
        """Where to send a person who wants to sign in, and the cookie for their browser. `back`: where they return."""
        endpoint = (await self._asked(self._provider()))["authorization_endpoint"]
        state, nonce, verifier = (secrets.token_urlsafe(48) for _ in range(3))
        async with self._client(back) as client:
            url, _ = client.create_authorization_url(endpoint, state=state, nonce=nonce, code_verifier=verifier)
        return url, self._seal("sign-in", time.time() + SIGN_IN_SECONDS, state=state, nonce=nonce, verifier=verifier)

    async def finish(self, answer: Mapping[str, str], cookie: str, back: str) -> str:
        """A code that the page exchanges for a session, once the provider has sent the person back."""
        if "code" not in answer:
            raise SignInError(f"The provider refused the sign-in: {answer.get('error', 'no reason was given')[:200]}")
        kept = self._read("sign-in", cookie)
        if kept is None or not hmac.compare_digest(answer.get("state", "").encode(), kept["state"].encode()):
            raise SignInError("This sign-in was not started in this browser, or took too long: start again.")
        claims, grant = await self._asked(self._exchange(answer["code"], kept, back))
        if claims is None:
            raise SignInError("The provider's answer is not valid: it is expired, or signed or made for somebody else.")
        token = self._caller(claims)
        if token is None:
            log.warning("%s tried to sign in, but is in no group that may", _name(claims))
            raise SignInError(f"{_name(claims)} is in none of the groups that may use these notes.")
        log.info("%s signed in, with the role %s", token.name, token.role)
        about = {"sub": claims["sub"], "name": token.name, "role": token.role, "checked": time.time(), "grant": grant}
        return self._seal("code", time.time() + CODE_SECONDS, jti=secrets.token_urlsafe(16), **about)

    def exchange(self, code: str) -> str | None:
        """A session for the code, once on this server."""
        known, now = self._read("code", code), time.monotonic()
        self._used = {used: at for used, at in self._used.items() if now - at <= 2 * CODE_SECONDS}
        if known is None or known["jti"] in self._used:
            return None
        self._used[known["jti"]] = now
        return self._seal("session", time.time() + SESSION_SECONDS, **_without_times(known))

    # -- requests ------------------------------------------------------------------------------------------------------

    async def caller(self, secret: str, resource: str) -> tuple[Token | None, str]:
        """Who has this session, or this access token for the resource; and a newer text of the session, if there is
        one. A provider that is away makes no difference."""
        if secret.count(".") == 4 and (known := self._read("session", secret)):
            return await self._session(known)
        if secret.count(".") != 2:
            return None, ""
        try:
            claims = await self._asked(self._claims(secret, resource))
        except SignInError:
            return None, ""
        return (self._caller(claims) if claims else None), ""

    async def _session(self, given: dict[str, Any]) -> tuple[Token | None, str]:
        now = time.time()
        for jti in [jti for jti, session in self._sessions.items() if session.claims["exp"] < now]:
            del self._sessions[jti]
        session = self._sessions.setdefault(given["jti"], SignedIn(given))
        if given["checked"] > session.claims["checked"]:  # another server has asked, maybe with what is good once
            session.claims, session.is_over = given, False
        async with session.asking:
            if not session.is_over and now - session.claims["checked"] > CHECK_SECONDS:
                await self._check(session)
        if session.is_over:
            return None, ""
        claims = session.claims
        is_newer = claims["checked"] > given["checked"]
        text = self._seal("session", claims["exp"], **_without_times(claims)) if is_newer else ""
        return Token(claims["name"], claims["role"], self._vault), text

    async def _check(self, session: SignedIn) -> None:
        """Ask the provider about a person again. While it is away, the session goes on."""
        known = session.claims
        if time.monotonic() < session.ask_again:
            return
        try:
            claims, grant = await self._asked(self._ask_again(known["grant"]))
        except SignInError as error:
            session.ask_again = time.monotonic() + AWAY_SECONDS
            log.warning("whether %s may still use these notes is not known: %s", known["name"], error)
            return
        token = self._caller(claims) if claims and claims.get("sub") == known["sub"] else None
        if token is None:
            session.is_over = True
            why = "the provider ended the session, or they are in none of the groups any more"
            log.info("%s is signed out: %s", known["name"], why)
        else:
            about = {"name": token.name, "role": token.role, "checked": time.time(), "grant": grant}
            session.claims = {**known, **about}

    async def _ask_again(self, grant: Mapping[str, str]) -> tuple[Mapping[str, Any] | None, dict[str, str]]:
        """What the provider says about a person now, and what to ask with the next time; None if it is over."""
        provider = await self._provider()
        given: Mapping[str, Any] = grant
        try:
            async with self._client("") as client:
                if token := grant.get("refresh_token"):
                    given = await client.refresh_token(provider["token_endpoint"], refresh_token=token)
                if given.get("id_token"):
                    return await self._claims(given["id_token"], self._client_id), _grant({**grant, **given})
                bearer = {"Authorization": f"Bearer {given['access_token']}"}
                at = provider["userinfo_endpoint"]
                answer = await client.request("GET", at, headers=bearer, withhold_token=True)
                if answer.status_code in (400, 401, 403):
                    return None, {}
                found = dict(answer.raise_for_status().json())
                return found, _grant({**grant, **given})
        except httpx2.HTTPError:
            raise _away() from None
        except AuthlibBaseError as error:
            if error.error not in ENDED:
                raise _away() from None
            return None, {}

    async def _exchange(
        self, code: str, kept: Mapping[str, Any], back: str
    ) -> tuple[Mapping[str, Any] | None, dict[str, str]]:
        """What the provider says about the person who came back with this code, and what to ask again with."""
        endpoint = (await self._provider())["token_endpoint"]
        try:
            async with self._client(back) as client:
                given = await client.fetch_token(endpoint, code=code, code_verifier=kept["verifier"])
        except httpx2.HTTPError:
            raise _away() from None
        except (AuthlibBaseError, ValueError) as error:
            raise SignInError(f"The provider refused the sign-in: {str(error)[:200]}") from None
        return await self._claims(given.get("id_token") or "", self._client_id, kept["nonce"]), _grant(given)

    # -- inside --------------------------------------------------------------------------------------------------------

    def _caller(self, claims: Mapping[str, Any]) -> Token | None:
        given: Any = claims.get(self._claim) or []
        groups = {str(group) for group in cast("list[object]", given if isinstance(given, list) else [given])}
        roles: list[Role] = [role for group, role in self._roles if group in groups or group == "*"]
        return Token(_name(claims), max(roles, key=ROLES.index), self._vault) if roles else None

    async def _claims(self, text: str, audience: str, nonce: str | None = None) -> Mapping[str, Any] | None:
        """What the provider says in a text that it signed for this audience; None if it is not valid."""
        issuer, exactly = self.issuer, {"essential": True}
        rules: dict[str, Any] = {"iss": {**exactly, "value": issuer}, "aud": {**exactly, "value": audience}}
        if nonce is not None:
            rules["nonce"] = {**exactly, "value": nonce}
        registry = jwt.JWTClaimsRegistry(leeway=LEEWAY, exp={"essential": True}, sub={"essential": True}, **rules)
        for fresh in (False, True):  # it may have a new key
            keys = await self._provider_keys(fresh)
            try:
                claims = jwt.decode(text, keys, algorithms=ALGORITHMS).claims
                registry.validate(claims)
            except NONSENSE:
                continue
            return claims
        return None

    async def _asked(self, answer: Awaitable[Answer]) -> Answer:
        """What the provider answers in time. One that answers nonsense is as good as away."""
        try:
            async with asyncio.timeout(PROVIDER_SECONDS):
                return await answer
        except (TimeoutError, httpx2.InvalidURL, *NONSENSE):
            raise _away() from None

    async def _provider(self) -> dict[str, Any]:
        if not self._metadata or time.monotonic() - self._asked_at > METADATA_SECONDS:
            found = await self._get(f"{self.issuer.rstrip('/')}/.well-known/openid-configuration")
            if found.get("issuer") != self.issuer:
                raise SignInError(
                    f"The provider calls itself {str(found.get('issuer'))[:200]}: correct oidc_issuer.", 503
                )
            if not all(isinstance(found.get(name), str) for name in ENDPOINTS):
                raise _away()
            self._metadata, self._asked_at = found, time.monotonic()
        return self._metadata

    async def _provider_keys(self, fresh: bool) -> KeySet:
        """Those it signs with; while it is away, those that are known.

        Anybody can send a text that no key fits, so they are not fetched for each.
        """
        async with self._fetching:
            age = time.monotonic() - self._keys_at
            if self._keys is None or (fresh and age > KEYS_SECONDS) or age > METADATA_SECONDS:
                if self._keys is None and age < AGAIN_SECONDS:
                    raise _away()
                self._keys_at = time.monotonic()
                try:
                    async with asyncio.timeout(PROVIDER_SECONDS / 2 if self._keys else None):
                        found = await self._get((await self._provider())["jwks_uri"])
                        self._keys = KeySet.import_key_set(cast("Any", found))
                except (TimeoutError, SignInError, *NONSENSE):
                    if self._keys is None:
                        raise
            return self._keys

    async def _get(self, url: str) -> dict[str, Any]:
        try:
            async with httpx2.AsyncClient(timeout=PROVIDER_SECONDS) as client:
                answer = (await client.get(url)).raise_for_status()
                return cast("dict[str, Any]", answer.json())
        except (httpx2.HTTPError, ValueError):
            raise _away() from None

    def _client(self, back: str) -> Any:
        return AsyncOAuth2Client(
            self._client_id,
            self._secret,
            scope=self._scope,
            redirect_uri=back,
            code_challenge_method="S256",
            timeout=PROVIDER_SECONDS,
        )

    def _seal(self, kind: str, until: float, **about: Any) -> str:
        claims = {"iss": OWN_ISSUER, "aud": kind, "exp": int(until), **about}
        return jwt.encode(SEAL, claims, self._key, [*SEAL.values()], JWERegistry())

    def _read(self, kind: str, text: str) -> dict[str, Any] | None:
        """What a text of this kind says; None if this vault's servers did not seal it, or it is expired."""
        registry = jwt.JWTClaimsRegistry(
            iss={"essential": True, "value": OWN_ISSUER},
            aud={"essential": True, "value": kind},
            exp={"essential": True},
        )
        try:
            claims = jwt.decode(text, self._key, [*SEAL.values()], JWERegistry()).claims
            registry.validate(claims)
        except NONSENSE:
            return None
        return claims


def _without_times(claims: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in claims.items() if name not in ("iss", "aud", "exp")}


def _grant(given: Mapping[str, Any]) -> dict[str, str]:
    return next(({name: str(given[name])} for name in GRANTS if given.get(name)), dict[str, str]())


def _away() -> SignInError:
    return SignInError("The sign-in provider does not answer: try again, or use a token.", 503)


def _roles(groups: tuple[str, ...]) -> list[tuple[str, Role]]:
    found: list[tuple[str, Role]] = []
    for entry in groups:
        group, _, role = entry.rpartition("=")
        if not group or role not in ROLES:
            raise InvalidInputError(f"oidc_groups: {entry!r} is not GROUP=ROLE, with read, write or admin as the role")
        found.append((group.strip(), role))
    return found


def _name(claims: Mapping[str, Any]) -> str:
    """With an @, which no token's name has; in front if nobody has verified it: it is not an address.

    What is not exactly a verified address or the subject ends with a part of the subject's hash, because others may
    have the same.
    """
    subject, email = str(claims["sub"]), str(claims.get("email"))
    verified = claims.get("email_verified") is True and "@" in email
    name = email if verified else f"@{claims.get('preferred_username') or subject}"
    shown = NOT_IN_A_NAME.sub("-", name)[:LONGEST_NAME]
    if shown == (email if verified else f"@{subject}"):
        return shown
    return f"{shown[: LONGEST_NAME - 9]}~{hashlib.sha256(subject.encode()).hexdigest()[:8]}"
