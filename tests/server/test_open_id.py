"""Sign-in to `co serve` with a real OpenID Connect provider on this machine, which may also lie, or be away."""

from __future__ import annotations

import base64
import dataclasses
import hashlib
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from typing import Any
from urllib.parse import parse_qs, urlsplit

import flask
import httpx2
import pytest
from joserfc import jwt
from joserfc.jwk import RSAKey
from oidc_provider_mock import User, app
from werkzeug.serving import make_server

from co_cli.entrance.knowledge_base import KnowledgeBase
from co_cli.ground.errors import InvalidInputError
from co_cli.ground.settings import Settings
from co_cli.http import http_server
from co_cli.server import event_stream, open_id
from co_cli.server.access_tokens import AccessTokens
from co_cli.server.open_id import OpenId
from co_cli.server.routes import API
from tests.command import Co
from tests.folder import Vault
from tests.server.browser import PATIENCE, inspect
from tests.server.conftest import Server, client, serving, token

CLIENT, SECRET = "co-notes", "the secret of the client"
GROUPS = ("readers=read", "writers=write", "ops=admin")
JUNK = [
    f"{base64.urlsafe_b64encode(head).rstrip(b'=').decode()}.e30.x"
    for head in (b'{"alg":"HS256","crit":1}', b'["alg"]', b"7", b'{"alg":"none"}', b'{"alg":"RS256","kid":7}')
]
"""Texts that look like signed ones, and that nobody signed."""
PEOPLE = [
    User(sub="mara", claims={"email": "mara@example.org", "email_verified": True, "groups": ["writers", "all"]}),
    User(sub="jon", claims={"email": "jon@example.org", "email_verified": False, "groups": ["readers", "ops"]}),
    User(sub="ida", claims={"groups": "readers"}),
    User(sub="7", claims={"email": "mara+x@example.org", "email_verified": True, "groups": "readers"}),
    User(sub="8", claims={"email": "mara-x@example.org", "email_verified": True, "groups": "readers"}),
    User(sub="9", claims={"email": f"{'m' * 40}@example.org", "email_verified": True, "groups": "readers"}),
    User(sub="10", claims={"email": f"{'m' * 40}@example.com", "email_verified": True, "groups": "readers"}),
    User(sub="11", claims={"preferred_username": "jon", "groups": "readers"}),
    User(sub="nils", claims={"email": "nils@example.org", "email_verified": True, "groups": ["others"]}),
]


class Provider:
    """One that tells the truth unless `lie` changes what it signs."""

    def __init__(self, refreshes: bool = True) -> None:
        made: Any = app(require_nonce=True, user_claims=PEOPLE, issue_refresh_token=refreshes)
        made.after_request(self._answer)
        made.before_request(self._hang)
        self.server = make_server("127.0.0.1", 0, made, threaded=True)
        self.issuer = f"http://127.0.0.1:{self.server.server_port}"
        self.lie: Callable[[dict[str, Any]], str] | None = None
        self.key: RSAKey | None = None
        self.verifiers: list[str] = []
        self.nonsense = ""
        self.rotates = False
        self.hangs = threading.Event()
        self._thread = threading.Thread(target=self.server.serve_forever, args=(0.05,))
        self._thread.start()

    def sign(self, key: RSAKey | None = None, **claims: Any) -> str:
        """A text signed with the provider's own key, or another one that has the same name."""
        assert self.key is not None
        signed = {"iss": self.issuer, "sub": "mara", "exp": int(time.time()) + 60, **claims}
        return jwt.encode({"alg": "RS256", "kid": self.key.kid}, signed, key or self.key)

    def change(self, sub: str, **claims: Any) -> None:
        """From now on, this is what the provider knows about somebody."""
        assert httpx2.put(f"{self.issuer}/users/{sub}", json=claims).status_code == 204

    def close(self) -> None:
        if self._thread.is_alive():
            self.server.shutdown()
            self._thread.join(PATIENCE)
            self.server.server_close()

    def _hang(self) -> None:
        if self.hangs.is_set():
            time.sleep(2)

    def _answer(self, response: Any) -> Any:
        if self.nonsense:
            response.set_data(self.nonsense)
            return response
        if self.key is None:  # importing one takes a fifth of a second
            stored: Any = flask.g.oidc_provider_mock_storage
            self.key = RSAKey.import_key(stored.jwk.as_dict(is_private=True))
        if self.rotates and flask.request.form.get("grant_type") == "refresh_token" and response.status_code == 200:
            stored = flask.g.oidc_provider_mock_storage  # as providers do that take each refresh token once
            old = stored.remove_refresh_token(flask.request.form["refresh_token"])
            new = f"{old.token}+"
            stored.store_refresh_token(dataclasses.replace(old, token=new))
            groups = stored.get_user(old.user_id).claims["groups"]
            signed = self.sign(sub=old.user_id, aud=CLIENT, groups=groups)
            response.set_data(flask.json.dumps({**response.get_json(), "refresh_token": new, "id_token": signed}))
        elif flask.request.path == "/oauth2/token" and "code_verifier" in flask.request.form:
            self.verifiers.append(flask.request.form["code_verifier"])
            said = response.get_json()
            if self.lie and "id_token" in said:
                claims = jwt.decode(said["id_token"], self.key).claims
                response.set_data(flask.json.dumps({**said, "id_token": self.lie(claims)}))
        return response


