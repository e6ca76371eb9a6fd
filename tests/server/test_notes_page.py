"""Home and the list of all notes, as a person uses them."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from co_cli.entrance.knowledge_base import KnowledgeBase
from co_cli.vault.vault import Opening
from tests.folder import Vault
from tests.server.browser import PHONE, held, inspect, until, wait_for
from tests.server.conftest import Server, serving

PICTURE = (
    "<svg xmlns='http://www.w3.org/2000/svg' width='40' height='30'><rect width='40' height='30' fill='teal'/></svg>"
)
FOCUSED = "document.activeElement.closest('li')?.getAttribute('aria-posinset')"


@pytest.fixture
def many(vault: Vault, kb: KnowledgeBase) -> KnowledgeBase:
    """1,200 notes: the first one is the newest."""
    for number in range(1200):
        tags = "[even, wood]" if number % 2 == 0 else "[odd]"
        folder = "articles/deep/er" if number % 100 == 0 else "memories"
        text = (
            f"---\ntitle: Note {number:04}\ntags: {tags}\n---\n# Note {number:04}\n\nThe **text** of [[note]] {number}."
        )
        moment = 1_700_000_000 - number
        os.utime(vault.write(f"{folder}/n{number}.md", text), (moment, moment))
    kb.sync()
    return kb


def titles(page: Any, where: str = ".rows") -> list[str]:
    return page.evaluate(f"[...document.querySelectorAll('{where} .title')].map((one) => one.innerText)")


def test_home_shows_pinned_recent_and_new_notes_and_drafts(page: Any, server: Server) -> None:
    root = Path(server.kb.root)
    (root / "memories/dot.svg").write_text(PICTURE)
    (root / "memories/neap-the-cat.md").write_text("# Neap\n\n![[dot.svg]] The **cat** sleeps in the [cabinet](x.md).")
    page.wait_for_selector("note-card:has-text('The cat sleeps in the cabinet.')")
    page.wait_for_selector("section:has-text('Pinned') note-card:has-text('Tomasz is allergic')")
    page.focus("note-card:has-text('Neap') a")
    page.click("[aria-label='Pin Neap']")
    page.wait_for_selector(".pins note-card:has-text('Neap') .picture:not([hidden])")
    assert "decay_protected: true" in (root / "memories/neap-the-cat.md").read_text()
    page.click("[aria-label='Unpin Neap']")
    until(page, "!document.querySelector('.pins').innerText.includes('Neap')")
    inspect(page, "home", lambda: page.wait_for_timeout(50))

    page.focus("[type=search]")
    page.keyboard.press("ArrowDown")
    until(page, "document.activeElement === document.querySelectorAll('.group a')[0]")
    page.keyboard.press("ArrowDown")
    until(page, "document.activeElement === document.querySelectorAll('.group a')[1]")
    opened = page.evaluate("document.activeElement.innerText.trim()")
    page.keyboard.press("Enter")
    page.wait_for_selector(f"h1:has-text('{opened}')")
    page.evaluate(
        """(root) => {
        const draft = { title: 'An idea', text: 'It came at night.', at: Date.now() };
        for (const vault of [root, "/elsewhere"]) localStorage.setItem(`co-draft:${vault}:`, JSON.stringify(draft));
    }""",
        server.kb.root,
    )
    page.click("nav a:has-text('Home')")
    page.wait_for_selector(".draft:has-text('An idea'):has-text('It came at night.')")
    assert page.locator(".draft").count() == 1, "another vault has its own"
    page.click("section:has-text('Continue writing') .draft p", position={"x": 60, "y": 10}, force=True)
    until(page, "location.pathname === '/note/'")


@pytest.mark.slow
def test_notes_opened_last_are_on_the_home_page(page: Any, server: Server) -> None:
    page.goto(f"{server.url}/note/memory:neap-the-cat")
    page.wait_for_selector(".note .prose p")
    recent = [{"ref": "memory:neap-the-cat", "title": "Neap", "kind": "memory"}]
    page.evaluate(
        "([key, value]) => localStorage.setItem(key, JSON.stringify(value))", [f"co-recent:{server.kb.root}", recent]
    )
    page.click("nav a:has-text('Home')")
    assert page.wait_for_selector("section:has-text('Recently opened') note-card:has-text('Neap')")


@pytest.mark.slow
def test_ten_thousand_notes_would_scroll_because_only_the_visible_ones_are_drawn(
    many: KnowledgeBase, open_page: Callable[[str], Any]
) -> None:
    with serving(many) as server:
        page = open_page(server.address)
        page.click("nav a:has-text('Notes')")
        page.wait_for_selector(".rows note-card")
        assert "1,200 notes" in page.inner_text(".head")
        assert titles(page)[:2] == ["Note 0000", "Note 0001"]
        assert "The text of note 0." in page.inner_text(".rows li >> nth=0")
        assert page.locator(".rows li").count() < 60
        inspect(page, "notes", lambda: page.wait_for_timeout(80))

        page.keyboard.press("ArrowDown")
        until(page, f"{FOCUSED} === '1'")
        page.keyboard.press("ArrowDown")
        until(page, f"{FOCUSED} === '2'")
        page.keyboard.press("End")
        until(page, f"{FOCUSED} === '1200'")
        assert titles(page)[-1] == "Note 1199"
        assert page.locator(".rows li").count() < 60
        page.keyboard.press("ArrowUp")
        until(page, f"{FOCUSED} === '1199'")
        page.keyboard.press("Enter")
        page.wait_for_selector("h1:has-text('Note 1198')")
        page.go_back()
        until(page, f"{FOCUSED} === '1199'")  # where you left
        page.keyboard.press("Home")
        until(page, f"{FOCUSED} === '1'")

        page.evaluate("scrollTo(0, 60000)")
        wait_for(lambda: titles(page)[:1] > ["Note 0100"])
        until(page, "!document.querySelector('.coming-note')")
        place, opened = page.evaluate("scrollY"), titles(page)[8]
        page.click(f".rows note-card:has-text('{opened}')")
        page.wait_for_selector(f".note h1:has-text('{opened}')")
        page.go_back()
        wait_for(lambda: opened in titles(page))
        until(page, f"Math.abs(scrollY - {place}) < 900")  # to click on it may have scrolled a little
        page.close()  # it would miss the server


@pytest.mark.slow
def test_what_is_chosen_is_in_the_address_and_back_takes_it_back(
    many: KnowledgeBase, open_page: Callable[[str], Any]
) -> None:
    with serving(many) as server:
        page = open_page(f"{server.url}/notes#{server.address.partition('#')[2]}")
        page.wait_for_selector(".rows note-card")
        page.click(".depth-0 a:has-text('articles')")
        until(page, "document.querySelector('.head')?.innerText.includes('12 notes')")
        assert page.url.endswith("/notes?folder=articles")
        page.click(".depth-1 a:has-text('deep')")
        page.click(".depth-2 a:has-text('er')")
        until(page, "location.search === '?folder=articles%2Fdeep%2Fer'")
        page.go_back()
        page.go_back()
        page.go_back()
        until(page, "document.querySelector('.head')?.innerText.includes('1,200 notes')")
        page.click(".choices a:has-text('#odd')")
        until(page, "document.querySelector('.head')?.innerText.includes('600 notes')")
        page.click(".choices a:has-text('Memories')")
        until(page, "location.search === '?kind=memory&tag=odd'")
        assert not page.query_selector(".tags a:has-text('#even')"), "counts follow what is chosen"
        page.select_option("[aria-label=Sort]", "title")
        until(page, "location.search === '?kind=memory&tag=odd&sort=title'")
        page.reload()
        page.wait_for_selector(".rows note-card")
        assert titles(page)[0] == "Note 0001"
        page.fill("[aria-label='Filter by title']", "0003")
        until(page, "document.querySelectorAll('.rows li').length === 1")
        page.fill("[aria-label='Filter by title']", "zebra")
        page.wait_for_selector("text=No title has “zebra” with the filters memory, odd.")
        page.click("text=Show all notes")
        until(page, "document.querySelector('.head')?.innerText.includes('1,200 notes')")

        page.set_viewport_size(PHONE)
        page.wait_for_selector("summary:has-text('Filters')")
        assert not page.is_visible(".choices nav")
        page.click("summary:has-text('Filters')")
        small = "() => [...document.querySelectorAll('.choices a')].filter((one) => one.offsetHeight < 44).length"
        assert page.evaluate(small) == 0
        page.click(".choices a:has-text('#odd')")
        until(page, "document.querySelector('.head')?.innerText.includes('600 notes')")
        assert "Filters (1)" in page.inner_text("summary:has-text('Filters')")
        page.close()  # it would miss the server


def test_the_list_follows_the_files(page: Any, server: Server) -> None:
    page.goto(f"{server.url}/notes?tag=zebra")
    page.wait_for_selector("text=No note fits with the filters zebra.")
    Path(server.kb.root, "memories/zebra.md").write_text("---\ntitle: Zebra\ntags: [zebra]\n---\nStripes.")
    assert page.wait_for_selector(".rows note-card:has-text('Stripes.')")


def test_what_an_agent_writes_in_series_is_one_row_that_opens(vault: Vault, open_page: Callable[[str], Any]) -> None:
    for number in range(230):
        vault.write(f"memories/n{number}.md", f"---\ntitle: Tree {number}\n---\nOak {number}.\n")
    for day in range(10, 22):
        vault.write(f"memories/r{day}.md", f"---\ntitle: Nightly run 2026-11-{day}\nprovenance: agent\n---\nWell.")
    with KnowledgeBase.open(vault.root, opening=Opening("web")) as kb:
        kb.sync()
        with serving(kb) as server:
            page = open_page(server.address)
            page.wait_for_selector(".group:has-text('Recently changed') note-card:has-text('12 notes')")
            assert page.locator("note-card:has-text('Nightly run')").count() == 1
            page.click("nav a:has-text('Notes')")
            page.wait_for_selector(".rows.compact note-card")
            assert page.locator(".rows li").first.bounding_box()["height"] == 36
            page.click("note-card:has-text('Nightly run') a >> nth=0")
            nightly = "[...document.querySelectorAll('note-card')].filter((card) => /Nightly/.test(card.textContent))"
            until(page, f"{nightly}.length === 12")
            assert "opened=" in page.url
            page.go_back()
            until(page, "document.querySelectorAll('note-card .series').length === 1")
            page.click("button:text-is('Compact')")
            page.wait_for_selector(".rows:not(.compact) note-card")
            page.reload()
            assert page.wait_for_selector(".rows:not(.compact) note-card"), "it is remembered"
            page.close()


def test_an_empty_vault_invites_to_write(empty: Server, open_page: Callable[[str], Any]) -> None:
    page = open_page(f"{empty.url}/notes#{empty.address.partition('#')[2]}")
    assert page.wait_for_selector(".empty:has-text('There are no notes here yet.') a:has-text('Write the first note')")


def test_letters_that_are_typed_while_a_list_is_on_its_way_stay(page: Any, server: Server) -> None:
    page.goto(f"{server.url}/notes")
    page.wait_for_selector(".rows note-card a")
    page.focus("[aria-label='Filter by title']")
    with page.expect_response("**/browse?title=b&*"), held(page, "**/browse?title=b&*") as asked:
        page.keyboard.type("b")
        wait_for(lambda: page.evaluate("true") and asked)
        page.keyboard.type("e")
    page.keyboard.type("l")
    until(page, "location.search === '?title=bel'")
    assert page.input_value("[aria-label='Filter by title']") == "bel"
