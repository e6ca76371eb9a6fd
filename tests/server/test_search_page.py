"""The search page, as a person uses it."""

from __future__ import annotations

import json
import re
import time
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from tests.server.browser import PHONE, axe, held, inspect, until, wait_for
from tests.server.conftest import Server
from tests.server.test_search_api import logged

QUESTION = "who decides what ships"
ANSWER = re.compile(r"/api/v1/search\?q=[^&]*$")
"""The search after the pause."""
TITLES = "() => [...document.querySelectorAll('.hit .title')].map((one) => one.innerText)"
FOCUSED = "[...document.querySelectorAll('.hit > a')].indexOf(document.activeElement)"


def test_results_appear_while_typing_and_the_verdict_after_a_pause(page: Any, server: Server) -> None:
    page.wait_for_selector("text=Recently changed")
    page.clock.install()
    page.clock.pause_at(time.time() + 3600)  # a busy machine types slowly
    page.keyboard.type("who deci")
    page.wait_for_selector(".hit mark")
    page.keyboard.type("des what ships")
    page.wait_for_selector(".hit:has-text('Odalys has the last word')")
    assert logged(server.kb) == []
    waiting: list[Any] = []
    page.route(ANSWER, lambda route: waiting.append(route))
    page.clock.resume()
    page.wait_for_selector(".verdict:has-text('Reading the hits…')")
    wait_for(lambda: page.evaluate("true") and waiting)
    assert page.query_selector(".hit"), "the first hits are shown while a model reads them"
    waiting[0].continue_()
    page.wait_for_selector(".verdict .badge.good")
    page.unroute(ANSWER)

    assert logged(server.kb) == [(QUESTION, "web")]
    assert page.url.endswith("/?q=who+decides+what+ships")
    assert page.inner_text(".hit >> nth=0").startswith("Odalys has the last word")
    kept = json.loads(page.evaluate("sessionStorage.getItem('co-hits')"))
    assert (kept["q"], kept["refs"][0]) == (QUESTION, "memory:odalys-has-the-last-word")
    page.wait_for_selector(".preview .prose p:has-text('Odalys Benn decides')")
    assert not page.query_selector(".preview .lit"), "all of a note is not marked"
    assert not page.query_selector(".hit .bars, .hit .stack"), "reasons are behind Why"
    assert page.inner_text(".verdict .badge").startswith("Best answer")
    assert page.inner_text(".hit.far .near >> nth=0") == "Also related"
    inspect(page, "search", lambda: page.wait_for_timeout(50))

    for place, key in enumerate(("ArrowDown", "ArrowDown", "ArrowDown", "ArrowUp", "ArrowUp")):
        page.keyboard.press(key)
        until(page, f"{FOCUSED} === {(0, 1, 2, 1, 0)[place]}")
        if place == 1:
            page.wait_for_selector(".preview .lit")
    page.keyboard.press("End")
    until(page, f"{FOCUSED} === document.querySelectorAll('.hit').length - 1")
    page.keyboard.press("Home")
    page.keyboard.press("j")
    until(page, "document.querySelectorAll('.hit')[1].getAttribute('aria-current') === 'true'")
    page.keyboard.press("k")
    page.keyboard.press("w")
    page.wait_for_selector("dialog p:has-text('It contains decides, ships')")
    assert not page.is_visible("dialog table"), "first in words"
    page.click("dialog summary")
    page.wait_for_selector("dialog table")
    assert "Rank 1" in page.inner_text("dialog")
    assert page.query_selector("dialog .bars")
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
    page.wait_for_selector("dialog strong:has-text('Who does what')")
    page.keyboard.press("Escape")
    page.keyboard.press("ArrowUp")

    page.click("[aria-label=Filters]")
    page.wait_for_selector("[aria-label=Kind] option >> nth=3", state="attached")
    page.select_option("[aria-label=Kind]", "article")
    page.wait_for_selector(".chip:has-text('Articles')")
    until(page, "!document.querySelector('.hits')?.innerText.includes('Odalys has the last word')")
    page.focus("[type=search]")
    page.keyboard.press("Enter")
    until(page, "location.pathname.startsWith('/note/article:')")
    page.go_back()
    page.wait_for_selector(".verdict .badge")  # the best article is a weak match
    assert page.input_value("[type=search]") == QUESTION

    for key in ("ArrowDown", "ArrowDown", "Enter"):
        page.keyboard.press(key)
    until(page, "location.pathname.startsWith('/note/article:')")
    page.go_back()
    until(page, f"{FOCUSED} === 1")  # where you left


