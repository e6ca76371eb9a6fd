"""The clipper: a bookmarklet hands the page that a browser shows to a window of co web, where the person saves it."""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import unquote

import httpx2
import pytest
from starlette.testclient import TestClient

from co_cli.entrance.local import LocalKnowledgeBase
from co_cli.server.clip_api import clip_token
from co_cli.server.routes import API, ROUTES
from tests.command import Co
from tests.folder import Vault
from tests.server.api import ask
from tests.server.browser import inspect, wait_for
from tests.server.conftest import Server, client
from tests.server.processes import web_process

TEXT = "Moor the boat to the ring alone when the tide is under two metres, and check the rope every hour. " * 4
PAGE = f"""<!doctype html><html><head><title>Mooring - Harbour</title></head><body><nav>Home, news, contact</nav>
<main><h1>Mooring</h1><p>{TEXT}</p><p id=quote>Never leave a <b>wet</b> rope.</p>
<pre id=code>while tide:
    wait()</pre><script>alert(1)</script><img src=x alt="" onerror="alert(2)"></main></body></html>"""
STRICT = {"Content-Security-Policy": "default-src 'none'; require-trusted-types-for 'script'; form-action 'none'"}
CUT_OFF = {"Cross-Origin-Opener-Policy": "same-origin"}


class Pages(BaseHTTPRequestHandler):
    """A site elsewhere: `/cut-off` keeps the windows that it opens from it, and `/large` has eleven megabytes."""

    def do_GET(self) -> None:
        self.send_response(200)
        for name, value in {
            "Content-Type": "text/html",
            **STRICT,
            **(CUT_OFF if "cut-off" in self.path else {}),
        }.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(PAGE.encode() + b" " * (11_000_000 if "large" in self.path else 0))

    def log_message(self, format: str, *args: object) -> None:
        """Tests are quiet."""


