"""The documentation site builds without a warning, its links lead somewhere, and it loads nothing from elsewhere."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

import pytest

from tests.documentation_site import CONFIGURATION, DOCS, build_site
from tests.house.package import ROOT

ADDRESSES = {"a": "href", "link": "href", "script": "src", "img": "src", "source": "src", "iframe": "src"}

pytestmark = pytest.mark.skipif(not CONFIGURATION.exists(), reason="an installed package has no docs")


class Page(HTMLParser):
    """The links of a page and of what it loads, and the anchors in it."""

    def __init__(self, file: Path) -> None:
        super().__init__()
        self.links: list[str] = []
        self.loaded: list[str] = []
        self.anchors: set[str] = set()
        self.feed(file.read_text("utf-8"))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        found = {name: value or "" for name, value in attrs}
        self.anchors |= {found[key] for key in ("id", "name") if key in found}
        if (address := found.get(ADDRESSES.get(tag, ""))) is not None:
            (self.links if tag == "a" else self.loaded).append(address)


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build_site(tmp_path_factory.mktemp("site"))


@pytest.mark.slow
def test_every_link_of_the_site_leads_to_a_page_and_an_anchor(site: Path) -> None:
    pages = {file: Page(file) for file in site.rglob("*.html") if file.name != "404.html"}
    broken: list[str] = []
    checked = 0
    for file, page in pages.items():
        for address in (*page.links, *page.loaded):
            parts = urlsplit(address)
            if parts.scheme or parts.netloc:
                continue
            target = (file.parent / unquote(parts.path)).resolve() if parts.path else file
            target = target / "index.html" if target.is_dir() else target
            there = target.is_file() and (not parts.fragment or unquote(parts.fragment) in pages[target].anchors)
            broken += [] if there else [f"{file.relative_to(site)}: {address}"]
            checked += 1
    assert broken == []
    assert checked > 1000


def test_the_site_loads_nothing_from_elsewhere(site: Path) -> None:
    outside = {
        address for file in site.rglob("*.html") for address in Page(file).loaded if urlsplit(address).netloc != ""
    }
    assert outside == set()


def test_the_site_has_the_icon_of_the_page() -> None:
    assert (DOCS / "icon.svg").read_bytes() == (ROOT / "server/page/icon.svg").read_bytes()


def test_tables_show_no_escapes(site: Path) -> None:
    """GitHub shows `\\|` in a table as `|`; here it would stay."""
    assert [file for file in site.rglob("*.html") if "\\|" in file.read_text("utf-8")] == []


def test_every_page_is_in_the_navigation_once() -> None:
    def pages(entry: Any) -> Iterator[str]:
        if isinstance(entry, str):
            yield entry
        for inner in entry.values() if isinstance(entry, dict) else entry if isinstance(entry, list) else ():
            yield from pages(inner)

    navigation = tomllib.loads(CONFIGURATION.read_text("utf-8"))["project"]["nav"]

    assert sorted(pages(navigation)) == sorted(file.relative_to(DOCS).as_posix() for file in DOCS.rglob("*.md"))
