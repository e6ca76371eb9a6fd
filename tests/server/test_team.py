"""`co serve`: what tokens of each role may do through each front end, limits, metrics, and the commands for tokens."""

from __future__ import annotations

import json
import logging
import re
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Generator, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from co_cli.entrance.knowledge_base import KnowledgeBase
from co_cli.entrance.local import LocalKnowledgeBase
from co_cli.ground.access import ROLES, Token
from co_cli.ground.errors import KnowledgeError, ServerUnavailableError
from co_cli.http import http_server
from co_cli.server import event_stream as events
from co_cli.server import readiness
from co_cli.server.access_tokens import AccessTokens, FileTokens
from co_cli.server.routes import API, ROUTES
from co_cli.server.team_site import LARGEST, SIGN_INS, TeamSite
from co_cli.vault.vault import Opening
from tests.command import Co
from tests.folder import Vault
from tests.mcp.talking import Talk, over_http
from tests.server.browser import PATIENCE, inspect
from tests.server.conftest import Server, client, serving, token
from tests.sources.test_fetching_inside import certificate


@pytest.fixture
def team(vault: Vault, kb: KnowledgeBase) -> Iterator[Server]:
    vault.write("memories/oak.md", "Oaks live long.")
    kb.sync()
    with serving(kb, AccessTokens.of(kb.vault)) as server:
        yield server


@contextmanager
def mcp(team: Server, secret: str) -> Generator[Talk]:
    with over_http(f"{team.url}/mcp", token=secret) as talk:
        yield talk


@pytest.mark.medium
def test_a_role_opens_the_routes_that_it_may_use_and_no_others(team: Server, kb: KnowledgeBase) -> None:
    for role in ROLES:
        with client(team, AccessTokens.of(kb.vault).create(role, role, per_second=1_000)[0]) as asking:
            for one in ROUTES:
                allowed = Token("", role, "").may(one.role)
                if one.method == "GET" or not allowed:
                    path = API + re.sub(r"{.*?}", "memory:none", one.path)
                    assert (asking.request(one.method, path).status_code == 403) != allowed, (role, path)
    assert {one.role for one in ROUTES} == {*ROLES, "clip"} - {"metrics"}


def test_a_read_token_reads_but_cannot_write_through_any_front_end(
    team: Server, kb: KnowledgeBase, vault: Vault
) -> None:
    secret, before = token(kb, "read"), vault.files()
    with client(team, secret) as asking:
        assert asking.get(f"{API}/search", params={"q": "oaks"}).json()["state"] == "found"
        answers = [
            asking.post(f"{API}/notes", json={"content": "Elms."}),
            asking.put(f"{API}/notes/memory:oak", json={"content": "Elms."}),
            asking.delete(f"{API}/notes/memory:oak"),
            asking.post(f"{API}/doctor/fix"),
        ]
        assert [one.status_code for one in answers] == [403] * 4
        assert answers[0].json()["error"] == {
            "kind": "forbidden",
            "message": "the token mara has the role read: this needs one with the role write",
            "present": None,
            "closest": [],
        }
        assert not asking.get(f"{API}/rendered/memory:oak").json()["writable"], "so the page offers no editor"
        assert asking.get(f"{API}/session").json()["role"] == "read"
    with mcp(team, secret) as talk:
        offered = {one.name for one in talk.list_tools().tools}
        assert "recall_memory" in offered
        assert not offered & {"save_memory", "update_memory", "forget_memory", "save_article"}
        assert "Oaks live long" in talk.call_tool("recall_memory", {"query": "oaks"}).content[0].text
        assert talk.call_tool("save_memory", {"content": "Elms."}).is_error
    assert vault.files() == before


def test_a_method_that_a_path_does_not_have_is_no_page_and_no_plain_text(team: Server, kb: KnowledgeBase) -> None:
    with client(team, token(kb, "write")) as asking:
        for method in ("GET", "DELETE"):  # MCP clients ask for a stream with GET, and expect 405 where there is none
            assert asking.request(method, "/mcp", headers={"accept": "text/event-stream"}).status_code == 405, method
        for method, path in (("PATCH", f"{API}/notes/memory:oak"), ("PUT", f"{API}/search")):
            answer = asking.request(method, path)
            assert (answer.status_code, answer.json()["error"]["message"]) == (404, f"no route {method} {path}")