def test_all_of_a_hit_can_be_clicked_and_a_pointer_that_passes_selects_nothing(page: Any, server: Server) -> None:
    long = "Word" * 80
    server.kb.remember("Nobody but **Ida** decides [what](https://example.org/x) ships, ==ever==.", long)
    page.goto(f"{server.url}/?q=who+decides+what+ships")
    page.wait_for_selector(".verdict .badge.good")
    page.wait_for_selector(".preview .prose p")
    hit = page.locator(".hit").nth(2).bounding_box()
    pane = page.locator(".preview").bounding_box()
    page.clock.install()
    page.clock.pause_at(time.time() + 3600)  # a busy machine moves the pointer slowly
    page.mouse.move(hit["x"] + 40, hit["y"] + 40)
    page.mouse.move(pane["x"] + 40, pane["y"] + 60, steps=8)
    page.clock.run_for(400)
    assert page.locator(".hit").nth(0).get_attribute("aria-current") == "true"
    page.clock.resume()
    page.mouse.move(hit["x"] + 40, hit["y"] + 40)
    page.wait_for_selector(".hit:nth-child(3)[aria-current]")

    row = page.locator(f".hit:has-text('{long}')")
    assert "Nobody but Ida decides what ships, ever." in row.inner_text()
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    title = page.locator(".hit .title").nth(2).inner_text()
    page.mouse.click(hit["x"] + hit["width"] - 8, hit["y"] + hit["height"] - 8)
    page.wait_for_selector(f"h1:has-text('{title}')")


@pytest.mark.slow
def test_the_readers_order_moves_neither_the_selected_hit_nor_the_one_under_the_pointer(
    page: Any, server: Server
) -> None:
    def turn_round(route: Any) -> None:
        answer = route.fetch()
        found = answer.json()
        route.fulfill(response=answer, json={**found, "hits": found["hits"][::-1]})

    waiting: list[Any] = []
    page.wait_for_selector("note-card")
    page.route(ANSWER, lambda route: waiting.append(route))
    page.fill("[type=search]", QUESTION)  # at once, or the first hits may still be those of half the question
    page.wait_for_selector(".verdict:has-text('Reading the hits…')")
    page.wait_for_selector(".hit >> nth=5")
    before = page.evaluate(TITLES)
    pointed = page.locator(".hit").nth(4).bounding_box()
    page.mouse.move(pointed["x"] + 50, pointed["y"] + 30)
    page.wait_for_selector(".hit:nth-child(5)[aria-current]")
    page.keyboard.press("ArrowDown")  # the one that the pointer rests on, and then the next
    page.keyboard.press("ArrowDown")
    page.wait_for_selector(".hit:nth-child(6)[aria-current]")
    pointed = page.locator(".hit").nth(4).bounding_box()  # the focus scrolled the page
    wait_for(lambda: page.evaluate("true") and waiting)
    turn_round(waiting[0])
    page.wait_for_selector(".verdict .badge")
    after = page.evaluate(TITLES)

    assert after != before
    assert (after[4], after[5]) == (before[4], before[5])
    assert page.locator(".hit").nth(4).bounding_box() == pointed
    assert page.evaluate(FOCUSED) == 5
    assert page.locator(".hit").nth(5).get_attribute("aria-current") == "true"


@pytest.mark.slow
def test_a_phone_says_why_a_note_was_found(page: Any, server: Server) -> None:
    page.wait_for_selector("note-card")
    page.fill("[type=search]", QUESTION)
    page.wait_for_selector(".verdict .badge.good")
    assert not page.is_visible(".hit button"), "the preview has it"

    page.set_viewport_size(PHONE)
    small = """() => [...document.querySelectorAll('.hit button, .box button')]
        .map((one) => one.offsetHeight).filter((one) => one < 44)"""
    assert page.evaluate(small) == []
    page.click(".hit:nth-child(2) .menu summary")
    page.click(".hit:nth-child(2) button:text('Why')")
    page.click("dialog summary")

    page.wait_for_selector("dialog table")
    assert "Rank 2" in page.inner_text("dialog")


def test_the_older_of_two_contradicting_notes_names_the_newer(page: Any, server: Server) -> None:
    server.kb.remember("The zebra gate listens on port 8080.")
    new = server.kb.remember("The zebra gate listens on port 8081.").ref
    page.wait_for_selector("text=Recently changed")

    page.keyboard.type("zebra gate port")

    page.wait_for_selector(f".hit:has-text('8080') .badge:has-text('older: see {new}')")
    assert len(page.query_selector_all(".hit .badge:has-text('older:')")) == 1