@pytest.fixture
def provider(monkeypatch: pytest.MonkeyPatch) -> Iterator[Provider]:
    for module, limit in ((open_id, "PROVIDER_SECONDS"), (http_server, "HEADERS_SECONDS")):
        monkeypatch.setattr(module, limit, PATIENCE)  # the provider has the same processor, which may be busy
    made = Provider()
    try:
        yield made
    finally:
        made.close()


def open_id_of(kb: KnowledgeBase, provider: Provider, vault: str = "", **other: Any) -> OpenId:
    return OpenId(open_id_settings(kb, provider, **other), SECRET, vault or AccessTokens.of(kb.vault).vault)


def open_id_settings(kb: KnowledgeBase, provider: Provider, **other: Any) -> Settings:
    set_up = {"oidc_issuer": provider.issuer, "oidc_client": CLIENT, "oidc_groups": GROUPS, **other}
    return replace(kb.settings, **set_up)


@pytest.fixture
def team(vault: Vault, kb: KnowledgeBase, provider: Provider) -> Iterator[Server]:
    vault.write("memories/oak.md", "Oaks live long.")
    kb.sync()
    with serving(kb, AccessTokens.of(kb.vault), open_id_of(kb, provider)) as server:
        yield server


@contextmanager
def browser(team: Server) -> Iterator[httpx2.Client]:
    """Without a token; it keeps cookies."""
    with httpx2.Client(base_url=team.url, verify=False, timeout=PATIENCE) as one:
        yield one


def to_provider(team: Server, one: httpx2.Client, sub: str) -> str:
    """Begin a sign-in, and say at the provider who it is; returns where the provider sends the browser."""
    begun = one.get("/sign-in")
    assert begun.status_code == 303, begun.text
    with httpx2.Client(verify=False, timeout=PATIENCE) as outside:
        answer = outside.post(begun.headers["location"], data={"sub": sub} if sub else {"action": "deny"})
    assert answer.status_code == 302, answer.text
    back = answer.headers["location"]
    assert back.startswith(f"{team.url}/sign-in/callback?")
    return back


def sign_in(team: Server, sub: str) -> str:
    """The session of this person."""
    with browser(team) as one:
        done = one.get(to_provider(team, one, sub))
        assert done.status_code == 303, done.text
        assert "co-sign-in" not in one.cookies
        page, _, code = done.headers["location"].partition("#code=")
        assert page == "/", "the code is in the fragment, which no request has"
        session = str(one.post(f"{API}/session", json={"code": code}).json()["token"])
        assert one.post(f"{API}/session", json={"code": code}).status_code == 403, "a second time"
        return session


def refused(team: Server, sub: str) -> str:
    """Why this person cannot sign in."""
    with browser(team) as one:
        done = one.get(to_provider(team, one, sub))
        assert (done.status_code, done.headers["content-type"]) == (403, "text/plain; charset=utf-8"), done.text
        return done.text