def test_a_metrics_token_reads_metrics_and_nothing_else(team: Server, kb: KnowledgeBase) -> None:
    with client(team, token(kb, "metrics")) as asking:
        assert "co_requests_total" in asking.get("/metrics").text
        for path in (f"{API}/session", f"{API}/events", f"{API}/search?q=oaks", f"{API}/tokens"):
            assert asking.get(path).status_code == 403, path
        assert asking.post("/mcp", json={}).status_code == 403


def test_an_admin_manages_tokens_over_http_and_each_change_is_recorded(team: Server, kb: KnowledgeBase) -> None:
    with client(team, token(kb, "admin", "root")) as asking:
        made = asking.post(f"{API}/tokens", json={"role": "read", "name": "ci", "days": 90}).json()
        rotated = asking.post(f"{API}/tokens/ci/rotate", json={"keep_hours": 1}).json()
        for secret in (made["secret"], rotated["secret"]):
            with client(team, secret) as reading:
                assert reading.get(f"{API}/session").json()["role"] == "read"
        listed = {one["name"]: one for one in asking.get(f"{API}/tokens").json()}
        assert asking.delete(f"{API}/tokens/ci").json()["name"] == "ci"
        for secret in (made["secret"], rotated["secret"]):
            with client(team, secret) as reading:
                assert reading.get(f"{API}/session").status_code == 401
        changes = asking.get(f"{API}/token-changes").json()
        wrong = asking.post(f"{API}/tokens", json={"role": "read", "days": -1})
        assert asking.post(f"{API}/tokens", json={"role": "clip"}).status_code == 400, "only of the bookmarklet"

    assert listed["ci"]["expires"] > listed["ci"]["created"]
    assert listed["root"]["last_used"]
    assert [(one["who"], one["action"]) for one in changes[:3]] == [
        ("web:root", "revoked the token ci"),
        ("web:root", "rotated the token ci (read)"),
        ("web:root", "created the token ci (read)"),
    ]
    assert (wrong.status_code, wrong.json()["error"]["message"]) == (
        400,
        "days: Input should be greater than or equal to 0",
    )


def test_a_token_has_its_own_limit(team: Server, kb: KnowledgeBase) -> None:
    slow, _ = AccessTokens.of(kb.vault).create("read", "slow", per_second=2)
    with client(team, slow) as asking, client(team, token(kb, "read")) as other:
        answers = [asking.get(f"{API}/{path}") for path in ("health", "map", *["session"] * 6)]
        assert {one.status_code for one in answers} == {200, 429}
        assert "this token may send 2 requests a second" in answers[-1].text
        assert {other.get(f"{API}/session").status_code for _ in range(8)} == {200}


def test_the_history_says_who_saved_what_and_how(team: Server, kb: KnowledgeBase) -> None:
    with client(team, token(kb, "write", "mara")) as asking:
        saved = asking.post(f"{API}/notes", json={"content": "Elms like water."}).json()
        asking.put(f"{API}/notes/{saved['ref']}", json={"title": "Elms"})
    with mcp(team, token(kb, "admin", "jon.desk")) as talk:
        talk.call_tool("update_memory", {"ref": saved["ref"], "tags": ["tree"]})
    with team.client() as asking:
        asking.put(f"{API}/notes/{saved['ref']}", json={"title": "All about elms"})
        changes = asking.get(f"{API}/history/{saved['ref']}").json()["history"]["changes"]
        feed = asking.get(f"{API}/activity", params={"kind": "saved", "front_end": "web"}).json()["entries"]

    assert [one["front_end"] for one in changes] == ["web", "mcp:jon.desk", "web:mara"], "one editing session"
    assert {one["front_end"] for one in feed} == {"web", "web:mara"}


def test_a_token_opens_its_own_vault_only_and_nothing_once_it_is_revoked(
    team: Server, kb: KnowledgeBase, tmp_path: Path
) -> None:
    other, _ = AccessTokens(FileTokens(kb.settings.data_dir, str(tmp_path / "other"))).create("admin", "other")
    mine = token(kb, "read")
    stored = (Path(kb.settings.data_dir) / "tokens.json").read_text("utf-8")
    assert mine not in stored
    assert other not in stored

    with client(team, mine) as asking, client(team, other) as stranger:
        for path in (f"{API}/session", "/metrics"):
            assert stranger.get(path).status_code == 401
            assert asking.get(path).status_code == 200
        assert stranger.post("/mcp", json={}).status_code == 401
        AccessTokens.of(kb.vault).revoke("mara")
        assert asking.get(f"{API}/session").status_code == 401


