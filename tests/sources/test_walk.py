"""What a walk lists, and which ignore file decides."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from co_cli.ground.errors import VaultError
from co_cli.sources.origin import Origin
from co_cli.sources.walk import LARGEST_IGNORE_FILE, entries_of, path_of, scan_origin, would_list
from tests.folder import Vault


def write(folder: Path, files: dict[str, str]) -> Path:
    for path, text in files.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(text)
    return folder


def paths(origin: str | Origin, *exclude: str) -> set[str]:
    scan = scan_origin(origin, exclude)
    found = {path_of(folder, name) for folder, listing in scan.listings.items() for name in entries_of(listing)}
    assert scan.notes == len(found)
    return found


def test_markdown_files_are_listed_wherever_they_are(vault: Vault) -> None:
    notes = {"memories/a.md", "articles/deep/er/b.md", "c.md", "inbox/d.markdown", "e.MD", "articles/a folder.md/f.md"}
    hidden = {".hidden.md", ".obsidian/a.md", ".trash/20260101T000000Z/c.md", "memories/.co-tmp-1"}
    write(vault.root, dict.fromkeys([*notes, *hidden, "d.txt", "e.pdf", "md"], "x"))

    assert paths(str(vault.root)) == notes
    assert scan_origin(str(vault.root)).unfinished == ["memories/"]


def test_a_coignore_file_and_the_setting_exclude_as_gitignore_would(vault: Vault) -> None:
    write(vault.root, dict.fromkeys(("a.md", "memories/b.md", "drafts/c.md"), "x"))
    everything = paths(str(vault.root))
    expected = {
        "drafts/": {"a.md", "memories/b.md"},
        "*.md": set[str](),
        "/a.md": {"drafts/c.md", "memories/b.md"},
        "memories/*\n!memories/b.md": everything,
        "# a comment\n\n": everything,
        "bin\\\na.md": {"drafts/c.md", "memories/b.md"},
    }

    seen = {text: paths(str(write(vault.root, {".coignore": text}))) for text in expected}

    assert seen == expected
    assert paths(str(write(vault.root, {".coignore": "!drafts/\n"})), "drafts/") == {"a.md", "memories/b.md"}


def test_links_are_not_followed_and_those_that_look_like_notes_are_reported(vault: Vault, tmp_path: Path) -> None:
    (tmp_path / "secret.md").write_text("secret")
    vault.path("memories/loop").symlink_to(vault.root)
    vault.path("memories/secret.md").symlink_to(tmp_path / "secret.md")
    vault.path("memories/gone.md").symlink_to(tmp_path / "nowhere.md")
    os.mkfifo(vault.path("memories/pipe.md"))

    scan = scan_origin(str(vault.root))

    assert scan.notes == 0
    assert sorted(scan.odd) == [
        ("memories/gone.md", "symbolic link, not followed"),
        ("memories/pipe.md", "not a regular file"),
        ("memories/secret.md", "symbolic link, not followed"),
    ]
    assert would_list(Origin("vault", str(vault.root)), ["memories/secret.md"]) == []


def test_a_coignore_overrides_every_gitignore_and_the_nearest_one_decides(tmp_path: Path) -> None:
    book = write(
        tmp_path / "book",
        {
            ".coignore": "!kept.log\nprivate*\ndiary*\n",
            ".gitignore": "*.log\n!diary.txt\n",
            "kept.log": "ignored by git, but not by co",
            "private.txt": "excluded",
            "diary.txt": "excluded",
            "web/.coignore": "!private.txt\n",
            "web/.gitignore": "kept.log\n!diary.txt\n!diary/\n",
            "web/kept.log": "the same here",
            "web/other.log": "excluded by git",
            "web/private.txt": "the nearer .coignore decides",
            "web/diary.txt": "excluded",
            "web/diary/day.txt": "excluded",
        },
    )
    origin = Origin("folder", str(book.resolve()), "book")

    assert paths(origin) == {"kept.log", "web/kept.log", "web/private.txt"}
    assert would_list(origin, ["kept.log", "web/diary/day.txt"]) == ["kept.log"]


def test_an_ignore_file_that_is_too_large_is_an_error_and_not_read_in_part(tmp_path: Path) -> None:
    """Its first half may lack the line that hides a diary."""
    for place in ("one", "two/deep"):
        ignore = write(tmp_path / place, {"diary.txt": "mine"}) / ".gitignore"
        origin = Origin("folder", str((tmp_path / place[:3]).resolve()), "book")
        ignore.write_text("diary.txt\n".rjust(LARGEST_IGNORE_FILE + 1, "\n"))

        with pytest.raises(VaultError, match=r"gitignore has more than 1,000,000 bytes; shorten it"):
            scan_origin(origin)

        ignore.write_text("diary.txt\n".rjust(LARGEST_IGNORE_FILE, "\n"))
        assert paths(origin) == set()
