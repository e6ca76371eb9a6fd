"""An import can be repeated: no duplicates, no lost changes, and forgotten notes do not come back."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from co_cli.entrance.knowledge_base import KnowledgeBase
from co_cli.ground.errors import InvalidInputError
from co_cli.importers.note_importer import ImportRequest, import_export
from tests.command import Co
from tests.folder import Vault
from tests.importers.conftest import ImportData
from tests.importers.exports import mooring, talk, write_json

NOTE = "conversations/chatgpt/mooring-alone.md"
REF = "conversation:chatgpt/mooring-alone"


def outcome(import_data: ImportData, answer: str = "Use one long line.", *options: str) -> tuple[str, str]:
    (item,) = import_data("chatgpt", [{**mooring(answer), "update_time": 1_800_000_000}], "--json", *options).json[
        "items"
    ]
    return item["outcome"], item["detail"]


def test_the_same_export_again_changes_nothing(import_data: ImportData, vault: Vault) -> None:
    assert outcome(import_data) == ("created", "")
    before = vault.path(NOTE).stat()
    vault.path("articles/boats").mkdir()
    vault.path(NOTE).rename(vault.path("articles/boats/mooring.md"))

    assert outcome(import_data) == ("unchanged", "")
    assert vault.path("articles/boats/mooring.md").stat().st_mtime_ns == before.st_mtime_ns
    assert vault.notes() == ["articles/boats/mooring.md"]


def test_an_update_keeps_my_title_and_tags(import_data: ImportData, co: Co, vault: Vault) -> None:
    outcome(import_data)
    co("edit", REF, "--tag", "boats", "--title", "My title")

    assert outcome(import_data, "Two lines are better.") == ("updated", "")

    text = vault.read(NOTE)
    for line in ("Two lines are better.", "title: My title", "tags: [boats]", "updated: 2027-01-15T08:00:00Z"):
        assert line in text
    assert outcome(import_data, "Two lines are better.") == ("unchanged", "")


def test_a_changed_text_brings_its_title_and_fields_unless_i_changed_them(
    import_data: ImportData, co: Co, vault: Vault
) -> None:
    tea = {"id": "1", "memory": "Prefers green tea", "categories": ["food"]}
    import_data("mem0", [tea, {"id": "2", "memory": "Lives in Bergen"}])
    (ref,) = (note["ref"] for note in co("list", "--json").json if note["title"] == "Lives in Bergen")
    co("edit", ref, "--title", "Where")
    before = co("show", "memories/prefers-green-tea.md", "--json").json["metadata"]

    changed = {**tea, "memory": "Prefers black coffee", "categories": ["drinks"]}
    import_data("mem0", [changed, {"id": "2", "memory": "Lives in Oslo"}])
    after = co("show", "memories/prefers-green-tea.md", "--json").json["metadata"]

    assert (after["title"], after["category"]) == ("Prefers black coffee", "drinks")
    assert after["created"] == before["created"]
    assert "title: Where\n" in vault.read("memories/lives-in-bergen.md")
    assert "Lives in Oslo" in vault.read("memories/lives-in-bergen.md")
    import_data("chatgpt", [mooring()])
    import_data("chatgpt", [{**mooring("Two anchors."), "title": "Anchoring"}])
    assert "title: Anchoring\n" in vault.read(NOTE)


def test_a_text_that_i_changed_is_overwritten_only_on_request(import_data: ImportData, co: Co, vault: Vault) -> None:
    outcome(import_data)
    co("edit", REF, "--body", "My own summary.")
    assert outcome(import_data)[0] == "unchanged"  # nothing is new in the export

    kept, why = outcome(import_data, "Something else.")

    assert kept == "skipped"
    assert why.startswith(f"{REF} was changed here, and differs in the export; `--on-conflict overwrite`")
    assert "My own summary." in vault.read(NOTE)
    taken, where = outcome(import_data, "Something else.", "--on-conflict", "overwrite")
    assert taken == "updated"
    assert "Something else." in vault.read(NOTE)
    assert "My own summary." in vault.read(where.rpartition(" ")[2])


def test_a_forgotten_note_does_not_come_back(import_data: ImportData, co: Co, vault: Vault) -> None:
    outcome(import_data)
    co("forget", REF)

    assert outcome(import_data) == ("forgotten", f"you forgot it here; `co note restore {REF}` restores it")
    assert vault.notes() == []
    co("note", "restore", REF)
    assert outcome(import_data) == ("unchanged", "")


@pytest.mark.slow
def test_two_imports_at_once_write_each_note_once(co: Co, vault: Vault, tmp_path: Path) -> None:
    path = write_json(tmp_path / "conversations.json", [talk(f"c{n}", f"Talk {n}") for n in range(12)])
    command = [sys.executable, "-m", "co_cli", "data", "import", "chatgpt", path, "--yes"]

    running = [subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) for _ in range(2)]

    assert [process.communicate(timeout=60)[1] for process in running] == [b"", b""]
    assert len(vault.notes()) == 12


@pytest.mark.parametrize(
    ("request_", "problem"),
    [
        (ImportRequest("evernote", []), "the format must be one of obsidian, .*, not 'evernote'"),
        (ImportRequest("mem0", [], on_conflict="replace"), "on_conflict must be one of skip, .*, not 'replace'"),
    ],
)
def test_an_unknown_format_or_policy_is_refused(kb: KnowledgeBase, request_: ImportRequest, problem: str) -> None:
    with pytest.raises(InvalidInputError, match=problem):
        import_export(kb.vault, request_)
