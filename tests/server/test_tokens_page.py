"""The page of tokens, for admins."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from co_cli.entrance.knowledge_base import KnowledgeBase
from co_cli.server.access_tokens import AccessTokens
from tests.server.browser import axe, inspect, wait_for
from tests.server.conftest import client, serving


def test_an_admin_creates_rotates_and_revokes_a_token(sample: KnowledgeBase, open_page: Callable[[str], Any]) -> None:
    tokens = AccessTokens.of(sample.vault)
    with serving(sample, tokens) as server:
        page = open_page(f"{server.url}/settings#{server.address.partition('#')[2]}")
        page.click("a[href='/tokens']")
        page.wait_for_selector("text=Nobody has a token yet.")
        page.fill("input[name=name]", "mara")
        page.select_option("select[name=role]", "write")
        page.click("button:has-text('Create')")
        first = page.inner_text("dialog code")
        assert tokens.find(first) == tokens.all()[0]
        page.keyboard.press("Escape")
        inspect(page, "tokens")

        page.fill("input[name=name]", "mara")
        page.keyboard.press("Enter")
        page.wait_for_selector("text=There is a token mara already")
        page.problems.clear()  # Chromium logs the 400
        page.click("button[aria-label='Rotate mara']")
        page.wait_for_selector("dialog code")
        second = page.inner_text("dialog code")
        assert (tokens.find(first), bool(tokens.find(second))) == (None, True)
        page.keyboard.press("Escape")
        page.click("button[aria-label='Revoke mara']")
        page.wait_for_selector("text=Nobody has a token yet.")
        assert tokens.find(second) is None
        page.click("text=Who changed what")
        wait_for(lambda: "created the token mara (write)" in page.inner_text("main details"))
        page.close()


@pytest.mark.slow
def test_others_do_not_see_it(sample: KnowledgeBase, open_page: Callable[[str], Any]) -> None:
    tokens = AccessTokens.of(sample.vault)
    secret, _ = tokens.create("write", "mara")
    with serving(sample, tokens) as server:
        page = open_page(f"{server.url}/settings")
        page.fill("#token", secret)
        page.press("#token", "Enter")
        page.wait_for_selector("#theme")
        page.problems.clear()  # Chromium logs the 401
        assert page.locator("a[href='/tokens']").count() == 0
        page.close()
        with client(server, secret) as asking:
            assert asking.get("/api/v1/tokens").status_code == 403


@pytest.mark.slow
def test_the_page_asks_before_an_address_signs_in_as_somebody_else(
    sample: KnowledgeBase, open_page: Callable[[str], Any]
) -> None:
    tokens = AccessTokens.of(sample.vault)
    secret, _ = tokens.create("read", "mara")
    with serving(sample, tokens) as server:
        page = open_page(server.url)
        page.fill("#token", secret)
        page.press("#token", "Enter")
        page.wait_for_selector("#top:not([inert])")
        page.problems.clear()  # Chromium logs the 401

        for button, kept in (("[aria-label=Close]", secret), (":has-text('Sign in as')", server.access.token)):
            page.goto("about:blank")
            page.goto(server.address)
            page.wait_for_selector("dialog")
            assert "You are signed in as mara" in page.inner_text("dialog")
            assert axe(page) == []
            page.click(f"dialog button{button}")
            page.wait_for_selector("#top:not([inert])")
            assert page.evaluate("localStorage.getItem('co-token')") == kept
        page.goto("about:blank")
        page.goto(server.address)
        page.wait_for_selector("#top:not([inert])")
        assert page.locator("dialog").count() == 0, "it is the same person"
        page.close()
