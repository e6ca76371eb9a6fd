"""What one walk of a vault sees."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from co_cli.errors import VaultError
from co_cli.sources.vault import entries_of, entry_of, require_vault, scan_vault
from tests.vault import Vault


def paths(vault: Vault, *exclude: str) -> list[str]:
    scan = scan_vault(str(vault.root), exclude)
    found = [
        entry_of(folder, name, state).path
        for folder, listing in scan.listings.items()
        for name, state in entries_of(listing).items()
    ]
    assert scan.notes == len(found)
    return sorted(found)


def test_markdown_files_are_notes_wherever_they_lie(vault: Vault) -> None:
    for path in (
        "memories/a.md",
        "articles/deep/er/b.md",
        "c.md",
        "inbox/d.markdown",
        "e.MD",
        "articles/a folder.md/f.md",
    ):
        vault.write(path, "x")

    assert paths(vault) == [
        "articles/a folder.md/f.md",
        "articles/deep/er/b.md",
        "c.md",
        "e.MD",
        "inbox/d.markdown",
        "memories/a.md",
    ]


def test_hidden_names_and_other_files_are_left_out(vault: Vault) -> None:
    for path in (
        ".hidden.md",
        ".obsidian/a.md",
        ".git/b.md",
        ".trash/20260101T000000Z/c.md",
        "memories/.co-tmp-1",
        "d.txt",
        "e.pdf",
        "md",
    ):
        vault.write(path, "x")

    assert paths(vault) == []


@pytest.mark.parametrize(
    ("pattern", "left"),
    [
        ("drafts/", ["a.md", "memories/b.md"]),
        ("*.md", []),
        ("/a.md", ["drafts/c.md", "memories/b.md"]),
        ("memories/*\n!memories/b.md", ["a.md", "drafts/c.md", "memories/b.md"]),
        ("# a comment\n\n", ["a.md", "drafts/c.md", "memories/b.md"]),
    ],
)
def test_a_coignore_file_excludes_as_gitignore_would(vault: Vault, pattern: str, left: list[str]) -> None:
    for path in ("a.md", "memories/b.md", "drafts/c.md"):
        vault.write(path, "x")
    vault.write(".coignore", pattern)

    assert paths(vault) == left


def test_the_setting_excludes_too(vault: Vault) -> None:
    vault.write("a.md", "x")
    vault.write("drafts/c.md", "x")

    assert paths(vault, "drafts/") == ["a.md"]


def test_links_are_not_followed_and_links_that_look_like_notes_are_reported(vault: Vault, tmp_path: Path) -> None:
    (tmp_path / "secret.md").write_text("secret")
    vault.path("memories/loop").symlink_to(vault.root)
    vault.path("memories/secret.md").symlink_to(tmp_path / "secret.md")
    vault.path("memories/gone.md").symlink_to(tmp_path / "nowhere.md")
    os.mkfifo(vault.path("memories/pipe.md"))

    scan = scan_vault(str(vault.root))

    assert scan.notes == 0
    assert sorted(scan.odd) == [
        ("memories/gone.md", "symbolic link, not followed"),
        ("memories/pipe.md", "not a regular file"),
        ("memories/secret.md", "symbolic link, not followed"),
    ]


def test_any_change_of_a_file_changes_its_listing(vault: Vault) -> None:
    file = vault.write("memories/a.md", "x")
    before = scan_vault(str(vault.root)).listings

    file.write_text("y")
    os.utime(file, ns=(1, 1))
    touched = scan_vault(str(vault.root)).listings
    replaced = vault.write("memories/new.md", "y").rename(file)
    os.utime(replaced, ns=(1, 1))

    assert before != touched
    assert touched != scan_vault(str(vault.root)).listings  # same size and time, another inode


def test_a_name_that_is_not_utf_8_survives_the_listing(vault: Vault) -> None:
    try:
        vault.path(os.fsdecode(b"memories/caf\xe9.md")).write_text("x")
    except OSError:
        pytest.skip("this file system takes UTF-8 names only")

    assert paths(vault) == [os.fsdecode(b"memories/caf\xe9.md")]


def test_a_vault_must_be_there_and_be_a_folder(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")

    with pytest.raises(VaultError, match="co init"):
        require_vault(str(tmp_path / "nowhere"))
    with pytest.raises(VaultError, match="is a file"):
        require_vault(str(tmp_path / "file"))
    assert require_vault(str(tmp_path)) == str(tmp_path.resolve())