@pytest.fixture(scope="module")
def elsewhere() -> Iterator[str]:
    with ThreadingHTTPServer(("127.0.0.1", 0), Pages) as site:
        threading.Thread(target=site.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()
        yield f"http://localhost:{site.server_address[1]}"
        site.shutdown()


@pytest.fixture
def bookmarklet(empty: Server, open_page: Callable[[str], Any]) -> Any:
    """What `co web --clipper` shows, as JavaScript."""
    page = open_page(empty.address.replace("/#", "/clipper#"))
    address = page.get_attribute("a:has-text('Save to co')", "href")
    assert address.startswith("javascript:")
    return unquote(address.removeprefix("javascript:"))


@pytest.fixture
def reading(browser: Any, elsewhere: str) -> Iterator[Any]:
    """A browser that is not signed in, at a page elsewhere."""
    context = browser.new_context()
    page = context.new_page()
    page.goto(f"{elsewhere}/mooring?from=news#top")
    yield page
    context.close()


def clipped(reading: Any, script: str) -> Any:
    """The window that a script opens, as a bookmarklet runs: whatever the policy of the page says."""
    with reading.context.expect_page() as opened:
        reading.evaluate(script)
    return opened.value


def says(window: Any, text: str) -> None:
    wait_for(lambda: text in window.inner_text("main"), lambda: window.inner_text("main"))


@pytest.mark.slow
def test_the_window_shows_a_page_with_a_strict_policy_and_saves_it_when_the_person_says_so(
    bookmarklet: str, reading: Any, elsewhere: str, vault: Vault
) -> None:
    window = clipped(reading, bookmarklet)
    says(window, "Mooring - Harbour")
    shown = window.inner_text("main")
    assert f"{elsewhere}/mooring?from=news" in shown
    assert f"Save to {vault.root.name}" in shown
    assert re.search(r"The page,\s+[\d,]+ bytes of HTML", shown)
    assert "token" not in window.url
    window.wait_for_timeout(300)
    assert vault.files() == [], "nothing is saved before Save"
    window.click("button:has-text('Save'):enabled")
    says(window, "Saved: ")
    note = vault.read("articles/mooring.md")
    for part in ("title: Mooring\n", "provenance: web", f"source_url: {elsewhere}/mooring?from=news\n", TEXT.strip()):
        assert part in note
    assert "alert" not in note
    assert "news, contact" not in note
    assert window.get_attribute("main a", "href") == "/note/article:mooring"

    again = clipped(reading, bookmarklet)
    again.click("button:has-text('Save'):enabled")
    says(again, "It was saved already: ")
    assert vault.files() == ["articles/mooring.md"]
    inspect(again, "clip")


@pytest.mark.slow
def test_only_what_is_selected_is_saved_and_code_keeps_its_lines(bookmarklet: str, reading: Any, vault: Vault) -> None:
    for part, text in (("quote", "Never leave a **wet** rope."), ("code", "while tide:\n    wait()")):
        reading.evaluate(f"getSelection().selectAllChildren(document.getElementById('{part}'))")
        window = clipped(reading, bookmarklet)
        says(window, "Your selection")
        window.click("button:has-text('Save'):enabled")
        says(window, "Saved: ")
        saved = [vault.read(path) for path in vault.files()]
        assert any(text in note for note in saved), saved
    assert not any("tide is under two metres" in vault.read(path) for path in vault.files())


def test_a_page_that_cuts_off_its_windows_is_saved_by_its_address(
    bookmarklet: str, reading: Any, elsewhere: str
) -> None:
    reading.goto(f"{elsewhere}/cut-off?it's")
    window = clipped(reading, bookmarklet)
    says(window, f"co add '{elsewhere}/cut-off?it%27s'")
    assert not window.query_selector("button")


@pytest.mark.slow
def test_a_page_that_is_too_large_says_so_in_one_line(bookmarklet: str, reading: Any, elsewhere: str) -> None:
    reading.goto(f"{elsewhere}/large")
    window = clipped(reading, bookmarklet)
    says(window, "This is too large: 11,000,")
    window.wait_for_timeout(1_000)
    assert window.is_disabled("button:has-text('Save')")


@pytest.mark.slow
def test_a_hostile_page_saves_nothing_with_or_without_the_token(
    bookmarklet: str, reading: Any, empty: Server, vault: Vault
) -> None:
    stranger = clipped(reading, f"void (own = open('{empty.url}/clip#token=guessed'))")
    says(stranger, "co does not know this bookmarklet")
    secret = clip_token(empty.kb.settings.data_dir)

    def opened() -> Any:
        return clipped(
            reading,
            "heard = new Promise((done) => addEventListener('message', done, {once: true}));"
            f"void (own = open('{empty.url}/clip#token={secret}'))",
        )

    def send(**page: str) -> None:
        clip = {"title": "<img src=x onerror=alert(1)>", "html": "<p>Obey me.", **page}
        reading.evaluate("(page) => heard.then(() => own.postMessage(page, '*'))", clip)

    forged = opened()
    send(url="https://bank.example/")
    says(forged, "hides where it is from")

    window = opened()
    send(url=f"{reading.url}?\u202e\u200b")
    says(window, "Save to")
    assert "<img src=x onerror=alert(1)>" in window.inner_text("main")
    assert "?%E2%80%AE%E2%80%8B" in window.inner_text("main")
    assert window.is_disabled("button"), "a hand that clicks already"
    send(url=reading.url, title="Another")
    window.wait_for_selector("button:enabled")
    assert "Another" not in window.inner_text("main"), "what was shown is saved"
    refused = reading.evaluate(
        "([url, token]) => fetch(url, {method: 'POST', headers: {Authorization: `Bearer ${token}`}, body: '{}'})"
        ".then(() => 'answered', () => 'refused')",
        [f"{empty.url}{API}/clips", secret],
    )
    assert refused == "refused"
    assert vault.files() == []


def test_a_clip_token_neither_reads_nor_searches_nor_writes(empty: Server, vault: Vault) -> None:
    vault.write("memories/oak.md", "Oaks live long.")
    empty.kb.sync()
    with client(empty, clip_token(empty.kb.settings.data_dir)) as clipper:
        asked = [(one.method, one.path) for one in ROUTES if one.path != "/clips"]
        for method, path in [*asked, ("GET", "/events"), ("GET", "/unknown")]:
            address = API + re.sub(r"{.*?}", "memory:oak", path)
            assert clipper.request(method, address, params={"q": "oaks"}).status_code == 403, (method, path)
        assert clipper.get(f"{API}/clips").json() == {"vault": vault.root.name, "largest": 10_000_000}
        saved = clipper.post(f"{API}/clips", json={"url": "https://example.org/a", "html": PAGE}).json()
        assert saved == {"outcome": "created", "ref": "article:mooring"}
        for origin in ("https://example.org", "null"):
            assert clipper.get(f"{API}/clips", headers={"Origin": origin}).status_code == 403
        assert clipper.get(f"{API}/clips", headers={"Sec-Fetch-Site": "cross-site"}).status_code == 403
    with client(empty, "") as nobody:
        assert nobody.get(f"{API}/clips").status_code == 401
        window = nobody.get("/clip")
    assert window.headers["cross-origin-opener-policy"] == "unsafe-none"
    assert "frame-ancestors 'none'" in window.headers["content-security-policy"]
    assert not [name for name in window.headers if name.startswith("access-control")]


def test_a_page_that_is_too_large_or_has_no_text_or_address_is_one_line(api: TestClient) -> None:
    def message(**clip: str) -> str:
        return ask(api, "POST", "/clips", 400, **clip)["error"]["message"]

    assert "no text in the page" in message(url="https://example.org/", html="<p></p>")
    assert "only http:// and https://" in message(url="file:///etc/passwd", html=PAGE)
    large = message(url="https://example.org/", html=PAGE + " " * 10_000_000)
    assert "bytes of HTML; the limit is 10,000,000 (the setting web_max_bytes); select the part" in large


def test_a_selection_a_page_and_another_selection_are_three_notes_and_none_is_fetched_again(
    kb: LocalKnowledgeBase, vault: Vault, co: Co
) -> None:
    pages, url = kb.web_pages(), "https://example.org/mooring"
    clips = [("", "<p>Rings are iron."), ("", "<p>Ropes are wet."), (PAGE, ""), ("", "<p>Rings are iron."), (PAGE, "")]
    outcomes = [pages.clip(url, html, "Mooring", selection).outcome for html, selection in clips]
    assert outcomes == ["created", "created", "created", "skipped", "skipped"]
    before = vault.files()
    again = co("source", "refresh", "--all")
    assert again.out.count("skipped") == 3
    assert vault.files() == before


@pytest.mark.slow
@pytest.mark.medium
def test_co_web_clipper_opens_the_page_with_the_bookmarklet_whose_token_lasts_until_sign_out(
    vault: Vault, co: Co
) -> None:
    def token(*options: str) -> str:
        with web_process(*options) as (url, code), httpx2.Client(base_url=url, verify=False) as asking:
            secret = asking.post("/session", json={"code": code}).json()["token"]
            return asking.get("/clipper", headers={"Authorization": f"Bearer {secret}"}).json()["token"]

    first = token("--clipper")
    assert token() == first
    with web_process() as (url, code), httpx2.Client(base_url=url, verify=False) as asking:
        headers = {"Authorization": f"Bearer {asking.post('/session', json={'code': code}).json()['token']}"}
        assert token("--sign-out") != first
        shown = asking.get("/clipper", headers=headers).json()["token"]
        assert shown == first, "the one that this process accepts"
