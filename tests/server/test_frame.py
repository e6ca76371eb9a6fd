"""The frame of the page: sign-in, menu, themes and keys."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.server.browser import PHONE, held, inspect, until, visit, wait_for
from tests.server.conftest import Server


def test_the_address_signs_in_once_and_the_code_leaves_it(server: Server, open_page: Callable[[str], Any]) -> None:
    address = server.address
    page = open_page(address)
    page.wait_for_selector("#top:not([inert])")

    assert page.url == f"{server.url}/"
    page.goto("about:blank")
    page.goto(address)
    page.wait_for_selector("#top:not([inert])")
    assert page.url == f"{server.url}/", "this browser is signed in, so a used code does not matter"

    other = open_page(address)
    other.wait_for_selector("[role=alert]")
    assert "this code was used" in other.inner_text("main").lower()
    inspect(other, "sign-in")
    other.problems.clear()  # Chromium logs the 403


@pytest.mark.slow
def test_a_page_that_was_signed_out_opens_again_after_signing_in(
    server: Server, open_page: Callable[[str], Any]
) -> None:
    page = open_page(server.address)
    page.wait_for_selector("#top:not([inert])")
    page.evaluate("localStorage.setItem('co-token', 'of an earlier run')")
    page.goto(f"{server.url}/activity")
    page.wait_for_selector("text=Sign in")

    other = page.context.new_page()
    other.goto(server.address)
    other.wait_for_selector("#top:not([inert])")
    assert page.wait_for_selector(".activity h1")
    page.problems.clear()  # Chromium logs the 401


def test_a_page_asks_for_everything_once_and_hears_of_what_changes_from_then_on(page: Any, server: Server) -> None:
    page.goto("about:blank")
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url.partition("/api/")[2]))
    page.goto(server.url)
    page.wait_for_selector(".home .group a")
    page.wait_for_timeout(500)  # anything more would have been asked for by now
    assert any(address.startswith("v1/browse") for address in asked)
    assert sorted(address for address in asked if address) == sorted({*asked} - {""})

    Path(server.kb.root, "memories", "fresh.md").write_text("A thought that came after the page was opened.\n")
    page.wait_for_selector("text=A thought that came after")


def test_the_menu_opens_each_page_without_loading_again(page: Any) -> None:
    page.evaluate("window.kept = true")
    for name in ("Activity", "Review", "Context", "Map", "Sources", "Health", "Settings", "Home"):
        page.click(f"nav a:has-text('{name}')")
        until(page, f"document.querySelector('nav a[aria-current]').innerText === '{name}'")
        page.wait_for_selector("main h1")
    assert page.evaluate("window.kept")
    page.go_back()
    until(page, "document.querySelector('nav a[aria-current]').innerText === 'Settings'")
    page.keyboard.press("?")
    page.wait_for_selector("dialog dt")
    page.keyboard.press("Escape")
    page.click("[aria-label='Theme: auto']")
    until(page, "document.documentElement.dataset.theme === 'light'")


VIEWS = {
    "/": "note-card p",
    "/notes": ".rows note-card p",
    "/note/memory:odalys-has-the-last-word": "aside .plain time",
    "/note/memory:odalys-has-the-last-word?edit=1": ".edit .prose p",
    "/?q=who decides what ships": "main:has(.verdict .badge) .preview [data-line]",
    "/activity": ".numbers",
    "/review": ".findings",
    "/context": ".given-notes a",
    "/map": ".map li a",
    "/health": ".health section [role=status] p",
    "/settings": ".setting",
    "/sources": ".source",
}
LOOKS = """() => Object.fromEntries([
    "h1", "h2", "h3", "p", "li a", ".prose", ".prose p", "label", "input", "main button", "li"]
    .map((one) => [one, document.querySelector(`main ${one}`)]).filter(([, found]) => found).map(([one, found]) => {
        const { color, fontSize, fontWeight, fontFamily, display, padding } = getComputedStyle(found);
        return [one, [color, fontSize, fontWeight, fontFamily, display, padding].join(" ")];
    }))"""


@pytest.mark.slow
def test_each_view_looks_the_same_whichever_were_opened_before_it(server: Server, page: Any) -> None:
    def look(path: str) -> dict[str, str]:
        page.wait_for_selector(VIEWS[path])
        return page.evaluate(LOOKS)

    def go(path: str) -> dict[str, str]:
        visit(page, path)
        return look(path)

    fresh = {path: (page.goto(server.url + path), look(path))[1] for path in VIEWS}
    page.goto(server.url)

    for path in (*VIEWS, *reversed(VIEWS)):
        assert go(path) == fresh[path], path


def press_chord(page: Any, keys: str, place: str) -> None:
    """Again, if a busy machine took longer from the first key to the second than somebody who means both."""

    def is_there() -> bool:
        for key in keys:
            page.keyboard.press(key)
        return page.evaluate("document.querySelector('nav a[aria-current]').innerText") == place

    wait_for(is_there)


def test_keys_and_chords_go_places_and_fields_keep_their_letters(page: Any) -> None:
    page.wait_for_selector("input[type=search]")
    page.keyboard.press("Escape")  # leaves the search box
    press_chord(page, "gh", "Health")
    page.wait_for_selector("#checks")
    press_chord(page, "gs", "Home")
    page.wait_for_selector("input[type=search]")
    page.click("input[type=search]")
    page.keyboard.type("g h?")

    assert page.input_value("input[type=search]") == "g h?"
    assert page.evaluate("location.pathname") == "/"
    assert not page.query_selector("dialog[open]")


@pytest.mark.slow
def test_a_bar_stays_while_the_server_is_away_and_the_page_goes_on_when_it_is_back(server: Server, page: Any) -> None:
    page.wait_for_selector("input[type=search]")
    wait_for(lambda: server.site.events.listening)
    page.route("**/api/v1/**", lambda route: route.abort())
    page.route("**/page/**", lambda route: route.abort())
    server.site.events.stop_streams()
    page.wait_for_selector("#offline:has-text('co is not running')")
    page.click("nav a:has-text('Context')")
    page.wait_for_selector("[role=alert]:has-text('co web does not answer')")
    inspect(page, "offline")
    page.unroute("**/page/**")
    page.unroute("**/api/v1/**")

    page.wait_for_selector(".context textarea")
    page.wait_for_selector("#offline", state="hidden")
    assert page.is_hidden("#offline")
    page.problems.clear()  # Chromium logs what could not be loaded


@pytest.mark.slow
def test_the_bar_goes_when_the_server_says_something(server: Server, page: Any) -> None:
    page.wait_for_selector("note-card")
    wait_for(lambda: server.site.events.listening)
    page.route("**/api/v1/review/count", lambda route: route.abort())
    server.site.events.publish("activity", {})
    page.wait_for_selector("#offline:has-text('co is not running')")
    server.site.events.publish("notice", {"text": "It is."})
    page.wait_for_selector("#offline", state="hidden")
    assert page.is_hidden("#offline")
    page.problems.clear()  # Chromium logs what could not be loaded


def test_back_and_forward_restore_the_scroll(page: Any) -> None:
    page.click("nav a:has-text('Settings')")
    page.wait_for_selector("#theme")
    page.evaluate("scrollTo(0, 300)")
    until(page, "scrollY === 300")
    page.click("nav a:has-text('Context')")
    page.wait_for_selector(".context textarea")
    until(page, "scrollY === 0")
    page.go_back()
    assert until(page, "location.pathname === '/settings' && scrollY === 300")


@pytest.mark.slow
def test_on_a_phone_the_rest_of_the_menu_is_behind_one_button(page: Any) -> None:
    page.set_viewport_size(PHONE)
    page.reload()
    page.wait_for_selector("nav .more summary")
    page.click("nav .more summary")
    module = "document.querySelector('script[type=module]').src.replace('app.js', 'parts/store.js')"
    page.evaluate(f"import({module}).then(({{ reviewCount }}) => {{ reviewCount.value = 7; }})")
    page.click("nav a:has-text('Map')")
    until(page, "location.pathname === '/map'")
    until(page, "!document.querySelector('.more').open")
    small = page.evaluate("""[...document.querySelectorAll('#top a, #top button, #top summary')]
        .filter((one) => one.checkVisibility() && one.getBoundingClientRect().height < 40)
        .map((one) => one.outerHTML)""")
    assert small == []


def test_the_palette_opens_notes_asks_and_does_what_keys_do(page: Any) -> None:
    page.wait_for_selector("input[type=search]")
    page.keyboard.press("Control+k")
    page.keyboard.type("soup thurs")  # also while the palette is loaded
    until(page, "document.querySelector('[aria-selected=true] .title')?.innerText === 'Soup on Thursdays'")
    inspect(page, "palette")
    page.keyboard.press("Enter")
    until(page, "location.pathname === '/note/memory:thursday-soup'")
    page.wait_for_selector(".note .prose p")

    page.keyboard.press("Control+k")
    page.wait_for_selector(".palette input:focus")
    page.keyboard.type("f")
    composing = "new KeyboardEvent('keydown', { key: 'Enter', isComposing: true, bubbles: true })"
    page.evaluate(f"document.querySelector('.palette input').dispatchEvent({composing})")
    with held(page, "**/titles?q=fr&*"):
        page.keyboard.type("r")
        page.keyboard.press("Enter")
        page.keyboard.press("Escape")
    until(page, "!document.querySelector('co-palette')")
    assert page.url.endswith("/note/memory:thursday-soup")

    page.keyboard.press("Control+k")
    page.wait_for_selector("[aria-label='Recent notes'] [role=option]:has-text('Soup on Thursdays')")
    page.keyboard.type("what does the bell cost")
    page.wait_for_selector("[role=option]:has-text('Ask: what does the bell cost')")
    page.wait_for_selector("#options[aria-busy=false]")
    while "Ask:" not in page.inner_text("[aria-selected=true]"):
        page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    until(page, "location.search === '?q=what+does+the+bell+cost' || location.search.includes('what%20does')")
    page.wait_for_selector(".search .hit")

    page.keyboard.press("Control+k")
    page.wait_for_selector(".palette input")
    page.keyboard.type("theme: dark")
    page.wait_for_selector("#options[aria-busy=false]:has-text('Theme: dark')")
    page.click("[role=option] .title:text-is('Theme: dark')")
    until(page, "document.documentElement.dataset.theme === 'dark'")
    until(page, "!document.querySelector('co-palette')")
    page.keyboard.press("Control+k")
    page.wait_for_selector(".palette input")
    page.keyboard.press("Escape")
    assert until(page, "!document.querySelector('co-palette')")


@pytest.mark.slow
def test_a_view_that_is_late_shows_a_skeleton_until_it_is_there(page: Any) -> None:
    page.wait_for_selector("input[type=search]")
    with held(page, "**/api/v1/map"):
        page.click("nav a:has-text('Map')")
        until(page, "document.querySelector('main.coming .page:empty') && 1")
    page.wait_for_selector(".map canvas")
    assert until(page, "!document.querySelector('main.coming')")


@pytest.mark.slow
def test_the_palette_opens_a_note_in_a_new_tab_with_control_and_enter(page: Any) -> None:
    page.wait_for_selector("input[type=search]")
    page.keyboard.press("Control+k")
    page.wait_for_selector(".palette input")
    page.keyboard.type("soup thurs")
    page.wait_for_selector("#options[aria-busy=false] [aria-selected=true]:has-text('Soup on Thursdays')")
    with page.context.expect_page() as opened:
        page.keyboard.press("Control+Enter")
    opened.value.wait_for_selector("h1:has-text('Soup on Thursdays')")
    assert page.evaluate("location.pathname") == "/"
