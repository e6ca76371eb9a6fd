"""The documentation site in a browser: with versions, searched, on a phone, and without anything from elsewhere."""

from __future__ import annotations

import functools
import json
import shutil
import threading
from collections.abc import Callable, Iterator
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from tests.documentation_site import CONFIGURATION, build_site

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not CONFIGURATION.exists(), reason="an installed package has no docs"),
]
PHONE = {"width": 390, "height": 800}


class QuietFiles(SimpleHTTPRequestHandler):
    def log_message(self, *_: Any) -> None:
        pass


@pytest.fixture(scope="module")
def published(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a site with two versions, laid out as a release does it."""
    root = tmp_path_factory.mktemp("published")
    site = build_site(tmp_path_factory.mktemp("built"))
    for version in ("0.1", "0.2"):
        shutil.copytree(site, root / version)
    versions = [{"version": version, "title": version, "aliases": []} for version in ("0.2", "0.1")]
    (root / "versions.json").write_text(json.dumps(versions))
    server = ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(QuietFiles, directory=str(root)))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}/"
    server.shutdown()
    server.server_close()


def test_a_reader_can_choose_a_version_and_search(published: str, open_page: Callable[[str], Any]) -> None:
    page = open_page(f"{published}0.1/")
    page.locator(".md-version__link").first.wait_for(state="attached")
    assert page.locator(".md-version__link").evaluate_all("links => links.map(link => link.innerText)") == [
        "0.2",
        "0.1",
    ]

    page.keyboard.press("Control+k")
    page.keyboard.type("claude-mem")
    page.locator("[role=option] >> nth=0").filter(has_text="claude-mem").wait_for()  # not of the letters so far
    page.keyboard.press("Enter")
    page.wait_for_url(f"{published}0.1/coming-from/**#claude-mem")
    page.locator(".md-version__link").first.wait_for(state="attached")  # its scripts run: until then, p turns a page
    page.keyboard.press("Control+k")
    page.locator("input:focus").wait_for()
    page.keyboard.press("Control+a")
    page.keyboard.type("co source skipped")
    page.locator("[role=option]").filter(has_text="Commands").first.wait_for()  # a command is found in the reference


def test_no_page_is_wider_than_a_phone(published: str, open_page: Callable[[str], Any]) -> None:
    page = open_page(f"{published}0.2/")
    page.set_viewport_size(PHONE)
    wide: list[str] = []
    for path in ("", "tour/", "coming-from/", "reference/commands/", "benchmarks/", "guides/team/"):
        page.goto(f"{published}0.2/{path}")
        wide += [path] if page.evaluate("document.documentElement.scrollWidth > innerWidth") else []
    assert wide == []
