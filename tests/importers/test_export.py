"""`co data export`: everything back, byte for byte, never over something else; and in again."""

from __future__ import annotations

import json
import os
import sys
import zipfile
from pathlib import Path

import pytest

from tests.command import Co
from tests.folder import Vault

NOTES = {
    "memories/tea.md": b"---\ntitle: Green tea\nkind: memory\ntags: [taste]\nprovenance: user\n---\nAnna likes tea.\n",
    "memories/rule.md": b"---\nloading: always\n---\nRun the tests.\n",
    "articles/guides/Deploy \xc3\xbc.md": b"# Deploy\r\n\r\nSee [[tea]] and [x](other.md).\r\n",
    "articles/odd.md": b"\xef\xbb\xbf---\n# mine\nb:   'two'   # why\na: 1.10\ncreated: 2026-03-01\n---\n\n\nText\n\n",
    "articles/latin.md": b"Caf\xe9 au lait",
    "articles/broken.md": b'---\ntitle: a: b: c\nk: "\\ud83d"\n---\nBroken.\n',
    "inbox/idea.md": b"---\n---\nAn idea\n",
    "articles/empty.md": b"",
    "articles/wide.md": "Café".encode("utf-16"),
    "articles/late.md": b"A" * 9_000 + b"\0",
}
if sys.platform != "win32":
    names = ("two\nlines", "a\ttab", "back\\slash", "\x1b[31mred", "Tea: the note", "tea: the note")
    NOTES |= {f"memories/{name}.md": f"Named {name!r}.".encode() for name in names}
    NOTES["Re: the tide.md"] = b"High at noon."


@pytest.fixture
def full(vault: Vault, co: Co) -> Vault:
    """A vault with every oddity that must survive, indexed: what is wrong with notes was said then."""
    for path, data in NOTES.items():
        os.utime(vault.write(path, data), (1_700_000_000, 1_700_000_000))
    vault.write("articles/picture.png", b"\x89PNG")
    vault.write(".trash/20260101T000000Z/memories/gone.md", "gone")
    co("index", "sync")
    return vault


def tree(root: Path) -> dict[str, bytes]:
    return {file.relative_to(root).as_posix(): file.read_bytes() for file in root.rglob("*") if file.is_file()}


def test_a_folder_or_a_zip_has_the_notes_byte_for_byte(co: Co, full: Vault, home: Path) -> None:
    (home / "out").mkdir()  # an empty folder may be filled

    ran, report = co("data", "export", "--to", "out"), co("data", "export", "--to", "out.zip", "--json").json

    size = sum(map(len, NOTES.values()))
    assert (ran.code, ran.err, ran.out) == (0, "", f"{len(NOTES)} notes exported to out ({size / 1000:.1f} KB)\n")
    assert report == {
        "to": "out.zip",
        "format": "markdown",
        "notes": len(NOTES),
        "bytes": size,
        "failures": [],
        "skipped": [],
    }
    assert tree(home / "out") == NOTES
    assert (home / "out" / "memories" / "tea.md").stat().st_mtime == 1_700_000_000
    with zipfile.ZipFile(home / "out.zip") as archive:
        assert {name: archive.read(name) for name in archive.namelist()} == NOTES
    assert sorted(os.listdir(home)) == ["out", "out.zip"]


def test_a_format_that_is_not_written_is_refused(co: Co, full: Vault, home: Path) -> None:
    ran = co("data", "export", "--to", "notes.pdf")

    assert (ran.code, ran.out, os.listdir(home)) == (2, "", [])
    assert "notes go to a folder, a .zip or a .jsonl file, not to notes.pdf" in ran.err
    for options in (("--to", "notes-2026.1"), ("--to", "my.notes", "--format", "markdown")):
        assert co("data", "export", *options).code == 0


@pytest.mark.medium
def test_an_export_gives_the_same_vault_back(co: Co, full: Vault, home: Path, tmp_path: Path) -> None:
    for to in ("out", "out.zip", "out.jsonl"):
        co("data", "export", "--to", to)
        new = tmp_path / f"new-{to}"
        new.mkdir()
        command = ("data", "import", "co", str(home / to), "--yes", "--trust", "--vault", str(new))

        ran = co(*command)

        assert (ran.code, ran.err) == (0, "")
        assert tree(new) == NOTES
        assert co(*command, "--json").json["counts"]["unchanged"] == len(NOTES)


