"""The page of a note, as a person uses it."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.server.browser import PHONE, axe, held, inspect, until, visit, wait_for
from tests.server.conftest import Server

REF = "article:people/who-does-what"
DOT = bytes.fromhex(
    "89504e470d0a1a0a0000000d4948445200000001000000010806000000"
    "1f15c4890000000d49444154789c63606060f80f0001040100c5a0f3b20000000049454e44ae426082"
)


@pytest.mark.slow
def test_the_address_of_a_picture_is_given_back_after_a_minute(page: Any, server: Server) -> None:
    (Path(server.kb.root) / "articles/people/dot.png").write_bytes(DOT)
    file = Path(server.kb.root) / "articles/people/who-does-what.md"
    (Path(server.kb.root) / "articles/people/hush.wav").write_bytes(SILENCE)
    file.write_text(file.read_text() + "\n![a dot](dot.png)\n\n![[hush.wav]]\n")
    page.clock.install()
    page.add_init_script(
        "const revoke = URL.revokeObjectURL, revoked = window.revoked = []; "
        "URL.revokeObjectURL = (url) => { revoked.push(url); revoke(url); };"
    )

    page.goto(f"{server.url}/note/{REF}")
    until(page, "document.querySelector('.prose img')?.naturalWidth === 1 && document.querySelector('audio')?.src")
    assert page.evaluate("window.revoked") == []

    def revoked() -> bool:
        page.clock.fast_forward(60_000)
        return page.evaluate("window.revoked.includes(document.querySelector('.prose img')?.src)")

    wait_for(revoked)  # once more if the page heard only now that the file changed, and drew it again
    played = "document.querySelector('audio')?.src"
    until(page, f"{played} && !window.revoked.includes({played})")  # it can be played later


def test_a_note_is_read_with_its_links_its_pictures_and_its_history(page: Any, server: Server) -> None:
    root = Path(server.kb.root)
    commit = ["git", "-c", "user.name=Ada", "-c", "user.email=a@b.example", "commit", "-qm", "Write it down"]
    for command in (["git", "init", "-q"], ["git", "add", "-A"], commit):
        subprocess.run(command, cwd=root, check=True)
    (root / "articles/people/dot.png").write_bytes(DOT)
    file = root / "articles/people/who-does-what.md"
    file.write_text(file.read_text() + "\n![a dot](dot.png) and [[nothing-of-that-name]], [[#Odalys Benn]]\n")

    page.goto(f"{server.url}/note/{REF}#L14")
    page.wait_for_selector("text=Write it down")

    page.wait_for_selector(".prose .lit")
    until(page, "document.querySelector('.prose img').naturalWidth === 1")
    assert page.inner_text(".about").split()[0] == "article"
    assert "nothing-of-that-name" in page.inner_text("h3:has-text('Broken links') + ul")
    inspect(page, "note")

    page.click("button:has-text('Compare')")
    page.wait_for_selector(".diff .added")
    assert "a dot" in page.inner_text(".diff")
    assert axe(page) == []
    page.keyboard.press("Escape")
    page.click(".prose a:has-text('#Odalys Benn')")
    until(page, "document.querySelector('.lit').textContent === 'Odalys Benn'")
    page.click("h3:has-text('Linked from') + ul a >> nth=0")
    until(page, "!location.pathname.endsWith('who-does-what')")


@pytest.mark.slow
def test_the_text_of_a_note_has_one_colour_whatever_was_opened_before(page: Any, server: Server) -> None:
    colour = "getComputedStyle(document.querySelector('.prose p')).color"
    page.wait_for_selector("input[type=search]")
    visit(page, f"/note/{REF}")
    page.wait_for_selector(".prose p")
    after_home = page.evaluate(colour)

    page.reload()
    page.wait_for_selector(".prose p")
    assert page.evaluate(colour) == after_home


@pytest.mark.slow
def test_a_note_is_read_from_hit_to_hit_with_its_outline_its_cards_and_an_older_version(
    page: Any, server: Server
) -> None:
    root = Path(server.kb.root)
    sections = "".join(f"## Part {number}\n\n{'Words of it. ' * 90}\n\n" for number in range(6))
    long = "A title that goes on and on " * 12
    file = root / "articles/long.md"
    file.write_text(f"---\ntitle: {long}\n---\nSee [[who-does-what]] and [[Tide gate]].\n\n{sections}")
    commit = ["git", "-c", "user.name=Ada", "-c", "user.email=a@b.example", "commit", "-qm", "First text"]
    for command in (["git", "init", "-q"], ["git", "add", "-A"], commit):
        subprocess.run(command, cwd=root, check=True)
    file.write_text(file.read_text().replace("title: A", "title: Our").replace("See", "Look at"))
    server.kb.sync()
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    hits = f'{{"q": "part", "refs": ["{REF}", "article:long#L20-22", "memory:odalys-has-the-last-word"]}}'
    page.evaluate("(hits) => sessionStorage.setItem('co-hits', hits)", hits)

    page.goto(f"{server.url}/note/article:long#L20-22")
    page.wait_for_selector("text=First text")
    page.wait_for_selector(".prose .lit")
    assert page.is_visible(".bar-of-note .name"), "the title stays visible"
    until(page, "document.querySelector('.path').offsetHeight < 30")  # on one line there, on several above the text
    until(page, "document.querySelector('h1').offsetHeight > 60")
    assert page.evaluate("scrollY") > 300
    page.wait_for_selector(".outline [aria-current]")
    inspect(page, "note-long")
    page.click(".outline button:text-is('Part 5')")
    page.wait_for_selector(".outline [aria-current]:has-text('Part')")

    page.click(".bar-of-note summary")
    page.click(".menu button:has-text('Copy link')")
    page.wait_for_selector("#toasts >> text=Copied the link")
    assert page.evaluate("navigator.clipboard.readText()") == f"{server.url}/note/article:long#L20-22"
    page.click(".bar-of-note summary")
    page.click(".menu button:has-text('Copy as Markdown')")
    page.wait_for_selector("#toasts >> text=Copied the text as Markdown")
    assert page.evaluate("navigator.clipboard.readText()").startswith("Look at [[who-does-what]]")

    page.evaluate("scrollTo(0, 0)")
    page.hover(".prose a:has-text('who-does-what')")
    page.wait_for_selector("hover-card:visible:has-text('Who does what')")
    page.hover(".prose a.missing")
    page.wait_for_selector("hover-card:visible:has-text('Open the link to create it')")

    page.click("button:has-text('Compare')")
    page.wait_for_selector(".diff .added")
    assert "title:" not in page.inner_text(".diff"), "the frontmatter is not the text"
    page.click("button:text-is('Restore this version')")
    wait_for(lambda: "See [[who-does-what]]" in file.read_text())
    assert "title: Our" in file.read_text()

    assert "hit 2 of 3" in page.inner_text(".hits-of")
    page.click("a[aria-label='Previous hit']")
    page.wait_for_selector("h3:has-text('Linked from') + ul li:has-text('See who-does-what and Tide gate.')")
    page.evaluate("""() => new Promise((done) => {
        addEventListener("scrollend", done, { once: true });
        scrollTo(0, 250);
    })""")
    page.go_back()
    page.wait_for_selector(".prose a.missing")
    page.go_forward()
    page.wait_for_selector("h3:has-text('Linked from')")
    until(page, "scrollY === 250")
    page.go_back()
    page.wait_for_selector(".prose a.missing")
    page.click(".prose a.missing")
    until(page, "location.search === '?title=Tide%20gate'")


@pytest.mark.slow
def test_cards_are_shown_for_the_focus_and_a_tap_opens_the_note(page: Any, server: Server, browser: Any) -> None:
    for number in range(14):
        text = f"A first sentence. Ask [[who-does-what]] about {number}. A last one.\n"
        Path(server.kb.root, f"articles/asks-{number:02}.md").write_text(text)
    Path(server.kb.root, "articles/links.md").write_text("# Links\n\nSee [[who-does-what]] and [[asks-03]].\n")
    server.kb.sync()
    page.goto(f"{server.url}/note/article:links")
    page.wait_for_selector(".prose a:has-text('asks-03')")

    def tab_to_the_first_link() -> bool:
        """The page draws the note again when it hears of the new files, and the focus is lost with the link."""
        page.focus("button[aria-label='Copy as Markdown'], .bar-of-note summary")
        while not page.evaluate("document.activeElement.matches('.prose a')"):
            page.keyboard.press("Tab")
        page.wait_for_timeout(1000)
        return page.is_visible("hover-card:has-text('Who does what')")

    wait_for(tab_to_the_first_link)
    assert page.get_attribute(".prose a:focus", "aria-describedby") == "hover-card"
    assert axe(page) == []
    page.keyboard.press("Tab")
    page.wait_for_selector("hover-card:visible:has-text('A first sentence.')")
    page.keyboard.press("Escape")
    page.wait_for_selector("hover-card", state="hidden")
    page.keyboard.press("Enter")
    until(page, "location.pathname.endsWith('asks-03')")

    phone = browser.new_context(storage_state=page.context.storage_state(), has_touch=True, viewport=PHONE)
    touched = phone.new_page()
    touched.goto(f"{server.url}/note/article:links")
    touched.tap(".prose a:has-text('who-does-what')")
    touched.wait_for_selector("h1:has-text('Who does what')")
    assert not touched.is_visible("hover-card")
    links = touched.locator("h3:has-text('Linked from') + ul li")
    wait_for(lambda: links.count() == 10)
    assert links.locator("p:has-text('Ask who-does-what about')").first.inner_text().endswith("."), "of three sentences"
    assert links.locator("p:has-text('A first sentence')").count() == 0
    touched.tap("button:has-text('Show all 1')")
    wait_for(lambda: links.count() >= 15)
    phone.close()


MARKDOWN = """---
title: How we ship
---
- [ ] Wind the *bell*
- [x] Update the table