@pytest.mark.medium
def test_the_groups_of_a_person_say_what_they_may_do(team: Server) -> None:
    for sub, name, role in (("mara", "mara@example.org", "write"), ("jon", "@jon", "admin"), ("ida", "@ida", "read")):
        with client(team, sign_in(team, sub)) as asking:
            assert asking.get(f"{API}/session").json()["role"] == role
            saved = asking.post(f"{API}/notes", json={"content": f"{sub} knows elms."})
            assert saved.status_code == (403 if role == "read" else 200)
            if role != "read":
                changes = asking.get(f"{API}/history/{saved.json()['ref']}").json()["history"]["changes"]
                assert changes[0]["front_end"] == f"web:{name}", "an address that is not verified is not used"
    assert refused(team, "nils") == "nils@example.org is in none of the groups that may use these notes.\n"


@pytest.mark.medium
def test_people_are_told_apart_by_the_subject_where_their_names_look_alike(team: Server) -> None:
    names: list[str] = []
    for sub in ("jon", "7", "8", "9", "10", "11"):
        with client(team, sign_in(team, sub)) as asking:
            names.append(asking.get(f"{API}/session").json()["caller"])
    assert (names[0], names[2]) == ("@jon", "mara-x@example.org")
    assert names[1].startswith("mara-x@example.org~")
    assert len({*names}) == len(names), names
    assert max(map(len, names)) == 40


@pytest.mark.medium
def test_everybody_who_can_sign_in_may_read_if_the_operator_says_so(
    vault: Vault, kb: KnowledgeBase, provider: Provider
) -> None:
    wide = open_id_of(kb, provider, oidc_groups=("*=read", "ops=admin"))
    with serving(kb, AccessTokens.of(kb.vault), wide) as server:
        for sub, role in (("nils", "read"), ("jon", "admin")):
            with client(server, sign_in(server, sub)) as asking:
                assert asking.get(f"{API}/session").json()["role"] == role


@pytest.mark.medium
def test_a_sign_in_uses_pkce_and_belongs_to_one_browser(team: Server, provider: Provider) -> None:
    with browser(team) as one, browser(team) as other:
        begun = one.get("/sign-in")
        asked = parse_qs(urlsplit(begun.headers["location"]).query)
        assert asked["code_challenge_method"] == ["S256"]
        assert "httponly" in begun.headers["set-cookie"].lower()
        assert "samesite=lax" in begun.headers["set-cookie"].lower()
        back = to_provider(team, one, "mara")
        for stranger in (other, client(team, "")):
            assert stranger.get(back).text.startswith("This sign-in was not started in this browser")
        other.get("/sign-in")
        assert other.get(back).status_code == 403, "it has a cookie of another sign-in"
        assert provider.verifiers == []
        assert one.get(back).status_code == 303
        assert one.get(back).status_code == 403, "a second time"
    assert len(provider.verifiers) == 1


@pytest.mark.medium
def test_behind_a_proxy_with_tls_the_person_comes_back_over_tls_with_a_cookie_of_this_host(team: Server) -> None:
    with browser(team) as one:
        begun = one.get("/sign-in", headers={"X-Forwarded-Proto": "https"})
        back = parse_qs(urlsplit(begun.headers["location"]).query)["redirect_uri"]
        assert back == [f"https://{team.host}/sign-in/callback"]
        cookie = begun.headers["set-cookie"]
        assert cookie.startswith("__Host-co-sign-in=")
        assert {"secure", "path=/"} <= {part.strip().lower() for part in cookie.split(";")}
        assert "domain" not in cookie.lower()
        for nonsense in ("javascript", "https, http", ""):
            plain = one.get("/sign-in", headers={"X-Forwarded-Proto": nonsense})
            assert plain.headers["set-cookie"].startswith("co-sign-in="), nonsense


@pytest.mark.medium
def test_the_verifier_is_the_one_of_the_challenge(team: Server, provider: Provider) -> None:
    with browser(team) as one:
        begun = one.get("/sign-in")
        challenge = parse_qs(urlsplit(begun.headers["location"]).query)["code_challenge"][0]
        with httpx2.Client(verify=False, timeout=PATIENCE) as outside:
            back = outside.post(begun.headers["location"], data={"sub": "mara"}).headers["location"]
        assert one.get(back).status_code == 303
    digest = hashlib.sha256(provider.verifiers[0].encode()).digest()
    assert base64.urlsafe_b64encode(digest).rstrip(b"=").decode() == challenge


