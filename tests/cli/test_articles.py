"""`co note article add`."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.command import Co
from tests.folder import Vault


@pytest.fixture
def texts(tmp_path: Path) -> Path:
    folder = tmp_path / "texts"
    (folder / "Deep Folder").mkdir(parents=True)
    (folder / "Design Notes.md").write_bytes(b"\xef\xbb\xbf# Design\r\n\r\nPoplars line the road.\r\n")
    (folder / "Deep Folder" / "plain.txt").write_text("Willows bend.")
    (folder / "picture.png").write_bytes(b"\x89PNG\0")
    (folder / ".hidden.md").write_text("hidden")
    return folder


def test_a_file_is_copied_byte_for_byte_and_found(co: Co, vault: Vault, texts: Path) -> None:
    ran = co("note", "article", "add", str(texts / "Design Notes.md"))

    assert (ran.code, ran.out) == (0, f"{texts}/Design Notes.md  created article:design-notes\n")
    assert vault.path("articles/design-notes.md").read_bytes() == (texts / "Design Notes.md").read_bytes()
    assert co("search", "poplars", "--no-sync", "--backend", "fts5").code == 0


def test_a_folder_keeps_its_subfolders_and_leaves_out_what_is_no_text(co: Co, vault: Vault, texts: Path) -> None:
    ran = co("note", "article", "add", str(texts), "--json")

    assert {row["saved"]["ref"] for row in ran.json} == {"article:design-notes", "article:deep-folder/plain"}
    assert vault.notes() == ["articles/deep-folder/plain.md", "articles/design-notes.md"]
    again = co("note", "article", "add", str(texts), "--json").json
    assert [row["saved"]["outcome"] for row in again] == ["duplicate", "duplicate"]
    assert len(vault.notes()) == 2


def test_an_html_file_is_extracted_as_co_add_extracts_it(co: Co, vault: Vault, tmp_path: Path) -> None:
    (tmp_path / "page.html").write_text(
        "<title>Deploys</title><nav><a href='/'>Home</a></nav><article><h1>Deploys</h1>"
        "<p>Blue takes the traffic first, and always on a Tuesday morning.</p></article>"
    )
    co("add", str(tmp_path / "page.html"))
    co("note", "article", "add", str(tmp_path / "page.html"))

    added, copied = (co("show", ref, "--json").json for ref in ("folder:page/page.html", "article:page"))

    assert (
        copied["body"]
        == added["body"]
        == "# Deploys\n\nBlue takes the traffic first, and always on a Tuesday morning.\n"
    )
    assert copied["title"] == added["title"] == "Deploys"
    assert copied["metadata"]["provenance"] == "import"


def test_standard_input_becomes_an_article(co: Co, vault: Vault) -> None:
    ran = co("note", "article", "add", "-", "--title", "A page", "-t", "web", stdin="# Heading\n\nText.\n")

    assert (ran.code, ran.out) == (0, "-  created article:a-page\n")
    text = vault.read("articles/a-page.md")
    assert "kind: article\n" in text
    assert "tags: [web]\n" in text
    assert "provenance: import\n" in text


def test_files_that_cannot_be_articles_are_skipped_with_the_reason(co: Co, vault: Vault, tmp_path: Path) -> None:
    expected = {
        "empty.md": (b"", "the file is empty"),
        "noise.md": (b"\0\0\0", "not a text file"),
        "large.md": (b"x" * 2_000_001, ""),
    }
    for name, (content, _) in expected.items():
        (tmp_path / name).write_bytes(content)

    ran = co("note", "article", "add", *(str(tmp_path / name) for name in expected))

    assert [why for _, why in expected.values() if f"skipped: {why}" not in ran.out] == []
    assert (ran.code, vault.notes()) == (1, [])


def test_a_path_that_does_not_exist_is_one_line_and_adds_nothing(co: Co, vault: Vault, texts: Path) -> None:
    ran = co("note", "article", "add", str(texts), str(texts / "nowhere.md"))

    assert (ran.code, ran.err.count("\n"), "nowhere.md" in ran.err) == (2, 1, True)
    assert vault.notes() == []
    (texts / "empty").mkdir()
    assert co("note", "article", "add", str(texts / "empty")).code == 1


def test_an_article_that_was_edited_is_not_a_duplicate_of_its_file(co: Co, vault: Vault, texts: Path) -> None:
    file = str(texts / "Deep Folder" / "plain.txt")
    co("note", "article", "add", file)
    vault.write("articles/plain.md", "Now about elms.")

    assert co("note", "article", "add", file).out.endswith("created article:plain-2\n")
    assert vault.read("articles/plain-2.md") == "Willows bend."