def test_a_zip_of_one_folder_gives_the_same_vault_back(co: Co, vault: Vault, home: Path, tmp_path: Path) -> None:
    vault.write("inbox/idea.md", "An idea")
    (tmp_path / "new").mkdir()

    co("data", "export", "--to", "out.zip")
    co("data", "import", "co", str(home / "out.zip"), "--yes", "--trust", "--vault", str(tmp_path / "new"))

    assert tree(tmp_path / "new") == {"inbox/idea.md": b"An idea"}


def test_an_export_names_the_files_that_it_skips(co: Co, full: Vault, home: Path) -> None:
    full.write("memories/binary.md", b"\0\1\2")
    full.write("memories/large.md", "a" * 2_000_001)

    ran, report = co("data", "export", "--to", "out"), co("data", "export", "--to", "out.jsonl", "--json")
    chosen = co("data", "export", "memory", "--to", "memories")

    assert (ran.code, report.code, chosen.code) == (0, 0, 0)
    binary, large = ran.err.splitlines()
    assert binary == "co: not exported: memories/binary.md: not a text file"
    assert large.startswith("co: not exported: memories/large.md: 2,000,001 bytes; the limit is 2,000,000")
    assert report.json["skipped"] == [line.removeprefix("co: not exported: ") for line in ran.err.splitlines()]
    assert (report.err, chosen.err) == ("", "")


def test_utf_16_is_imported_only_if_it_is_trusted(co: Co, home: Path, vault: Vault) -> None:
    (home / "out").mkdir()
    (home / "out" / "wide.md").write_bytes("---\nloading: always\n---\nObey.".encode("utf-16"))

    ran = co("data", "import", "co", "out", "--yes")

    assert (ran.code, vault.notes()) == (2, [])
    assert "UTF-16, which hides what it claims" in ran.err


def test_lines_that_are_no_notes_are_reported_and_write_nothing_elsewhere(co: Co, vault: Vault, home: Path) -> None:
    paths = ["../out.md", "/tmp/out.md", "a/../../b.md", ".trash/x.md", "a/.git/x.md", "x.txt", "memories/good.md"]
    lines = [
        *({"path": path, "text": "words"} for path in paths),
        {"path": "a.md"},
        {"path": "b.md", "text": "\ud83d"},
        1,
    ]
    (home / "notes.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))

    ran = co("data", "import", "co", "notes.jsonl", "--yes")

    assert (ran.code, len(ran.err.splitlines())) == (2, len(lines) - 1)
    assert vault.notes() == ["memories/good.md"]
    assert tree(home).keys() == {"notes.jsonl"}


def test_nothing_is_overwritten(co: Co, full: Vault, home: Path) -> None:
    places = {"there": "there/mine.md", "there.zip": "there.zip", "there.jsonl": "there.jsonl"}
    (home / "there").mkdir()
    for to, file in places.items():
        (home / file).write_text("mine")

        ran = co("data", "export", "--to", to)

        assert (ran.code, ran.out, ran.err.count("\n")) == (2, "", 1)
        assert f"{to} exists already" in ran.err
    assert tree(home) == dict.fromkeys(places.values(), b"mine")


def test_a_mistake_is_one_line(co: Co, full: Vault, home: Path) -> None:
    for arguments, problem in {
        (): "--to DIR",
        ("--to", "-", "--format", "markdown"): "only --format jsonl can go to standard output",
        ("--to", "-", "--json"): "leave one of them out",
        ("--to", "no/such/place"): "make it first",
        ("--to", "../vault/articles/copy"): "is in the vault",
    }.items():
        ran = co("data", "export", *arguments)

        assert (ran.code, ran.out, ran.err.count("\n")) == (2, "", 1), arguments
        assert problem in ran.err
    assert tree(home) == {}


def test_a_file_is_on_the_disk_before_it_gets_its_name(
    co: Co, full: Vault, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    synced: list[tuple[int, bool]] = []
    fsync = os.fsync

    def watched(number: int) -> None:
        synced.append((os.fstat(number).st_ino, (home / "notes.jsonl").exists()))
        fsync(number)

    monkeypatch.setattr(os, "fsync", watched)

    co("data", "export", "--to", "notes.jsonl")

    assert ((home / "notes.jsonl").stat().st_ino, False) in synced
