"""The editor of the page, and the libraries that are vendored for it."""

from __future__ import annotations

import base64
import gzip
import hashlib
import re
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient

from co_cli.entrance.knowledge_base import KnowledgeBase
from co_cli.server.page_files import FOLDER
from tests.server.api import ask
from tests.server.browser import axe, held, inspect, until, wait_for
from tests.server.conftest import Server
from tests.server.test_note_page import DOT
from tests.sources.web_server import WebServer, article

VENDOR = FOLDER / "vendor"
REF, FILE = "memory:odalys-has-the-last-word", "memories/odalys-has-the-last-word.md"
TEXT = "code-editor .cm-content"
COMPLETION = "code-editor .cm-tooltip-autocomplete li"
SAVED = ".edit [role=status]:text-is('Saved')"
DRAFTS = "Object.keys(localStorage).filter((key) => key.startsWith('co-draft'))"


def text_of(page: Any) -> str:
    return page.evaluate("document.querySelector('code-editor').value")


def send(page: Any, kind: str, target: str, name: str, data: bytes) -> None:
    """Drop or paste a file, as a browser does."""
    page.evaluate(
        """([kind, target, name, data]) => {
        const moved = new DataTransfer();
        moved.items.add(new File([Uint8Array.from(atob(data), (sign) => sign.charCodeAt(0))], name));
        const about = { bubbles: true, cancelable: true, composed: true, clipboardData: moved, dataTransfer: moved };
        const found = document.querySelector(target), element = found.view?.contentDOM ?? found;
        element.dispatchEvent(kind === "paste" ? new ClipboardEvent("paste", about) : new DragEvent(kind, about));
    }""",
        [kind, target, name, base64.b64encode(data).decode()],
    )


def test_vendored_files_are_those_that_their_readme_names_with_licence_and_checksum() -> None:
    about = (VENDOR / "README.md").read_text(encoding="utf-8")
    named = {name: digest for digest, name in re.findall(r"^([0-9a-f]{64})  (\S+)$", about, re.MULTILINE)}

    found = {file.name: hashlib.sha256(file.read_bytes()).hexdigest() for file in VENDOR.iterdir()}
    del found["README.md"]

    assert named == found
    assert {name for name in named if name.endswith(".js")} == {
        name.replace(".LICENSE", ".js") for name in named if name.endswith(".LICENSE")
    }


def test_vendored_files_take_less_than_250_kb_compressed() -> None:
    assert sum(len(gzip.compress(file.read_bytes())) for file in VENDOR.iterdir()) < 250_000


@pytest.mark.slow
def test_a_new_note_is_written_with_completion_lists_and_keys_and_saved_by_itself(page: Any, server: Server) -> None:
    page.goto(f"{server.url}/note/")
    page.wait_for_selector("#title:focus")
    page.keyboard.type("Zebra crossings")
    page.click(TEXT)
    page.keyboard.type("See [[odalys has")
    page.wait_for_selector(f"{COMPLETION}[aria-selected]:has-text('last word')")
    page.keyboard.press("Enter")
    assert text_of(page) == "See [[Odalys has the last word on releases]]"
    page.wait_for_selector(".edit .prose a[href='/note/memory:odalys-has-the-last-word']:not(.missing)")
    page.keyboard.type(" #batt")
    page.wait_for_selector(f"{COMPLETION}[aria-selected]:has-text('battery')")
    page.keyboard.press("Tab")
    wait_for(lambda: text_of(page).endswith("#battery"))
    page.keyboard.type("\n\n- one")
    page.wait_for_selector(".edit .prose li")  # by then CodeMirror has read it, too, also on a busy machine
    page.keyboard.press("Enter")
    page.keyboard.type("two")
    wait_for(lambda: text_of(page).endswith("- one\n- two"))
    page.keyboard.press("Tab")
    wait_for(lambda: text_of(page).endswith("  - two"))
    page.keyboard.press("Enter")
    page.keyboard.press("Backspace")
    page.keyboard.press("Backspace")
    page.keyboard.press("Control+b")
    page.keyboard.type("bold")
    page.wait_for_selector(".edit .prose strong")
    page.wait_for_selector(SAVED)

    written = Path(server.kb.root, "memories/zebra-crossings.md").read_text()
    assert "on releases]] #battery\n\n- one\n  - two\n" in written
    assert "**bold**" in written
    assert page.url.endswith("/note/memory:zebra-crossings?edit=1"), "a reload goes on here"
    assert page.evaluate(DRAFTS) == []
    inspect(page, "editor")

    page.fill("#title", "Zebra paths")
    page.wait_for_selector(SAVED)
    wait_for(lambda: server.kb.note("memory:zebra-crossings").title == "Zebra paths")
    server.kb.remember("See [[Zebra paths]].", title="Road signs")
    page.fill("#title", "Paths of zebras")
    page.wait_for_selector("co-toast:has-text('Links to it keep working: 1')")
    assert server.kb.note("memory:zebra-crossings").aliases == ("Zebra paths",)
    page.fill("#title", "Zebra paths")
    wait_for(lambda: server.kb.note("memory:zebra-crossings").title == "Zebra paths")
    page.keyboard.press("Escape")
    page.wait_for_selector("h1:has-text('Zebra paths')")


