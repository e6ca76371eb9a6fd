"""Obsidian vaults and basic-memory projects: copies that keep their names, places and words."""

from __future__ import annotations

import os
import zipfile
from pathlib import Path

import pytest

from co_cli.entrance.knowledge_base import KnowledgeBase
from co_cli.ground.reports import Progress
from co_cli.importers.note_importer import ImportRequest, import_export
from tests.command import Co
from tests.folder import Vault
from tests.importers.conftest import ImportData
from tests.importers.exports import write_files, write_zip

FRONT = "aliases: [Home]  # mine\ntags: [Boats/Sail]\n"
BODY = "# Start\r\n\nSee [[Daily/2026-01-01|a day]] ![[knot.png]].\n"
FILES = {
    ".obsidian/app.json": "{}",
    ".trash/gone.md": "gone",
    "Start.md": f"---\n{FRONT}---\n{BODY}",
    "Daily/2026-01-01.md": "Wind from the west. Back to [[Start]].\n",
    "knot.png": "PNG",
    "board.canvas": "{}",
}


@pytest.fixture
def brain(tmp_path: Path) -> Path:
    return write_files(tmp_path / "My Brain", FILES)


def test_a_note_keeps_its_name_its_place_and_every_line(
    import_data: ImportData, co: Co, vault: Vault, brain: Path
) -> None:
    os.utime(brain / "Start.md", (1_600_000_000, 1_600_000_000))

    ran = import_data("obsidian", brain)

    assert (ran.code, ran.err) == (0, "")
    assert "  knot.png: not Markdown, so it is not copied\n" in ran.out
    assert vault.notes() == ["articles/My Brain/Daily/2026-01-01.md", "articles/My Brain/Start.md"]
    note = vault.path("articles/My Brain/Start.md")
    _, front, body = note.read_bytes().decode().split("---\n", 2)
    assert front.startswith(FRONT)
    added = [line.partition(":")[0] for line in front.removeprefix(FRONT).splitlines()]
    assert added == ["imported_from", "import_id", "import_hash", "provenance"]
    assert body == BODY
    assert note.stat().st_mtime == 1_600_000_000
    shown = co("show", "article:My Brain/Start", "--json").json
    assert (shown["aliases"], shown["tags"]) == (["Home"], ["boats/sail"])
    assert {"target": "Daily/2026-01-01", "ref": "article:My Brain/Daily/2026-01-01", "there": True} in shown["links"]