@pytest.mark.medium
def test_who_is_refused_by_the_provider_is_told_so(team: Server) -> None:
    assert refused(team, "") == "The provider refused the sign-in: access_denied\n"


@pytest.mark.slow
@pytest.mark.medium
@pytest.mark.parametrize(
    "lie",
    [
        pytest.param({"exp": int(time.time()) - 3_600}, id="expired"),
        pytest.param({"iss": "https://elsewhere.example"}, id="another issuer"),
        pytest.param({"aud": "another-client"}, id="another audience"),
        pytest.param({"nonce": "of another sign-in"}, id="another nonce"),
        pytest.param({"sub": ""}, id="nobody"),
    ],
)
def test_what_the_provider_signed_for_something_else_is_refused(
    team: Server, provider: Provider, lie: dict[str, Any]
) -> None:
    provider.lie = lambda claims: provider.sign(**{**claims, **lie})
    assert refused(team, "mara").startswith("The provider's answer is not valid")


@pytest.mark.medium
def test_what_somebody_else_signed_is_refused(team: Server, provider: Provider) -> None:
    forger = RSAKey.generate_key(2048)
    provider.lie = lambda claims: provider.sign(forger, **claims)
    assert refused(team, "mara").startswith("The provider's answer is not valid")
    provider.lie = lambda claims: jwt.encode({"alg": "none"}, claims, forger, algorithms=["none"])
    assert refused(team, "mara").startswith("The provider's answer is not valid")


@pytest.mark.medium
def test_a_provider_that_is_away_stops_sign_ins_and_nothing_else(
    team: Server, provider: Provider, kb: KnowledgeBase
) -> None:
    session, secret = sign_in(team, "mara"), token(kb, "read")
    access = team.site.access
    provider.close()
    access.open_id._asked_at = -1e9  # type: ignore # as an hour later
    for known in (session, secret):
        with client(team, known) as asking:
            assert asking.get(f"{API}/search", params={"q": "oaks"}).status_code == 200
    with browser(team) as one:
        answer = one.get("/sign-in")
        assert (answer.status_code, answer.text) == (
            503,
            "The sign-in provider does not answer: try again, or use a token.\n",
        )
        for junk in ("a.b.c", *JUNK):
            assert one.get(f"{API}/session", headers={"Authorization": f"Bearer {junk}"}).status_code == 401


