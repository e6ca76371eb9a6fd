"""What a note says in the page is shown and never obeyed, even if the sanitiser were not there."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from urllib.parse import quote

import pytest

from co_cli.http.http_server import listen
from co_cli.server import rendering
from tests.folder import Vault
from tests.safety.hostile import TOGETHER, file_name, note
from tests.server.browser import until, visit, wait_for
from tests.server.conftest import Server

HANDLERS = """zebra <b id=shown>bold</b>
<img src=x onerror="window.owned = 1"><img src="ELSEWHERE/seen.png">
<a id=link href="javascript:window.owned = 2">link</a>
<p id=styled style="position: fixed">styled</p>
<div class=callout onclick="window.owned = 3"><math href="javascript:window.owned = 3"><mi>x</mi></math></div>
"""
ELEMENTS = {
    "a script": "<script>window.owned = 4</script>",
    "a new address": "<meta http-equiv=refresh content='0; url=https://evil.example/'>",
    "a frame": "<iframe srcdoc='<script>parent.owned = 5</script>'></iframe>",
    "a form": "<form action=https://evil.example><input name=token></form>",
    "a style": "<style>main { display: none }</style>",
    "a drawing": "<svg onload='window.owned = 6'></svg>",
    "a film": "<video src=x onloadstart='window.owned = 7' controls></video>",
    "a field": "<input autofocus onfocus='window.owned = 8'>",
    "HTML in a formula": "<math><annotation-xml encoding='text/html'><script>window.owned = 9</script></math>",
}
OBEYED = """() => [window.owned ?? 0, ...[...document.querySelectorAll(
  "script:not([src^='/page/']), style, iframe, meta[http-equiv], form[action], main [onerror], #top [onerror]")]
  .map((element) => element.outerHTML)]"""


@pytest.mark.slow
def test_hostile_strings_are_shown_on_every_page_and_never_obeyed(
    vault: Vault, empty: Server, open_page: Callable[[str], Any]
) -> None:
    for number, hostile in enumerate(TOGETHER):
        vault.write(f"memories/m{number}.md", note(hostile))
        vault.write(f"articles/{file_name(hostile)}.md", note(hostile))
    empty.kb.sync()
    refs = [one.ref for one in empty.kb.notes()]
    assert len(refs) == 2 * len(TOGETHER)
    page = open_page(empty.address)
    page.fill("input[type=search]", "zebra text")
    until(page, "document.querySelectorAll('.hit').length > 3")
    notes = [f"/note/{quote(ref, safe='/:')}" for ref in refs]
    for path in ("/", *notes, "/activity", "/review", "/context", "/map", "/health"):
        visit(page, path)
        page.wait_for_timeout(30)
        assert page.evaluate(OBEYED) == [0], path
        assert not page.query_selector("main > .page > [role=alert]"), page.inner_text("main")
    visit(page, "/note/memory:m5")
    assert "<script>alert(1)</script>" in page.inner_text("h1")


@pytest.mark.slow
def test_html_that_slips_past_the_sanitiser_runs_nothing_and_loads_nothing(
    vault: Vault, empty: Server, open_page: Callable[[str], Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rendering.nh3, "clean", lambda html, **_: html)
    monkeypatch.setattr(rendering, "_unhidden", str)
    elsewhere = listen("127.0.0.1", 0)
    vault.write("memories/handlers.md", HANDLERS.replace("ELSEWHERE", f"http://127.0.0.1:{elsewhere.getsockname()[1]}"))
    for number, element in enumerate(ELEMENTS.values()):
        vault.write(f"memories/e{number}.md", f"zebra\n\n{element}\n")
    empty.kb.sync()
    page = open_page(f"{empty.url}/note/memory:handlers#{empty.address.partition('#')[2]}")

    page.wait_for_selector("#shown")
    assert "onerror" in page.inner_html("main"), "the sanitiser is off"
    page.click("#link")
    said = ("inline event handler", "inline style", "Loading the image", "JavaScript URL")
    wait_for(
        lambda: page.evaluate("true") and all(what in " ".join(page.problems) for what in said), lambda: page.problems
    )

    assert page.evaluate("window.owned") is None
    assert page.evaluate("getComputedStyle(document.getElementById('styled')).position") == "static"
    elsewhere.setblocking(False)
    with elsewhere, pytest.raises(BlockingIOError):
        elsewhere.accept()
    page.problems.clear()
    for number, kind in enumerate(ELEMENTS):
        visit(page, f"/note/memory:e{number}")
        page.wait_for_selector("[role=alert]:has-text('this HTML was not sanitised')")
        assert page.evaluate(OBEYED) == [0], kind
    page.close()
    page.problems.clear()


def test_the_browser_refuses_text_as_html_or_as_code(empty: Server, open_page: Callable[[str], Any]) -> None:
    page = open_page(empty.address)
    page.wait_for_selector("#top:not([inert])")
    for attempt in (
        "document.body.innerHTML = '<b>x</b>'",
        "document.body.insertAdjacentHTML('beforeend', '<b>x</b>')",
        "document.createElement('script').text = 'window.owned = 1'",
        "document.createElement('script').src = '/page/app.js'",
        "trustedTypes.createPolicy('evil', { createHTML: (text) => text })",
        "trustedTypes.createPolicy('co', { createHTML: (text) => text })",
    ):
        refused = page.evaluate(f"() => {{ try {{ {attempt}; return '' }} catch (error) {{ return error.name }} }}")
        assert refused == "TypeError", attempt
    assert page.problems
    page.problems.clear()


DRAWING = """<svg xmlns="http://www.w3.org/2000/svg" width="9" height="9" onload="top.owned = 1; owned = 1">
<script>top.owned = 2; owned = 2; fetch("/api/v1/session")</script><rect width="9" height="9" fill="red"/></svg>"""


def test_a_drawing_of_the_vault_runs_no_script_in_a_note_or_in_a_tab_of_its_own(
    vault: Vault, empty: Server, open_page: Callable[[str], Any]
) -> None:
    vault.write("memories/drawn.md", "A drawing: ![[drawn.svg]] and [the file](drawn.svg)\n")
    vault.write("memories/drawn.svg", DRAWING)
    empty.kb.sync()
    page = open_page(f"{empty.url}/note/memory:drawn#{empty.address.partition('#')[2]}")

    until(page, "document.querySelector('.prose img')?.naturalWidth === 9")
    tab, tries = page, 0
    while tab is page or not tab.query_selector("rect"):  # Chromium at times leaves a tab of a blob address empty
        with page.context.expect_page() as opened:
            page.evaluate("open(document.querySelector('.prose img').src)")
        tab, tries = opened.value, tries + 1
        tab.wait_for_load_state()
        assert tries < 9

    assert tab.evaluate("window.owned") is None
    assert page.evaluate("window.owned") is None
    with empty.client() as client:
        answer = client.get("/api/v1/files/memory:drawn", params={"name": "drawn.svg"})
        assert answer.headers["content-type"] == "image/svg+xml"
        assert "sandbox" in answer.headers["content-security-policy"]
        assert "script-src" not in answer.headers["content-security-policy"]
    tab.close()
    page.problems.clear()  # Chromium logs what it refused
