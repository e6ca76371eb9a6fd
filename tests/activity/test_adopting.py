"""A vault that was moved: `co index move` keeps what is known under its old folder, and loses nothing of either."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import apsw
import pytest

from co_cli.activity.adopting import adopt, vaults_like
from co_cli.activity.database import migrate
from co_cli.knowledge_base import KnowledgeBase
from co_cli.service.dismissing import Dismissals
from co_cli.service.learned import adopt_learned, learned_weights, write_learned
from co_cli.service.learning import Weights
from tests.command import Co
from tests.vault import Vault


@pytest.fixture
def moved(co: Co, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[], Path]:
    """Make a project with a history and a source, and move it when called; where it was before."""
    monkeypatch.delenv("CO_VAULT")
    project, there = tmp_path / "project", tmp_path / "elsewhere" / "renamed"
    (project / "docs").mkdir(parents=True)
    (project / "docs" / "handbook.md").write_text("# Handbook\n\nPlant in autumn.\n")
    monkeypatch.chdir(project)
    assert co("init").code == 0
    co("remember", "Oaks live long", "--title", "Oak")
    co("remember", "Elms fall ill", "--title", "Elm")
    co("add", str(project / "docs"))
    co("search", "oaks")
    co("show", "oak")
    co("show", "folder:docs/handbook.md")
    co("feedback", "give", "oak", "good", "--query", "which tree lives long")

    def move() -> Path:
        there.parent.mkdir()
        shutil.move(project, there)
        monkeypatch.chdir(there)
        return project

    return move


def told(co: Co, ref: str) -> list[str]:
    return [change["what"] for change in co("note", "history", ref, "--json").json["changes"]]


def test_adopt_moves_history_use_judgements_and_sources(co: Co, moved: Callable[[], Path]) -> None:
    before = moved()
    assert co("search", "oaks", "--json").json["hits"]  # which makes a history of its own at the new place
    assert [row["source"] for row in co("source", "list", "--json").json] == ["memory"]

    done = co("index", "move", str(before))

    assert done.code == 0, done.err
    assert "the history of 2 documents and 1 source (folder:docs)" in done.out
    assert told(co, "oak") == ["created"]
    head = co("note", "history", "oak", "--json").json
    assert (head["recalls"], head["opens"]) == (2, 1)  # a search before the move, and one after
    assert [row["path"] for row in co("source", "list", "--json").json] == [
        str(Path.cwd() / ".co-cli" / "knowledge"),
        str(Path.cwd() / "docs"),
    ]
    assert co("note", "history", "folder:docs/handbook.md", "--json").json["opens"] == 1
    assert co("feedback", "tune", "--json").json["said"] == 1
    asked = co("feedback", "stats", "--json").json
    assert asked["searches"] == 2
    assert co("index", "move").code == 1  # nothing is left there


def test_changes_at_the_new_place_follow_the_old_history(co: Co, moved: Callable[[], Path]) -> None:
    before = moved()
    note = Path(".co-cli/knowledge/memories/oak.md")
    note.write_text(note.read_text().replace("live long", "live very long"))
    Path(".co-cli/knowledge/memories/elm.md").unlink()
    co("remember", "Ashes burn well", "--title", "Ash")

    co("index", "move", str(before / ".co-cli" / "knowledge"))

    assert told(co, "oak") == ["updated", "created"]
    assert told(co, "memories/elm.md") == ["removed", "created"]
    assert told(co, "ash") == ["created"]


def test_a_later_judgement_at_the_new_place_counts(co: Co, moved: Callable[[], Path]) -> None:
    before = moved()
    co("feedback", "give", "oak", "bad", "--query", "which tree lives long")

    co("index", "move", str(before))

    said = co("feedback", "give", "oak", "good", "--query", "another question", "--json").json
    assert (said["good"], said["bad"]) == (1, 1)


def test_doctor_and_sources_notice_a_moved_vault(co: Co, moved: Callable[[], Path]) -> None:
    assert "adopt" not in co("doctor").out + co("source", "list").out
    before = moved() / ".co-cli" / "knowledge"

    ran = co("doctor")  # the first to look at the new place
    assert f"{before} is gone, and 2 of its 2 documents are here: was it moved?" in ran.out
    assert f"cure: co index move {before}\n" in ran.out
    assert f"`co index move {before}`" in co("source", "list").out
    assert co("index", "move", "--json").json == [{"vault": str(before), "documents": 2, "alike": 2, "sources": 1}]


def test_another_missing_vault_is_not_suggested_for_adoption(co: Co, moved: Callable[[], Path]) -> None:
    before = moved()
    shutil.rmtree(".co-cli")
    co("init")
    co("remember", "Poplars whisper", "--title", "Poplar")

    assert "was it moved?" not in co("doctor").out
    assert co("index", "move", str(before)).code == 0  # the person knows better


@pytest.mark.parametrize(
    ("folder", "says"),
    [
        ("{here}", "name the folder where this vault was before"),
        ("", "name the folder where this vault was before"),
        ("/nowhere", "nothing is kept of a vault at /nowhere"),
        ("{docs}", "is still there"),
    ],
)
def test_adopt_explains_what_cannot_be_adopted(co: Co, moved: Callable[[], Path], folder: str, says: str) -> None:
    moved()

    ran = co("index", "move", folder.format(here=Path.cwd(), docs=Path.cwd() / "docs"))

    assert ran.code == 2
    assert says in ran.err


def test_adopt_reports_sources_whose_name_is_taken(co: Co, moved: Callable[[], Path], tmp_path: Path) -> None:
    before = moved()
    other = tmp_path / "other" / "docs"
    other.mkdir(parents=True)
    (other / "a.md").write_text("Another.")
    co("add", str(other))

    ran = co("index", "move", str(before))

    assert "left there, for this vault has others of that name or place: folder:docs" in ran.out
    assert [row["path"] for row in co("source", "list", "--json").json][1:] == [str(other)]


def test_adopt_moves_searches_that_were_not_stored_yet(
    co: Co, vault: Vault, data_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CO_KNOWLEDGE_EMBEDDING_PROVIDER", "none")
    vault.write("memories/oak.md", "Oaks live long.")
    co("index", "sync")
    co("search", "oaks")  # which is in the spool until somebody folds it in
    there = vault.root.with_name("renamed")
    vault.root.rename(there)

    with KnowledgeBase.open(there, data_dir) as kb:
        kb.adopt(str(vault.root))

    monkeypatch.setenv("CO_VAULT", str(there))
    assert co("feedback", "stats", "--json").json["searches"] == 1
    assert co("index", "move").code == 1  # nothing arrives under the old folder later


def test_sources_inside_a_moved_project_follow_it_and_others_stay(
    co: Co, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("CO_VAULT")
    monkeypatch.setenv("CO_KNOWLEDGE_EMBEDDING_PROVIDER", "none")
    project, there = tmp_path / "project", tmp_path / "elsewhere" / "renamed"
    project.mkdir()
    monkeypatch.chdir(project)
    co("init")
    for source in ("project/docs", "project/..drafts", "project/lost", "beside", "kept"):
        (tmp_path / source).mkdir()
        (tmp_path / source / "a.txt").write_text("Plant in autumn.")
        assert co("add", str(tmp_path / source)).code == 0
    there.parent.mkdir()
    shutil.move(project, there)
    shutil.move(tmp_path / "beside", there.parent / "beside")  # which nothing says is the same
    shutil.rmtree(there / "lost")
    monkeypatch.chdir(there)

    co("index", "move", str(project))

    assert [row["path"] for row in co("source", "list", "--json").json] == [
        str(tmp_path / place)
        for place in ("elsewhere/renamed/docs", "elsewhere/renamed/..drafts", "project/lost", "beside", "kept")
    ]


def test_a_project_whose_whole_folder_was_a_source_is_adopted_by_its_name(
    co: Co, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("CO_VAULT")
    monkeypatch.setenv("CO_KNOWLEDGE_EMBEDDING_PROVIDER", "none")
    project, there = tmp_path / "project", tmp_path / "renamed"
    project.mkdir()
    monkeypatch.chdir(project)
    co("init")
    (project / "a.txt").write_text("Plant in autumn.")
    co("add", str(project))
    shutil.move(project, there)
    monkeypatch.chdir(there)

    assert "1 source (folder:project)" in co("index", "move", str(project)).out
    assert [row["path"] for row in co("source", "list", "--json").json] == [str(there)]


def test_a_source_that_did_not_move_is_not_confused_with_one_of_the_same_name(
    co: Co, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("CO_VAULT")
    monkeypatch.setenv("CO_KNOWLEDGE_EMBEDDING_PROVIDER", "none")
    for project in ("one", "two"):
        (tmp_path / project / "docs").mkdir(parents=True)
        (tmp_path / project / "docs" / "a.txt").write_text("Plant in autumn.")
    monkeypatch.chdir(tmp_path / "one")
    co("init")
    co("add", "docs")
    shutil.move(tmp_path / "one" / ".co-cli", tmp_path / "two" / ".co-cli")
    monkeypatch.chdir(tmp_path / "two")

    co("index", "move", str(tmp_path / "one" / ".co-cli" / "knowledge"))

    assert [row["path"] for row in co("source", "list", "--json").json] == [str(tmp_path / "one" / "docs")]


def test_text_deleted_after_an_adoption_is_gone_from_search_db(
    co: Co, moved: Callable[[], Path], data_dir: Path
) -> None:
    before = moved()
    co("index", "move", str(before))

    Path(".co-cli/knowledge/memories/elm.md").unlink()
    co("index", "sync")
    co("index", "rebuild")

    connection = apsw.Connection(str(data_dir / "search.db"))
    assert connection.execute("select count(*) from docs where title = 'Elm'").get == 0
    assert connection.execute("select count(*) from vaults where root like :old", {"old": f"{before}/%"}).get == 0
    connection.close()


def test_a_vault_can_be_adopted_even_if_every_note_changed(co: Co, moved: Callable[[], Path]) -> None:
    before = moved()
    for note in Path(".co-cli/knowledge/memories").iterdir():
        note.write_text(note.read_text() + "\nAnd more.\n")
    co("index", "sync")
    co("source", "remove", "docs")

    assert co("index", "move", str(before)).code == 0
    assert told(co, "oak") == ["updated", "created"]


def test_adopt_does_not_move_trust(co: Co, moved: Callable[[], Path]) -> None:
    assert co("config", "trust", "--list").out.startswith("trusted")
    before = moved()

    co("index", "move", str(before))

    here = str(Path.cwd() / ".co-cli" / "knowledge")
    assert {"vault": here, "trusted": False} in co("config", "trust", "--list", "--json").json


def test_an_interrupted_adoption_can_be_repeated(
    co: Co, moved: Callable[[], Path], data_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = moved()
    co("search", "oaks")
    monkeypatch.setattr("co_cli.activity.database.BUSY_MS", 50)
    writer = apsw.Connection(str(data_dir / "activity.db"))
    writer.execute("begin immediate")

    refused = co("index", "move", str(before))
    writer.execute("rollback")
    writer.close()

    assert refused.code == 3
    assert "try again" in refused.err
    assert "move it away" not in refused.err
    assert "1 source (folder:docs)" in co("index", "move", str(before)).out
    assert co("note", "history", "folder:docs/handbook.md", "--json").json["opens"] == 1


def test_history_shows_a_removal_before_the_move_and_a_restore_after_it(co: Co, moved: Callable[[], Path]) -> None:
    co("forget", "elm")
    before = moved()
    co("note", "restore", "elm")
    [left] = co("index", "move", "--json").json
    assert (left["documents"], left["alike"]) == (1, 1)  # of those that were there at last

    co("index", "move", str(before))

    assert told(co, "elm") == ["restored", "removed", "created"]


def test_adopt_moves_learned_weights_and_review_decisions(co: Co, moved: Callable[[], Path], data_dir: Path) -> None:
    old = str(Path.cwd() / ".co-cli" / "knowledge")
    write_learned(str(data_dir), old, "static", Weights(0.6, 0.4))
    Dismissals(str(data_dir), old).add("twins:oak", 1.0)
    before = moved()
    here = str(Path.cwd() / ".co-cli" / "knowledge")

    co("index", "move", str(before))

    assert learned_weights(str(data_dir), here, "static") == {"meaning": 0.6, "words": 0.4}
    assert (learned_weights(str(data_dir), old, "static"), Dismissals(str(data_dir), old).keys()) == (None, set())
    assert Dismissals(str(data_dir), here).keys() == {"twins:oak"}


def test_weights_learned_at_the_new_place_are_kept(data_dir: Path) -> None:
    write_learned(str(data_dir), "/new", "minilm", Weights(0.8, 0.2))
    write_learned(str(data_dir), "/old", "static", Weights(0.6, 0.4))

    adopt_learned(str(data_dir), "/old", "/new")

    assert learned_weights(str(data_dir), "/new", "minilm") == {"meaning": 0.8, "words": 0.2}


BOTH_PLACES = """
insert into vaults values (1, '/old', 10.0), (2, '/new', 20.0);
insert into documents values (1, 1, 'a.md', 'h1', 'A', 1, 10.0, null), (2, 2, 'a.md', null, '', null, null, null),
    (3, 1, 'b.md', 'h2', 'B', 1, 10.0, null), (4, 1, 'used.md', null, '', null, null, null),
    (5, 2, 'used.md', 'h3', 'U', 1, 20.0, null);