@pytest.mark.slow
def test_a_resource_has_a_link_and_revert_brings_the_text_back(page: Any, server: Server) -> None:
    page.goto(f"{server.url}/note/")
    page.select_option("#kind", "resource")
    page.fill("#title", "Arches")
    page.fill(TEXT, "The best text on arches.")
    page.wait_for_selector(SAVED)
    page.fill("#url", "https://example.org/arches")
    page.click("button:has-text('Done')")
    page.wait_for_selector(".sheet .prose :text('The best text')")
    assert server.kb.note("resource:arches").metadata["url"] == "https://example.org/arches"

    page.goto(f"{server.url}/note/resource:arches?edit=1")
    page.wait_for_selector(f"{TEXT}:focus")
    page.keyboard.type("Or not. ")
    page.fill("#tags", "stone")
    page.keyboard.press("Control+s")
    page.wait_for_selector(SAVED)
    page.click("button:text-is('Revert')")
    wait_for(lambda: server.kb.note("resource:arches").body.strip() == "The best text on arches.")
    assert page.input_value("#tags") == ""
    page.click("co-toast button:text-is('Undo')")
    assert (page.input_value("#tags"), text_of(page)[:7]) == ("stone", "Or not.")


def test_what_cannot_be_saved_is_kept_as_a_draft_and_comes_back(page: Any, server: Server) -> None:
    page.goto(f"{server.url}/note/{REF}?edit=1")
    page.wait_for_selector(f"{TEXT}:focus")
    page.route(
        "**/api/v1/notes/**", lambda route: route.abort() if route.request.method == "PUT" else route.continue_()
    )
    page.keyboard.type("Not lost. ")
    page.keyboard.press("Control+Enter")
    page.wait_for_selector("#offline:has-text('co is not running')")
    until(page, "document.querySelector('.edit [role=status]').innerText === 'Not saved'")
    assert not page.query_selector(".edit .problem"), "it is said once"
    page.keyboard.press("Escape")
    until(page, "document.querySelector('.edit [role=status]').innerText === 'Not saved'")  # no request is under way
    assert "edit=1" in page.url, "it is not saved"
    module = "document.querySelector('script[type=module]').src.replace('app.js', 'parts/store.js')"
    assert [one["id"] for one in page.evaluate(f"import({module}).then((one) => one.freeDrafts())")] == [REF]

    page.goto(f"{server.url}/health")
    page.wait_for_selector("h1")
    page.unroute("**/api/v1/notes/**")
    page.goto(f"{server.url}/note/{REF}?edit=1")
    page.wait_for_selector("#toasts >> text=Your unsaved text is back")
    assert text_of(page).startswith("Not lost. ")
    page.click("nav a:has-text('Context')")
    page.wait_for_selector(".context textarea")
    assert "unsaved" not in page.inner_text("#toasts"), "its Undo needs the editor"
    wait_for(lambda: "Not lost." in Path(server.kb.root, FILE).read_text())  # leaving saves
    until(page, f"{DRAFTS}.length === 0")
    page.problems.clear()  # Chromium logs the requests that failed


