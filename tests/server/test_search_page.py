"""The search page, as a person uses it."""

from __future__ import annotations

import time
from typing import Any

from tests.server.browser import PHONE, axe, inspect, until
from tests.server.conftest import Server
from tests.server.test_search_api import logged

QUESTION = "who decides what ships"


def test_results_appear_while_typing_and_the_verdict_after_a_pause(page: Any, server: Server) -> None:
    page.wait_for_selector("text=Newest notes")
    page.clock.install()
    page.clock.pause_at(time.time() + 3600)  # a busy machine types slowly
    page.keyboard.type("who deci")
    page.wait_for_selector(".hit mark")
    page.keyboard.type("des what ships")
    page.wait_for_selector(".hit:has-text('Odalys has the last word')")
    assert logged(server.kb) == []
    page.clock.resume()
    page.wait_for_selector(".verdict .badge.good")

    assert logged(server.kb) == [(QUESTION, "web")]
    assert page.url.endswith("/?q=who+decides+what+ships")
    assert page.inner_text(".hit >> nth=0").startswith("Odalys has the last word")
    page.wait_for_selector(".preview .lit")
    inspect(page, "search", lambda: page.wait_for_timeout(50))

    page.keyboard.press("ArrowDown")
    page.keyboard.press("j")
    until(page, "document.querySelectorAll('.hit')[1].getAttribute('aria-current') === 'true'")
    page.keyboard.press("k")
    page.keyboard.press("w")
    page.wait_for_selector("dialog table")
    assert "Rank 1" in page.inner_text("dialog")
    assert axe(page) == []
    page.keyboard.press("Escape")
    page.keyboard.press("+")
    page.wait_for_selector("[aria-label='This answers it'][aria-pressed=true]")
    pressed, other = page.evaluate(
        "[...document.querySelectorAll('.preview [aria-pressed]')].map((one) => getComputedStyle(one).color)"
    )
    assert pressed != other
    page.fill("#missing", "who-does-what")
    page.click("text=Why not?")
    page.wait_for_selector("dialog table")
    page.keyboard.press("Escape")

    page.select_option("[aria-label=Source]", "article")
    until(page, "[...document.querySelectorAll('.hit > a + .badge')].every(one => one.innerText === 'article')")
    page.click("h1", force=True)
    page.keyboard.press("/")
    page.keyboard.press("Enter")
    until(page, "location.pathname.startsWith('/note/article:')")
    page.go_back()
    page.wait_for_selector(".verdict .badge")  # the best article is a weak match
    assert page.input_value("[type=search]") == QUESTION

    for key in ("ArrowDown", "j", "Enter"):
        page.keyboard.press(key)
    until(page, "location.pathname.startsWith('/note/article:')")
    page.go_back()
    until(page, "document.activeElement === document.querySelectorAll('.hit > a')[1]")  # where you left


def test_a_phone_says_why_a_note_was_found(page: Any, server: Server) -> None:
    page.wait_for_selector("text=Newest notes")
    page.fill("[type=search]", QUESTION)
    page.wait_for_selector(".verdict .badge.good")
    assert not page.is_visible(".hit button"), "the preview has it"

    page.set_viewport_size(PHONE)
    page.click(".hit:nth-child(2) button:text('Why')")

    page.wait_for_selector("dialog table")
    assert "Rank 2" in page.inner_text("dialog")


def test_what_nothing_answers_can_be_written(page: Any, server: Server) -> None:
    page.wait_for_selector("text=Newest notes")
    page.keyboard.type("how do I breed llamas")
    page.wait_for_selector(".verdict .badge.warn")
    page.keyboard.press("Escape")
    assert page.input_value("[type=search]") == "how do I breed llamas"
    page.keyboard.press("n")
    page.wait_for_selector("#title:focus")
    page.click("text=Cancel")
    page.wait_for_selector("a:has-text('New note')")
    page.go_back()
    page.go_back()
    page.click("text=Write it")
    page.wait_for_selector("#text:focus")
    assert page.input_value("#title") == "how do I breed llamas"
    page.keyboard.type("**Not yet.** There is no grass.")
    page.wait_for_selector(".prose strong")
    assert axe(page) == []
    page.click("button.primary")
    page.wait_for_selector("h1:has-text('llamas')")

    assert server.kb.search("llamas").hits[0].title == "how do I breed llamas"
    page.goto(f"{server.url}/?tag=llamas")
    page.wait_for_selector("text=No note fits these filters")


def test_a_hit_says_that_it_has_a_part_of_a_word(page: Any, server: Server) -> None:
    page.goto(f"{server.url}/?q=emomete")

    page.wait_for_selector(".hit .badge:has-text('a part of: anemometer')")

    page.wait_for_selector('text=no note has the word "emomete"')
