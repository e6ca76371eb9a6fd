"""The frame of the page: sign-in, menu, themes and keys."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tests.server.browser import inspect, until
from tests.server.conftest import Server


def test_the_address_signs_in_once_and_the_code_leaves_it(server: Server, open_page: Callable[[str], Any]) -> None:
    address = server.address
    page = open_page(address)
    page.wait_for_selector("#top nav a")

    assert page.url == f"{server.url}/"
    page.goto("about:blank")
    page.goto(address)
    page.wait_for_selector("#top nav a")
    assert page.url == f"{server.url}/", "this browser is signed in, so a used code does not matter"

    other = open_page(address)
    other.wait_for_selector("[role=alert]")
    assert "this code was used" in other.inner_text("main").lower()
    inspect(other, "sign-in")
    other.problems.clear()  # Chromium logs the 403


def test_a_page_that_was_signed_out_opens_again_after_signing_in(
    server: Server, open_page: Callable[[str], Any]
) -> None:
    page = open_page(server.address)
    page.wait_for_selector("#top nav a")
    page.evaluate("localStorage.setItem('co-token', 'of an earlier run')")
    page.goto(f"{server.url}/activity")
    page.wait_for_selector("text=Sign in")

    other = page.context.new_page()
    other.goto(server.address)
    other.wait_for_selector("#top nav a")
    page.wait_for_selector(".activity h1")
    page.problems.clear()  # Chromium logs the 401


def test_the_menu_opens_each_page_without_loading_again(page: Any) -> None:
    page.evaluate("window.kept = true")
    for name in ("Activity", "Review", "Context", "Map", "Health", "Home"):
        page.click(f"nav a:has-text('{name}')")
        until(page, f"document.querySelector('nav a[aria-current]').innerText === '{name}'")
        page.wait_for_selector("main h1")
    assert page.evaluate("window.kept")
    page.go_back()
    until(page, "document.querySelector('nav a[aria-current]').innerText === 'Health'")
    page.keyboard.press("?")
    page.wait_for_selector("dialog dt")
    page.keyboard.press("Escape")
    page.click("[aria-label='Theme: auto']")
    until(page, "document.documentElement.dataset.theme === 'light'")