def test_a_conflict_shows_what_differs_by_word_and_is_merged_part_by_part(page: Any, server: Server) -> None:
    file = Path(server.kb.root, FILE)
    head = file.read_text().rpartition("---\n")[0] + "---\n"
    file.write_text(f"{head}The oak is old.\n\nThe elm is old.\n\nThe ash is old.\n")
    server.kb.sync()
    page.goto(f"{server.url}/note/{REF}?edit=1")
    page.wait_for_selector(f"{TEXT}:focus")
    with held(page, f"**/api/v1/notes/{REF}"):  # what others do is not heard of until it is sent
        page.fill(TEXT, "The oak is young.\n\nThe elm is my tree.\n\nThe ash is old.\n")
        page.keyboard.press("Control+s")
        file.write_text(f"{head}The oak is old.\n\nThe elm is their tree.\n\nThe ash is gone.\n")
    page.wait_for_selector(".merge .part >> nth=2")
    assert "my tree" not in file.read_text()
    assert page.inner_text(".merge .part >> nth=1 >> del") == "their"
    assert page.inner_text(".merge .part >> nth=1 >> ins") == "my"
    inspect(page, "conflict")
    both = "The oak is young.\n\nThe elm is their tree.\nThe elm is my tree.\n\nThe ash is gone.\n"
    assert text_of(page) == both, "what one side changed is taken, what both changed is there twice"

    page.focus(TEXT)
    page.keyboard.press("Control+End")
    page.keyboard.type("Typed.")
    page.check(".merge .part >> nth=1 >> label:has-text('Mine') >> input")
    page.click("text=Save the result")
    page.wait_for_selector(SAVED)
    assert file.read_text().endswith("---\nThe oak is young.\n\nThe elm is my tree.\n\nThe ash is gone.\nTyped.\n")
    kept = [one.read_text() for one in Path(server.kb.root).rglob(".trash/**/*.md")]
    assert any("The elm is their tree." in text for text in kept), "what was left out of theirs is in the trash"
    page.problems.clear()  # Chromium logs the 409


@pytest.mark.slow
def test_the_preview_follows_the_scroll_and_on_a_phone_takes_the_editors_place(page: Any, server: Server) -> None:
    lines = "\n\n".join(f"## Part {number}\n\nText of part {number}." for number in range(80))
    Path(server.kb.root, "articles/long.md").write_text(lines)
    server.kb.sync()
    page.goto(f"{server.url}/note/article:long?edit=1")
    page.wait_for_selector(".edit .prose h2 >> nth=79")
    page.evaluate("document.querySelector('code-editor').select(1200)")
    page.evaluate("document.querySelector('code-editor').view.scrollDOM.scrollTop = 2000")
    until(
        page,
        """(() => {
        const editor = document.querySelector("code-editor"), pane = document.querySelector(".edit .prose");
        const first = [...pane.querySelectorAll("h2")].find((one) => one.offsetTop + one.offsetHeight > pane.scrollTop);
        return pane.scrollTop > 500 && Math.abs(+first?.textContent.slice(5) - editor.topLine / 4) <= 2;
    })()""",
    )

    page.set_viewport_size({"width": 390, "height": 844})
    page.reload()
    page.wait_for_selector(TEXT)
    assert not page.is_visible(".edit .prose")
    page.click(".edit .top summary")
    page.click(".menu button:text-is('Preview')")
    page.wait_for_selector(".edit .prose h2")
    assert not page.is_visible("code-editor")
    assert axe(page) == []


def test_files_are_stored_next_to_the_note_or_added_as_articles(page: Any, server: Server) -> None:
    page.goto(f"{server.url}/note/{REF}?edit=1")
    page.wait_for_selector(f"{TEXT}:focus")
    page.keyboard.press("Control+End")
    send(page, "paste", "code-editor", "a dot.png", DOT)
    until(page, "document.querySelector('.edit .prose img')?.naturalWidth === 1")
    send(page, "paste", "code-editor", "run.exe", b"MZ")
    page.wait_for_selector("#toasts >> text=files of this type cannot be added")
    page.wait_for_selector(SAVED)
    assert "![a dot](a-dot.png)" in Path(server.kb.root, FILE).read_text()
    assert Path(server.kb.root, "memories/a-dot.png").read_bytes() == DOT
    page.problems.clear()  # Chromium logs the 400

    page.goto(server.url)
    page.wait_for_selector("#top:not([inert])")
    larch = b"Larches lose their needles."
    send(page, "dragenter", "body", "larch.txt", larch)  # loads what takes the drop
    wait_for(
        lambda: (
            page.query_selector("dialog:has-text('Add to the vault')") or send(page, "drop", "body", "larch.txt", larch)
        )
    )
    assert axe(page) == []
    page.click("dialog button:text-is('Add')")
    page.wait_for_selector(".note .prose :text('Larches lose')")

    page.evaluate("""() => {
        const moved = new DataTransfer();
        moved.setData("text/plain", "http://127.0.0.1:9/private");
        document.body.dispatchEvent(new ClipboardEvent("paste", { bubbles: true, clipboardData: moved }));
    }""")
    page.click("dialog:has-text('Save this page') >> button:text-is('Save')")
    page.wait_for_selector("#toasts :text('127.0.0.1')")


@pytest.fixture
def website(monkeypatch: pytest.MonkeyPatch) -> Iterator[WebServer]:
    """A web server that the settings allow to fetch from."""
    monkeypatch.setenv("CO_WEB_ALLOW", "127.0.0.1")
    with closing(WebServer()) as opened:
        yield opened