def test_what_nothing_answers_can_be_written(page: Any, server: Server) -> None:
    page.wait_for_selector("note-card")
    page.keyboard.type("how do I breed llamas")
    page.wait_for_selector(".verdict:has-text('Nothing here answers that. Nearest:')")
    page.keyboard.press("Escape")
    assert page.input_value("[type=search]") == "how do I breed llamas"
    page.click("text=Write it")
    page.wait_for_selector("#title")
    assert page.input_value("#title") == "how do I breed llamas"


def test_a_filter_that_no_note_passes_is_named_and_can_be_left_out(page: Any, server: Server) -> None:
    page.goto(f"{server.url}/?q=bell&tag=nosuch&source=article")
    page.wait_for_selector(".verdict:has-text('No note passes the filter tag: nosuch.')")
    assert logged(server.kb) == []
    page.click("text=Search without it")
    page.wait_for_selector(".verdict .badge:not(:text('filtered'))")
    assert page.url.endswith("/?q=bell&source=article")
    page.click(".chip:has-text('Articles')")
    until(page, "location.search === '?q=bell'")
    page.wait_for_selector(".hit")

    page.goto(f"{server.url}/?tag=bell")
    page.wait_for_selector(".notes note-card:has-text('bell')")


@pytest.mark.slow
def test_a_search_that_fails_says_so_and_goes_on_with_the_next_key(page: Any, server: Server) -> None:
    page.wait_for_selector("note-card")
    page.route("**/api/v1/search?*", lambda route: route.fulfill(status=503, json={}))
    page.keyboard.type("bel")
    page.wait_for_selector("[role=alert]:has-text('the server answered 503')")
    page.unroute("**/api/v1/search?*")
    page.keyboard.type("l")
    page.wait_for_selector(".verdict .badge")
    assert not page.query_selector("[role=alert]")
    page.fill("[type=search]", "")
    page.wait_for_selector("text=Recently changed")
    page.problems.clear()  # Chromium logs the 503


@pytest.mark.slow
def test_a_late_answer_to_an_earlier_text_is_not_shown(page: Any) -> None:
    page.wait_for_selector("note-card")
    with held(page, ANSWER):
        page.keyboard.type("bell")
        page.wait_for_selector(".verdict:has-text('Reading the hits…')")
        page.fill("[type=search]", "")
        page.wait_for_selector("text=Recently changed")
    page.wait_for_timeout(200)
    assert not page.query_selector(".hit")


@pytest.mark.slow
def test_a_hit_says_that_it_has_a_part_of_a_word(page: Any, server: Server) -> None:
    page.goto(f"{server.url}/?q=emomete")

    page.wait_for_selector(".hit .badge:has-text('a part of: anemometer')")

    assert page.wait_for_selector('text=no note has the word "emomete"')


@pytest.mark.slow
@pytest.mark.parametrize("zone", ["America/Los_Angeles", "Asia/Tokyo"])
def test_the_age_of_a_daily_note_is_counted_in_local_days(page: Any, server: Server, zone: str) -> None:
    today = datetime.now(ZoneInfo(zone)).date()
    days = {word: today + timedelta(days) for days, word in enumerate(("yesterday", "today", "tomorrow"), start=-1)}
    for day in days.values():
        (Path(server.kb.root) / f"{day}.md").write_text("Oiled the pelican.\n")
    page.context.new_cdp_session(page).send("Emulation.setTimezoneOverride", {"timezoneId": zone})

    page.goto(f"{server.url}/?q=pelican&source=article")

    for word, day in days.items():
        shown = page.wait_for_selector(f".hit:has-text('pelican') time:text-is('{word}')")
        assert shown.get_attribute("title") == day.strftime("%d/%m/%Y")


def test_the_preview_stays_where_it_was_scrolled_to_when_notes_change(page: Any, server: Server) -> None:
    text = "\n\n".join(f"Zygomorphic part {number}." for number in range(99))
    Path(server.kb.root, "articles/long.md").write_text(f"# Zygomorphic\n\n{text}\n")
    server.kb.sync()
    page.goto(f"{server.url}/?q=zygomorphic")
    page.wait_for_selector(".preview .prose p >> nth=90")
    page.wait_for_selector(".verdict .badge")
    page.evaluate("document.querySelector('.preview article').scrollTop = 700")
    with page.expect_response("**/rendered/article:long"):
        server.kb.remember("Something else entirely.")
    page.wait_for_selector(".verdict .badge")
    assert page.evaluate("document.querySelector('.preview article').scrollTop") == 700
