"""What one walk of a vault sees."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from co_cli.errors import VaultError
from co_cli.sources.walking import Scan, entries_of, path_of, require_vault, scan_origin
from tests.vault import Vault


def paths(vault: Vault, *exclude: str) -> list[str]:
    scan = scan_origin(str(vault.root), exclude)
    found = [path_of(folder, name) for folder, listing in scan.listings.items() for name in entries_of(listing)]
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

    scan = scan_origin(str(vault.root))

    assert scan.notes == 0
    assert sorted(scan.odd) == [
        ("memories/gone.md", "symbolic link, not followed"),
        ("memories/pipe.md", "not a regular file"),
        ("memories/secret.md", "symbolic link, not followed"),
    ]


def test_any_change_of_a_file_changes_its_listing(vault: Vault) -> None:
    file = vault.write("memories/a.md", "x")
    before = scan_origin(str(vault.root)).listings

    file.write_text("y")
    os.utime(file, ns=(1, 1))
    touched = scan_origin(str(vault.root)).listings
    replaced = vault.write("memories/new.md", "y").rename(file)
    os.utime(replaced, ns=(1, 1))

    assert before != touched
    assert touched != scan_origin(str(vault.root)).listings  # same size and time, another inode


def test_a_name_that_is_not_utf_8_survives_the_listing(vault: Vault) -> None:
    try:
        vault.path(os.fsdecode(b"memories/caf\xe9.md")).write_text("x")
    except OSError:
        pytest.skip("this file system takes UTF-8 names only")

    assert paths(vault) == [os.fsdecode(b"memories/caf\xe9.md")]


def test_a_folder_in_which_nothing_changed_has_the_very_listing_that_was_brought(vault: Vault) -> None:
    for path in ("memories/a.md", "memories/b.md", "memories/deep/c.md", "memories/picture.png", "memories/.hidden.md"):
        vault.write(path, "x")
    before = scan_origin(str(vault.root)).listings

    again = scan_origin(str(vault.root), (), before)

    assert {folder: id(listing) for folder, listing in again.listings.items()} == {
        folder: id(listing) for folder, listing in before.items()
    }
    assert again.notes == 3


def test_what_is_no_note_comes_and_goes_without_changing_a_listing(vault: Vault) -> None:
    for number in range(20):
        vault.write(f"memories/{number}.md", "x")
    before = scan_origin(str(vault.root)).listings

    for number in range(20):
        vault.write(f"memories/{number}.png", "x")
    vault.path("memories/empty").mkdir()

    assert scan_origin(str(vault.root), (), before).listings["memories"] is before["memories"]


def became_a_folder(vault: Vault) -> None:
    vault.delete("memories/7.md")
    vault.write("memories/7.md/inside.md", "x")


def became_a_link(vault: Vault) -> None:
    vault.delete("memories/7.md")
    vault.path("memories/7.md").symlink_to(vault.path("memories/8.md"))


def other_file_became_a_folder(vault: Vault) -> None:
    vault.delete("memories/other")
    vault.write("memories/other/inside.md", "x")


def renamed_in_place(vault: Vault) -> None:
    vault.path("memories/7.md").rename(vault.path("memories/seven.md"))


def renamed_to_no_note(vault: Vault) -> None:
    vault.path("memories/7.md").rename(vault.path("memories/7.txt"))


def hidden(vault: Vault) -> None:
    vault.path("memories/7.md").rename(vault.path("memories/.7.md"))


def many_of_every_kind(vault: Vault) -> None:
    for number in range(30):
        vault.write(f"memories/new-{number}.md", "x")
        vault.write(f"memories/new-{number}.txt", "x")
        vault.write(f"memories/sub-{number}/note.md", "x")
    for number in range(0, 20, 3):
        vault.delete(f"memories/{number}.md")


def touched(vault: Vault) -> None:
    os.utime(vault.path("memories/7.md"), ns=(1, 1))


def now_excluded(vault: Vault) -> None:
    vault.write(".coignore", "7.md\nsub\n")


@pytest.mark.parametrize(
    "change",
    [
        became_a_folder,
        became_a_link,
        other_file_became_a_folder,
        renamed_in_place,
        renamed_to_no_note,
        hidden,
        many_of_every_kind,
        touched,
        now_excluded,
    ],
)
def test_what_is_brought_never_changes_what_is_seen(vault: Vault, change: Callable[[Vault], None]) -> None:
    for number in range(20):
        vault.write(f"memories/{number}.md", "x")
    vault.write("memories/other", "x")
    vault.write("memories/sub/note.md", "x")
    before = scan_origin(str(vault.root)).listings

    change(vault)
    hinted, fresh = scan_origin(str(vault.root), (), before), scan_origin(str(vault.root))

    def seen(scan: Scan) -> dict[str, dict[str, int]]:
        return {folder: entries_of(listing) for folder, listing in scan.listings.items()}

    assert seen(hinted) == seen(fresh)
    assert seen(hinted) != {folder: entries_of(listing) for folder, listing in before.items()}
    assert (hinted.notes, sorted(hinted.odd)) == (fresh.notes, sorted(fresh.odd))
    assert scan_origin(str(vault.root), (), hinted.listings).listings == hinted.listings


def test_an_exclusion_that_was_lifted_is_noticed(vault: Vault) -> None:
    vault.write("memories/a.md", "x")
    vault.write("memories/b.md", "x")
    before = scan_origin(str(vault.root), ["b.md"]).listings

    assert list(entries_of(scan_origin(str(vault.root), (), before).listings["memories"])) == list(
        entries_of(scan_origin(str(vault.root)).listings["memories"])
    )


def test_a_vault_must_be_there_and_be_a_folder(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")

    with pytest.raises(VaultError, match="co init"):
        require_vault(str(tmp_path / "nowhere"))
    with pytest.raises(VaultError, match="is a file"):
        require_vault(str(tmp_path / "file"))
    assert require_vault(str(tmp_path)) == str(tmp_path.resolve())