@pytest.mark.slow
def test_a_pasted_address_is_saved_as_an_article_once(website: WebServer, page: Any, server: Server) -> None:
    url = website.page("/larch", article("Larches in winter", "Larches lose their needles in late autumn. " * 9))
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    for text in ("Added", "It was in the vault already"):
        page.goto(server.url)
        page.wait_for_selector(".home .group")
        page.evaluate("(url) => navigator.clipboard.writeText(url).then(() => document.activeElement.blur())", url)
        page.keyboard.press("Control+v")
        page.wait_for_selector(f"dialog:has-text('Save this page'):has-text('{url}')")
        page.click("dialog button:text-is('Save')")
        page.wait_for_selector(f"#toasts :text('{text}')")
        page.wait_for_selector(".note .prose :text('lose their needles')")
    saved = server.kb.note("article:larches-in-winter")
    assert (saved.metadata["source_url"], saved.provenance) == (url, "web")
    assert [one.target for one in website.asked].count("/larch") >= 1


def test_one_editing_session_is_one_entry_of_the_history_and_the_text_before_it_is_kept(
    page: Any, server: Server
) -> None:
    file = Path(server.kb.root, FILE)
    before = file.read_text()
    page.goto(f"{server.url}/note/{REF}?edit=1")
    page.wait_for_selector(f"{TEXT}:focus")
    for text in ("First. ", "Second. ", "Third. "):
        page.keyboard.type(text)
        page.keyboard.press("Control+s")
        wait_for(lambda text=text: text in file.read_text())
    page.wait_for_selector(SAVED)
    page.fill(TEXT, "Another text.")
    page.keyboard.press("Control+s")
    wait_for(lambda: file.read_text().endswith("---\nAnother text.\n"))
    page.fill(TEXT, "One more.")
    page.keyboard.press("Control+s")
    wait_for(lambda: file.read_text().endswith("---\nOne more.\n"))
    page.wait_for_selector(SAVED)

    page.click("button:has-text('Done')")
    page.wait_for_selector("h2:has-text('History') ~ ul li:has-text('Text until')")
    changes = page.locator("h2:has-text('History') ~ ul li").all_inner_texts()
    assert len([one for one in changes if "updated" in one]) == 1
    assert len([one for one in changes if "Text until" in one]) == 1, "what was typed on the way is not kept"
    page.click("li:has-text('Text until') button:text-is('Compare')")
    page.wait_for_selector(".diff .removed:has-text('First. Second. Third.')")

    page.route("**/api/v1/events", lambda route: None)
    page.reload()  # it does not hear of the next change
    page.click("li:has-text('Text until') button:text-is('Compare')")
    page.wait_for_selector(".diff .removed")
    file.write_text(before.rpartition("---\n")[0] + "---\nChanged elsewhere.\n")
    page.click("button:text-is('Restore this version')")
    page.wait_for_selector("#toasts >> text=Not restored: this note was changed meanwhile")
    page.wait_for_selector(".prose :text('Changed elsewhere.')")
    assert "Changed elsewhere." in file.read_text()
    page.click("li:has-text('Text until') button:text-is('Compare')")
    page.click("button:text-is('Restore this version')")
    page.wait_for_selector("#toasts >> text=Restored")
    page.wait_for_selector(".prose :text('First. Second. Third.')")
    kept = [one.read_text() for one in Path(server.kb.root).rglob(".trash/**/*.md")]
    assert any("Changed elsewhere." in text for text in kept)
    page.problems.clear()  # Chromium logs the 409


@pytest.mark.slow
def test_frontmatter_that_cannot_be_read_is_repaired_in_the_whole_file(page: Any, server: Server) -> None:
    file = Path(server.kb.root, "memories/broken.md")
    file.write_text("---\ncategory: fact\ntitle: Oaks: how long they live\n---\nOaks live long.\n")
    server.kb.sync()
    page.goto(f"{server.url}/note/memory:broken?edit=1")
    page.wait_for_selector(".problem:has-text('line 3')")
    page.wait_for_selector(f"{TEXT}:focus")
    assert axe(page) == []
    page.keyboard.type("title: Oaks, how long they live")  # the wrong line is selected
    page.keyboard.press("Control+s")
    page.wait_for_selector("h1:has-text('Oaks, how long they live')")
    assert file.read_text() == "---\ncategory: fact\ntitle: Oaks, how long they live\n---\nOaks live long.\n"


