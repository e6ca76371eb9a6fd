"""A drive that is not mounted looks like an empty folder: that is not the same as deleting everything."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from co_cli.entrance.knowledge_base import KnowledgeBase
from co_cli.ground.errors import UnknownRefError, VaultError
from co_cli.index import sync
from tests.command import Co
from tests.folder import Vault
from tests.trouble.file_systems import mount, unmount

TREES = [f"tree{number:02}" for number in range(24)]


def plant(vault: Vault, names: list[str] = TREES) -> None:
    for name in names:
        vault.write(f"memories/{name}.md", f"The {name} stands in the yard.")


def found(kb: KnowledgeBase, name: str) -> list[str]:
    return [hit.ref for hit in kb.search(name, backend="fts5").hits]


@pytest.fixture
def drive(tmp_path: Path) -> Path:
    """A vault on a drive of its own, mounted at the place where the others expect theirs."""
    kept = Vault(tmp_path / "drive")
    plant(kept)
    place = tmp_path / "vault"
    place.mkdir(exist_ok=True)
    return kept.root


def test_a_vault_that_is_not_mounted_keeps_its_notes_and_is_reported_in_one_line(
    co: Co, drive: Path, tmp_path: Path
) -> None:
    place = tmp_path / "vault"
    shutil.rmtree(place)
    place.mkdir()
    mount("--bind", str(drive), str(place))
    try:
        assert co("index", "sync").code == 0
    finally:
        unmount(place)

    searched, again = co("search", "tree07"), co("search", "tree07")
    saved, rebuilt = co("remember", "Elms fall ill."), co("index", "rebuild")

    assert "memory:tree07" in searched.out
    assert "missing" in searched.out
    assert "24 notes" in searched.err
    assert searched.err.count("\n") == 1
    assert again.err == "", "said once"
    for refused in (saved, rebuilt):
        assert (refused.code, refused.err.count("\n")) == (2, 1)
        assert "is its drive mounted?" in refused.err
    assert list(place.iterdir()) == [], "nothing was written below the drive's place"
    assert "24 notes are kept" in co("doctor").out
    mount("--bind", str(drive), str(place))
    try:
        ran = co("index", "sync", "--json").json
        assert (len(ran["kept"]), ran["removed"]) == (0, [])
        assert "missing" not in co("search", "tree07").out
        assert co("remember", "Elms fall ill.").code == 0
    finally:
        unmount(place)


def test_a_vault_that_is_unmounted_during_a_sync_keeps_its_rows(
    drive: Path, data_dir: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sync, "BATCH", 20)
    place = tmp_path / "vault"
    mount("--bind", str(drive), str(place))
    with KnowledgeBase.open(place, data_dir) as kb:
        kb.sync()
        for number in range(30):  # two batches, and the drive goes after the first
            (drive / "memories" / f"new{number}.md").write_text(f"Number {number} is new.")
        gone: list[int] = []

        def pull(done: int, total: int) -> None:
            if not gone:
                gone.append(done)
                unmount(place)

        report = kb.sync(pull)

        assert report.removed == []
        assert len(report.skipped) >= 30 - len(report.added) > 0
        for number in range(2):
            assert found(kb, "tree07") == ["memory:tree07"], number
            kb.sync()
        mount("--bind", str(drive), str(place))
        try:
            kb.sync()
            assert kb.index.notes.missing() == []
            assert kb.index.notes.state().notes == len(TREES) + 30
        finally:
            unmount(place)


def test_most_notes_gone_at_once_are_kept_until_somebody_says_so(co: Co, vault: Vault, kb: KnowledgeBase) -> None:
    plant(vault)
    kb.sync()
    for name in TREES[:15]:
        vault.delete(f"memories/{name}.md")

    report = kb.sync()

    assert (len(report.kept), report.removed) == (15, [])
    assert found(kb, "tree03") == ["memory:tree03"]
    plant(vault, [f"elm{number}" for number in range(40)])
    assert kb.sync().removed == [], "that there are many others now does not make them deleted"
    assert found(kb, "tree03") == ["memory:tree03"]
    plant(vault, TREES[:5])
    assert kb.sync().removed == []
    assert len(kb.index.notes.missing()) == 10
    dropped = co("index", "sync", "--drop-missing", "--json").json
    assert sorted(dropped["removed"]) == [f"memories/{name}.md" for name in TREES[5:15]]
    assert found(kb, "tree07") == []
    assert found(kb, "tree03") == ["memory:tree03"]


def test_a_few_notes_and_a_smaller_part_are_deleted_as_ever(vault: Vault, kb: KnowledgeBase) -> None:
    plant(vault)
    kb.sync()
    for name in TREES[:11]:
        vault.delete(f"memories/{name}.md")
    assert len(kb.sync().removed) == 11

    for name in TREES[11:20]:
        vault.delete(f"memories/{name}.md")
    assert len(kb.sync().removed) == 9, "fewer than ten are deleted by hand"


def test_all_notes_of_a_small_vault_gone_at_once_are_kept_too(vault: Vault, kb: KnowledgeBase) -> None:
    plant(vault, TREES[:2])
    kb.sync()
    for name in TREES[:2]:
        vault.delete(f"memories/{name}.md")

    report = kb.sync()

    assert (len(report.kept), report.removed) == (2, [])
    assert found(kb, "tree01") == ["memory:tree01"]
    assert len(kb.sync(drop_missing=True).removed) == 2
    assert kb.remember("Elms fall ill.").outcome == "created"


def test_a_note_without_its_file_is_said_to_be_missing_by_whatever_name(co: Co, vault: Vault) -> None:
    plant(vault, TREES[:3])
    co("index", "sync")
    for name in TREES[:3]:
        vault.delete(f"memories/{name}.md")

    for command in (("show", "memory:tree01"), ("show", "TREE01"), ("forget", "memories/tree01.md")):
        ran = co(*command)
        told = ran.err.splitlines()[-1]
        file = vault.root / "memories" / "tree01.md"
        assert ran.code == 3
        assert told.startswith(f"co: memory:tree01 has no file: {file} is missing since")
        assert "co index sync --drop-missing" in told
    assert [("missing" in row) for row in co("list").out.splitlines()] == [True, True, True]
    assert co("index", "status", "--json").json["missing"] == 3


def test_a_note_of_a_vault_that_is_gone_is_not_called_unknown(vault: Vault, kb: KnowledgeBase) -> None:
    plant(vault, TREES[:3])
    kb.sync()
    shutil.rmtree(vault.root)

    with pytest.raises(VaultError, match="is not there: was it moved"):
        kb.note("memory:tree01")
    with pytest.raises(UnknownRefError):
        kb.note("memory:elm")


def test_notes_that_only_moved_or_were_excluded_did_not_vanish(vault: Vault, kb: KnowledgeBase) -> None:
    plant(vault)
    kb.sync()
    vault.path("memories").rename(vault.path("articles/trees"))
    vault.delete("articles/trees/tree00.md")
    report = kb.sync()
    assert (len(report.moved), report.removed, report.kept) == (23, ["memories/tree00.md"], ())

    vault.write(".coignore", "articles/\n")
    report = kb.sync()
    assert (len(report.removed), report.kept) == (23, ())
