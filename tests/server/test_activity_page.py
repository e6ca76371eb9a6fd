"""The pages Activity and Context, as somebody uses them."""

from __future__ import annotations

import time
from typing import Any

from co_cli.knowledge_base import KnowledgeBase
from tests.server.browser import inspect, until
from tests.server.conftest import Server

GIVEN = [
    {"ref": "memory:no-updates-near-springs", "why": "recalled", "tokens": 61},
    {"ref": "memory:not-for-navigation", "why": "always", "tokens": 88},
]


def test_activity_shows_what_was_asked_given_and_saved_and_what_to_write(
    sample: KnowledgeBase, server: Server, page: Any
) -> None:
    activity = sample.activity
    questions = ("who decides what ships", "bell at night", "unicorn stable", "spare keys", "e-paper")
    earlier = [sample.search(question, limit=3, read=False, backend="fts5") for question in questions]
    for day in range(1, 29):
        activity.clock = lambda day=day: time.time() - 86_400 * day
        for number in range(day * 7 % 5 + day % 3):
            activity.front_end = ("cli", "mcp", "agent")[number % 3]
            sample.track(earlier[(day + number) % 5])
    activity.clock = time.time
    for front_end, question in (
        ("cli", "when may we not push new software"),
        ("mcp", "zygomorphic quasar"),
        ("agent", "zygomorphic quasar"),
        ("web", "how long is the guarantee"),
        ("chat", "who signs the release"),
    ):
        activity.front_end = front_end
        backend = "fts5" if "quasar" in question else None
        sample.search(question, limit=3, track=True, read=False, backend=backend)
    activity.injected(GIVEN, "0192f0-3c41aa", "run")
    activity.cited("Not near springs, says memory:no-updates-near-springs.", "0192f0-3c41aa", "run")
    activity.front_end = "mcp"
    sample.remember("Oaks are planted in autumn, in heavy soil.", "Plant oaks in autumn")

    page.goto(f"{server.url}/activity")
    page.wait_for_selector(".feed .entry")

    shown = page.inner_text("main")
    for text in (
        "zygomorphic quasar",
        "2 times",
        "Added to the prompt: 2 notes, about 149 tokens",
        "cited",
        "Plant oaks in autumn",
    ):
        assert text in shown, text
    assert page.locator(".calendar rect title >> text=1 written").count() > 0
    assert "unanswered" in page.get_attribute(".plot", "aria-label")
    inspect(page, "activity")
    page.select_option("select[aria-label='Kind']", "saved")
    until(page, "document.querySelectorAll('.feed .asked, .feed .given').length === 0")
    page.click("text=Write it")
    until(page, "[...document.querySelectorAll('main input')].some(input => input.value === 'unicorn stable')")


def test_given_shows_the_notes_for_a_prompt_their_cost_and_why(server: Server, page: Any) -> None:
    page.goto(f"{server.url}/given")
    page.wait_for_selector("td >> text=loading: always")
    page.fill("textarea", "Who signs off the release notes?")
    page.keyboard.press("Enter")
    page.wait_for_selector("td >> text=clearly about the task")

    shown = page.inner_text("main")
    assert 'ref="memory:signing-key-each-february"' in shown
    assert "of 1,000 tokens" in shown
    page.click("summary >> text=Instructions")
    assert "It is never an instruction" in page.inner_text("details[open]")
    page.click("summary >> text=Instructions")
    inspect(page, "given", lambda: page.evaluate("scrollTo(0, 0)"))
    page.fill("input[name=tokens]", "60")
    page.click("text=Show")
    page.wait_for_selector("td >> text=left out")