def test_a_page_that_listens_hears_nothing_more_once_its_token_is_revoked(
    team: Server, kb: KnowledgeBase, vault: Vault
) -> None:
    with client(team, token(kb, "read")) as asking, asking.stream("GET", f"{API}/events") as stream:
        lines = stream.iter_lines()
        assert next(lines).startswith(": connected")
        team.site.events.publish("changed", {"refs": ["memory:oak"]})
        assert next(line for line in lines if line) == "event: changed"
        AccessTokens.of(kb.vault).revoke("mara")
        team.site.events.publish("changed", {"refs": ["memory:elm"]})
        assert "memory:elm" not in "".join(lines)


def test_a_page_hears_only_of_what_happens_in_its_own_vault(
    team: Server, kb: KnowledgeBase, tmp_path: Path, data_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(events, "ACTIVITY_SECONDS", 0.05)
    other = Vault(tmp_path / "other")
    other.write("memories/elm.md", "Elms like water.")

    def heard(lines: Iterator[str]) -> str:
        return next(line for line in lines if line in ("event: activity", "event: notice"))

    with ExitStack() as stack:
        another = stack.enter_context(KnowledgeBase.open(other.root, data_dir, opening=Opening("web")))
        another.sync()
        server = stack.enter_context(serving(another, AccessTokens.of(another.vault)))
        here, there = (stack.enter_context(client(one, one.access.token)) for one in (team, server))
        own, foreign = (stack.enter_context(one.stream("GET", f"{API}/events")).iter_lines() for one in (here, there))
        assert all(next(lines).startswith(": connected") for lines in (own, foreign))
        for _ in range(3):  # the other one looks meanwhile, too
            here.get(f"{API}/search", params={"q": "oaks"})
            assert heard(own) == "event: activity"
        server.site.events.publish("notice", {})
        assert heard(foreign) == "event: notice"
        there.get(f"{API}/search", params={"q": "elms"})
        assert heard(foreign) == "event: activity"


def test_a_link_signs_in_with_a_code_that_works_once_and_never_with_a_token(team: Server, kb: KnowledgeBase) -> None:
    secret = token(kb, "read")
    with client(team, "") as asking:
        for wrong in (secret, team.access.token, "wrong"):
            assert asking.post(f"{API}/session", json={"code": wrong}).status_code == 403
        code = team.access.code
        assert asking.post(f"{API}/session", json={"code": code}).json() == {"token": team.access.token}
        assert asking.post(f"{API}/session", json={"code": code}).status_code == 403, "the admin's works once"


def test_what_strangers_send_to_sign_in_is_refused_and_leaves_no_traceback(
    team: Server, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(http_server, "STRANGER_SECONDS", 0.3)
    head = f"POST {API}/session HTTP/1.1\r\nHost: {team.host}\r\nContent-Length: 9000000\r\n\r\n".encode()
    with client(team, "") as asking:
        for body, status in (
            (b'{"code":"\\ud800"}', 403),
            (b'{"code":"\xed\xa0\x80"}', 403),
            (b"[" * 900, 400),
            (b'{"code":' * 100 + b"1" + b"}" * 100, 400),
            (b"[" * 100_000, 413),
            (b'{"code":"' + b"x" * 1_000 + b'"}', 413),
        ):
            assert asking.post(f"{API}/session", content=body).status_code == status, body[:40]
    for sent, status in ((b"", b"408"), (b"{", b"408"), (b" " * 2_000, b"413")):
        with socket.create_connection(("127.0.0.1", int(team.host.rpartition(":")[2])), PATIENCE) as stranger:
            stranger.sendall(head + sent)
            assert stranger.recv(12) == b"HTTP/1.1 " + status, sent[:10]
    for _ in range(3):  # it goes away in the middle of the body
        socket.create_connection(("127.0.0.1", int(team.host.rpartition(":")[2])), PATIENCE).sendall(head)

    with team.client() as asking:
        assert asking.get("/livez").status_code == 200
    assert [record for record in caplog.records if record.levelno > logging.INFO] == []
    assert capfd.readouterr().err == ""


def test_failed_sign_ins_are_limited_for_each_address_also_behind_one_proxy(team: Server) -> None:
    def sign_in(code: str, forwarded: str = "") -> int:
        with client(team, "") as asking:
            headers = {"X-Forwarded-For": forwarded} if forwarded else {}
            return asking.post(f"{API}/session", json={"code": code}, headers=headers).status_code

    assert [sign_in(team.access.code, "192.0.2.1") for _ in range(SIGN_INS + 5)] == [200] * (SIGN_INS + 5)
    answers = [sign_in("wrong", f"192.0.2.{spoofed}, 192.0.2.1") for spoofed in range(SIGN_INS + 9)]
    assert answers[:SIGN_INS] == [403] * SIGN_INS
    assert 429 in answers[SIGN_INS:]
    assert [sign_in(team.access.code, other) for other in ("192.0.2.2", "192.0.2.1, 2001:db8::1", "")] == [200] * 3


@pytest.mark.medium
def test_deep_json_in_any_body_or_field_is_bad_input(team: Server, kb: KnowledgeBase) -> None:
    deep = "[" * 100_000 + "]" * 100_000
    some = "[" * 300 + "]" * 300
    with client(team, token(kb, "admin")) as asking:
        for one in ROUTES:
            if one.method in ("POST", "PUT"):
                path = API + re.sub(r"{.*?}", "memory:oak", one.path)
                for body in (deep, f'{{"content": "Elms.", "fields": {{"a": {some}}}}}'):
                    assert asking.request(one.method, path, content=body).status_code == 400, (path, body[:40])
        for text in (f"---\na: {some}\n---\nElms.", f"---\na: {deep}\n---\nElms."):
            saved = asking.post(f"{API}/notes", json={"content": text})
            assert saved.status_code < 500, saved.text
            whole = asking.get(f"{API}/whole/memory:oak").json()
            changed = asking.put(f"{API}/whole/memory:oak", json={"text": text, "version": whole["version"]})
            assert changed.status_code < 500, changed.text
        headers = {"Accept": "application/json, text/event-stream"}
        for body in (deep, deep.encode("utf-16-le"), b'{"jsonrpc": "2.0", "id": 1, "method": "\xed\xa0\x80"}'):
            assert asking.post("/mcp", content=body, headers=headers).status_code == 400, body[:40]
        half = b'{"jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": {"name": "\\ud83d", "arguments": {}}}'
        answer = asking.post("/mcp", content=half, headers={**headers, "Content-Type": "application/json"}).json()
        assert (answer["id"], answer["error"]["code"]) == (7, -32602)
    with mcp(team, token(kb, "write", "agent")) as talk:
        for listed in (deep, some):
            assert talk.call_tool("save_memory", {"content": "Elms.", "tags": listed}).is_error


@pytest.mark.slow
def test_no_server_writes_its_log_with_rich(kb: KnowledgeBase) -> None:
    """The MCP SDK adds a handler where there is none, so it takes a process without pytest's."""
    code = """
import logging, sys
from co_cli.entrance.knowledge_base import KnowledgeBase
from co_cli.server.team_site import TeamAccess, TeamSite
from co_cli.server.access_tokens import AccessTokens

with KnowledgeBase.open(*sys.argv[1:]) as kb:
    TeamSite(kb, TeamAccess(AccessTokens.of(kb.vault)), [])
print([*logging.getLogger().handlers, *logging.getLogger("uvicorn.error").handlers])
"""
    command = [sys.executable, "-c", code, kb.root, kb.settings.data_dir]
    assert subprocess.run(command, capture_output=True, text=True, check=True).stdout == "[]\n"


def test_a_token_has_60_requests_a_second_and_1_mb_a_request(
    team: Server, kb: KnowledgeBase, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = [0.0]
    monkeypatch.setattr(http_server, "time", SimpleNamespace(**{**vars(time), "monotonic": lambda: now[0]}))
    with client(team, token(kb, "write")) as asking, client(team, token(kb, "read", "other")) as other:
        large = b'{"content": "' + b"x" * LARGEST + b'"}'
        refused = asking.post(f"{API}/notes", content=large)
        chunked = asking.post(f"{API}/notes", content=(large[at : at + 65536] for at in range(0, len(large), 65536)))
        assert [refused.status_code, chunked.status_code] == [413, 413]
        assert refused.json()["error"]["message"] == "a request has at most 1,000,000 bytes"
        assert asking.post("/mcp", content=large).status_code == 413

        answers = [asking.get("/livez") for _ in range(58)]
        assert [one.status_code for one in answers] == [200] * 57 + [429]
        assert answers[-1].headers["retry-after"] == "1"
        assert other.get(f"{API}/session").status_code == 200
        now[0] += 1
        assert asking.get("/livez").status_code == 200


def test_health_is_public_and_metrics_count_requests_by_route_and_status(team: Server, kb: KnowledgeBase) -> None:
    with client(team, "") as stranger:
        assert stranger.get("/livez").text == "ok\n"
        assert stranger.get(f"{API}/notes/memory:oak").status_code == 401
        assert stranger.request("ODD", "/metrics").status_code == 401
    with client(team, token(kb, "read")) as asking:
        for ref in ("memory:oak", "memory:none"):
            asking.get(f"{API}/notes/{ref}")
        text = asking.get("/metrics").text

    assert 'co_requests_total{method="GET",route="/api/v1/notes/{ref:any}",status="200"} 1\n' in text
    assert 'co_requests_total{method="GET",route="/api/v1/notes/{ref:any}",status="404"} 1\n' in text
    assert 'co_requests_total{method="any",route="none",status="401"} 2\n' in text
    assert 'co_request_seconds_bucket{route="/api/v1/notes/{ref:any}",le="+Inf"} 2\n' in text
    assert 'co_request_seconds_count{route="/livez"} 1\n' in text
    assert "memory:" not in text, "no names of notes"


def test_a_server_that_is_not_ready_says_why(team: Server, kb: KnowledgeBase, monkeypatch: pytest.MonkeyPatch) -> None:
    kb.sync()
    with client(team, "") as stranger:
        assert stranger.get("/readyz").text == "ok\n"
        monkeypatch.setattr(readiness, "LEAST_DISK", 10**18)
        answer = stranger.get("/readyz")
        assert answer.status_code == 503
        assert re.fullmatch(
            r"disk: \d+ MB are left for the vault\ndisk: \d+ MB are left for the data folder\n", answer.text
        )
        assert stranger.get("/livez").status_code == 200


def test_a_server_whose_vault_was_never_indexed_is_not_ready(vault: Vault, kb: KnowledgeBase) -> None:
    vault.write("memories/oak.md", "Oaks live long.")
    with serving(kb, AccessTokens.of(kb.vault)) as server, client(server, "") as stranger:
        answer = stranger.get("/readyz")
        assert (answer.status_code, answer.text) == (503, "index: the vault was never indexed\n")
        kb.sync()
        assert stranger.get("/readyz").text == "ok\n"


def test_a_server_that_starts_says_so_and_refuses_requests_until_everything_is_indexed(
    vault: Vault, kb: LocalKnowledgeBase
) -> None:
    vault.write("memories/oak.md", "Oaks live long.")
    secret, ready = token(kb), threading.Event()
    server = Server(kb, AccessTokens.of(kb.vault))
    server.serve(TeamSite(kb, cast("Any", server.access), [server.host], lambda _: ready.set()))
    try:
        with kb.index.engine.writing():  # nothing can be indexed
            server.start()
            with client(server, secret) as asking:
                assert asking.get("/livez").text == "ok\n"
                answer = asking.get("/readyz")
                assert (answer.status_code, answer.text.partition(":")[0]) == (503, "index")
                refused = asking.get(f"{API}/search", params={"q": "oaks"})
                assert (refused.status_code, refused.headers["retry-after"]) == (503, "2")
                assert "the server has just started" in refused.json()["error"]["message"]
        assert ready.wait(PATIENCE)
        with client(server, secret) as asking:
            assert asking.get("/readyz").text == "ok\n"
            found = asking.get(f"{API}/search", params={"q": "oaks"}).json()
            assert [hit["ref"] for hit in found["hits"]] == ["memory:oak"]
    finally:
        server.close()


def test_tokens_are_created_listed_and_revoked_by_command(co: Co, vault: Vault) -> None:
    made = co("token", "create", "--role", "write", "--name", "mara")
    secret = made.out.removesuffix("\n")
    assert len(secret) == 43, "alone, for CO_TOKEN=$(co token create ...)"
    assert made.err.startswith(f"mara (write) opens {vault.root}.")
    listed = co("token", "list")
    assert listed.out.startswith(f"mara  write  {vault.root}  since 20")
    assert secret not in listed.out
    again = co("token", "create", "--role", "read", "--name", "mara")
    assert (again.code, again.out) == (2, "")
    assert "there is a token mara already" in again.err
    assert co("token", "create", "--role", "read", "--name", "two words").code == 2
    assert co("token", "revoke", "mara").out == "revoked mara\n"
    assert co("token", "list", "--json").json == []
    assert "`co token list` lists them" in co("token", "revoke", "mara").err


def test_tokens_are_rotated_and_expire_by_command(co: Co, vault: Vault) -> None:
    first = co("token", "create", "--role", "read", "--name", "ci", "--days", "30", "--per-second", "5")
    assert " until 20" in first.err
    rotated = co("token", "rotate", "ci", "--keep", "24", "--json").json
    assert rotated["token"] != first.out.strip()
    assert (rotated["name"], rotated["per_second"]) == ("ci", 5)
    listed = co("token", "list").out
    assert re.search(r"since \S+, until \S+, never used, 5 requests a second\n$", listed), listed
    assert (
        co("token", "rotate", "cd").err == f"co: there is no token 'cd' for {vault.root}: `co token list` lists them\n"
    )
    assert co("token", "create", "--role", "read", "--days", "0").code == 2
    log = co("token", "log").out.splitlines()
    assert [line.split(" ", 3)[3] for line in log] == ["rotated the token ci (read)", "created the token ci (read)"]


def test_the_network_needs_a_token_and_a_word_about_tls(co: Co, vault: Vault) -> None:
    open_wide = co("serve", "--host", "0.0.0.0", "--port", "0")
    assert "needs --allow-host" in open_wide.err
    refused = co("serve", "--host", "0.0.0.0", "--port", "0", "--allow-host", "notes.example")
    assert refused.code == 2
    assert "`co token create --role write` first" in refused.err


@pytest.mark.slow
@pytest.mark.medium
def test_it_listens_on_this_machine_only_and_serves_the_vault_that_is_named(
    co: Co, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    handbook, diary = (Vault(tmp_path / name) for name in ("handbook", "diary"))
    handbook.write("memories/oak.md", "Oaks live long.")
    diary.write("memories/elm.md", "Elms like water.")
    tokens = [
        co("token", "create", "--role", "read", "--vault", str(one.root)).out.strip() for one in (handbook, diary)
    ]

    command = [sys.executable, "-m", "co_cli", "serve", "--port", "0", "--vault", str(handbook.root)]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        try:
            assert process.stderr
            url = json.loads(process.stderr.readline())["url"]
            assert url.startswith("http://127.0.0.1:")
            with pytest.raises(OSError, match=r"refused|reachable|assign|timed out"):
                socket.create_connection(("127.0.0.2", int(url.rpartition(":")[2])), PATIENCE)
            monkeypatch.setenv("CO_TOKEN", tokens[0])
            assert [one["ref"] for one in co("--server", url, "list", "--json").json] == ["memory:oak"]
            monkeypatch.setenv("CO_TOKEN", tokens[1])
            assert "does not know this token" in co("--server", url, "list").err
        finally:
            process.kill()


def test_a_client_uses_a_server_behind_tls_if_it_trusts_the_certificate(
    vault: Vault, kb: KnowledgeBase, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    vault.write("memories/oak.md", "Oaks live long.")
    file, secret = tmp_path / "notes.pem", token(kb)
    file.write_bytes(certificate("notes.example", "127.0.0.1"))
    server = Server(kb, AccessTokens.of(kb.vault))
    server.speak_tls(file)
    server.start()
    try:
        refused = pytest.raises(ServerUnavailableError, match="CERTIFICATE_VERIFY_FAILED")
        with KnowledgeBase.connect(server.url, secret) as remote, refused:
            remote.note("memory:oak")
        monkeypatch.setenv("SSL_CERT_FILE", str(file))
        with KnowledgeBase.connect(server.url, secret) as remote:
            assert remote.note("memory:oak").body == "Oaks live long."
    finally:
        server.close()


@pytest.mark.medium
@pytest.mark.skipif(sys.platform == "win32", reason="a Windows process gets no SIGINT")
def test_a_project_s_vault_is_served_until_ctrl_c_without_what_is_yours_alone(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    own = Vault(home / ".local/share/co-cli/knowledge")
    own.write("memories/diary.md", "Oaks bore me.")
    skill = home / ".claude/skills/prune-oaks/SKILL.md"
    skill.parent.mkdir(parents=True)
    skill.write_text("---\nname: prune-oaks\ndescription: Prune oaks.\n---\nPrune oaks.\n")
    project = home / "project"
    project.mkdir()
    monkeypatch.chdir(project)
    co = Co(project)
    co("init")
    Vault(project / ".co-cli/knowledge").write("memories/oak.md", "Oaks live long.")
    refs = ["user:memory:diary", str(own.path("memories/diary.md")), "skill:prune-oaks"]
    assert [co("show", ref).code for ref in refs] == [0, 0, 0]
    secret = co("token", "create", "--role", "read", "--json").json["token"]

    command = [sys.executable, "-m", "co_cli", "serve", "--port", "0", "--host", "0.0.0.0", "--allow-host", "127.0.0.1"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        try:
            assert process.stderr
            said = [json.loads(process.stderr.readline()) for _ in range(2)]
            assert said[1]["text"] == "this is plain HTTP: put a proxy with TLS in front of it"
            with KnowledgeBase.connect(said[0]["url"].replace("0.0.0.0", "127.0.0.1"), secret) as remote:
                for sources in (None, ["memory", "skill"]):
                    assert [hit.ref for hit in remote.search("oaks", sources=sources).hits] == ["memory:oak"]
                for ref in refs:
                    with pytest.raises(KnowledgeError, match=r"no note|no skill"):
                        remote.note(ref)
            process.send_signal(signal.SIGINT)
            assert process.wait(PATIENCE) == 0
            rows = [json.loads(line) for line in process.stderr]
            assert {row["status"] for row in rows if "status" in row} - {503} == {200, 400, 404}
        finally:
            process.kill()


def test_the_page_of_a_reader_has_no_button_that_writes(sample: KnowledgeBase, open_page: Callable[[str], Any]) -> None:
    found = "/?q=who+decides+what+ships"
    with serving(sample, AccessTokens.of(sample.vault)) as team:
        for role in ("write", "read"):
            page = open_page(f"{team.url}{found}")
            page.fill("#token", token(sample, role, role))
            page.click("button:has-text('Sign in')")
            page.wait_for_selector(".preview [title^=Why]")
            assert bool(page.query_selector("[aria-label='This answers it']")) == (role == "write")
            page.goto(f"{team.url}/note/memory:odalys-has-the-last-word")
            page.wait_for_selector("h1:has-text('Odalys')")
            buttons = [text.strip() for text in page.locator("main button").all_text_contents()]
            assert ("Edit" in buttons, "Forget" in buttons) == (role == "write", role == "write"), buttons
            page.close()  # it would miss the server
            page.problems.clear()  # Chromium logs the 401 before somebody is signed in


@pytest.mark.slow
def test_who_signs_in_sees_the_vaults_name_and_whether_a_token_is_valid(
    sample: KnowledgeBase, open_page: Callable[[str], Any]
) -> None:
    with serving(sample, AccessTokens.of(sample.vault)) as team:
        page = open_page(team.url)
        page.wait_for_selector("h1:has-text('Sign in to vault')")
        assert "co web" not in page.inner_text("body")
        page.fill("label:has-text('Paste the token you were given') + div input", "no such token")
        page.click("button:text-is('Show')")
        assert page.get_attribute("#token", "type") == "text"
        page.click("button:text-is('Sign in')")
        page.wait_for_selector("[role=alert]:has-text('This token is not valid, or has expired.')")
        inspect(page, "sign-in-team")
        page.fill("#token", token(sample, "read", "rita"))
        page.keyboard.press("Enter")
        page.wait_for_selector("note-card")
        page.close()  # it would miss the server
        page.problems.clear()  # Chromium logs the 401 before somebody is signed in
