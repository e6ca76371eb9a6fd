"""Who may ask the server for what: tokens, codes, hosts, origins, and the headers of every answer."""

from __future__ import annotations

import re

import pytest
from starlette.testclient import TestClient

from co_cli.entrance.local import LocalKnowledgeBase
from co_cli.server.routes import API, ROUTES
from co_cli.server.web_app import Access, Site
from tests.server.conftest import Server

PATHS = ["/", "/note/memory:x", "/page/app.js", f"{API}/session"]


@pytest.mark.medium
def test_every_route_needs_the_token(empty: Server) -> None:
    asked = [(one.method, API + re.sub(r"{.*?}", "x", one.path)) for one in ROUTES]
    for method, path in [*asked, ("GET", f"{API}/events"), ("GET", f"{API}/unknown"), ("DELETE", f"{API}/session")]:
        with empty.client(Authorization="") as client:
            for token in ("", "Bearer", "Bearer wrong", f"Basic {empty.access.token}"):
                answer = client.request(method, path, headers={"Authorization": token} if token else {})
                assert answer.status_code == 401, (method, path, token)
            assert client.request(method, f"{path}?token={empty.access.token}").status_code == 401, path


def test_the_site_needs_no_server_of_its_own_to_be_asked(kb: LocalKnowledgeBase) -> None:
    access = Access()
    with TestClient(Site(kb, access, ["testserver"])) as client:
        assert [client.get(path).status_code for path in PATHS] == [200, 200, 200, 401]
        token = client.post(f"{API}/session", json={"code": access.code}).json()["token"]
        client.headers["Authorization"] = f"Bearer {token}"
        saved = client.post(f"{API}/notes", json={"content": "Oaks live long.", "title": "Oak"}).json()
        assert saved["ref"] == "memory:oak"
        assert client.get(f"{API}/search", params={"q": "oaks"}).json()["hits"][0]["ref"] == "memory:oak"
        assert client.get(f"{API}/session", headers={"Host": "notes.example"}).status_code == 421


def test_a_foreign_host_is_refused_as_dns_rebinding_would_send_it(empty: Server) -> None:
    port = empty.host.rpartition(":")[2]
    for host in ("notes.example", f"notes.example:{port}", "127.0.0.1", f"127.0.0.1.evil.example:{port}", ""):
        with empty.client(Host=host or "x") as client:
            assert [client.get(path).status_code for path in PATHS] == [421] * len(PATHS), host


def test_a_foreign_origin_is_refused(empty: Server) -> None:
    for origin in ("https://evil.example", "http://127.0.0.1:1", "http://localhost", "null"):
        with empty.client(Origin=origin) as client:
            assert client.get(f"{API}/session").status_code == 403, origin
            assert client.post(f"{API}/session", json={"code": empty.access.code}).status_code == 403, origin
    with empty.client(Origin=empty.url) as client:
        assert client.get(f"{API}/session").status_code == 200


@pytest.mark.parametrize("site", ["cross-site", "same-site"])
def test_another_site_s_page_may_link_here_and_load_nothing(empty: Server, site: str) -> None:
    with empty.client(**{"Sec-Fetch-Site": site, "Sec-Fetch-Dest": "empty"}) as client:
        assert [client.get(path).status_code for path in PATHS] == [403] * len(PATHS)
    with empty.client(**{"Sec-Fetch-Site": site, "Sec-Fetch-Dest": "document"}) as client:
        assert [client.get(path).status_code for path in PATHS] == [200, 200, 200, 403]
        assert client.post("/").status_code == 403


def test_a_code_is_exchanged_once_for_the_token(empty: Server) -> None:
    code = empty.access.code
    with empty.client(Authorization="") as client:
        assert client.post(f"{API}/session", json={"code": code + "x"}).status_code == 403
        assert client.post(f"{API}/session", json={"code": code}).json() == {"token": empty.access.token}
        again = client.post(f"{API}/session", json={"code": code})
        assert again.status_code == 403
        assert "this code was used" in again.json()["error"]["message"]
        assert client.post(f"{API}/session", json={"code": empty.access.code}).status_code == 200, "the next one"
        for odd in (b"", b"{}", b"[]", b"no JSON", b'{"code": null}', b'{"code": "\xc3\xa9"}'):
            assert client.post(f"{API}/session", content=odd).status_code in (400, 403), odd


def test_every_answer_has_the_headers_that_keep_others_out(empty: Server) -> None:
    answers = [empty.client().get(path) for path in (*PATHS, f"{API}/unknown", "/page/none.js")]
    answers += [empty.client(Host="evil.example").get("/"), empty.client(Authorization="").get(f"{API}/session")]
    answers += [empty.client(**{"Sec-Fetch-Site": "cross-site"}).get("/page/app.js")]

    assert [one.status_code for one in answers] == [200, 200, 200, 200, 404, 404, 421, 401, 403]
    for one in answers:
        policy = one.headers["content-security-policy"]
        for part in ("default-src 'none'", "script-src 'self';", "frame-ancestors 'none'", "require-trusted-types-for"):
            assert part in policy, one.url
        assert "unsafe" not in policy
        assert one.headers["x-frame-options"] == "DENY"
        assert one.headers["x-content-type-options"] == "nosniff"
        assert one.headers["cross-origin-resource-policy"] == "same-origin"
        assert "server" not in one.headers
    assert {one.headers["cache-control"] for one in answers if API in str(one.url)} == {"no-store"}


def test_a_file_outside_of_the_page_is_not_served(empty: Server) -> None:
    with empty.client() as client:
        for path in ("/page/../app.py", "/page/%2e%2e/app.py", "/page/..%2fapp.py", "/page//etc/passwd"):
            answer = client.get(path)
            assert answer.status_code == 404 or b"<!doctype html>" in answer.content, path
