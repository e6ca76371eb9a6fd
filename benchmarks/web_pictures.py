"""Make the pictures of the page in docs/pictures: `python -m benchmarks.web_pictures`.

They show the sample vault, and how a turn of a conversation becomes a memory.
"""

from __future__ import annotations

import base64
import os
import shutil
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks.web import opened, serving, until
from co_cli.conversations.extraction import KnownMemory, Reply, extract
from co_cli.conversations.facets import Facet, FacetBatch
from co_cli.entrance.knowledge_base import KnowledgeBase
from co_cli.ground.paths import sample_vault
from co_cli.notes.transcripts import SpokenTurn
from co_cli.saving.turns import KeptSession, keep_turns

FOLDER = Path(__file__).resolve().parents[1] / "docs" / "pictures"
SIZE = {"width": 1440, "height": 900}
LARGEST = 100_000
QUESTION = "who decides what ships"
READY = "document.querySelector('{}')?.innerText && 1"
SAID = "By the way: I prefer green tea in the morning now."
FRAME = """
<style>body { margin: 0; padding: 12px 20px; font: 17px system-ui; background: #fff }
img, pre { max-width: 100%; box-sizing: border-box; margin: 0; border: 1px solid #bbb; border-radius: 6px }
pre { padding: 12px 20px; font-size: 15px } p { margin: 14px 0 8px; font-weight: 600 }</style>
"""


def main() -> None:
    with tempfile.TemporaryDirectory() as home:
        shutil.copytree(sample_vault(), os.path.join(home, "slackwater"))
        environment = {
            **os.environ,
            "HOME": home,
            "CO_VAULT": os.path.join(home, "slackwater"),
            "CO_DATA_DIR": os.path.join(home, "data"),
        }
        FOLDER.mkdir(exist_ok=True)
        with serving(environment, home) as address, opened(viewport=SIZE, locale="en-GB") as browser:
            page = browser.new_page()
            page.goto(address)
            until(page, "document.querySelector('nav a') && 1")
            url = address.partition("/#")[0]
            _home(page, url)
            _search(page, url)
            _note(page, url)
            _editor(page, url)
            _map(page, url)
            _review(page, url)
        _memory(home)


def _home(page: Any, url: str) -> None:
    page.goto(url)
    until(page, READY.format("note-card"))
    _keep(page, "home")


def _search(page: Any, url: str) -> None:
    for question in ("the first search loads the reader", QUESTION):
        page.goto(url)
        page.fill("input[type=search]", question)
        until(page, READY.format(".verdict .badge"))
    until(page, READY.format(".preview article"))
    _keep(page, "search")


def _note(page: Any, url: str) -> None:
    page.goto(f"{url}/note/The%20day%20the%20tide%20ran%20backwards")
    until(page, "document.querySelector('main aside')?.innerText.includes('History')")
    _keep(page, "note")


def _editor(page: Any, url: str) -> None:
    page.goto(f"{url}/note/The%20day%20the%20tide%20ran%20backwards?edit=1")
    until(page, READY.format(".edit .prose"))
    _keep(page, "editor")


def _map(page: Any, url: str) -> None:
    page.emulate_media(color_scheme="dark")
    page.goto(f"{url}/map")
    until(page, "document.querySelector('.map li a') && !document.querySelector('.map .state').innerText")
    _keep(page, "map")
    page.emulate_media(color_scheme="light")


def _review(page: Any, url: str) -> None:
    page.goto(f"{url}/review?kind=expired")
    until(page, READY.format(".detail"))
    _keep(page, "review")


class OneChange:
    """A model that understands one thing."""

    name = "one change"

    def extract(self, batch: FacetBatch) -> Reply:
        turn = next(turn for turn in batch.turns if turn.text == SAID)
        line, text = turn.line + 2, "The user prefers green tea in the morning."
        return Reply([Facet("preference", text, line, line, confidence=0.9)], 0)

    def compare(self, pairs: Sequence[tuple[str, Sequence[KnownMemory]]]) -> Reply:
        return Reply([("changed", pairs[0][1][0].ref)], 0)


def _memory(home: str) -> None:
    """A turn, its proposal in the review, and the memory that it becomes, in one picture."""
    vault, data = (os.path.join(home, name) for name in ("talk", "talk-data"))
    os.makedirs(os.path.join(vault, "memories"))
    Path(vault, "memories", "black-tea.md").write_text("The user prefers black tea in the morning.\n")
    with KnowledgeBase.open(vault, data) as kb:
        kb.sync()
        said = [SpokenTurn("User", SAID), SpokenTurn("Assistant", "Good to know.")]
        keep_turns(kb.vault, KeptSession("tea", title="Tea"), said)
        extract(kb.vault, OneChange())
    environment = {**os.environ, "HOME": home, "CO_VAULT": vault, "CO_DATA_DIR": data}
    narrow = {"width": 860, "height": 700}
    wide = {"width": 1200, "height": 800}  # the finding is beside the list
    with serving(environment, home) as address, opened(viewport=wide, locale="en-GB") as browser:
        page = browser.new_page()
        page.goto(address)
        until(page, "document.querySelector('nav a') && 1")
        url, parts = address.partition("/#")[0], list[str]()

        def show(what: str, selector: str) -> None:
            until(page, READY.format(selector))
            page.wait_for_timeout(500)
            taken = base64.b64encode(page.locator(selector).first.screenshot()).decode()
            parts.append(f"<p>{what}</p><img src='data:image/png;base64,{taken}'>")

        page.goto(f"{url}/conversation/conversation:tea")
        show("Propose: a model finds a memory in what you said", ".turns")
        page.goto(f"{url}/review")
        show("↓ Review: you see what it would replace, and press a", ".detail")
        page.keyboard.press("a")
        until(page, READY.format("#toasts co-toast"))
        text = Path(vault, "memories", "the-user-prefers-green-tea-in-the-morning.md").read_text()
        parts.append(f"<p>↓ Memory: a file that names the lines it comes from</p><pre>{text}</pre>")
        page.goto("about:blank")
        page.set_viewport_size(narrow)
        page.set_content(FRAME + "".join(parts))
        height = page.evaluate("document.documentElement.scrollHeight")
        page.set_viewport_size({**narrow, "height": height})
        _keep(page, "memory")


def _keep(page: Any, name: str) -> None:
    page.wait_for_timeout(500)
    # playwright itself writes no WebP, which is a third of the size
    taken = page.context.new_cdp_session(page).send("Page.captureScreenshot", {"format": "webp", "quality": 82})
    picture = base64.b64decode(taken["data"])
    if len(picture) > LARGEST:
        raise SystemExit(f"the picture of {name} has {len(picture):,} bytes, more than {LARGEST:,}")
    (FOLDER / f"{name}.webp").write_bytes(picture)


if __name__ == "__main__":
    main()
