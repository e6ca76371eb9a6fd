"""The first visit on an empty vault, what changes while a page is open, and what the page costs."""

from __future__ import annotations

import gzip
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from co_cli.searching import freshness
from co_cli.server.app import PAGE
from tests.server.browser import inspect, until, wait_for
from tests.server.conftest import Server
from tests.vault import Vault


def test_an_empty_vault_offers_questions_to_the_sample_vault(
    vault: Vault, empty: Server, open_page: Callable[[str], Any]
) -> None:
    page = open_page(empty.address)
    page.wait_for_selector("text=There are no notes here yet")
    inspect(page, "first-visit")

    page.click("text=who decides what ships")
    page.wait_for_selector(".hit")
    assert "Odalys" in page.inner_text(".hits")
    assert "This is a sample" in page.inner_text("#top")

    page.click("text=Back to your vault")
    page.wait_for_selector("text=There are no notes here yet")
    assert vault.files() == [], "the sample vault is asked and nothing is copied"
    vault.write("memories/oak.md", "Oaks live long.")
    page.wait_for_selector(".hit a")
    assert "There are no notes here yet" not in page.inner_text("main")


def test_the_sample_vault_cannot_be_changed(empty: Server) -> None:
    with empty.client(**{"X-Co-Vault": "sample"}) as client:
        assert client.get("/api/v1/session").json()["sample"]
        saved = client.post("/api/v1/notes", json={"content": "Mine."})
        assert (saved.status_code, saved.json()["error"]["message"]) == (403, "the sample vault cannot be changed")
        saved = client.post("/api/v1/tools/save_memory", json={"arguments": {"content": "Mine."}})
        assert saved.json()["error"]["message"].startswith("there is no tool 'save_memory' here")


def test_an_open_page_shows_what_happens_to_files(
    vault: Vault, empty: Server, open_page: Callable[[str], Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(freshness, "SAFETY", 3600.0)  # or a sync would come by itself
    page = open_page(empty.address)
    page.wait_for_selector("text=There are no notes here yet")
    wait_for(lambda: empty.site.events.listening)
    vault.write("memories/Elms.md", "Elms live long.")
    until(page, "document.querySelector('.hits')?.innerText.includes('Elms')")
    until(page, "document.querySelector('.preview article')?.innerText.includes('Elms')")
    vault.delete("memories/Elms.md")
    until(page, "!document.querySelector('.hits').innerText.includes('Elms')")
    empty.kb.remember("Ashes live long.")  # indexed already when the watcher looks
    until(page, "document.querySelector('.hits').innerText.includes('Ashes')")


def test_the_whole_page_is_small() -> None:
    files = [file for kind in ("*.js", "*.css") for file in Path(PAGE).rglob(kind)]

    assert sum(len(gzip.compress(file.read_bytes())) for file in files) < 46_000
