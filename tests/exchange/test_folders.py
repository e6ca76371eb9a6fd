"""Obsidian vaults and basic-memory projects: copies that keep their names, their places and their words."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.command import Co
from tests.exchange.exports import write_zip
from tests.vault import Vault

START = (
    "---\naliases: [Home]  # mine\ntags: [Boats/Sail]\n---\n"
    "# Start\r\n\nSee [[Daily/2026-01-01|a day]] ![[knot.png]].\n"
)


@pytest.fixture
def brain(tmp_path: Path) -> Path:
    """A vault of Obsidian."""
    root = tmp_path / "My Brain"
    for folder in (".obsidian", ".trash", "Daily"):
        (root / folder).mkdir(parents=True)
    (root / ".obsidian" / "app.json").write_text("{}")
    (root / ".trash" / "gone.md").write_text("gone")
    (root / "Start.md").write_bytes(START.encode())
    (root / "Daily" / "2026-01-01.md").write_text("Wind from the west. Back to [[Start]].\n")
    (root / "knot.png").write_bytes(b"\x89PNG")
    (root / "board.canvas").write_text("{}")
    return root


def lines_added(before: str, after: str) -> list[str]:
    """The lines that are new; every other one is there as it was, in its order."""
    old, added = iter(before.splitlines(keepends=True)), list[str]()
    expected = next(old, None)
    for line in after.splitlines(keepends=True):
        if line == expected:
            expected = next(old, None)
        else:
            added.append(line.partition(":")[0].strip())
    assert expected is None, f"{expected!r} is lost"
    return added


def test_a_note_of_obsidian_keeps_its_name_its_place_and_every_line(co: Co, vault: Vault, brain: Path) -> None:
    os.utime(brain / "Start.md", (1_600_000_000, 1_600_000_000))

    ran = co("import", "obsidian", str(brain), "--yes")

    assert (ran.code, ran.err) == (0, "")
    assert "Not copied, because they are no Markdown: 1 .canvas, 1 .png." in ran.out
    assert vault.notes() == ["articles/My Brain/Daily/2026-01-01.md", "articles/My Brain/Start.md"]
    text = vault.path("articles/My Brain/Start.md").read_bytes().decode()
    assert lines_added(START, text) == ["imported_from", "import_id", "import_hash", "provenance"]
    assert text.partition("---\n# Start")[2] == START.partition("---\n# Start")[2]
    assert vault.path("articles/My Brain/Start.md").stat().st_mtime == 1_600_000_000


def test_links_tags_and_aliases_of_a_copied_note_are_understood(co: Co, brain: Path) -> None:
    co("import", "obsidian", str(brain), "--yes")

    shown = co("show", "article:My Brain/Start", "--json").json

    assert shown["aliases"] == ["Home"]
    assert shown["tags"] == ["boats/sail"]
    assert {"target": "Daily/2026-01-01", "ref": "article:My Brain/Daily/2026-01-01", "there": True} in shown["links"]


def test_a_zip_of_the_vault_is_the_vault(co: Co, vault: Vault, tmp_path: Path, brain: Path) -> None:
    path = write_zip(tmp_path / "brain.zip", {"My Brain/Start.md": START, "My Brain/.obsidian/app.json": "{}"})
    co("import", "obsidian", str(brain), "--yes")

    ran = co("import", "obsidian", path, "--yes", "--json")

    assert ran.json["counts"]["unchanged"] == 1
    assert ran.json["counts"]["created"] == 0


def test_a_note_of_basic_memory_is_known_by_its_permalink(co: Co, vault: Vault, tmp_path: Path) -> None:
    root = tmp_path / "main"
    (root / "specs").mkdir(parents=True)
    note = (
        "---\ntitle: Coffee\ntype: note\npermalink: specs/coffee\n---\n"
        "- [method] Pour slowly #brewing (my taste)\n- relates_to [[Beans]]\n"
    )
    (root / "specs" / "coffee.md").write_text(note)
    co("import", "basic-memory", str(root), "--yes")

    (root / "specs" / "coffee.md").rename(root / "moved.md")
    ran = co("import", "basic-memory", str(root), "--yes", "--json")

    assert ran.json["counts"] == {
        "created": 0, "updated": 0, "unchanged": 1, "skipped": 0, "forgotten": 0, "failed": 0
    }  # fmt: skip
    assert vault.notes() == ["articles/main/specs/coffee.md"]
    shown = co("show", "article:main/specs/coffee", "--json").json
    assert shown["tags"] == ["brewing"]
    assert [link["target"] for link in shown["links"]] == ["Beans"]


def test_a_name_that_is_taken_here_is_left_alone(co: Co, vault: Vault, brain: Path) -> None:
    vault.write("articles/My Brain/start.md", "Mine.")

    ran = co("import", "obsidian", str(brain), "--yes")

    assert "there is another note at articles/My Brain/Start.md already" in ran.out
    assert vault.read("articles/My Brain/start.md") == "Mine."


def test_bytes_that_are_no_utf8_survive_and_utf16_is_told(co: Co, vault: Vault, brain: Path) -> None:
    (brain / "latin.md").write_bytes(b"Caf\xe9 au lait\n")
    (brain / "wide.md").write_bytes("wide".encode("utf-16"))

    ran = co("import", "obsidian", str(brain), "--yes")

    assert ran.code == 2
    assert ran.err == "co: wide.md: UTF-16; save it as UTF-8 there, then import it again\n"
    assert vault.path("articles/My Brain/latin.md").read_bytes().endswith(b"---\nCaf\xe9 au lait\n")


def test_a_folder_without_notes_and_the_vault_itself_are_refused(co: Co, vault: Vault, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()

    nothing = co("import", "obsidian", str(tmp_path / "empty"))
    itself = co("import", "obsidian", str(vault.path("articles")))

    assert (nothing.code, nothing.out) == (2, "")
    assert "no notes in it (.md)" in nothing.err
    assert (itself.code, itself.err.count("\n")) == (2, 1)
    assert "is the vault itself, or lies in it" in itself.err
