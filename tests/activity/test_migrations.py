"""A next version converts activity.db in one step: all of it or nothing, also if it is killed or not alone."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import apsw
import pytest

from co_cli.activity import database
from co_cli.activity.database import ActivityDatabase, create_activity, versions
from co_cli.ground.errors import ActivityUnavailableError
from tests.command import Co, run_together
from tests.upgrades.test_upgrades import VERSIONS, columns, restore

NEXT = max(versions()) + 1
PIN = """
alter table uses add column pinned integer not null default 0;
update uses set pinned = opens;
create table labels (document_id integer primary key references documents (id), label text not null) strict;
insert into labels select id, title from documents;
"""
SLOW = """
create table numbers (number integer) strict;
with recursive n (i) as (select 1 union all select i + 1 from n where i < 99999999) insert into numbers select i from n;
"""
OPEN = """
import sys
from co_cli.activity import database
database.MIGRATIONS, data_dir = sys.argv[1:]
sys.stdin.readline()
with database.ActivityDatabase(data_dir).reading() as connection:
    labels, documents = (connection.execute(f"select count(*) from {name}").get for name in ("labels", "documents"))
    assert labels == documents > 0
"""


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """The data folder of the last version, with what is in it."""
    restore(VERSIONS[-1], tmp_path)
    return tmp_path / "data"


def next_version(folder: Path, *scripts: str) -> str:
    """The migrations of a version that comes after this one."""
    shutil.copytree(database.MIGRATIONS, folder)
    for number, script in enumerate(scripts, NEXT):
        (folder / f"{number:03}_next.sql").write_text(script)
    return str(folder)


def content(data: Path) -> tuple[int, dict[str, list[Any]]]:
    """The version of the file, and every row."""
    connection = apsw.Connection(str(data / "activity.db"))
    try:
        names = [str(row[0]) for row in connection.execute("select name from sqlite_master where type = 'table'")]
        rows = {name: connection.execute(f"select * from {name}").fetchall() for name in names}
        return int(connection.pragma("user_version")), rows
    finally:
        connection.close()


def opened(data: Path) -> None:
    with ActivityDatabase(str(data)).reading():
        pass


def test_a_next_version_converts_what_this_one_wrote(
    data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _, before = content(data)
    monkeypatch.setattr(database, "MIGRATIONS", next_version(tmp_path / "next", PIN, "drop table spool"))

    opened(data)

    version, after = content(data)
    assert version == NEXT + 1
    assert [row[:-1] for row in after.pop("uses")] == before.pop("uses")
    assert len(after.pop("labels")) == len(before["documents"]) > 0
    assert before.pop("spool")
    assert after == before
    create_activity(str(tmp_path / "new.db"))
    assert columns(data / "activity.db") == columns(tmp_path / "new.db")


@pytest.mark.medium
def test_a_conversion_that_fails_changes_nothing_and_is_one_line(
    data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, co: Co
) -> None:
    before = content(data)
    with monkeypatch.context() as later:
        later.setattr(database, "MIGRATIONS", next_version(tmp_path / "next", PIN, "insert into nowhere values (1)"))
        with pytest.raises(
            ActivityUnavailableError, match=f"cannot be converted to version {NEXT + 1}.*it is unchanged"
        ):
            opened(data)
        assert co("search", "kettle").code == 0
        assert "cannot be converted" in co("doctor").out

    assert content(data) == before
    assert co("feedback", "stats").code == 0


@pytest.mark.medium
@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no kill -9")
def test_a_conversion_that_is_killed_leaves_the_file_as_it_was(
    data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = content(data)
    slow = next_version(tmp_path / "slow", PIN, SLOW)
    process = subprocess.Popen([sys.executable, "-c", OPEN, slow, str(data)], stdin=subprocess.DEVNULL)
    while not os.path.exists(data / "activity.db-wal") or os.path.getsize(data / "activity.db-wal") < 1_000_000:
        assert process.poll() is None
        time.sleep(0.01)
    process.kill()
    process.wait()

    assert content(data) == before
    monkeypatch.setattr(database, "MIGRATIONS", next_version(tmp_path / "next", PIN))
    opened(data)
    assert content(data)[0] == NEXT


@pytest.mark.medium
def test_two_processes_convert_it_once(data: Path, tmp_path: Path) -> None:
    run_together(OPEN, *[(next_version(tmp_path / "next", PIN), data)] * 4)

    assert content(data)[0] == NEXT


def test_this_version_leaves_what_the_next_one_wrote_alone(
    data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, co: Co
) -> None:
    with monkeypatch.context() as later:
        later.setattr(database, "MIGRATIONS", next_version(tmp_path / "next", PIN))
        opened(data)
    before = content(data)

    assert co("search", "kettle").code == 0
    assert f"is of a newer co-cli (version {NEXT}, this one knows {NEXT - 1})" in co("doctor").out
    assert content(data) == before