> [!warning]- Mind the gap
> It ==rings== twice.

A claim[^1] of $x^2$, with [a file](notes.txt).

![[odalys-has-the-last-word]]

![[bell.wav]]

```python
def ring() -> None: ...
```

| part | price |
|------|------:|
| bell | 12.50 |

[^1]: Page 12.
"""
SILENCE = b"RIFF$\0\0\0WAVEfmt \x10\0\0\0\x01\0\x01\0@\x1f\0\0@\x1f\0\0\x01\0\x08\0data\0\0\0\0"


def test_markdown_is_shown_as_obsidian_shows_it_and_tasks_are_ticked(page: Any, server: Server) -> None:
    folder = Path(server.kb.root, "articles")
    file = folder / "ship.md"
    file.write_text(MARKDOWN)
    folder.joinpath("bell.wav").write_bytes(SILENCE)
    server.kb.sync()
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    page.goto(f"{server.url}/note/article:ship")
    page.wait_for_selector(".embedded:has-text('Odalys Benn decides')")
    page.wait_for_selector(".prose audio[src^=blob]")
    until(page, "getComputedStyle(document.querySelector('.prose li[data-task]')).listStyleType === 'none'")
    inspect(page, "markdown")

    page.click("text=Mind the gap")
    assert page.is_visible("mark:text-is('rings')")
    assert page.evaluate("document.querySelector('.prose math msup').getBoundingClientRect().height") > 0
    assert page.evaluate("getComputedStyle(document.querySelector('.prose td:last-child')).textAlign") == "right"
    page.evaluate("""async () => {
        const button = document.querySelector(".code button");
        button.click();
        while (button.textContent !== "Copied") await new Promise(requestAnimationFrame);
    }""")  # it says so for a moment, which a busy machine would miss
    assert page.evaluate("navigator.clipboard.readText()") == "def ring() -> None: ...\n"
    page.click("sup a")
    page.wait_for_selector("div.footnote.lit")

    page.focus("input[aria-label='Wind the bell']")
    page.keyboard.press("Space")
    wait_for(lambda: "- [x] Wind the *bell*" in file.read_text())
    page.wait_for_selector("input[aria-label='Wind the bell']:checked:focus")
    page.click("input[aria-label='Update the table']")
    wait_for(lambda: file.read_text() == MARKDOWN.replace("[ ] W", "[x] W").replace("[x] U", "[ ] U"))
    page.route("**/api/v1/events", lambda route: None)  # the page does not hear of the next change
    page.reload()
    page.wait_for_selector("input[aria-label='Wind the bell']:checked")
    file.write_text(file.read_text() + "\nChanged elsewhere.\n")
    page.click("input[aria-label='Wind the bell']")
    page.wait_for_selector("#toasts >> text=changed meanwhile")
    page.wait_for_selector("text=Changed elsewhere.")
    assert page.is_checked("input[aria-label='Wind the bell']")
    assert "- [x] Wind" in file.read_text()
    page.problems.clear()  # Chromium logs the 409


def test_a_resource_shows_its_link_unless_it_is_a_script(page: Any, server: Server) -> None:
    folder = Path(server.kb.root, "resources")
    folder.mkdir()
    folder.joinpath("arches.md").write_text("---\nurl: https://example.org/arches\n---\nThe best text on arches.\n")
    folder.joinpath("long.md").write_text(
        f"---\nurl: https://example.org/{'a' * 300}\nsuperseded_by: {'b' * 99}\n---\nLong.\n"
    )
    folder.joinpath("bad.md").write_text("---\nurl: javascript:alert(1)\n---\nThe worst.\n")

    page.goto(f"{server.url}/note/resource:arches")
    page.wait_for_selector(".about a:has-text('https://example.org/arches')")
    page.goto(f"{server.url}/note/resource:long")
    page.wait_for_selector(".about a")
    inspect(page, "resource")
    page.goto(f"{server.url}/note/resource:bad")
    page.wait_for_selector(".prose p")

    assert page.query_selector(".about a") is None


@pytest.mark.slow
def test_a_note_that_is_not_utf_8_says_why_it_cannot_be_edited(page: Any, server: Server) -> None:
    Path(server.kb.root, "memories/latin.md").write_bytes("B\u00e4ume".encode("latin-1"))
    server.kb.sync()
    page.goto(f"{server.url}/note/memory:latin")
    page.click("button:text-is('Edit')")

    assert page.wait_for_selector("#toasts >> text=save it as UTF-8")
    page.problems.clear()  # Chromium logs the 400


def test_a_note_is_forgotten_and_restored(page: Any, server: Server) -> None:
    ref, file = "memory:odalys-has-the-last-word", Path(server.kb.root, "memories/odalys-has-the-last-word.md")
    page.goto(f"{server.url}/note/{ref}")
    page.click("summary[aria-label='More']")
    page.click("button:text-is('Forget')")
    page.wait_for_selector("#toasts >> text=Forgotten")
    assert not file.exists()
    page.click("#toasts co-toast:has-text('Forgotten') >> text=Undo")
    page.wait_for_selector(".note .prose p")
    assert file.exists()

    server.kb.forget(ref)
    page.wait_for_selector("text=was forgotten")
    page.click("text=Restore it")
    page.wait_for_selector(".prose p")
    page.problems.clear()  # Chromium logs the 404


@pytest.mark.slow
def test_forgetting_a_note_says_what_is_valid_again(page: Any, server: Server) -> None:
    old = server.kb.remember("The door code is 1111.", title="Door code").ref
    new = server.kb.remember("The door code is 2222.", title="New door code", supersedes=[old]).ref

    page.goto(f"{server.url}/note/{new}")
    page.click("summary[aria-label='More']")
    page.click("button:text-is('Forget')")

    assert page.wait_for_selector(f"#toasts >> text=Valid again, because it superseded them: {old}")


def test_renaming_keeps_links_and_updates_them_if_asked_with_undo(page: Any, server: Server) -> None:
    root = Path(server.kb.root)
    before = (root / "memories/odalys-has-the-last-word.md").read_text()
    linking = root / "memories" / "linking.md"
    linking.write_text(
        "Ask [[Odalys has the last word on releases]], or [[Odalys has the last word on releases|her]].\n"
    )
    server.kb.sync()
    page.goto(f"{server.url}/note/memory:odalys-has-the-last-word")
    page.wait_for_selector("h3:has-text('Linked from') + ul li:has-text('Ask')")

    def rename(title: str, update: bool) -> None:
        page.click(".bar-of-note summary")
        page.click(".menu button:text-is('Rename')")
        page.wait_for_selector("dialog:has-text('link'):has-text('keep working')")
        page.fill("dialog #text", title)
        if update:
            page.check("dialog label:has-text('Update') input")
        page.click("dialog button:text-is('Rename')")
        page.wait_for_selector(f"h1:text-is('{title}')")

    rename("Odalys decides", update=False)
    assert "[[Odalys has the last word on releases]]" in linking.read_text()
    page.wait_for_selector("h3:has-text('Linked from') + ul li:has-text('Ask')")
    page.click("co-toast:has-text('Renamed') button:text-is('Undo')")
    page.wait_for_selector("h1:text-is('Odalys has the last word on releases')")

    rename("Odalys chooses", update=True)
    page.wait_for_selector("co-toast:has-text('links updated in 1 note')")
    assert linking.read_text() == "Ask [[Odalys chooses]], or [[Odalys chooses|her]].\n"
    page.click("co-toast:has-text('links updated') button:text-is('Undo')")
    page.wait_for_selector("h1:text-is('Odalys has the last word on releases')")
    wait_for(lambda: linking.read_text().startswith("Ask [[Odalys has the last word on releases]], or"))
    wait_for(lambda: (root / "memories/odalys-has-the-last-word.md").read_text() == before)  # with its aliases

    page.click(".bar-of-note summary")
    page.click(".menu button:text-is('Rename')")
    page.fill("dialog #text", "Odalys decides")
    with held(page, "**/notes/memory:odalys-has-the-last-word"):
        page.click("dialog button:text-is('Rename')")
        page.click("nav a:has-text('Settings')")
        page.wait_for_selector("h1:text-is('Settings')")
    page.click("co-toast:has-text('Renamed') button:text-is('Undo')")
    wait_for(lambda: (root / "memories/odalys-has-the-last-word.md").read_text() == before)


def test_the_menu_moves_pins_and_prints_a_note(page: Any, server: Server) -> None:
    page.goto(f"{server.url}/note/memory:neap-the-cat")
    page.wait_for_selector(".note .prose p")
    page.click(".bar-of-note summary")
    inspect(page, "note-menu")
    page.click(".menu button:text-is('Pin')")
    page.wait_for_selector("co-toast:has-text('Pinned to Home')")
    page.click(".bar-of-note summary")
    page.click(".menu button:text-is('Move')")
    page.fill("dialog #text", "cats")
    page.click("dialog button:text-is('Move')")
    page.wait_for_selector(".path:has-text('memories/cats/neap-the-cat.md')")
    assert (Path(server.kb.root) / "memories/cats/neap-the-cat.md").exists()

    page.emulate_media(media="print")
    shown = page.evaluate("""[...document.querySelectorAll('body *')].filter((one) => one.checkVisibility()
        && !one.closest('.sheet') && one.innerText?.trim() && !one.querySelector('.sheet'))
        .map((one) => one.outerHTML)""")
    assert shown == [], "the text alone is printed"
    assert page.inner_text(".sheet h1") == page.evaluate("document.querySelector('.name').textContent")
    page.goto(f"{server.url}/note/{REF}")
    page.wait_for_selector(".about time", state="attached")
    date = "getComputedStyle(document.querySelector('.about time'), '::after').content"
    assert re.search(r"\d{4}", page.evaluate(date)), "a paper has the date, not the age"


def test_a_note_that_is_not_there_offers_links_and_one_that_cannot_be_read_a_button(page: Any, server: Server) -> None:
    root = Path(server.kb.root)
    (root / "memories" / "broken.md").write_text("---\ntitle: [a\n---\nText.\n")
    lists = "- [ ] לקנות לחם\n- [x] done\n\n1. ראשון\n2. שני\n\n| צמח | כמות |\n| - | - |\n| ורד | 3 |\n"
    (root / "memories" / "hebrew.md").write_text(f"---\ntitle: שלום לכולם\n---\n{lists}")
    server.kb.sync()
    page.goto(f"{server.url}/note/memory:odalys-has-the-last")
    page.click("main p a:text-is('Odalys has the last word on releases')")
    page.wait_for_selector("h1:has-text('Odalys has the last word')")
    page.goto(f"{server.url}/note/memory:broken")
    page.click(".problem button:text-is('Fix it')")
    page.wait_for_selector("code-editor .cm-content:focus")

    page.goto(f"{server.url}/note/memory:hebrew")
    page.wait_for_selector("li[data-task] input")
    assert page.evaluate("getComputedStyle(document.querySelector('h1')).direction") == "rtl"
    inside = """[...document.querySelectorAll('li[data-task]')].map((item) => {
        const range = document.createRange(), box = item.querySelector('input').getBoundingClientRect();
        range.selectNodeContents(item.querySelector('input').nextSibling);
        const text = range.getBoundingClientRect();
        return box.left >= text.right || box.right <= text.left;
    })"""
    assert page.evaluate(inside) == [True, True], "no box covers letters"
    page.set_viewport_size(PHONE)
    box = wait_for(lambda: page.locator("li[data-task] input").nth(0).bounding_box())  # drawn anew for this size
    assert box["x"] + box["width"] <= PHONE["width"] - 16, "boxes and numbers stay on the page"
    first, second = (wait_for(page.locator("th").nth(place).bounding_box) for place in (0, 1))
    assert first["x"] > second["x"], "columns are read from right to left, too"
    page.problems.clear()  # Chromium logs the 404