def test_a_note_with_scripts_runs_none_in_the_editor_and_its_preview(page: Any, server: Server) -> None:
    Path(server.kb.root, "memories/evil.md").write_text(
        "<img src=x onerror=alert(1)> <script>alert(1)</script> [a](javascript:alert(1)) ```js\nalert(1)\n```\n"
    )
    server.kb.sync()
    page.goto(f"{server.url}/note/memory:evil?edit=1")
    page.wait_for_selector(".edit .prose p")
    page.keyboard.type("[[<img src=x onerror=alert(1)>")
    page.keyboard.press("Control+s")
    page.wait_for_selector(SAVED)

    assert page.query_selector(".edit :is(script, [onerror], a[href^=javascript])") is None
    # a violation of the policy would be an error in the console, which fails the test


@pytest.mark.medium
def test_files_are_checked_numbered_and_never_overwritten(api: TestClient, sample: KnowledgeBase) -> None:
    def add(name: str, data: bytes, status: int = 200) -> Any:
        answer = ask(api, "POST", f"/files/{REF}", status, name=name, data=base64.b64encode(data).decode())
        return answer if status == 200 else answer["error"]["message"]

    assert add("../../My Dot.PNG", DOT) == {"path": "memories/My-Dot.png", "markdown": "![My Dot](My-Dot.png)"}
    assert add("My Dot.png", DOT)["path"] == "memories/My-Dot-2.png"
    assert add("plan.pdf", b"%PDF-1.7")["markdown"] == "[plan.pdf](plan.pdf)"
    assert add("CON.txt", b"Hi")["path"] == "memories/file-CON.txt", "Windows takes it for a device"
    assert add("cod\u202etxt.pdf\u200b.txt", b"Hi")["path"] == "memories/cod-txt.pdf.txt", "shown as it is"
    assert add("\N{EVERGREEN TREE}" * 99 + ".txt", b"Hi")["path"] == "memories/" + "\N{EVERGREEN TREE}" * 25 + ".txt"
    assert "not what its name says" in add("dot.png", b"<script>", 400)
    assert "cannot be added" in add("note.md", b"# Hi", 400)
    assert "empty" in add("dot.png", b"", 400)
    assert "at most 20,000,000" in add("big.zip", bytes(20_000_001), 400)
    assert sorted(file.name for file in Path(sample.root, "memories").iterdir() if file.suffix != ".md") == [
        "My-Dot-2.png",
        "My-Dot.png",
        "cod-txt.pdf.txt",
        "file-CON.txt",
        "plan.pdf",
        "\N{EVERGREEN TREE}" * 25 + ".txt",
    ]


def test_a_document_becomes_an_article_once(api: TestClient, sample: KnowledgeBase) -> None:
    data = base64.b64encode(b"# Larches\n\nThey lose their needles.\n").decode()

    added = ask(api, "POST", "/documents", name="larch.md", data=data)
    assert (added["ref"], added["outcome"]) == ("article:larch", "created")
    assert ask(api, "POST", "/documents", name="again.md", data=data)["outcome"] == "duplicate"
    for path in ("/documents", f"/files/{REF}"):
        for ending in ("x" * 300, "m\0d", "md\n", "p\u202edf"):
            refused = ask(api, "POST", path, 400, name=f"larch.{ending}", data=data)["error"]["message"]
            assert refused == "larch: the ending of its name is no type of file; rename it", ending
    refused = ask(api, "POST", "/documents", 400, name="tool.exe", data=base64.b64encode(b"MZ\0\0").decode())
    assert "tool.exe was not added" in refused["error"]["message"]


FROM_A_BROWSER = """<meta charset='utf-8'><h2>Plan</h2><p>Ship <b>on Friday</b>, as <a href="https://x.example/a">agreed</a>.</p>
<ul><li>one</li><li>two</li></ul><table><tr><th>a</th><th>b</th></tr><tr><td>1</td><td>2</td></tr></table>
<pre><code>x = 1</code></pre>"""


def paste(page: Any, **kinds: str) -> None:
    """As the clipboard of another program has it: `plain` and `html`."""
    page.evaluate(
        """(kinds) => {
        const data = new DataTransfer();
        for (const [kind, text] of Object.entries(kinds)) data.setData(`text/${kind}`, text);
        document.querySelector("code-editor").shadowRoot.querySelector(".cm-content").dispatchEvent(
            new ClipboardEvent("paste", { clipboardData: data, bubbles: true, cancelable: true }));
    }""",
        kinds,
    )