def test_an_import_ends_where_the_vault_has_as_many_notes_as_it_may_have(
    import_data: ImportData, vault: Vault, brain: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    vault.write("memories/oak.md", "Oaks live long.")
    monkeypatch.setenv("CO_MOST_NOTES", "2")

    for write in (False, True):
        ran = import_data("obsidian", brain, write=write)
        assert "this vault has 2 notes, and may have 2: forget some first" in ran.out + ran.err, ran

    assert len(vault.notes()) == 2


def test_files_that_obsidian_excludes_are_not_imported(import_data: ImportData, vault: Vault, tmp_path: Path) -> None:
    settings = '{"userIgnoreFilters": ["Templates/", "Old Stuff/"]}'
    files = {**FILES, ".obsidian/app.json": settings, "Templates/day.md": "Template.", "Old Stuff/a.md": "Old."}
    brain = write_files(tmp_path / "My Brain", files)
    with zipfile.ZipFile(tmp_path / "zipped.zip", "w") as archive:
        for name, text in files.items():
            archive.writestr(f"Zipped/{name}", text)

    for export in (brain, tmp_path / "zipped.zip"):
        assert "Templates/day.md: Obsidian's settings exclude it\n" in import_data("obsidian", export).out

    kept = ("Daily/2026-01-01.md", "Start.md")
    assert vault.notes() == [f"articles/{folder}/{name}" for folder in ("My Brain", "Zipped") for name in kept]


def test_a_note_of_basic_memory_is_identified_by_its_permalink(
    import_data: ImportData, vault: Vault, tmp_path: Path
) -> None:
    note = "---\ntitle: Coffee\npermalink: specs/coffee\n---\n- [method] Pour slowly #brewing\n- relates_to [[Beans]]\n"
    root = write_files(tmp_path / "main", {"specs/coffee.md": note})
    import_data("basic-memory", root)

    (root / "specs" / "coffee.md").rename(root / "moved.md")
    ran = import_data("basic-memory", root, "--json")

    assert ran.json["counts"]["unchanged"] == 1
    assert vault.notes() == ["articles/main/specs/coffee.md"]


def test_frontmatter_that_cannot_be_read_is_named_and_taken_over_once_it_is_fixed(
    import_data: ImportData, vault: Vault, tmp_path: Path
) -> None:
    files = {f"{number}.md": "Oaks." for number in range(9)}
    root = write_files(tmp_path / "Brain", {**files, "tea.md": "---\ntitle: Tea: green\n---\nGreen tea.\n"})

    ran = import_data("obsidian", root)

    assert "  tea.md: line 2: a second `: ` in one line; put the value in quotes; it stays in the text until" in ran.out
    assert vault.read("articles/Brain/tea.md").endswith("---\n---\ntitle: Tea: green\n---\nGreen tea.\n")
    (root / "tea.md").write_text('---\ntitle: "Tea: green"\n---\nGreen tea.\n')
    assert import_data("obsidian", root, "--json").json["counts"]["updated"] == 1
    text = vault.read("articles/Brain/tea.md")
    assert ('title: "Tea: green"\n' in text, text.endswith("---\nGreen tea.\n"), text.count("title")) == (True, True, 1)


def test_a_taken_name_is_left_alone(import_data: ImportData, vault: Vault, brain: Path) -> None:
    vault.write("articles/My Brain/start.md", "Mine.")

    ran = import_data("obsidian", brain)

    assert "there is another note at articles/My Brain/Start.md already" in ran.out
    assert vault.read("articles/My Brain/start.md") == "Mine."


def test_an_update_takes_the_new_text_byte_for_byte_and_keeps_my_fields(
    import_data: ImportData, co: Co, vault: Vault, brain: Path
) -> None:
    import_data("obsidian", brain)
    co("edit", "article:My Brain/Start", "--tag", "mine")
    (brain / "Start.md").write_bytes(b"---\ntags: [other]\n---\nCaf\xe9\r\nau lait")

    assert import_data("obsidian", brain, "--json").json["counts"]["updated"] == 1
    assert import_data("obsidian", brain, "--json").json["counts"]["unchanged"] == 2

    head, _, body = vault.path("articles/My Brain/Start.md").read_bytes().rpartition(b"---\n")
    assert body == b"Caf\xe9\r\nau lait"
    assert b"tags: [mine]\n" in head
    assert b"aliases" not in head  # removed in the export, and not changed here


def test_changed_frontmatter_is_taken_over_unless_i_changed_mine(
    import_data: ImportData, co: Co, vault: Vault, tmp_path: Path
) -> None:
    def imported(front: str) -> tuple[str, str]:
        root = write_files(tmp_path / "Brain", {"tea.md": f"---\n{front}\n---\nGreen tea.\n"})
        (item,) = import_data("obsidian", root, "--json").json["items"]
        return item["outcome"], item["detail"]

    imported("status: draft\nold: 1")
    assert imported("status: done\nrating: 5") == ("updated", "")
    text = vault.read("articles/Brain/tea.md")
    assert ("status: done" in text, "rating: 5" in text, "old:" in text) == (True, True, False)
    assert imported("status: done\nrating: 5") == ("unchanged", "")

    co("edit", "article:Brain/tea", "--tag", "mine")
    vault.write("articles/Brain/tea.md", vault.read("articles/Brain/tea.md").replace("status: done", "status: mine"))

    assert imported("status: done\nrating: 4") == ("updated", "")
    kept = "your frontmatter stays; the export has another status"
    assert imported("status: new\nlevel: 2") == ("updated", kept)
    text = vault.read("articles/Brain/tea.md")
    assert ("status: mine" in text, "tags: [mine]" in text, "level: 2" in text) == (True, True, True)
    assert "rating" not in text
    assert imported("status: new\nlevel: 2") == ("unchanged", "")


def test_a_zip_is_written_while_it_is_read(kb: KnowledgeBase, vault: Vault, tmp_path: Path) -> None:
    path = write_zip(tmp_path / "Brain.zip", {f"{name}.md": f"About {name}." for name in ("Oak", "Pear", "Yew")})
    written: dict[str, list[int]] = {}

    def count_notes(verb: str) -> Progress:
        counts = written.setdefault(verb, [])
        return lambda done, total: counts.append(len(vault.notes()))

    import_export(kb.vault, ImportRequest("obsidian", [path], write=True), count_notes)

    assert written["importing"] == [1, 2, 3]
    assert "reading" not in written


@pytest.mark.medium
def test_a_second_export_that_is_refused_costs_only_itself(co: Co, vault: Vault, tmp_path: Path) -> None:
    path = write_zip(tmp_path / "Brain.zip", {"Oak.md": "Oaks live long."})

    ran = co("data", "import", "obsidian", path, str(tmp_path / "gone.zip"), "--yes")

    assert (ran.code, vault.notes()) == (2, ["articles/Brain/Oak.md"])
    assert "gone.zip does not exist" in ran.err
