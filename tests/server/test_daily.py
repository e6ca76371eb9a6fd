"""Today's note, and thoughts that are captured from anywhere."""

from __future__ import annotations

import json
from datetime import date
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient

from co_cli.entrance.knowledge_base import KnowledgeBase
from tests.server.api import ask
from tests.server.browser import inspect, until, wait_for
from tests.server.conftest import Server

DAY = "2026-11-18"


def daily_settings(root: Path, **settings: str) -> None:
    (root / ".obsidian").mkdir(parents=True)
    (root / ".obsidian/daily-notes.json").write_text(json.dumps(settings))


def test_todays_note_is_where_the_vault_keeps_daily_notes(api: TestClient, sample: KnowledgeBase) -> None:
    root = Path(sample.root)
    first = ask(api, "POST", "/daily", day=DAY, line="Called the  printer.")
    again = ask(api, "POST", "/daily", day=DAY, line="It is late.")

    assert (first["path"], first["created"], again["created"]) == (f"articles/daily/{DAY}.md", True, False)
    assert (root / first["path"]).read_text() == f"# {DAY}\n\n- Called the printer.\n- It is late.\n"
    (root / "articles/log").mkdir()
    (root / "articles/daily" / f"{DAY}.md").rename(root / "articles/log/2026-11-17.md")
    (root / "articles/old").mkdir()
    (root / "articles/old/2020-01-01.md").write_text("Happy new year.")
    sample.sync()
    assert ask(api, "POST", "/daily", day=DAY)["path"] == f"articles/log/{DAY}.md", "next to the newest"


def test_obsidians_settings_and_template_are_used_and_an_added_folder_is_asked_for(
    api: TestClient, sample: KnowledgeBase, tmp_path: Path
) -> None:
    brain = tmp_path / "brain"
    daily_settings(brain, folder="Log", format="YYYY/MM-MMMM/[day] DD ddd", template="Templates/Day")
    (brain / "Templates").mkdir()
    (brain / "Templates/Day.md").write_text("# {{title}}\n\nOn {{date:D.M.}} {{date:HH:mm}}\n")
    sample.sources.add(str(brain))
    path = "Log/2026/11-November/day 18 Wed.md"

    asked = ask(api, "POST", "/daily", day=DAY, line="Not yet.")
    assert (asked["asks"], asked["path"], (brain / path).exists()) == ("obsidian:brain", path, False)
    ask(api, "POST", "/daily", day=DAY, line="Now.", confirmed=True)

    assert (brain / path).read_text() == "# day 18 Wed\n\nOn 18.11. {{date:HH:mm}}\n\n- Now.\n"
    daily_settings(Path(sample.root), folder="../elsewhere")
    assert ask(api, "POST", "/daily", day=DAY)["path"] == path, "a folder outside of the vault is not used"


@pytest.mark.parametrize(
    ("form", "day", "name"),
    [
        ("YYYYMMDD", DAY, "20261118"),
        ("dddd Do MMMM", "2026-11-22", "Sunday 22nd November"),
        ("Do_D, dd", "2026-11-11", "11th_11, We"),
        ("GGGG-[W]WW [at] W", "2027-01-03", "2026-W53 at 53"),
        ("DD.MM.YY", DAY, "18.11.26"),
    ],
)
def test_a_date_is_written_as_obsidian_writes_it(
    api: TestClient, sample: KnowledgeBase, form: str, day: str, name: str
) -> None:
    daily_settings(Path(sample.root), folder="Log", format=form)

    assert ask(api, "POST", "/daily", day=day)["path"] == f"Log/{name}.md"


@pytest.mark.parametrize("form", ["gggg-[W]ww", "YYYY-MM-DD HH:mm", "Y-[Q]Q"])
def test_a_format_that_needs_more_than_a_date_is_named(api: TestClient, sample: KnowledgeBase, form: str) -> None:
    daily_settings(Path(sample.root), format=form)
    before = [*Path(sample.root).rglob("*.md")]

    refused = api.post("/api/v1/daily", json={"day": DAY})

    assert refused.status_code == 400
    assert f"`{form}`; co knows `YYYY`" in refused.json()["error"]["message"]
    assert [*Path(sample.root).rglob("*.md")] == before


@pytest.mark.parametrize("broken", ["{", "[]"])
def test_settings_that_cannot_be_read_are_as_none(api: TestClient, sample: KnowledgeBase, broken: str) -> None:
    daily_settings(Path(sample.root))
    Path(sample.root, ".obsidian/daily-notes.json").write_text(broken)

    assert ask(api, "POST", "/daily", day=DAY)["path"] == f"articles/daily/{DAY}.md"


def test_a_thought_is_captured_from_anywhere_and_today_opens_with_a_key(page: Any, server: Server) -> None:
    page.wait_for_selector("note-card")
    page.keyboard.type("in a field")
    page.keyboard.press("Control+Shift+K")
    page.keyboard.type("Ring the")  # also while the dialog is loaded
    page.wait_for_selector("dialog textarea:focus")
    inspect(page, "capture")
    page.keyboard.type(" harbour")
    page.keyboard.press("Escape")
    page.keyboard.press("Control+Shift+K")
    page.wait_for_selector("dialog textarea:focus")
    page.keyboard.type(" master")
    page.keyboard.press("Enter")
    page.wait_for_selector("co-toast:has-text('Added to today')")
    today = page.evaluate("new Date().toLocaleDateString('sv')")
    assert date.fromisoformat(today)
    file = Path(server.kb.root, f"articles/daily/{today}.md")
    assert file.read_text().endswith("- Ring the harbour master\n")

    page.keyboard.press("Control+Shift+K")
    page.wait_for_selector("dialog textarea:focus")
    page.keyboard.type("Gulls steal sandwiches at the quay.")
    page.keyboard.press("Control+Enter")
    page.wait_for_selector("co-toast:has-text('Saved as a memory')")
    wait_for(lambda: server.kb.search("gulls steal sandwiches", read=False).hits[0].source == "memory")
    page.click("nav a:has-text('Notes')")
    page.wait_for_selector(".rows note-card")
    page.keyboard.press("t")
    page.wait_for_selector("code-editor .cm-content:focus")
    until(page, "document.querySelector('code-editor').value.includes('Ring the harbour master')")


def test_before_todays_note_is_created_in_an_added_folder_somebody_is_asked(
    page: Any, server: Server, tmp_path: Path
) -> None:
    brain = tmp_path / "brain"
    daily_settings(brain, folder="Log")
    server.kb.sources.add(str(brain))
    page.click("nav a:has-text('Notes')")
    page.wait_for_selector(".rows note-card")
    page.keyboard.press("t")
    page.wait_for_selector("dialog:has-text('Obsidian keeps daily notes in the added folder')")
    assert not (brain / "Log").exists()
    page.click("dialog button:text-is('Create it')")
    wait_for(lambda: [*brain.glob("Log/*.md")], lambda: page.inner_text("body"))
