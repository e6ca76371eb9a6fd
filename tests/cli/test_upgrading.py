"""An upgrade: notes stay as they are, search.db is rebuilt, and everything that files cannot tell is kept.

old_data/aea86a6.tar.gz was written by that revision, the last one before search.db was redesigned; make.sh makes it.
Only its activity.db, its spool and sources.toml were converted afterwards, to the formats that are released first
(version 7).
"""

from __future__ import annotations

import tarfile
from pathlib import Path

import apsw
import pytest

from co_cli.activity.database import create_activity
from co_cli.index.sqlite.connection import APPLICATION, SCHEMA_VERSION
from tests.command import Co
from tests.vault import Vault

OLD_DATA = Path(__file__).with_name("old_data") / "aea86a6.tar.gz"
OLD_ROOT = "/tmp/co-old-data"
"""Where make.sh had the folders."""
MOVE_VAULTS = "update vaults set root = replace(root, :old, :new)"


@pytest.fixture
def upgraded(co: Co, tmp_path: Path) -> Co:
    """The old vault and data folder, as if they had been made where this test runs."""
    with tarfile.open(OLD_DATA) as archive:
        archive.extractall(tmp_path, filter="data")
    for name in ("sources.toml", "trusted", "activity.spool"):
        file = tmp_path / "data" / name
        file.write_text(file.read_text().replace(OLD_ROOT, str(tmp_path)))
    connection = apsw.Connection(str(tmp_path / "data" / "activity.db"))
    connection.execute(MOVE_VAULTS, {"old": OLD_ROOT, "new": str(tmp_path)})
    connection.close()
    return co


def files_in(*folders: Path) -> dict[Path, bytes]:
    return {file: file.read_bytes() for folder in folders for file in folder.rglob("*") if file.is_file()}


def test_an_upgrade_rebuilds_search_db_and_touches_no_note(upgraded: Co, tmp_path: Path, data_dir: Path) -> None:
    folders = [tmp_path / "vault", tmp_path / "handbook", tmp_path / "team"]
    before = files_in(*folders)

    found = upgraded("search", "where is the kettle", "--json").json

    assert (found["hits"][0]["ref"], found["backend"], found["degraded"]) == ("memory:kettle", "hybrid", [])
    assert upgraded("search", "rollback", "--json").json["hits"][0]["ref"].startswith("article:deploys")
    assert {note["ref"] for note in upgraded("list", "--json").json} >= {"memory:kettle", "memory:oak"}
    assert "as the farmer says" in upgraded("show", "oak", "--raw").out
    for command in ("index status", "doctor", "index verify"):
        assert upgraded(*command.split()).code == 0, command
    assert files_in(*folders) == before
    connection = apsw.Connection(str(data_dir / "search.db"))
    assert (connection.pragma("user_version"), connection.pragma("application_id")) == (SCHEMA_VERSION, APPLICATION)
    connection.close()


def columns(file: Path) -> dict[str, list[str]]:
    """Of each table and index."""
    connection = apsw.Connection(str(file))
    try:
        names = [str(row[0]) for row in connection.execute("select name from sqlite_master order by name")]
        return {name: [str(row[1:]) for row in connection.pragma("table_xinfo", name) or ()] for name in names}
    finally:
        connection.close()


def test_an_upgrade_keeps_history_feedback_trash_and_sources(upgraded: Co, tmp_path: Path, data_dir: Path) -> None:
    kettle = upgraded("note", "history", "kettle", "--json").json

    assert [change["what"] for change in kettle["changes"]] == ["updated", "updated", "created"]
    assert (kettle["recalls"], kettle["opens"]) == (1, 1)
    elm = upgraded("note", "history", "memory:elm", "--json").json
    assert [change["what"] for change in elm["changes"]] == ["removed", "created"]
    stats = upgraded("feedback", "stats", "--json").json

    assert stats["logged"] == 2
    assert upgraded("feedback", "tune", "--json").json["said"] == 2
    assert upgraded("feedback", "give", "kettle", "good", "--query", "which room has the kettle").code == 0
    assert upgraded("feedback", "tune", "--json").json["said"] == 3
    trash = upgraded("list", "--trash", "--json").json
    new = tmp_path / "new.db"
    create_activity(str(new))
    assert columns(data_dir / "activity.db") == columns(new)

    assert [note["path"] for note in trash] == ["memories/elm.md", "memories/kettle.md"]
    assert upgraded("note", "restore", "elm").code == 0
    assert upgraded("search", "beetles", "--json").json["hits"][0]["ref"] == "memory:elm"
    assert {row["source"]: row["notes"] for row in upgraded("source", "list", "--json").json}["folder:handbook"] == 1
    found = upgraded("search", "laptop of new colleagues", "--json").json["hits"][0]["ref"]
    assert found.startswith("folder:handbook/onboarding.md")


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
