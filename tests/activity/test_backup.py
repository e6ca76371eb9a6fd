"""`co data backup` copies activity.db while it is in use, and `co data restore` restores it."""

from __future__ import annotations

import os
import re
import stat
import sys
import threading
from pathlib import Path

import apsw
import pytest

from co_cli.activity.backup import back_up, look_at, restore
from co_cli.activity.database import ActivityDatabase, create_activity, versions
from co_cli.activity.events import Head
from co_cli.ground.settings import load_settings
from co_cli.index.sqlite.database_files import set_aside_before
from tests.activity.conftest import Opener, index
from tests.command import Co
from tests.folder import Vault
from tests.trouble.file_systems import fill, small_disk


@pytest.fixture
def used(co: Co, vault: Vault) -> Co:
    vault.write("memories/oak.md", "Oaks live long.")
    co("search", "oaks")
    co("note", "history", "oak")
    return co


@pytest.fixture
def file(data_dir: Path) -> str:
    return str(data_dir / "activity.db")


def test_a_backup_brings_back_what_was_there_and_keeps_what_it_replaces(used: Co, file: str) -> None:
    made = used("data", "backup", "--json").json
    used("remember", "Elms fall ill.")
    assert (made["rows"]["documents"], look_at(file).rows["documents"]) == (1, 2)

    back = used("data", "restore", made["path"])

    assert (back.code, back.err, look_at(file).rows["documents"]) == (0, "", 1)
    [old] = set_aside_before(file)
    used("data", "restore", old)
    assert look_at(file).rows["documents"] == 2
    assert list(Path(file).parent.glob(".co-tmp-*")) == []
    assert "memory:oak" in used("search", "oaks").out


def test_it_is_one_file_for_its_owner_alone_and_holds_what_was_still_spooled(used: Co, data_dir: Path) -> None:
    used("feedback", "stats")
    used("search", "oaks")
    assert (data_dir / "activity.spool").exists()

    for _ in range(2):  # within the same second
        assert used("data", "backup").code == 0

    files = sorted((data_dir / "backups").iterdir())
    assert [bool(re.fullmatch(r"activity-\d+T\d+Z(-2)?\.db", one.name)) for one in files] == [True, True]
    assert {stat.S_IMODE(one.stat().st_mode) for one in files} == {0o600}
    assert look_at(str(files[0])).rows["searches"] == 2
    listed = used("data", "restore").out
    assert all(str(one) in listed for one in files)


def test_nothing_is_overwritten_unless_asked(used: Co, tmp_path: Path, file: str) -> None:
    mine, drive = tmp_path / "mine.db", tmp_path / "media" / "disk"
    mine.write_text("somebody's")
    os.mkfifo(tmp_path / "pipe")

    for arguments, says in (
        ((str(mine),), "--overwrite"),
        ((file, "--overwrite"), "is the database itself"),
        ((str(tmp_path),), "is a folder"),
        ((str(tmp_path / "pipe"), "--overwrite"), "not a regular file"),
        ((str(drive / "activity.db"),), f"there is no folder {drive}: is its drive mounted?"),
    ):
        ran = used("data", "backup", *arguments)
        assert (ran.code, ran.err.count("\n")) == (2, 1), arguments
        assert says in ran.err
    if sys.platform == "linux":  # nobody can create a file there, root neither
        ran = used("data", "backup", "/proc/activity.db")
        assert ran.err == (
            "co: /proc/activity.db cannot be used (No such file or directory): name a file in another folder\n"
        )
    assert mine.read_text() == "somebody's"
    assert not drive.parent.exists()

    assert used("data", "backup", str(mine), "--overwrite").code == 0
    assert look_at(str(mine)).rows["documents"] == 1
    assert [path.name for path in tmp_path.iterdir() if ".co-tmp-" in path.name] == []


def test_whoever_opens_it_at_the_moment_of_a_restore_writes_into_what_was_restored(
    used: Co, data_dir: Path, file: str
) -> None:
    made = used("data", "backup", "--json").json["path"]
    used("remember", "Elms fall ill.")

    def restore_now(connection: apsw.Connection) -> None:
        apsw.connection_hooks.remove(restore_now)  # once: as soon as the old file is open, before it is read
        restore(str(data_dir), made)

    database = ActivityDatabase(str(data_dir))
    apsw.connection_hooks.append(restore_now)
    with database.writing() as connection:
        connection.execute("update documents set title = 'after the restore'")
    database.close()

    assert restore_now not in apsw.connection_hooks
    assert look_at(file).rows["documents"] == 1, "nothing of the old file came along"
    connection = apsw.Connection(file)
    assert connection.execute("select title from documents").get == "after the restore"
    connection.close()


def test_a_full_disk_is_called_so_and_leaves_nothing(used: Co, tmp_path: Path) -> None:
    with small_disk(tmp_path / "small", "64k") as disk:
        fill(disk)
        ran = used("data", "backup", str(disk / "activity.db"))

        assert ran.code == 3
        assert f"the disk is full (0 bytes are left in {disk}); free some space" in ran.err
        assert [one.name for one in disk.iterdir()] == ["filler.bin"]


def test_what_is_not_a_sound_copy_is_refused_and_nothing_changes(used: Co, file: str, tmp_path: Path) -> None:
    used("feedback", "stats")
    before = Path(file).read_bytes()
    names = ("nothing", "folder", "text", "foreign", "damaged", "newer")
    nothing, folder, text, foreign, damaged, newer = (tmp_path / f"{name}.db" for name in names)
    folder.mkdir()
    text.write_text("no database" * 99)
    for path, statement in (
        (foreign, "create table bees (name text)"),
        (newer, f"pragma user_version = {max(versions()) + 1}"),
    ):
        if path == newer:
            create_activity(str(path))
        connection = apsw.Connection(str(path))
        connection.execute(statement)
        connection.close()
    create_activity(str(damaged))
    damaged.write_bytes(damaged.read_bytes()[:4096] + b"\xff" * 8192)
    for path, code, says in (
        (nothing, 2, "there is no backup"),
        (folder, 2, "not a regular file"),
        (text, 3, "no database"),
        (foreign, 2, "not a copy of an activity.db"),
        (damaged, 3, "damaged"),
        (newer, 3, "newer co-cli"),
    ):
        ran = used("data", "restore", str(path))
        assert (ran.code, len(ran.err.splitlines())) == (code, 1), says
        assert says in ran.err
    assert Path(file).read_bytes() == before
    assert set_aside_before(file) == []


def test_a_copy_made_while_another_process_writes_is_complete(
    open_activity: Opener, data_dir: Path, tmp_path: Path
) -> None:
    settings = load_settings({"data_dir": str(data_dir)})
    with open_activity() as activity:
        index(activity, Head("first.md", "first", "First"))
        done = threading.Event()

        def write() -> None:
            number = 0
            while not done.is_set() and number < 500:
                number += 1
                index(activity, Head(f"{number}.md", f"{number}", "Note"))

        writer = threading.Thread(target=write)
        writer.start()
        try:
            counts = [back_up(settings, str(tmp_path / f"{n}.db")).rows for n in range(3)]
        finally:
            done.set()
            writer.join()
        assert [row["documents"] for row in counts] == [row["versions"] for row in counts]
        restore(str(data_dir), str(tmp_path / "0.db"))
        index(activity, Head("later.md", "later", "Later"))  # into what was restored, not into what was moved aside
        assert look_at(str(data_dir / "activity.db")).rows["documents"] == counts[0]["documents"] + 1
