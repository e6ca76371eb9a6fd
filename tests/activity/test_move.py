"""`co index move OLD NEW` carries what is known of a folder to its new place, and loses nothing of either."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import apsw
import pytest

from co_cli.activity.judgements import change_learned, read_learned
from co_cli.upkeep.review import Dismissals
from tests.command import Co

VAULT = ".co-cli/knowledge"


@pytest.fixture
def moved(co: Co, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[], tuple[str, str]]:
    """Make a project with a history and a source, and move it when called: from where, and to where."""
    monkeypatch.delenv("CO_VAULT")
    monkeypatch.setenv("CO_KNOWLEDGE_EMBEDDING_PROVIDER", "none")
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

    def move() -> tuple[str, str]:
        there.parent.mkdir()
        shutil.move(project, there)
        monkeypatch.chdir(there)
        return str(project), str(there)

    return move


def changes(co: Co, ref: str) -> list[str]:
    return [change["what"] for change in co("note", "history", ref, "--json").json["changes"]]


def test_history_use_feedback_and_sources_follow_a_moved_project(co: Co, moved: Callable[[], tuple[str, str]]) -> None:
    old, new = moved()
    assert co("search", "oaks", "--json").json["hits"]  # starts a history at the new place
    assert f"`co index move {old}/{VAULT} {new}/{VAULT}`" in co("source", "list").out

    done = co("index", "move", old, new, "--json")

    assert done.code == 0, done.err
    assert done.json == {"folders": [f"{new}/{VAULT}", f"{new}/docs"], "sources": ["folder:docs"], "left": []}
    assert changes(co, "oak") == ["created"]
    head = co("note", "history", "oak", "--json").json
    assert (head["recalls"], head["opens"]) == (2, 1)  # a search before the move, and one after
    assert [row["path"] for row in co("source", "list", "--json").json] == [f"{new}/{VAULT}", f"{new}/docs"]
    assert co("note", "history", "folder:docs/handbook.md", "--json").json["opens"] == 1
    assert co("feedback", "tune", "--json").json["said"] == 1
    assert co("feedback", "stats", "--json").json["searches"] == 2
    again = co("index", "move", old, new)
    assert (again.code, again.err) == (2, f"co: nothing is known of a vault at {old}\n")


def test_learned_weights_and_review_decisions_follow_and_trust_does_not(
    co: Co, moved: Callable[[], tuple[str, str]], data_dir: Path
) -> None:
    before = str(Path.cwd() / VAULT)
    change_learned(str(data_dir), lambda known: known.update({before: {"meaning": 0.6}}))
    Dismissals(str(data_dir), before).add(1.0, "twins:oak")
    assert co("config", "trust", "--list").out.startswith("trusted")
    old, new = moved()
    co("index", "move", old, new)

    here = f"{new}/{VAULT}"
    assert read_learned(str(data_dir)) == {here: {"meaning": 0.6}}
    assert (Dismissals(str(data_dir), before).keys(), Dismissals(str(data_dir), here).keys()) == (set(), {"twins:oak"})
    assert {"vault": here, "trusted": False} in co("config", "trust", "--list", "--json").json


def test_a_move_that_was_interrupted_can_be_repeated(
    co: Co, moved: Callable[[], tuple[str, str]], data_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    old, new = moved()
    monkeypatch.setattr("co_cli.activity.database.BUSY_MS", 50)
    writer = apsw.Connection(str(data_dir / "activity.db"))
    writer.execute("begin immediate")
    refused = co("index", "move", old, new)
    writer.execute("rollback")
    writer.close()

    assert refused.code == 3
    assert "try again" in refused.err
    assert "source: folder:docs" in co("index", "move", old, new).out


def test_folders_that_cannot_have_been_moved_are_refused(co: Co, moved: Callable[[], tuple[str, str]]) -> None:
    old, new = moved()
    for arguments, says in (
        ((new, new), "still exists"),
        ((old, "/nowhere"), "/nowhere is not a folder"),
        (("/nowhere", new), "nothing is known of a vault at /nowhere"),
        ((old,), "missing NEW"),
    ):
        ran = co("index", "move", *arguments)
        assert ran.code == 2
        assert says in ran.err
