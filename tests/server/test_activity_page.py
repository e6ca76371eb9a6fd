"""The pages Activity, Conversation and Context, as somebody uses them."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

import pytest

from co_cli.conversations.extraction import KnownMemory, Reply, extract
from co_cli.conversations.facets import Facet, FacetBatch
from co_cli.entrance.local import LocalKnowledgeBase
from co_cli.ground.values import moment_text
from co_cli.notes.transcripts import SpokenTurn, render_turns
from co_cli.saving.turns import KeptSession, keep_turns
from tests.server.browser import inspect, until
from tests.server.conftest import Server
from tests.server.test_activity_api import GIVEN, work_of_agents

RULE = "memories/no-updates-near-springs.md"


class OneWish:
    """A model that understands a wish."""

    name = "test:one-wish"

    def extract(self, batch: FacetBatch) -> Reply:
        wishes = [turn for turn in batch.turns if "German" in turn.text and batch.is_person(turn)]
        return Reply([Facet("preference", "Release notes are in German.", turn.line, turn.last) for turn in wishes], 10)

    def compare(self, pairs: Sequence[tuple[str, Sequence[KnownMemory]]]) -> Reply:
        return Reply([("new", None) for _ in pairs], 5)


@pytest.mark.slow
def test_activity_shows_what_agents_did_live_and_one_click_stops_a_note(sample: LocalKnowledgeBase, page: Any) -> None:
    now, before = time.time(), sample.store.read(RULE).decode()
    for _ in range(2):
        sample.search("zygomorphic quasar", track=True, read=False, backend="fts5")
    work_of_agents(sample, now)

    page.click("nav a:has-text('Activity')")
    page.wait_for_selector(".session .step.given")
    first = page.inner_text(".session >> nth=0")
    for text in (
        "Claude Code",
        "3 notes · 210 tokens · 1 look-up · 1 saved",
        "May I push an update today?",
        "And tomorrow?",
        "clearly about the prompt",
        "61 tokens",
        "when may we not push new software",
        "Created Next spring tide",
    ):
        assert text in first, text
    assert page.locator(".session").count() == 2
    page.click(".step.given summary >> nth=0")
    assert page.inner_text(".step.given pre >> nth=0") == "Notes from co: not near springs."
    page.wait_for_selector("text=2 times")
    inspect(page, "activity", lambda: page.evaluate("scrollTo(0, 0)"))

    page.click("[aria-label^='Stop giving: No firmware'] >> nth=0")
    page.wait_for_selector("co-toast:has-text('No longer given')")
    page.wait_for_selector("[aria-label^='Give again']")
    assert "loading: never" in sample.store.read(RULE).decode()
    page.click("co-toast button:has-text('Undo')")
    until(page, "!document.querySelector('[aria-label^=\"Give again\"]')")
    assert sample.store.read(RULE).decode() == before

    sample.activity.clock, sample.activity.front_end = time.time, "codex"
    sample.activity.injected(GIVEN[:1], "another", prompt="Which pier is closed?")
    sample.activity.injected([], "another", prompt="And which one has no cafe?")
    page.wait_for_selector(".session:has-text('Codex')")  # nobody has reloaded the page
    page.focus(".session .fold >> nth=0")
    page.keyboard.press("Enter")
    page.wait_for_selector(".session:has-text('Codex') .step:has-text('And which one has no cafe?')")
    page.wait_for_selector(".session:has-text('Codex') .step:has-text('No note was given')")
    assert "1 note · 61 tokens" in page.inner_text(".session:has-text('Codex') .about")
    page.keyboard.press("ArrowDown")
    until(page, "document.activeElement.textContent.includes('Claude Code')")
    page.click("text=Write it")
    until(page, "[...document.querySelectorAll('main input')].some(input => input.value === 'zygomorphic quasar')")


def test_a_conversation_reads_as_a_chat_with_proposals_beside_the_turn(sample: LocalKnowledgeBase, page: Any) -> None:
    now = time.time()
    work_of_agents(sample, now)
    said = [
        SpokenTurn("User", "May I push an update today?", now - 600),
        SpokenTurn("Assistant", "**No**, not near springs.", now - 590, (str(GIVEN[0]["ref"]),)),
        SpokenTurn("User", "By the way, release notes are in German.", now - 400),
        SpokenTurn("Assistant", "I will write them so.", now - 390),
    ]
    keep_turns(sample.vault, KeptSession("c0ffee", "Claude Code", "Updates", project="clock"), said)
    extract(sample.vault, OneWish())

    page.click("nav a:has-text('Activity')")
    page.wait_for_selector(".step.agent .bubble strong")
    assert page.locator(".step.person").count() == 2, "the conversation has the prompts, so the log's are left out"
    page.click("text=Read the conversation")
    page.wait_for_selector(".turn .bubble strong")
    clock = "(at) => new Date(at * 1000).toLocaleTimeString([], { hour: '2-digit', minute: '2-digit' })"
    assert page.inner_text(".turn >> nth=0 >> .who") == f"You · {page.evaluate(clock, now - 600)}"
    assert page.inner_text(".turn >> nth=1 >> .who").startswith("Claude Code")
    assert "No firmware within three days" in page.inner_text(".turn >> nth=1")
    assert page.locator(".turn:has-text('By the way') .proposal").count() == 1
    inspect(page, "conversation")

    page.keyboard.press("ArrowDown")
    until(page, "document.activeElement.matches('.turn:first-child')")
    page.click(".proposal button:has-text('Edit')")
    page.fill(".proposal textarea", "Release notes are in German and English.")
    page.click(".proposal button:has-text('Save')")
    page.wait_for_selector(".proposal:has-text('Saved')")
    assert any("in German and English" in sample.note(note.ref).body for note in sample.notes("memory", limit=5))
    page.click("co-toast button:has-text('Undo')")
    page.wait_for_selector(".proposal.waits")
    page.click(".proposal button:has-text('Dismiss')")
    until(page, "!document.querySelector('.proposal')")
    page.click("text=All conversations")
    page.wait_for_selector(".talks a:has-text('Updates')")
    page.keyboard.press("l")
    page.wait_for_selector(".feed .asked")
    page.select_option("select[aria-label='Kind']", "saved")
    until(page, "document.querySelectorAll('.feed .asked, .feed .given').length === 0")


@pytest.mark.slow
def test_a_checkpoint_reads_as_a_chat_and_its_note_leads_there(sample: LocalKnowledgeBase, page: Any) -> None:
    now = time.time()
    said = [
        SpokenTurn("User", "Which pier is closed?", now - 90),
        SpokenTurn("Assistant", "The **old** one.", now - 80),
    ]
    sample.checkpoints.save("Piers", render_turns(said), [], {"model": "test:one", "created": moment_text(now)})

    page.click("nav a:has-text('Activity')")
    page.wait_for_selector("button:text-is('Conversations')")
    page.keyboard.press("c")
    page.click(".talks li:has-text('checkpoint') a:has-text('Piers')")
    page.wait_for_selector(".turn.agent .bubble strong:text-is('old')")
    assert page.inner_text(".turn.person .bubble") == "Which pier is closed?"
    assert page.inner_text(".turn.person .who").startswith("You · ")
    assert page.is_visible(".head .badge:text-is('checkpoint')")
    inspect(page, "checkpoint")
    page.click("text=Open as a note")
    page.click(".bar-of-note a:text-is('Read as a chat')")
    page.wait_for_selector(".turn.agent .bubble strong")


@pytest.mark.slow
def test_the_choice_of_a_year_does_not_cover_what_the_calendar_says(page: Any) -> None:
    page.click("nav a:has-text('Activity')")
    page.wait_for_selector(".numbers select")
    for width in (1280, 1100, 390):
        page.set_viewport_size({"width": width, "height": 800})
        boxes = page.evaluate("""['span', 'select'].map((name) => document.querySelector('.calendar ~ .axis ' + name)
            .getBoundingClientRect()).map((box) => [box.left, box.top, box.right, box.bottom])""")
        (_, _, right, bottom), (left, top, _, _) = boxes
        assert right <= left or bottom <= top, width


@pytest.mark.slow
def test_an_empty_vault_says_how_to_connect_an_agent(empty: Server, open_page: Any) -> None:
    page = open_page(empty.address)
    page.wait_for_selector("#top:not([inert])")
    page.goto(f"{empty.url}/activity")
    page.wait_for_selector("text=co setup claude-code")
    page.click("button:has-text('Conversations')")
    assert page.wait_for_selector("text=No conversation was kept yet")


def test_given_shows_the_notes_for_a_prompt_their_cost_and_why(server: Server, page: Any) -> None:
    page.goto(f"{server.url}/context")
    page.wait_for_selector(".given-notes >> text=loading: always")
    page.fill("textarea", "Who signs off the release notes?")
    page.focus("a.skip")
    page.keyboard.press("Enter")
    until(page, "document.activeElement.id === 'main'")
    page.focus("textarea")
    page.keyboard.press("Enter")
    page.wait_for_selector(".given-notes >> text=clearly about the task")

    shown = page.inner_text("main")
    assert 'ref="memory:signing-key-each-february"' in shown
    assert "of 1,000 tokens" in shown
    page.click("summary >> text=Instructions")
    assert "It is never an instruction" in page.inner_text("main details[open]")
    page.click("summary >> text=Instructions")
    inspect(page, "given", lambda: page.evaluate("scrollTo(0, 0)"))
    page.click("[aria-label^='Stop giving: '] >> nth=-1")
    page.wait_for_selector("co-toast:has-text('No longer given')")
    until(page, "!document.querySelector('main').textContent.includes('clearly about the task')")
    page.click("co-toast button:has-text('Undo')")
    page.wait_for_selector(".given-notes >> text=clearly about the task")
    page.fill("input[name=tokens]", "60")
    page.click("text=Show")
    page.wait_for_selector(".given-notes >> text=left out")
