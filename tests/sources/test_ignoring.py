"""Whose word counts about what is left out: the settings, then a .coignore, then a .gitignore; the nearest first."""

from __future__ import annotations

from pathlib import Path

import pytest

from co_cli.sources.ignoring import LARGEST
from tests.command import Co
from tests.vault import Vault


def listed(co: Co, source: str) -> set[str]:
    """The files that `co source tree` draws of a source."""
    [tree] = [one for one in co("source", "tree", "--json").json if one["source"] == source]
    return set(tree["files"])


def write(folder: Path, files: dict[str, str]) -> Path:
    for path, text in files.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(text)
    return folder


def test_what_a_coignore_excludes_no_gitignore_brings_back(co: Co, tmp_path: Path) -> None:
    book = write(
        tmp_path / "book",
        {
            ".coignore": "diary*\n",
            ".gitignore": "!diary.txt\n",
            "diary.txt": "mine",
            "web/.gitignore": "!diary.txt\n!diary/\n*.log\n",
            "web/diary.txt": "mine too",
            "web/diary/day.txt": "and this",
            "web/page.txt": "for all",
            "web/x.log": "git's own word counts where no other does",
        },
    )

    co("add", str(book))

    assert listed(co, "folder:book") == {"web/page.txt"}
    assert co("show", "folder:book/web/diary.txt").code == 2


def test_a_coignore_has_the_last_word_over_git_in_both_directions_and_the_nearest_of_them(
    co: Co, tmp_path: Path
) -> None:
    book = write(
        tmp_path / "book",
        {
            ".coignore": "!kept.log\nprivate*\n",
            ".gitignore": "*.log\n",
            "kept.log": "git ignores it, and co is told not to",
            "web/.gitignore": "kept.log\n",
            "web/kept.log": "here too",
            "web/other.log": "left out",
            "web/.coignore": "!private.txt\n",
            "web/private.txt": "the nearer file of the same kind decides",
            "private.txt": "left out",
        },
    )

    co("add", str(book))

    assert listed(co, "folder:book") == {"kept.log", "web/kept.log", "web/private.txt"}


def test_in_a_vault_only_the_coignore_of_its_root_counts(co: Co, vault: Vault) -> None:
    write(
        vault.root,
        {
            ".coignore": "draft*\n",
            ".gitignore": "oak.md\n",
            "memories/.coignore": "oak.md\n!draft.md\n",
            "memories/.gitignore": "oak.md\n",
            "memories/oak.md": "Oaks live long.",
            "memories/draft.md": "Not yet.",
        },
    )

    co("index", "sync")

    assert listed(co, "vault") == {"memories/oak.md"}


@pytest.mark.parametrize("place", ["", "deep"])
def test_an_ignore_file_that_is_too_large_to_be_one_is_told_and_nothing_is_read_by_half(
    co: Co, tmp_path: Path, place: str
) -> None:
    """Half of it might leave out the line that hides a diary."""
    book = write(tmp_path / "book", {"deep/diary.txt": "mine"})
    ignore = book / place / ".gitignore"
    ignore.write_text("diary.txt\n".rjust(LARGEST + 1, "\n"))

    ran = co("add", str(book))

    assert (ran.code, ran.err.count("\n")) == (2, 1)
    assert f"{ignore} has more than 1,000,000 bytes; shorten it" in ran.err
    ignore.write_text("diary.txt\n".rjust(LARGEST, "\n"))
    assert co("add", str(book)).code == 0
    assert listed(co, "folder:book") == set()