def test_what_is_pasted_becomes_markdown_and_an_address_on_a_selection_a_link(page: Any, server: Server) -> None:
    page.goto(f"{server.url}/note/")
    page.wait_for_selector("#title:focus")
    page.keyboard.press("Enter")
    page.wait_for_selector(f"{TEXT}:focus")
    paste(page, plain="Plan Ship on Friday", html=FROM_A_BROWSER)
    until(page, "document.querySelector('code-editor').value")
    text = text_of(page)
    for part in ("## Plan", "**on Friday**", "[agreed](https://x.example/a)", "one\n", "| a | b |", "```\nx = 1\n```"):
        assert part in text, text

    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    page.evaluate(
        """(html) => navigator.clipboard.write([new ClipboardItem(Object.fromEntries(
            [["text/html", html], ["text/plain", "Ship *on* Friday"]].map(
                ([type, text]) => [type, new Blob([text], { type })])))])""",
        FROM_A_BROWSER,
    )
    for keys, wanted in (("Control+Shift+V", "Ship *on* Friday"), ("Control+V", "## Plan")):
        page.keyboard.press("Control+a")
        page.keyboard.press(keys)
        until(page, f"document.querySelector('code-editor').value.startsWith('{wanted}')")

    page.keyboard.press("Control+a")
    paste(page, plain="just words", html="<span style='color: red'>just words</span>")
    until(page, "document.querySelector('code-editor').value === 'just words'")
    page.keyboard.press("Control+a")
    paste(page, plain="https://x.example/b")
    until(page, "document.querySelector('code-editor').value === '[just words](https://x.example/b)'")

    page.keyboard.press("Control+a")
    with held(page, "**/api/v1/markdown"):
        paste(page, plain="bold", html="<b>bold</b>")
        page.keyboard.type(", and on")
    until(page, "document.querySelector('code-editor').value === '**bold**, and on'")
    page.keyboard.press("Home")
    page.keyboard.type("- ")
    page.keyboard.press("Shift+Tab")
    assert not page.query_selector(f"{TEXT}:focus"), "there is nothing to indent less"


@pytest.mark.slow
def test_what_is_typed_right_after_n_is_all_there_although_the_editor_is_late(page: Any, server: Server) -> None:
    page.wait_for_selector("note-card")
    page.keyboard.press("Escape")
    with held(page, "**/vendor/codemirror.js"):
        page.keyboard.press("n")
        page.keyboard.type("Gales and how to name them")
        page.keyboard.press("Enter")
        page.keyboard.type("Each has a letter.")
        assert page.evaluate("location.pathname") == "/note/", "no letter is a shortcut"
    page.wait_for_selector(f"{TEXT}:focus")

    assert page.input_value("#title") == "Gales and how to name them"
    assert text_of(page) == "Each has a letter."
    page.focus("#title")
    page.keyboard.press("Tab")
    page.wait_for_selector(f"{TEXT}:focus")
    page.keyboard.press("Control+Enter")
    page.wait_for_selector(SAVED)
    assert server.kb.note("memory:gales-and-how-to-name-them").body.strip() == "Each has a letter."


def test_on_a_phone_one_bar_and_a_strip_leave_twelve_lines_of_text(page: Any, server: Server) -> None:
    page.set_viewport_size({"width": 390, "height": 480})  # the rest is the keyboard
    page.goto(f"{server.url}/note/{REF}?edit=1")
    page.wait_for_selector(f"{TEXT}:focus")
    field, strip = (page.locator(one).bounding_box() for one in ("code-editor", ".strip"))
    line = page.evaluate(
        "parseFloat(getComputedStyle(document.querySelector('code-editor').view.scrollDOM).lineHeight)"
    )
    assert (min(strip["y"], field["y"] + field["height"]) - field["y"]) / line >= 12
    assert page.locator(".edit .top").bounding_box()["height"] == strip["height"] == 44
    assert not page.is_visible("#top")
    assert not page.is_visible("#tags")

    page.keyboard.press("Control+Home")
    page.focus("button[aria-label='Task']")
    page.keyboard.press("Enter")
    page.focus(TEXT)
    page.click("button[aria-label='Bold']")
    page.keyboard.type("Now")
    until(page, "document.querySelector('code-editor').value.startsWith('- [ ] **Now**')")
    page.click("button[aria-label='Undo']")
    page.click(".edit .top summary")
    page.click("button:has-text('Tags and kind')")
    page.wait_for_selector("#tags:focus")
    inspect(page, "editor-phone")


def test_back_leads_from_a_note_that_was_edited_to_the_page_before_it(page: Any, server: Server) -> None:
    page.click("nav a:has-text('Context')")
    page.wait_for_selector(".context textarea")
    page.keyboard.press("Escape")
    visit_note = f"history.pushState(null, '', '/note/{REF}'); dispatchEvent(new PopStateEvent('popstate'))"
    page.evaluate(visit_note)
    page.click("button:has-text('Edit')")
    page.wait_for_selector(f"{TEXT}:focus")
    page.keyboard.type("Well: ")
    page.click("button:has-text('Done')")
    page.wait_for_selector(".sheet :text('Well:')")
    page.go_back()
    page.wait_for_selector(".context textarea")

    page.click("a.new")
    page.wait_for_selector("#title:focus")
    page.keyboard.type("Knots")
    page.keyboard.press("Enter")
    page.keyboard.type("A bowline holds.")
    page.click("button:has-text('Done')")
    page.wait_for_selector("h1:has-text('Knots')")
    page.go_back()
    assert page.wait_for_selector(".context textarea")


