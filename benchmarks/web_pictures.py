"""Make the pictures of the page in docs/pictures from the sample vault: `python -m benchmarks.web_pictures`."""

from __future__ import annotations

import base64
import os
import shutil
import tempfile
from pathlib import Path
from typing import Any

from benchmarks.web import opened, serving, until
from co_cli.paths import sample_vault

FOLDER = Path(__file__).resolve().parents[1] / "docs" / "pictures"
SIZE = {"width": 1280, "height": 800}
LARGEST = 100_000
QUESTION = "who decides what ships"
READY = "document.querySelector('{}')?.innerText && 1"


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
            _search(page, url)
            _note(page, url)
            _map(page, url)
            _review(page, url)


def _search(page: Any, url: str) -> None:
    for question in ("the first search loads the reader", QUESTION):
        page.goto(url)
        page.fill("input[type=search]", question)
        until(page, READY.format(".verdict .badge"))
    until(page, READY.format(".preview article"))
    _keep(page, "search")


def _note(page: Any, url: str) -> None:
    page.goto(f"{url}/note/The%20day%20the%20tide%20ran%20backwards")
    until(page, READY.format("main article"))
    _keep(page, "note")


def _map(page: Any, url: str) -> None:
    page.emulate_media(color_scheme="dark")
    page.goto(f"{url}/map")
    until(page, "document.querySelector('.map li a') && !document.querySelector('.map .state').innerText")
    _keep(page, "map")
    page.emulate_media(color_scheme="light")


def _review(page: Any, url: str) -> None:
    page.goto(f"{url}/review")
    until(page, READY.format("main h2"))
    _keep(page, "review")


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
