"""`co export`: everything back, byte for byte, and never over something else; and in again."""

from __future__ import annotations

import json
import os
import zipfile
from pathlib import Path

import pytest

from tests.command import Co
from tests.vault import Vault

NOTES = {
    "memories/tea.md": b"---\ntitle: Green tea\nkind: memory\ntags: [taste]\nprovenance: user\n---\nAnna likes tea.\n",
    "memories/rule.md": b"---\nloading: always\n---\nRun the tests.\n",
    "articles/guides/Deploy \xc3\xbc.md": b"# Deploy\r\n\r\nSee [[tea]] and [x](other.md).\r\n",
    "articles/odd.md": b"\xef\xbb\xbf---\n# mine\nb:   'two'   # why\na: 1.10\ncreated: 2026-03-01\n---\n\n\nText\n\n",
    "articles/latin.md": b"Caf\xe9 au lait",
    "articles/broken.md": b"---\ntitle: a: b: c\n---\nBroken.\n",
    "inbox/idea.md": b"---\n---\nAn idea\n",
}


@pytest.fixture
def full(vault: Vault) -> Vault:
    """A vault with every oddity that must survive."""
    for path, data in NOTES.items():
        vault.write(path, data)
        os.utime(vault.path(path), (1_700_000_000, 1_700_000_000))
    vault.write("articles/picture.png", b"\x89PNG")
    vault.write(".trash/20260101T000000Z/memories/gone.md", "gone")
    return vault


def tree(root: Path) -> dict[str, bytes]:
    return {file.relative_to(root).as_posix(): file.read_bytes() for file in root.rglob("*") if file.is_file()}


def test_a_folder_has_the_notes_byte_for_byte(co: Co, full: Vault, home: Path) -> None:
    ran = co("export", "--to", "out")

    assert (ran.code, ran.err) == (0, "")
    assert ran.out == f"7 notes exported to out ({sum(map(len, NOTES.values()))} bytes)\n"
    assert tree(home / "out") == NOTES
    assert (home / "out" / "memories" / "tea.md").stat().st_mtime == 1_700_000_000
    assert sorted(os.listdir(home)) == ["out"]


def test_a_zip_has_the_same(co: Co, full: Vault, home: Path) -> None:
    co("export", "--to", "out.zip")

    with zipfile.ZipFile(home / "out.zip") as archive:
        assert {name: archive.read(name) for name in archive.namelist()} == NOTES


def test_jsonl_has_one_object_a_note(co: Co, full: Vault) -> None:
    ran = co("export", "memory", "--tag", "taste", "--to", "-")

    assert ran.err == ""
    assert json.loads(ran.out) == {
        "ref": "memory:tea",
        "path": "memories/tea.md",
        "title": "Green tea",
        "kind": "memory",
        "body": "Anna likes tea.\n",
        "frontmatter": {"title": "Green tea", "kind": "memory", "tags": ["taste"], "provenance": "user"},
        "tags": ["taste"],
        "created": None,
        "updated": None,
        "links": [],
    }


def test_filters_choose_what_is_exported(co: Co, full: Vault, home: Path) -> None:
    co("export", "article", "--where", "created=2026-03-01", "--to", "out")

    assert list(tree(home / "out")) == ["articles/odd.md"]


@pytest.mark.parametrize("to", ["out", "out.zip", "out.jsonl"])
def test_an_export_gives_the_same_vault_back(co: Co, full: Vault, home: Path, tmp_path: Path, to: str) -> None:
    co("export", "--to", to)
    new = tmp_path / "new"
    new.mkdir()

    ran = co("import", "co", str(home / to), "--yes", "--trust", "--vault", str(new))

    assert (ran.code, ran.err) == (0, "")
    assert tree(new) == NOTES
    again = co("import", "co", str(home / to), "--yes", "--trust", "--vault", str(new), "--json")
    assert again.json["counts"]["unchanged"] == len(NOTES)


def test_without_trust_the_notes_come_back_as_somebody_elses(co: Co, full: Vault, home: Path, tmp_path: Path) -> None:
    co("export", "--to", "out")
    new = Vault(tmp_path / "new")

    ran = co("import", "co", "out", "--yes", "--vault", str(new.root))

    assert "7 notes claim to be your own words" in ran.out
    assert "if you wrote this export yourself, `--trust` keeps what it says" in ran.out
    assert "provenance: import\nimported_provenance: user\n" in new.read("memories/tea.md")
    again = co("import", "co", "out", "--vault", str(new.root), "--json")
    assert again.json["counts"]["unchanged"] == len(NOTES)


def test_a_note_that_says_something_else_here_stays(co: Co, full: Vault, home: Path) -> None:
    co("export", "--to", "out.jsonl")
    full.write("memories/tea.md", "Anna drinks coffee now.\n")
    co("forget", "memory:rule")

    ran = co("import", "co", "out.jsonl", "--yes", "--trust", "--json")

    told = {item["title"]: (item["outcome"], item["detail"].split(";")[0]) for item in ran.json["items"]}
    assert told["tea.md"] == ("skipped", "memory:tea says something else here")
    assert told["rule.md"] == ("forgotten", "it was forgotten here")
    assert full.read("memories/tea.md") == "Anna drinks coffee now.\n"

    co("import", "co", "out.jsonl", "--yes", "--trust", "--on-conflict", "overwrite")
    assert full.path("memories/tea.md").read_bytes() == NOTES["memories/tea.md"]
    assert "memories/tea.md" in co("list", "--trash").out


@pytest.mark.parametrize("to", ["there", "there.zip", "there.jsonl"])
def test_nothing_is_overwritten(co: Co, full: Vault, home: Path, to: str) -> None:
    file = home / to / "mine.md" if to == "there" else home / to
    file.parent.mkdir(exist_ok=True)
    file.write_text("mine")

    ran = co("export", "--to", to)

    assert (ran.code, ran.out, ran.err.count("\n")) == (2, "", 1)
    assert f"{to} is there already" in ran.err
    assert tree(home) == {file.relative_to(home).as_posix(): b"mine"}


def test_an_empty_folder_may_be_filled(co: Co, full: Vault, home: Path) -> None:
    (home / "empty").mkdir()

    assert co("export", "--to", "empty").code == 0
    assert tree(home / "empty") == NOTES


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        ((), "say where to: --to DIR"),
        (("--to", "-", "--format", "markdown"), "only --format jsonl can go to standard output"),
        (("--to", "-", "--json"), "leave one of them out"),
        (("--to", "no/such/place"), "make it first"),
    ],
)
def test_a_mistake_is_one_line(co: Co, full: Vault, home: Path, arguments: tuple[str, ...], problem: str) -> None:
    ran = co("export", *arguments)

    assert (ran.code, ran.out, ran.err.count("\n")) == (2, "", 1)
    assert problem in ran.err
    assert tree(home) == {}


def test_an_export_into_the_vault_is_refused(co: Co, full: Vault) -> None:
    before = full.files()

    ran = co("export", "--to", str(full.path("articles/copy")))

    assert ran.code == 2
    assert "is in the vault" in ran.err
    assert full.files() == before


def test_an_empty_vault_has_nothing_to_export(co: Co, home: Path) -> None:
    ran = co("export", "--to", "out")

    assert (ran.code, ran.out) == (1, "")
    assert not (home / "out").exists()


def test_json_tells_what_was_written(co: Co, full: Vault) -> None:
    told = co("export", "memory", "--to", "out.jsonl", "--json").json

    size = os.path.getsize("out.jsonl")
    assert told == {"to": "out.jsonl", "format": "jsonl", "notes": 2, "bytes": size, "troubles": []}
