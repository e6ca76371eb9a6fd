"""The files of a vault: what is written stays, what is forgotten can come back, and nothing outside is touched."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from co_cli.ground.errors import NoteConflictError, VaultError
from co_cli.notes.files import replace_all
from co_cli.notes.store import NoteStore
from tests.folder import Vault


@pytest.fixture
def store(vault: Vault) -> NoteStore:
    return NoteStore(str(vault.root))


def test_a_path_that_leaves_the_vault_is_refused(store: NoteStore) -> None:
    for path in ("../x.md", "/etc/passwd", "a/../../x.md", "a//b.md", "./a.md", "", "a\0b.md", "memories/.."):
        for attempt in (store.absolute, store.read, store.exists, store.trash):
            with pytest.raises(VaultError):
                attempt(path)
        with pytest.raises(VaultError):
            store.replace(path, b"", b"")


def test_many_files_are_written_together_except_those_that_the_disk_cannot_name(tmp_path: Path) -> None:
    place = tmp_path / "place"
    old, new, other = (place / name for name in ("old.md", "new.md", "folder/other.md"))
    other.parent.mkdir(parents=True)
    old.write_text("Old.")
    old.chmod(0o640)
    impossible = str(place / f"{'n' * 300}.md")

    failed = replace_all({str(old): b"Now.", impossible: b"Nowhere.", str(new): b"New.", str(other): b"Other."})

    assert list(failed) == [impossible]
    assert [file.read_text() for file in (old, new, other)] == ["Now.", "New.", "Other."]
    assert old.stat().st_mode & 0o777 == 0o640
    assert sorted(path.name for path in place.rglob("*")) == ["folder", "new.md", "old.md", "other.md"]


def test_a_link_that_leads_out_of_the_vault_is_refused(store: NoteStore, vault: Vault, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "secret.md").write_text("secret")
    (vault.root / "door").symlink_to(outside)
    (vault.root / "memories" / "secret.md").symlink_to(outside / "secret.md")

    for path in ("door/secret.md", "memories/secret.md"):
        with pytest.raises(VaultError):
            store.read(path)
    with pytest.raises(VaultError):
        store.create("door", "x", b"x")
    assert sorted(os.listdir(outside)) == ["secret.md"]


def test_nothing_is_made_where_a_vault_was(store: NoteStore, vault: Vault, tmp_path: Path) -> None:
    vault.root.rename(tmp_path / "moved")

    with pytest.raises(VaultError, match="is not there"), store.lock():
        pass

    assert not vault.root.exists()


def test_a_change_based_on_old_content_is_refused(store: NoteStore, vault: Vault) -> None:
    path = store.create("memories", "Oak", b"first")
    vault.write(path, "changed in an editor")

    with pytest.raises(NoteConflictError, match="changed meanwhile"):
        store.replace(path, b"second", based_on=b"first")

    assert vault.read(path) == "changed in an editor"


def test_a_note_has_the_permissions_that_the_person_chose(store: NoteStore, vault: Vault) -> None:
    before = os.umask(0o027)
    try:
        path = store.create("memories", "Oak", b"first")
    finally:
        os.umask(before)
    assert os.stat(vault.path(path)).st_mode & 0o777 == 0o640
    os.chmod(vault.path(path), 0o600)

    store.replace(path, b"second", based_on=b"first")

    assert vault.read(path) == "second"
    assert os.stat(vault.path(path)).st_mode & 0o777 == 0o600


def test_forgotten_and_restored_is_the_same_file(store: NoteStore, vault: Vault) -> None:
    vault.write("articles/trees/oak.md", "Oaks live long.\r\n")
    os.utime(vault.path("articles/trees/oak.md"), ns=(1, 1_700_000_000_000_000_000))

    kept = store.trash("articles/trees/oak.md")
    assert vault.notes() == []
    assert kept.startswith(".trash/")
    assert store.trashed() == [(kept, "articles/trees/oak.md")]

    store.restore(kept, "articles/trees/oak.md")
    assert vault.files() == ["articles/trees/oak.md"]
    assert vault.read("articles/trees/oak.md") == "Oaks live long.\r\n"
    assert vault.path("articles/trees/oak.md").stat().st_mtime_ns == 1_700_000_000_000_000_000
    assert os.listdir(vault.root / ".trash") == []


def test_restoring_never_overwrites_a_note_that_took_the_name(store: NoteStore, vault: Vault) -> None:
    vault.write("memories/oak.md", "old")
    store.trash("memories/oak.md")
    vault.write("memories/oak.md", "new")

    with pytest.raises(NoteConflictError, match="exists again"):
        store.restore(*store.trashed()[0])

    assert vault.read("memories/oak.md") == "new"
    assert len(store.trashed()) == 1