@pytest.mark.slow
@pytest.mark.medium
@pytest.mark.parametrize("how", ["gone", "hanging"])
def test_access_tokens_work_on_while_the_provider_is_away_for_longer_than_its_keys_are_good_for(
    team: Server, provider: Provider, how: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    sign_in(team, "mara")
    monkeypatch.setattr(open_id, "PROVIDER_SECONDS", 3.0)
    given = provider.sign(aud=f"{team.url}/mcp", groups=["writers"])
    provider.hangs.set() if how == "hanging" else provider.close()
    access = team.site.access
    access.open_id._asked_at = access.open_id._keys_at = -1e9  # type: ignore # as an hour later
    with client(team, given) as asking:
        assert asking.get(f"{API}/session").status_code == 200


@pytest.mark.slow
@pytest.mark.medium
@pytest.mark.parametrize("said", ["[]", "{}", '{"issuer": 1}', "nonsense", '{"issuer": "ISSUER", "jwks_uri": 7}'])
def test_a_provider_that_answers_nonsense_is_as_good_as_away(team: Server, provider: Provider, said: str) -> None:
    provider.nonsense = said.replace("ISSUER", provider.issuer)
    with browser(team) as one:
        answer = one.get("/sign-in")
        assert (answer.status_code, answer.headers["content-type"]) == (503, "text/plain; charset=utf-8"), answer.text
        for junk in JUNK:
            assert one.get(f"{API}/session", headers={"Authorization": f"Bearer {junk}"}).status_code == 401
            assert one.post(f"{API}/session", json={"code": junk}).status_code == 403


def test_a_provider_that_hangs_stops_a_sign_in_in_time(
    team: Server, provider: Provider, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(open_id, "PROVIDER_SECONDS", 0.5)
    provider.hangs.set()
    with browser(team) as one:
        assert one.get("/sign-in").status_code == 503


@pytest.mark.medium
def test_a_connection_is_not_closed_while_the_provider_is_asked(
    team: Server, provider: Provider, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(http_server, "HEADERS_SECONDS", 1.5)
    provider.hangs.set()
    with browser(team) as one:
        assert one.get("/sign-in").status_code == 303


@pytest.mark.medium
def test_a_session_is_of_one_vault_and_cannot_be_made_up(
    team: Server, kb: KnowledgeBase, provider: Provider, monkeypatch: pytest.MonkeyPatch
) -> None:
    session = sign_in(team, "ida")
    other = open_id_of(kb, provider, vault="diary")
    head, key, vector, body, mark = session.split(".")
    assert b"ida" not in base64.urlsafe_b64decode(body + "=="), "what the provider gave is no text for a browser"
    forged = "A" * len(body)
    with serving(kb, AccessTokens.of(kb.vault), other) as diary, client(diary, session) as stranger:
        assert stranger.get(f"{API}/session").status_code == 401
    alike = [OpenId(open_id_settings(kb, provider), secret, vault) for vault, secret in (("a b", "c"), ("a", "b c"))]
    assert alike[1]._read("session", alike[0]._seal("session", time.time() + 60)) is None  # type: ignore
    wrongs = (f"{head}.{key}.{vector}.{forged}.{mark}", f"{head}.{key}.{vector}.{body}.", session[:-2], session + "A")
    for wrong in wrongs:
        with client(team, wrong) as asking:
            assert asking.get(f"{API}/session").status_code == 401
    now = time.time()
    monkeypatch.setattr(time, "time", lambda: now + 9 * 3_600)
    with client(team, session) as asking:
        assert asking.get(f"{API}/session").status_code == 401, "the next day"


def later(monkeypatch: pytest.MonkeyPatch, seconds: float) -> None:
    now = time.time
    monkeypatch.setattr(time, "time", lambda: now() + seconds)


@pytest.mark.slow
@pytest.mark.medium
@pytest.mark.parametrize("how", ["with a refresh token", "with one that is good once", "without one"])
def test_a_session_has_the_role_of_the_groups_of_now_and_ends_within_five_minutes_after_the_last(
    how: str, vault: Vault, kb: KnowledgeBase, monkeypatch: pytest.MonkeyPatch
) -> None:
    vault.write("memories/oak.md", "Oaks live long.")
    kb.sync()
    provider, servers = Provider(refreshes=how != "without one"), ExitStack()
    provider.rotates = how == "with one that is good once"
    with servers:
        servers.callback(provider.close)
        team, other = (
            servers.enter_context(serving(kb, AccessTokens.of(kb.vault), open_id_of(kb, provider))) for _ in "ab"
        )
        provider.change("mara", groups=["writers"])
        session = sign_in(team, "mara")
        provider.change("mara", groups=["readers"])
        with client(team, session) as asking:
            first = asking.get(f"{API}/session")
            assert (first.json()["role"], "x-co-session" in first.headers) == ("write", False)
            later(monkeypatch, 300)
            renewed = asking.get(f"{API}/session")
            assert renewed.json()["role"] == "read"
            assert asking.get(f"{API}/session").json()["role"] == "read", "a tab that has the older text"
        newer = renewed.headers["x-co-session"]
        with client(other, session) as asking:
            assert asking.get(f"{API}/session").status_code == (401 if provider.rotates else 200)
        with client(other, newer) as asking:
            assert asking.get(f"{API}/session").json()["role"] == "read", "another server knows what was found out"
            later(monkeypatch, 300)
            again = asking.get(f"{API}/session")
            assert again.json()["role"] == "read"
            provider.change("mara", groups=["others"])
            assert asking.get(f"{API}/session").status_code == 200, "it is not asked for each request"
            later(monkeypatch, 300)
            assert asking.get(f"{API}/session").status_code == 401
            provider.change("mara", groups=["writers"])
            assert asking.get(f"{API}/session").status_code == 401, "over is over: sign in again"


@pytest.mark.medium
def test_a_session_that_the_provider_revoked_ends_and_so_does_its_stream(
    team: Server, provider: Provider, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(event_stream, "QUIET_SECONDS", 0.1)
    session = sign_in(team, "mara")
    with client(team, session) as asking, asking.stream("GET", f"{API}/events") as listening:
        lines = listening.iter_lines()
        assert next(lines).startswith(": connected")
        assert httpx2.post(f"{provider.issuer}/users/mara/revoke-tokens").status_code == 204
        later(monkeypatch, 300)
        assert {*lines} <= {"", ": quiet"}, "and then it ends"
        assert asking.get(f"{API}/session").status_code == 401


@pytest.mark.slow
@pytest.mark.medium
@pytest.mark.parametrize("said", ["nonsense", '{"error": "invalid_client"}', '{"error": "temporarily_unavailable"}'])
def test_a_provider_that_is_away_ends_no_session_until_it_is_back(
    said: str, team: Server, provider: Provider, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(open_id, "AWAY_SECONDS", 0.0)
    session = sign_in(team, "mara")
    provider.change("mara", groups=["others"])
    later(monkeypatch, 300)
    with client(team, session) as asking:
        provider.nonsense = said
        answer = asking.get(f"{API}/session")
        assert (answer.status_code, "x-co-session" in answer.headers) == (200, False)
        provider.nonsense = ""
        assert asking.get(f"{API}/session").status_code == 401


@pytest.mark.medium
def test_mcp_clients_learn_of_the_provider_and_may_use_its_access_tokens(team: Server, provider: Provider) -> None:
    sign_in(team, "mara")
    with browser(team) as one:
        challenge = one.post("/mcp", json={}).headers["www-authenticate"]
        assert f'resource_metadata="{team.url}/.well-known/oauth-protected-resource/mcp"' in challenge
        about = one.get("/.well-known/oauth-protected-resource/mcp").json()
    assert (about["resource"], about["authorization_servers"]) == (f"{team.url}/mcp", [provider.issuer])
    given = provider.sign(aud=about["resource"], groups=["writers"])
    with client(team, given) as asking:
        assert asking.get(f"{API}/session").json()["role"] == "write"
    for wrong in (
        provider.sign(aud=CLIENT, groups=["writers"]),
        provider.sign(aud=about["resource"], groups=["others"]),
        provider.sign(aud=about["resource"], groups=["writers"], exp=int(time.time()) - 3_600),
        provider.sign(RSAKey.generate_key(2048), aud=about["resource"], groups=["writers"]),
    ):
        with client(team, wrong) as asking:
            assert asking.get(f"{API}/session").status_code == 401


def test_a_person_signs_in_on_the_page_and_stays_signed_in(
    team: Server, open_page: Callable[[str], Any], provider: Provider, monkeypatch: pytest.MonkeyPatch
) -> None:
    page = open_page(team.url)
    page.wait_for_selector("text=Sign in with your organization")
    inspect(page, "sign-in-elsewhere")
    page.click("text=Sign in with your organization")
    page.wait_for_url(f"{provider.issuer}/**")
    page.click("button:has-text('ida')")
    page.wait_for_selector("note-card a")
    assert page.url == f"{team.url}/"
    assert not page.is_visible("text=New"), "a reader writes nothing"
    before = page.evaluate("localStorage['co-token']")
    later(monkeypatch, 300)
    page.reload()
    page.wait_for_selector("note-card a")
    assert page.evaluate("localStorage['co-token']") != before, "it keeps the newer text"
    page.problems.clear()  # Chromium logs the 401, and requests to the provider


@pytest.mark.medium
def test_a_server_that_lacks_a_part_says_which(
    co: Co, kb: KnowledgeBase, provider: Provider, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CO_OIDC_ISSUER", provider.issuer)
    wrong = co("serve", "--port", "0")
    assert (wrong.code, wrong.err) == (
        2,
        "co: sign-in with OpenID Connect needs oidc_issuer, oidc_client and CO_OIDC_SECRET\n",
    )
    with pytest.raises(InvalidInputError, match="'writers:write' is not GROUP=ROLE"):
        open_id_of(kb, provider, oidc_groups=("writers:write",))
