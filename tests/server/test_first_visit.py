"""The first visit on an empty vault, what changes while a page is open, and what the page costs."""

from __future__ import annotations

import gzip
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from co_cli.entrance.knowledge_base import KnowledgeBase
from co_cli.searching import freshness
from co_cli.server.page_files import FOLDER
from co_cli.vault.tiers import own_vault
from co_cli.vault.vault import Opening
from tests.folder import Vault
from tests.server.browser import held, inspect, until, wait_for
from tests.server.conftest import Server, serving


@pytest.mark.slow
def test_an_empty_vault_offers_questions_to_the_sample_vault(
    vault: Vault, empty: Server, open_page: Callable[[str], Any]
) -> None:
    page = open_page(empty.address)
    page.wait_for_selector("text=There are no notes here yet")
    inspect(page, "first-visit")
    page.fill("input[type=search]", "how do we deploy")
    page.wait_for_selector("main.at-home", state="detached")
    page.wait_for_selector("text=There are no notes here yet")
    assert "Why not?" not in page.inner_text("main"), "nothing can be missing from an answer"

    page.click("text=who decides what ships")
    page.wait_for_selector(".hit")
    assert "Odalys" in page.inner_text(".hits")
    assert "This is a sample" in page.inner_text("#top")
    page.click("nav a:has-text('Notes')")
    page.wait_for_selector(".rows note-card a")

    page.click("text=Back to your vault")
    page.wait_for_selector("text=There are no notes here yet")
    page.click("nav a:has-text('Notes')")
    page.wait_for_selector("h1:text-is('Notes') ~ .empty")
    page.click("a.brand")
    page.wait_for_selector("text=There are no notes here yet")
    assert vault.files() == [], "the sample vault is asked and nothing is copied"
    vault.write("memories/oak.md", "Oaks live long.")
    page.wait_for_selector("note-card a")
    assert "There are no notes here yet" not in page.inner_text("main")


def test_a_vault_is_called_like_its_project_and_your_own_your_notes(tmp_path: Path, data_dir: Path) -> None:
    names: list[str] = []
    for folder in (tmp_path / "boats" / ".co-cli" / "knowledge", tmp_path / "handbook", Path(own_vault())):
        with KnowledgeBase.open(folder, data_dir, create=True, opening=Opening("web")) as kb, serving(kb) as server:
            names.append(server.client().get("/api/v1/session").json()["name"])

    assert names == ["boats", "handbook", "Your notes"]


@pytest.mark.medium
def test_the_sample_vault_cannot_be_changed(empty: Server) -> None:
    with empty.client(**{"X-Co-Vault": "sample"}) as client:
        assert client.get("/api/v1/session").json()["sample"]
        saved = client.post("/api/v1/notes", json={"content": "Mine."})
        assert (saved.status_code, saved.json()["error"]["message"]) == (403, "the sample vault cannot be changed")
        saved = client.post("/api/v1/tools/save_memory", json={"arguments": {"content": "Mine."}})
        assert saved.json()["error"]["message"].startswith("there is no tool 'save_memory' here")


@pytest.mark.slow
def test_an_open_page_shows_what_happens_to_files(
    vault: Vault, empty: Server, open_page: Callable[[str], Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(freshness, "SAFETY", 3600.0)  # or a sync would come by itself
    page = open_page(empty.address)
    page.wait_for_selector("text=There are no notes here yet")
    wait_for(lambda: empty.site.events.listening)
    vault.write("memories/Elms.md", "Elms live long.")
    page.wait_for_selector("note-card:has-text('Elms live long.')")
    vault.delete("memories/Elms.md")
    until(page, "!document.querySelector('note-card')")
    empty.kb.remember("Ashes live long.")  # indexed already when the watcher looks
    assert page.wait_for_selector("note-card:has-text('Ashes')")


def test_the_first_view_is_small_and_its_files_are_kept(server: Server, page: Any) -> None:
    page.wait_for_selector("main h1", state="attached")
    loaded = page.evaluate("performance.getEntriesByType('resource').map((one) => new URL(one.name).pathname)")
    files = {path for path in loaded if path.startswith("/page/")}
    with server.client() as client:
        answers = [client.get(path, headers={"Accept-Encoding": "gzip"}) for path in files]

    assert {one.headers["content-encoding"] for one in answers} == {"gzip"}
    assert all("immutable" in one.headers["cache-control"] for one in answers)
    assert sum(int(one.headers["content-length"]) for one in answers) < 45_000
    whole = [file for kind in ("*.js", "*.css") for file in FOLDER.rglob(kind)]
    assert sum(len(gzip.compress(file.read_bytes())) for file in whole) < 500_000


def test_a_file_under_an_old_hash_is_sent_as_it_is_now(server: Server) -> None:
    with server.client() as client:
        answers = [client.get(f"/page/{rest}") for rest in ("0123456789abcdef/parts/api.js", "parts/api.js")]

    for answer in answers:
        assert answer.text == (FOLDER / "parts" / "api.js").read_text("utf-8")
        assert answer.headers["cache-control"] == "no-cache"


def test_the_menu_is_there_before_any_script_and_nothing_that_a_view_imports_is_asked_for_later(
    server: Server, page: Any
) -> None:
    with held(page, "**/app.js"):
        page.goto(f"{server.url}/note/memory:neap-the-cat", wait_until="commit")
        page.wait_for_selector("#top nav a:has-text('Notes')")
        assert page.is_visible("main.coming .page")
    page.wait_for_selector(".prose p")

    late = page.evaluate("""() => {
        const all = performance.getEntriesByType("resource").filter((one) => one.name.endsWith(".js"));
        const end = all.find((one) => one.name.endsWith("/app.js")).responseEnd;
        return all.filter((one) => one.startTime > end).map((one) => one.name);
    }""")
    assert late == []