@pytest.mark.slow
def test_somebody_who_goes_elsewhere_while_done_saves_stays_there(page: Any, server: Server) -> None:
    page.goto(f"{server.url}/note/{REF}?edit=1")
    page.wait_for_selector(f"{TEXT}:focus")
    page.keyboard.type("Well: ")
    with page.expect_response(lambda answer: answer.request.method == "PUT"), held(page, f"**/notes/{REF}"):
        page.click("button:has-text('Done')")
        page.click("nav a:has-text('Settings')")
        page.wait_for_selector("h1:text-is('Settings')")
    page.wait_for_timeout(300)
    assert page.url == f"{server.url}/settings"


def test_undo_takes_back_what_was_typed_here_and_nothing_else(page: Any, server: Server) -> None:
    file = Path(server.kb.root, FILE)
    page.goto(f"{server.url}/note/{REF}?edit=1")
    page.wait_for_selector(f"{TEXT}:focus")
    before = text_of(page)
    page.keyboard.press("Control+z")
    assert text_of(page) == before != ""
    page.keyboard.type("Mine. ")
    page.keyboard.press("Control+s")
    page.wait_for_selector(SAVED)
    file.write_text(f"{file.read_text()}Theirs.\n")
    until(page, "document.querySelector('code-editor').value.includes('Theirs.')")
    page.keyboard.press("Control+z")
    assert text_of(page) == f"{before}Theirs.\n"


def test_what_is_typed_while_a_change_from_elsewhere_is_loaded_stays(page: Any, server: Server) -> None:
    file = Path(server.kb.root, FILE)
    page.goto(f"{server.url}/note/{REF}?edit=1")
    page.wait_for_selector(f"{TEXT}:focus")
    with held(page, f"**/api/v1/rendered/{REF}") as asked:
        file.write_text(f"{file.read_text()}Theirs.\n")
        wait_for(lambda: page.evaluate("true") and asked)
        page.keyboard.type("Mine. ")
    until(page, "/^Mine[^]*Theirs/.test(document.querySelector('code-editor').value)")
    page.problems.clear()  # Chromium logs the 409


def test_a_note_that_is_begun_while_the_one_before_is_saved_starts_empty(page: Any, server: Server) -> None:
    page.goto(f"{server.url}/note/")
    page.wait_for_selector("#title:focus")
    page.keyboard.type("Zebra crossings")
    page.keyboard.press("Enter")
    page.keyboard.type("They are striped.")
    with held(page, "**/api/v1/notes"):
        page.click("a.new")
        page.wait_for_selector(".early:focus")
        page.keyboard.type("Knots\n")
    page.wait_for_selector(f"{TEXT}:focus")
    assert (page.input_value("#title"), text_of(page)) == ("Knots", "")
    assert server.kb.note("memory:zebra-crossings").body.strip() == "They are striped."


def test_two_tabs_with_a_new_note_have_a_draft_each_and_a_closed_tabs_draft_is_offered(
    page: Any, server: Server
) -> None:
    def write(tab: Any, text: str) -> None:
        tab.wait_for_selector("#title:focus")
        tab.focus(TEXT)
        tab.keyboard.type(text)  # without an end of a sentence: nothing is saved yet

    page.goto(f"{server.url}/note/")
    write(page, "Oaks in the valley")
    other = page.context.new_page()
    other.goto(f"{server.url}/note/")
    write(other, "Tides at the pier")
    page.keyboard.type(" and elms")
    for tab, text in ((page, "Oaks in the valley and elms"), (other, "Tides at the pier")):
        tab.reload()
        tab.wait_for_selector("#toasts >> text=Your unsaved text is back")
        assert text_of(tab) == text

    third = page.context.new_page()
    third.goto(server.url)
    third.wait_for_selector(".group note-card")
    assert third.locator(".draft").count() == 0, "both are open in a tab"
    other.close()
    third.reload()
    third.wait_for_selector(".draft:has-text('Tides at the pier')")
    assert third.locator(".draft").count() == 1
    third.click(".draft a")
    third.wait_for_selector(f"{TEXT}:focus, #title:focus")
    assert text_of(third) == "Tides at the pier"
    third.fill("#title", "Piers")
    third.wait_for_selector(SAVED)
    page.fill("#title", "Trees")
    page.wait_for_selector(SAVED)
    assert server.kb.note("memory:piers").body.strip() == "Tides at the pier"
    assert server.kb.note("memory:trees").body.strip() == "Oaks in the valley and elms"
    assert page.evaluate(DRAFTS) == []


