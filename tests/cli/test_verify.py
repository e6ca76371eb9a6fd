"""`co verify` compares index and files completely, proves that they agree, and repairs what differs."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest

from co_cli.index.names import name_number
from co_cli.notes.store import content_hash
from co_cli.sources.walking import scan_origin
from tests.command import Co
from tests.meaning.inside import Inside
from tests.vault import Vault


@pytest.fixture
def inside(data_dir: Path) -> Inside:
    return Inside(data_dir)


@pytest.fixture
def trees(co: Co, vault: Vault) -> Vault:
    vault.write("memories/oak.md", "---\ntitle: Oaks\naliases: [quercus]\n---\nOaks live for centuries. See [[elm]].")
    vault.write("memories/elm.md", "The elm in the park fell ill.")
    vault.write("articles/trees.md", "# Trees\n\nTrees are tall.\n\n## Bushes\n\nBushes are small.\n")
    vault.write("memories/broken.md", b"\x00\x01\xff" * 40)
    co("sync")
    return vault


def test_an_index_that_agrees_is_proven_by_counts_and_hashes(co: Co, trees: Vault) -> None:
    ran, told = co("verify"), co("verify", "--json")

    assert ran.code == told.code == 0
    [part] = told.json["origins"]
    assert (part["files"], part["notes"], part["passages"], part["vectors"]) == (3, 3, 4, 4)
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
    "a field": ("update docs set frontmatter = '{}' where path = 'memories/oak.md'", "fields"),
    "a passage's text": ("update passages set body = 'Zebra.' where title = 'Oaks'", "passages"),
    "a passage": ("delete from passages where heading = 'Bushes' or body like '%small%'", "articles/trees.md"),
    "a name": (f"delete from names where name = {name_number('quercus')}", "names"),
    "a link": ("delete from links", "links"),
    "a note that nobody wrote": (
        "insert into knowledge_files (vault_id, path, hash) select id, 'memories/zebra.md', 'x' from vaults",
        "no such file",
    ),
    "the count": ("update vaults set passages = passages + 1", "passages are counted"),
    "a word": ("delete from docs_fts where rowid = 1", "the word index does not fit"),
    "a vector": ("delete from docs_vec where rowid = 2", "1 vector missing"),
}


@pytest.mark.parametrize(("damage", "told"), DRIFT.values(), ids=DRIFT)
def test_whatever_differs_is_found_and_repaired(co: Co, trees: Vault, inside: Inside, damage: str, told: str) -> None:
    before = {path: trees.path(path).read_bytes() for path in trees.notes()}
    inside.rows(damage)

    ran = co("verify")

    assert ran.code == 3
    assert told in ran.out
    assert ran.out.splitlines()[-1].startswith("The index differs from the files")

    repaired = co("verify", "--repair")
    assert (repaired.code, repaired.out.splitlines()[-1]) == (0, "Repaired: index and files agree.")
    assert co("verify").code == 0
    assert {path: trees.path(path).read_bytes() for path in trees.notes()} == before


def test_a_vector_that_is_not_that_of_its_text_is_found_and_made_again(co: Co, trees: Vault, inside: Inside) -> None:
    right = inside.rows("select rowid, embedding from docs_vec order by rowid")
    inside.rows(
        "create temp table kept as select rowid as id, part, embedding from docs_vec where rowid < 3;"
        "delete from docs_vec where rowid = 1;"
        "insert into docs_vec (rowid, part, embedding) select 1, one.part, vec_int8(other.embedding)"
        " from kept as one, kept as other where one.id = 1 and other.id = 2"
    )

    ran = co("verify")
    assert (ran.code, "a vector that is not that of its text" in ran.out) == (3, True)

    assert co("verify", "--repair").code == 0
    assert [row[1] for row in inside.rows("select rowid, embedding from docs_vec order by rowid")] == [
        row[1] for row in right
    ]


def test_an_edit_that_no_listing_shows_is_found(co: Co, trees: Vault, inside: Inside) -> None:
    co("sync")
    with trees.path("memories/elm.md").open("r+b") as stream:
        stream.write(b"One")
    for folder, listing in scan_origin(str(trees.root)).listings.items():  # as on a file system that tells no times
        inside.rows(f"update folders set listing = x'{listing.hex()}' where path = '{folder}'")

    ran = co("verify")

    assert ran.code == 3
    assert "memories/elm.md: has another content than the index knows" in ran.out
    assert "is not index" in ran.out
    assert co("verify", "--repair").code == 0
    assert "memory:elm" in co("search", '"one elm"').out


def test_a_file_saved_a_moment_ago_is_no_drift_unless_nobody_may_sync(co: Co, trees: Vault) -> None:
    trees.write("memories/fir.md", "Firs are green.")

    assert co("verify", "--no-sync").code == 3
    assert co("verify").code == 0


def test_folders_and_other_vaults_are_compared_too(
    co: Co, inside: Inside, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, obsidian, team = tmp_path / "handbook", tmp_path / "second-brain", tmp_path / "team"
    for place in (folder, obsidian / ".obsidian", team / "memories"):
        place.mkdir(parents=True)
    (folder / "deploy.md").write_text("Blue takes the traffic first.")
    (folder / "gone.md").write_text("Soon it is gone.")
    (obsidian / "idea.md").write_text("An idea about [[others]].")
    (team / "memories" / "ours.md").write_text("We meet on Mondays.")
    monkeypatch.delenv("CO_VAULT")  # who names a vault means it alone
    monkeypatch.setenv("CO_TEAM_VAULT", str(team))
    co("add", str(folder))
    co("add", str(obsidian))
    (folder / "gone.md").unlink()
    co("sync")

    parts = {part["label"]: part for part in co("verify", "--json").json["origins"]}
    assert set(parts) == {"vault", "team", "folder:handbook", "obsidian:second-brain"}
    assert (parts["folder:handbook"]["files"], parts["folder:handbook"]["missing"]) == (1, 1)
    assert all(part["of_files"] == part["of_index"] for part in parts.values() if not part["missing"])

    for note in ("deploy.md", "idea.md", "memories/ours.md"):
        inside.rows("update passages set body = 'Zebra.' where doc_id = (select id from docs where path = ?)", note)
        ran = co("verify")
        assert (ran.code, f"{note}: its passages" in ran.out) == (3, True)
        assert co("verify", "--repair").code == 0
    assert "missing at its origin" in co("search", "soon it is gone").out

    folder.rename(tmp_path / "unmounted")
    ran = co("verify")
    assert ran.code == 0
    assert "folder:handbook is not there now, and was not compared" in ran.out


def test_a_damaged_search_db_is_told_and_made_anew(co: Co, trees: Vault, data_dir: Path) -> None:
    with (data_dir / "search.db").open("r+b") as stream:
        stream.seek(4096 * 30)
        stream.write(b"\xff" * 4096 * 20)

    told, repaired = co("verify", "--no-sync"), co("verify", "--repair")

    assert told.code == 3
    assert repaired.code == 0
    assert "memory:oak" in co("search", "oaks").out
