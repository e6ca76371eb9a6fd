"""`co index verify` compares the index with the files, and repairs what differs."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from co_cli.entrance.knowledge_base import KnowledgeBase
from co_cli.ground.values import content_hash
from co_cli.index.stored import SyncState
from co_cli.sources.walk import scan_origin
from tests.command import Co
from tests.damage import VECTOR_DAMAGE
from tests.folder import Vault

Change = Callable[..., None]


@pytest.fixture
def change(vault: Vault, data_dir: Path) -> Change:
    """Change rows of search.db."""

    def change(statement: str, *values: str) -> None:
        with KnowledgeBase.open(vault.root, data_dir) as kb, kb.engine.database.writing() as connection:
            connection.execute(statement, values)

    return change


@pytest.fixture
def trees(co: Co, vault: Vault) -> Vault:
    vault.write("memories/oak.md", "---\ntitle: Oaks\naliases: [quercus]\n---\nOaks live for centuries. See [[elm]].")
    vault.write("memories/elm.md", "The elm in the park fell ill.")
    vault.write("articles/trees.md", "# Trees\n\nTrees are tall.\n\n## Bushes\n\nBushes are small.\n")
    vault.write("memories/broken.md", b"\x00\x01\xff" * 40)
    co("index", "sync")
    return vault


def test_verify_shows_counts_and_hashes_of_an_index_that_agrees(co: Co, trees: Vault) -> None:
    ran, told = co("index", "verify"), co("index", "verify", "--json")

    assert ran.code == told.code == 0
    [part] = told.json["origins"]
    assert (part["files"], part["notes"], part["passages"]) == (3, 3, 4)
    assert part["skipped"] == 1
    lines = [
        f"{path}\0{content_hash(trees.path(path).read_bytes())}\n" for path in trees.notes() if "broken" not in path
    ]
    assert part["of_files"] == part["of_index"] == hashlib.sha256("".join(sorted(lines)).encode()).hexdigest()
    assert f"files {part['of_files'][:16]} = index {part['of_index'][:16]}" in ran.out
    assert ran.out.splitlines()[-1] == "Index and files agree."


DRIFT = {
    "a note's row": ("delete from docs where path = 'memories/oak.md'", "memories/oak.md"),
    "a note's hash": ("update docs set hash = 'x' where path = 'memories/oak.md'", "memories/oak.md"),
    "a title": ("update docs set title = 'Zebra' where path = 'memories/oak.md'", "fields"),
    "a passage's text": ("update passages set body = 'Zebra.' where body like 'Oaks%'", "passages"),
    "a passage": ("delete from passages where heading = 'Bushes' or body like '%small%'", "articles/trees.md"),
    "a note without a file": (
        "insert into knowledge_files (vault_id, path, hash) select id, 'memories/zebra.md', 'x' from vaults",
        "no such file",
    ),
    "the count": ("update vaults set passages = passages + 1", "5 are counted"),
    "a word": ("delete from docs_fts where rowid = 1", "3 have words"),
    "a vector's place": (VECTOR_DAMAGE["a place that does not exist"], "docs_vec"),
}


@pytest.mark.parametrize(("damage", "told"), DRIFT.values(), ids=DRIFT)
def test_verify_finds_and_repairs_what_differs(co: Co, trees: Vault, change: Change, damage: str, told: str) -> None:
    before = {path: trees.path(path).read_bytes() for path in trees.notes()}
    change(damage)

    ran = co("index", "verify")

    assert ran.code == 3
    assert told in ran.out
    assert ran.out.splitlines()[-1].startswith("The index differs from the files")

    repaired = co("index", "verify", "--repair")
    assert (repaired.code, repaired.out.splitlines()[-1]) == (0, "Repaired: index and files agree.")
    assert co("index", "verify").code == 0
    assert {path: trees.path(path).read_bytes() for path in trees.notes()} == before


def test_an_edit_that_left_no_trace_in_file_times_is_found(co: Co, kb: KnowledgeBase, trees: Vault) -> None:
    co("index", "sync")
    with trees.path("memories/elm.md").open("r+b") as stream:
        stream.write(b"One")
    with kb.engine.writing() as writer:  # as on a file system without modification times
        listings = scan_origin(kb.index.origin).listings
        writer.finish_sync(writer.add_origin(kb.index.origin), SyncState(time.time(), listings, {}, {}, ()))

    ran = co("index", "verify")

    assert ran.code == 3
    assert "memories/elm.md: has changed since it was indexed" in ran.out
    assert "is not index" in ran.out
    assert co("index", "verify", "--repair").code == 0
    assert "memory:elm" in co("search", '"one elm"').out


@pytest.mark.medium
def test_verify_compares_folders_and_other_vaults(
    co: Co, change: Change, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, obsidian, team = tmp_path / "handbook", tmp_path / "second-brain", tmp_path / "team"
    for place in (folder, obsidian / ".obsidian", team / "memories"):
        place.mkdir(parents=True)
    (folder / "deploy.md").write_text("Blue takes the traffic first.")
    for name in ("gone.md", "away.md"):
        (folder / name).write_text("Soon it is gone.")
    (obsidian / "idea.md").write_text("An idea about [[others]].")
    (team / "memories" / "ours.md").write_text("We meet on Mondays.")
    monkeypatch.delenv("CO_VAULT")  # who names a vault means it alone
    monkeypatch.setenv("CO_TEAM_VAULT", str(team))
    co("add", str(folder))
    co("add", str(obsidian))
    for name in ("gone.md", "away.md"):  # most of its files: they may come back
        (folder / name).unlink()
    co("index", "sync")

    parts = {part["label"]: part for part in co("index", "verify", "--json").json["origins"]}
    assert set(parts) == {"vault", "team", "folder:handbook", "obsidian:second-brain"}
    assert (parts["folder:handbook"]["files"], parts["folder:handbook"]["missing"]) == (1, 2)
    assert all(part["of_files"] == part["of_index"] for part in parts.values() if not part["missing"])

    for note in ("deploy.md", "idea.md", "memories/ours.md"):
        change("update passages set body = 'Zebra.' where doc_id = (select id from docs where path = ?)", note)
        ran = co("index", "verify")
        assert (ran.code, f"{note}: has other passages" in ran.out) == (3, True)
        assert co("index", "verify", "--repair").code == 0

    folder.rename(tmp_path / "unmounted")
    ran = co("index", "verify")
    assert ran.code == 0
    assert "folder:handbook is not there now, and was not compared" in ran.out