insert into versions values (1, 1, 10.0, 'seen', 'h1', 'A', 1, null), (2, 3, 10.0, 'seen', 'h2', 'B', 1, null),
    (3, 5, 20.0, 'created', 'h3', 'U', 1, null);
insert into questions values (1, 1, 'oaks', 'Oaks', 2), (2, 2, 'oaks', 'oaks', 3), (3, 1, 'elms', 'elms', 1);
insert into queries select value, 1, 10.0, 7, iif(value < 3, 1, 3), 'cli', 'hybrid', 'found', 1, 5.0, null, null
    from json_each('[1, 2, 3]');
insert into queries select value, 2, 20.0, 7, 2, 'cli', 'hybrid', 'found', 1, 5.0, null, null
    from json_each('[4, 5, 6]');
insert into days values (1, 7, 3, 1, 1), (2, 7, 3, 2, 0);
insert into latencies values (1, 7, 20, 3), (2, 7, 20, 3);
insert into doors values (1, 7, 'cli', 3), (2, 7, 'cli', 3);
insert into judgements values (1, 1, 1, 'q', 'q', 1, 'said', 9.0, 'a', null, null, null, null),
    (2, 2, 2, 'q', 'q', 0, 'said', 5.0, 'a', null, null, null, null);
insert into tunings values (1, 1, 9.0, 'applied', 'static', 0.5, 0.5, 30, null, null);
"""


def test_counts_of_both_places_are_added_up(data_dir: Path) -> None:
    data_dir.mkdir(exist_ok=True)
    migrate(str(data_dir / "activity.db"))
    connection = apsw.Connection(str(data_dir / "activity.db"))
    connection.execute(BOTH_PLACES)

    assert adopt(connection, "/old", "/new", 30.0, lambda path: path != "b.md") == 3

    def rows(statement: str) -> list[tuple[object, ...]]:
        return list(connection.execute(statement))

    assert rows("select id, root, seen from vaults") == [(2, "/new", 10.0)]
    heads = rows("select path, hash, gone from documents order by path")
    assert heads == [("a.md", "h1", None), ("b.md", "h2", 30.0), ("used.md", "h3", None)]
    changes = rows("select path, what from versions join documents on documents.id = document_id order by path, at")
    assert changes == [("a.md", "seen"), ("b.md", "seen"), ("b.md", "removed"), ("used.md", "created")]
    assert rows("select folded, asked from questions order by folded") == [("elms", 1), ("oaks", 5)]
    asked = "select folded, count(*) from queries join questions on questions.id = question_id group by 1 order by 1"
    assert rows(asked) == [("elms", 1), ("oaks", 5)]
    assert rows("select * from days") == [(2, 7, 6, 3, 1)]
    assert rows("select * from latencies") == [(2, 7, 20, 6)]
    assert rows("select * from doors") == [(2, 7, "cli", 6)]
    assert rows("select vault_id, good from judgements") == [(2, 1)]  # the last word was said at the old place
    assert rows("select vault_id from tunings") == [(2,)]
    assert rows("pragma foreign_key_check") == []
    connection.close()


def test_adopt_reads_no_files_of_a_vault_that_still_exists(
    kb: KnowledgeBase, vault: Vault, data_dir: Path, tmp_path: Path
) -> None:
    (tmp_path / "other" / "memories").mkdir(parents=True)
    with KnowledgeBase.open(tmp_path / "other", data_dir) as other:
        other.remember("Oaks live long.")
    kb.remember("Oaks live long.")
    kb.activity.flush()
    compared: list[str] = []

    def holds(path: str, known: str) -> bool:
        compared.append(path)
        return True

    with kb.activity.database.reading() as connection:
        assert vaults_like(connection, kb.root, holds) == []
        assert compared == []
        shutil.move(tmp_path / "other", tmp_path / "gone")
        assert [one.root for one in vaults_like(connection, kb.root, holds)] == [str(tmp_path / "other")]
    assert compared