def test_the_unsaved_text_of_a_note_that_is_gone_becomes_a_new_note(page: Any, server: Server) -> None:
    page.goto(f"{server.url}/note/{REF}?edit=1")
    page.wait_for_selector(f"{TEXT}:focus")
    Path(server.kb.root, FILE).unlink()
    page.keyboard.type("Mine. ")
    page.keyboard.press("Control+s")
    page.wait_for_selector(".edit .problem:has-text('No note')")
    page.click("a.brand")
    page.click(".draft a")
    page.wait_for_selector(f"{TEXT}:focus")
    assert text_of(page).startswith("Mine. Odalys Benn decides")
    page.keyboard.press("Control+s")
    page.wait_for_selector(SAVED)
    assert server.kb.note(f"{REF}-on-releases").body.startswith("Mine. ")
    page.problems.clear()  # Chromium logs the 404


def test_a_browser_without_room_for_drafts_saves_all_the_same(page: Any, server: Server) -> None:
    page.goto(f"{server.url}/note/{REF}?edit=1")
    page.wait_for_selector(f"{TEXT}:focus")
    page.evaluate("Object.keys(localStorage).forEach((key) => key !== 'co-token' && localStorage.removeItem(key))")
    room = "5 * 1024 * 1024 - JSON.stringify(localStorage).length - 50"
    page.evaluate(f"localStorage.setItem('full', 'x'.repeat({room}))")
    page.keyboard.type("Mine. ")
    wait_for(lambda: "Mine." in Path(server.kb.root, FILE).read_text())
    page.wait_for_selector(SAVED)
    assert page.evaluate(DRAFTS) == []
    page.problems.clear()  # that there is no room


def test_a_save_without_an_answer_leaves_no_draft_that_conflicts_with_it(page: Any, server: Server) -> None:
    notes = f"**/api/v1/notes/{REF}"
    page.goto(f"{server.url}/note/{REF}?edit=1")
    page.wait_for_selector(f"{TEXT}:focus")
    page.route(notes, lambda route: route.fetch() if route.request.method == "PUT" else route.continue_())
    page.keyboard.type("Mine. ")
    wait_for(lambda: page.evaluate("true") and "Mine." in Path(server.kb.root, FILE).read_text())
    assert page.evaluate(DRAFTS)

    page.unroute(notes)
    page.goto(f"{server.url}/note/{REF}?edit=1")
    page.wait_for_selector(f"{TEXT}:focus")
    page.keyboard.type("More. ")
    page.wait_for_selector(SAVED)
    assert "More. Mine." in Path(server.kb.root, FILE).read_text()
    assert page.evaluate(DRAFTS) == []
    page.problems.clear()  # when the page is left, the save may be sent again, and is refused


def test_the_editor_stays_where_its_preview_fails(page: Any, server: Server) -> None:
    busy = {"error": {"kind": "busy", "message": "Too many questions at once."}}
    page.route("**/api/v1/rendered", lambda route: route.fulfill(status=503, json=busy))
    page.goto(f"{server.url}/note/{REF}?edit=1")
    with page.expect_response("**/api/v1/rendered"):
        page.wait_for_selector(f"{TEXT}:focus")
    page.keyboard.type("Mine. ")
    page.wait_for_selector(SAVED)
    page.problems.clear()  # Chromium logs each 503


def test_a_conflict_that_was_left_comes_back_with_both_texts_once(page: Any, server: Server) -> None:
    file = Path(server.kb.root, FILE)
    head = file.read_text().rpartition("---\n")[0] + "---\n"
    page.goto(f"{server.url}/note/{REF}?edit=1")
    page.wait_for_selector(f"{TEXT}:focus")
    with held(page, f"**/api/v1/notes/{REF}"):
        page.fill(TEXT, "The elm is my tree.\n")
        page.keyboard.press("Control+s")
        file.write_text(f"{head}The elm is their tree.\n")
    page.wait_for_selector(".merge .part")
    page.click("nav a:has-text('Settings')")
    page.wait_for_selector("h1:text-is('Settings')")
    page.go_back()
    page.wait_for_selector(f"{TEXT}:focus")
    page.keyboard.press("Control+s")
    page.wait_for_selector(SAVED)
    assert file.read_text().endswith("---\nThe elm is their tree.\nThe elm is my tree.\n")
    page.problems.clear()  # Chromium logs the 409
