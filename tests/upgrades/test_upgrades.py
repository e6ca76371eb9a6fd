"""What every released version wrote is read by this one: notes stay as they are, and what cannot be made again is kept.

`make.py` wrote the folders with the numbers of versions.
"""

from __future__ import annotations

import shutil
from pathlib import Path

import apsw
import pytest

from co_cli.activity.database import create_activity, versions
from co_cli.index.sqlite.connection import APPLICATION, SCHEMA_VERSION
from co_cli.version import __version__
from tests.command import Co
from tests.vault import Vault

VERSIONS = sorted(path.parent for path in Path(__file__).parent.glob("*/team.sql"))


def restore(version: Path, root: Path) -> None:
    """The folders of a version, as if they had been made here."""
    shutil.copytree(version, root, dirs_exist_ok=True)
    for file in (path for path in root.rglob("*") if path.is_file()):
        file.write_bytes(file.read_bytes().replace(b"{root}", str(root).encode()))
    script = root / "data" / "activity.sql"
    connection = apsw.Connection(str(script.with_suffix(".db")))
    connection.pragma("journal_mode", "wal")
    connection.execute(script.read_text("utf-8"))
    connection.close()
    script.unlink()


@pytest.fixture(params=VERSIONS, ids=lambda folder: folder.name)
def upgraded(request: pytest.FixtureRequest, co: Co, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Co:
    restore(request.param, tmp_path)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    return co


def columns(file: Path) -> dict[str, list[str]]:
    """Of each table and index."""
    connection = apsw.Connection(str(file))
    try:
        names = [str(row[0]) for row in connection.execute("select name from sqlite_master order by name")]
        return {name: [str(row[1:]) for row in connection.pragma("table_xinfo", name) or ()] for name in names}
    finally:
        connection.close()


def test_this_version_has_left_its_own_data_before_it_is_released() -> None:
    assert VERSIONS[-1].name == ".".join(__version__.split(".")[:2])
    last = (VERSIONS[-1] / "data" / "activity.sql").read_text("utf-8")
    assert f"pragma user_version = {max(versions())};" in last
    migrations = Path(__file__).parents[2] / "co_cli" / "team" / "migrations"
    team = (VERSIONS[-1] / "team.sql").read_text("utf-8")
    assert [file.name for file in sorted(migrations.glob("*.sql")) if file.name not in team] == []


def test_every_note_is_found_and_none_is_touched(upgraded: Co, tmp_path: Path, data_dir: Path) -> None:
    folders = [tmp_path / "vault", tmp_path / "handbook", tmp_path / "project"]
    before = {file: file.read_bytes() for folder in folders for file in folder.rglob("*") if file.is_file()}

    for query, ref in (
        ("where is the kettle", "memory:kettle"),
        ("rollback", "article:deploys"),
        ("how often does Mara read mail", "entity:mara"),
        ("what did we say about trees", "conversation:trees"),
        ("laptop of new colleagues", "folder:handbook/onboarding.md"),
    ):
        found = upgraded("search", query, "--json").json
        assert found["hits"][0]["ref"].startswith(ref), query
        assert (found["backend"], found["degraded"]) == ("hybrid", [])
    assert {note["ref"] for note in upgraded("list", "--json").json} >= {"memory:oak", "resource:guide"}
    assert "as the farmer says" in upgraded("show", "oak", "--raw").out
    for command in ("index status", "doctor", "index verify"):
        assert upgraded(*command.split()).code == 0, command
    assert {file: file.read_bytes() for file in before} == before
    connection = apsw.Connection(str(data_dir / "search.db"))
    assert (connection.pragma("user_version"), connection.pragma("application_id")) == (SCHEMA_VERSION, APPLICATION)
    connection.close()


def test_history_feedback_and_trash_are_kept(upgraded: Co, tmp_path: Path, data_dir: Path) -> None:
    kettle = upgraded("note", "history", "kettle", "--json").json
    assert [change["what"] for change in kettle["changes"]] == ["updated", "updated", "created"]
    assert (kettle["recalls"], kettle["opens"]) == (2, 1)  # one of them is in the spool
    elm = upgraded("note", "history", "memory:elm", "--json").json
    assert [change["what"] for change in elm["changes"]] == ["removed", "created"]

    stats = upgraded("feedback", "stats", "--json").json
    assert stats["logged"] == 2
    assert upgraded("feedback", "tune", "--json").json["said"] == 2
    assert upgraded("feedback", "give", "kettle", "good", "--query", "which room has the kettle").code == 0
    assert upgraded("feedback", "tune", "--json").json["said"] == 3

    assert [note["path"] for note in upgraded("list", "--trash", "--json").json] == [
        "memories/elm.md",
        "memories/kettle.md",
    ]
    assert upgraded("note", "restore", "elm").code == 0
    assert upgraded("search", "beetles", "--json").json["hits"][0]["ref"] == "memory:elm"
    new = tmp_path / "new.db"
    create_activity(str(new))
    assert columns(data_dir / "activity.db") == columns(new)


def test_settings_sources_trust_and_tokens_are_kept(
    upgraded: Co, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert upgraded("config", "show", "half_life_days").out.strip() == "200.0"
    assert "10.1.0.0/16" in upgraded("config", "show", "web_allow").out
    monkeypatch.delenv("CO_VAULT")
    monkeypatch.chdir(tmp_path / "project")
    assert upgraded("config", "show", "context_tokens").out.strip() == "800"
    assert upgraded("config", "show", "vault").out.strip() == str(tmp_path / "project/.co-cli/knowledge")
    untrusted = upgraded("note", "context", "when do we deploy")
    assert "you trusted another folder, which was here before" in untrusted.err + untrusted.out  # a copy is another

    monkeypatch.setenv("CO_VAULT", str(tmp_path / "vault"))
    [source] = [row for row in upgraded("source", "list", "--json").json if row["source"] == "folder:handbook"]
    assert source["path"] == str(tmp_path / "handbook")
    refused = upgraded("edit", "folder:handbook/onboarding.md", "--body", "Changed.")
    assert (refused.code, "read-only" in refused.err) == (2, True)
    assert [(one["name"], one["role"]) for one in upgraded("token", "list", "--json").json] == [("mara", "read")]


def test_two_versions_that_share_a_data_folder_take_turns_and_lose_nothing(
    co: Co, vault: Vault, data_dir: Path
) -> None:
    for turn in range(4):
        assert co("remember", f"Turn {turn} was taken by somebody.").code == 0
        found = co("search", f"who took turn {turn}", "--json").json
        assert f"turn-{turn}" in found["hits"][0]["ref"]
        connection = apsw.Connection(str(data_dir / "search.db"))
        connection.pragma("user_version", SCHEMA_VERSION + 1)  # the other version has rebuilt it
        connection.close()

    assert len(co("list", "--json").json) == len(vault.notes()) == 4


def test_doctor_names_what_another_version_wrote_each_on_one_line(co: Co, vault: Vault, data_dir: Path) -> None:
    vault.write("memories/oak.md", "Oaks live long.")
    co("search", "oaks")
    co("feedback", "stats")
    for name, version in (("search.db", SCHEMA_VERSION + 1), ("activity.db", max(versions()) + 1)):
        connection = apsw.Connection(str(data_dir / name))
        connection.pragma("user_version", version)
        connection.close()
    (data_dir / "sources.toml").write_text('[[source]]\nvault = "/v"\nsource = "dream"\nname = "x"\npath = "/x"\n')

    checked = co("doctor")

    lines = checked.out.splitlines()
    [index] = [line for line in lines if "another version" in line]
    assert index.startswith(f"ok  {data_dir / 'search.db'} was made by another version of co-cli, and is rebuilt")
    [activity] = [line for line in lines if "is of a newer co-cli" in line]
    assert activity.startswith(f"!!  {data_dir / 'activity.db'}")
    assert "update co-cli" in checked.out
    [sources] = [line for line in lines if "'dream'" in line]
    assert "a newer one may" in sources
    assert co("doctor").out.count("another version") == 0  # it was rebuilt


def test_a_setting_of_a_newer_version_is_one_line_with_the_fix(co: Co, home: Path) -> None:
    file = home / ".config" / "co-cli" / "settings.toml"
    file.parent.mkdir(parents=True)
    file.write_text("half_life_days = 200\ndreams = 3\n")

    for command in (("doctor",), ("search", "oaks")):
        ran = co(*command)
        assert (ran.code, ran.out) == (2, "")
        assert ran.err == (
            f"co: {file}:2: unknown setting 'dreams': `co config show` lists them; "
            "or update co-cli, if a newer one wrote the line\n"
        )
