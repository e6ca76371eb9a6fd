"""Another version of the program with a vault that is there: notes untouched, the index made anew, activity forward."""

from __future__ import annotations

from pathlib import Path

import apsw
import pytest

from co_cli.activity.database import APPLICATION as ACTIVITY
from co_cli.activity.database import migrate, migrations
from co_cli.index.connection import APPLICATION, SCHEMA_VERSION
from tests.command import Co
from tests.vault import Vault

NOTES = {
    "memories/oak.md": "---\r\ntitle: Oaks   # as the farmer says\r\nhue: green\r\n---\r\nOaks live long.\r\n",
    "articles/trees.md": "# Trees\n\nTrees are tall.\n",
}


@pytest.fixture(autouse=True)
def notes(vault: Vault) -> None:
    for path, text in NOTES.items():
        vault.write(path, text)


def search_db(data_dir: Path, version: int, statements: str) -> None:
    """One of another version, with whatever that one had."""
    data_dir.mkdir(exist_ok=True)
    connection = apsw.Connection(str(data_dir / "search.db"))
    connection.execute(statements)
    connection.pragma("application_id", APPLICATION)
    connection.pragma("user_version", version)
    connection.close()


def everything_works(co: Co) -> None:
    assert "memory:oak" in co("search", "oaks").out
    assert co("show", "oak").code == 0
    assert co("list").code == co("status").code == co("doctor").code == co("verify").code == 0


OLD_INDEX = "create table docs (id integer primary key, path text); insert into docs (path) values ('memories/gone.md')"


def test_after_an_upgrade_the_index_is_made_anew_and_activity_goes_on(co: Co, vault: Vault, data_dir: Path) -> None:
    search_db(data_dir, SCHEMA_VERSION - 1, OLD_INDEX)
    migrate(str(data_dir / "activity.db"), 1)
    connection = apsw.Connection(str(data_dir / "activity.db"))
    connection.execute("insert into vaults (root) values ('/elsewhere')")
    connection.close()

    everything_works(co)

    assert co("stats", "--json").json["searches"] == 1
    connection = apsw.Connection(str(data_dir / "activity.db"))
    assert (connection.pragma("user_version"), connection.pragma("application_id")) == (len(migrations()), ACTIVITY)
    assert ("/elsewhere",) in connection.execute("select root from vaults").fetchall()
    connection.close()
    assert [path.name for path in data_dir.iterdir() if ".db.2" in path.name] == []  # both were ours: nothing is aside
    assert {path: vault.read(path) for path in NOTES} == NOTES


def test_an_upgrade_keeps_what_no_file_gives_back(co: Co, vault: Vault, data_dir: Path, tmp_path: Path) -> None:
    for folder in ("docs", "team"):
        (tmp_path / folder).mkdir()
        for name in ("zebra", "okapi"):
            (tmp_path / folder / f"{name}.md").write_text(f"The {name} of the {folder} is shy.")
        co("add", str(tmp_path / folder))
    (tmp_path / "docs" / "zebra.md").unlink()
    (tmp_path / "team").rename(tmp_path / "away")
    co("sync")
    before = co("sources", "--json").json
    connection = apsw.Connection(str(data_dir / "search.db"))
    connection.pragma("user_version", SCHEMA_VERSION - 1)
    connection.close()

    everything_works(co)

    same = ("source", "notes", "missing", "there")
    assert [[row[name] for name in same] for row in co("sources", "--json").json] == [
        [row[name] for name in same] for row in before
    ]
    found = {hit["ref"].partition("#")[0] for hit in co("search", "shy zebra", "--json").json["hits"]}
    assert {"folder:docs/zebra.md", "folder:team/zebra.md"} <= found


def test_a_note_that_does_not_fit_the_new_index_is_lost_alone(co: Co, data_dir: Path, tmp_path: Path) -> None:
    (tmp_path / "docs").mkdir()
    for name in ("okapi", "zebra"):
        (tmp_path / "docs" / f"{name}.md").write_text(f"The {name} is shy.")
    co("add", str(tmp_path / "docs"))
    (tmp_path / "docs").rename(tmp_path / "away")
    search_db(
        data_dir,
        SCHEMA_VERSION - 1,
        "create table other as select * from docs; drop table docs; alter table other rename to docs;"
        "update docs set title = null where path = 'okapi.md'",
    )

    assert "folder:docs/zebra.md" in co("search", "shy zebra").out


def test_after_a_downgrade_the_index_is_made_anew_and_activity_is_refused_with_a_clear_word(
    co: Co, vault: Vault, data_dir: Path
) -> None:
    everything_works(co)
    co("stats")
    search_db(data_dir, SCHEMA_VERSION + 1, "alter table docs rename to notes; create table dreams (id integer)")
    newest = len(migrations())
    connection = apsw.Connection(str(data_dir / "activity.db"))
    connection.execute("create table dreams (id integer); drop table latencies")
    connection.pragma("user_version", newest + 1)
    connection.close()
    before = (data_dir / "activity.db").read_bytes()

    found, stats, backup = co("search", "oaks"), co("stats"), co("backup")
    saved = co("remember", "Elms fall ill.")

    assert "memory:oak" in found.out
    assert (found.err, saved.code, saved.err) == ("", 0, "")
    for refused in (stats, backup):
        assert (refused.code, len(refused.err.splitlines())) == (3, 1)
        assert f"newer co-cli (version {newest + 1}, this one knows {newest}): update co-cli" in refused.err
    findings = co("doctor", "--json").json
    assert [one["level"] for one in findings if one["check"] == "activity"] == ["warning"]
    assert (data_dir / "activity.db").read_bytes() == before
    assert {path: vault.read(path) for path in NOTES} == NOTES


def test_two_versions_side_by_side_take_turns_and_lose_nothing(co: Co, vault: Vault, data_dir: Path) -> None:
    for turn in range(4):
        assert co("remember", f"Turn {turn} was taken by somebody.").code == 0
        found = co("search", f"who took turn {turn}", "--json").json
        assert f"turn-{turn}" in found["hits"][0]["ref"]
        connection = apsw.Connection(str(data_dir / "search.db"))
        connection.pragma("user_version", SCHEMA_VERSION + 1)  # the other one has been here
        connection.close()

    assert co("list", "--json").code == 0
    assert len(vault.notes()) == len(NOTES) + 4
