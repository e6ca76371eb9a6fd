"""`co data backup` and `co data restore`: what no file can tell is copied while it is used, and comes back."""

from __future__ import annotations

import os
import re
import shutil
import stat
import threading
from pathlib import Path

import apsw
import pytest

from co_cli.activity.backup import back_up, look_at, restore
from co_cli.activity.database import ActivityDatabase, migrate, migrations
from co_cli.activity.events import Head
from co_cli.settings import load_settings
from tests.activity.conftest import Opener, index
from tests.command import Co
from tests.trouble.file_systems import fill, small_disk
from tests.vault import Vault


@pytest.fixture
def used(co: Co, vault: Vault) -> Co:
    vault.write("memories/oak.md", "Oaks live long.")
    co("search", "oaks")
    co("note", "history", "oak")
    return co


def searches(co: Co) -> int:
    return co("feedback", "stats", "--json").json["searches"]


def kept(data_dir: Path) -> list[Path]:
    return [path for path in data_dir.iterdir() if re.fullmatch(r"activity\.db\.\d+T\d+Z(-\d+)?", path.name)]


def test_a_backup_brings_back_what_was_there_and_keeps_what_it_replaces(used: Co, data_dir: Path) -> None:
    def documents() -> int:
        return look_at(str(data_dir / "activity.db")).rows["documents"]

    made = used("data", "backup", "--json").json
    used("remember", "Elms fall ill.")
    assert (made["rows"]["documents"], documents()) == (1, 2)

    back = used("data", "restore", made["path"])

    assert (back.code, back.err, documents()) == (0, "", 1)
    [old] = kept(data_dir)
    used("data", "restore", str(old))
    assert documents() == 2
    assert not list(data_dir.glob("*.restored*"))
    assert "memory:oak" in used("search", "oaks").out


def test_it_is_one_file_for_its_owner_alone_and_holds_what_was_still_spooled(used: Co, data_dir: Path) -> None:
    used("feedback", "stats")
    used("search", "oaks")
    assert (data_dir / "activity.spool").exists()

    assert used("data", "backup").code == 0
    assert used("data", "backup").code == 0  # within the same second

    files = sorted((data_dir / "backups").iterdir())
    assert [bool(re.fullmatch(r"activity-\d+T\d+Z(-2)?\.db", file.name)) for file in files] == [True, True]
    assert {stat.S_IMODE(file.stat().st_mode) for file in files} == {0o600}
    assert look_at(str(files[0])).rows["searches"] == 2
    listed = used("data", "restore")
    assert all(str(file) in listed.out for file in files)


def test_nothing_is_overwritten_unasked(used: Co, tmp_path: Path, data_dir: Path) -> None:
    mine = tmp_path / "mine.db"
    mine.write_text("somebody's")

    refused = used("data", "backup", str(mine))
    assert (refused.code, mine.read_text()) == (2, "somebody's")
    assert "--overwrite" in refused.err
    assert used("data", "backup", str(data_dir / "activity.db"), "--overwrite").code == 2
    assert used("data", "backup", str(tmp_path)).code == 2

    assert used("data", "backup", str(mine), "--overwrite").code == 0
    assert look_at(str(mine)).rows["documents"] == 1
    assert [path.name for path in tmp_path.iterdir() if ".part" in path.name] == []


def test_a_folder_that_is_not_there_is_not_made_for_its_drive_may_be_away(used: Co, tmp_path: Path) -> None:
    drive = tmp_path / "media" / "disk"

    ran = used("data", "backup", str(drive / "activity.db"))

    assert ran.code == 2
    assert f"there is no folder {drive}: is its drive mounted?" in ran.err
    assert not drive.parent.exists()
    drive.mkdir(parents=True)
    assert used("data", "backup", str(drive / "activity.db")).code == 0


def test_what_a_restore_keeps_is_whole_without_its_log(open_activity: Opener, used: Co, data_dir: Path) -> None:
    made = used("data", "backup", "--json").json["path"]
    with open_activity() as activity:  # has it open, with a log
        with activity.database.writing() as connection:
            connection.execute("update documents set title = 'in the log'")
        assert (data_dir / "activity.db-wal").stat().st_size > 0

        assert used("data", "restore", made).code == 0
        [old] = kept(data_dir)  # while it is still open: whoever closes it would fold the log in, too
        alone = shutil.copy(old, data_dir / "alone.db")

    connection = apsw.Connection(str(alone))
    assert connection.execute("select title from documents").get == "in the log"
    connection.close()


def test_whoever_opens_it_at_the_moment_of_a_restore_writes_into_what_was_restored(used: Co, data_dir: Path) -> None:
    made = used("data", "backup", "--json").json["path"]
    path = data_dir / "activity.db"
    used("remember", "Elms fall ill.")
    assert look_at(str(path)).rows["documents"] == 2

    def restore_now(connection: apsw.Connection) -> None:
        apsw.connection_hooks.remove(restore_now)  # once: as soon as the old file is open, before it is read
        restore(str(data_dir), made)

    database = ActivityDatabase(str(data_dir))
    apsw.connection_hooks.append(restore_now)
    with database.writing() as connection:
        connection.execute("update documents set title = 'after the restore'")
    database.close()

    assert restore_now not in apsw.connection_hooks
    assert look_at(str(path)).rows["documents"] == 1, "nothing of the old file came along"
    connection = apsw.Connection(str(path))
    assert connection.execute("select title from documents").get == "after the restore"
    connection.close()


def test_a_full_disk_is_called_so_and_leaves_nothing(used: Co, tmp_path: Path) -> None:
    with small_disk(tmp_path / "small", "64k") as disk:
        fill(disk)
        ran = used("data", "backup", str(disk / "activity.db"))

        assert ran.code == 3
        assert f"the disk is full (0 bytes are left in {disk}); free some space" in ran.err
        assert [file.name for file in disk.iterdir()] == ["filler.bin"]


def newer(path: Path) -> None:
    migrate(str(path))
    connection = apsw.Connection(str(path))
    connection.pragma("user_version", len(migrations()) + 1)
    connection.close()


def damaged(path: Path) -> None:
    migrate(str(path))
    data = bytearray(path.read_bytes())
    data[4096:] = b"\xff" * (len(data) - 4096)
    path.write_bytes(data)


def foreign(path: Path) -> None:
    connection = apsw.Connection(str(path))
    connection.execute("create table bees (name text)")
    connection.close()


@pytest.mark.parametrize(
    ("make", "code", "told"),
    [
        (lambda path: None, 2, "there is no backup"),
        (lambda path: path.write_text("no database" * 99), 3, "no database"),
        (foreign, 2, "not a copy of an activity.db"),
        (damaged, 3, "damaged"),
        (newer, 3, "newer co-cli"),
    ],
    ids=["missing", "text", "somebody else's", "damaged", "newer"],
)
def test_what_is_not_a_sound_copy_is_refused_and_nothing_changes(
    used: Co, data_dir: Path, tmp_path: Path, make: object, code: int, told: str
) -> None:
    used("feedback", "stats")
    file, before = tmp_path / "copy.db", (data_dir / "activity.db").read_bytes()
    assert callable(make)
    make(file)

    ran = used("data", "restore", str(file))

    assert (ran.code, len(ran.err.splitlines())) == (code, 1)
    assert told in ran.err
    assert (data_dir / "activity.db").read_bytes() == before
    assert kept(data_dir) == []


@pytest.mark.skipif(os.name == "nt", reason="Windows has no such files")
def test_a_pipe_or_a_folder_is_neither_replaced_nor_waited_for(used: Co, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "folder").mkdir()

    for name in ("pipe", "folder"):
        for command in (
            ("data", "backup", str(tmp_path / name), "--overwrite"),
            ("data", "restore", str(tmp_path / name)),
        ):
            ran = used(*command)
            assert (ran.code, ran.err.count("\n")) == (2, 1)
    assert (tmp_path / "pipe").is_fifo()


def test_an_older_copy_is_brought_forward(used: Co, tmp_path: Path) -> None:
    old = tmp_path / "old.db"
    migrate(str(old), 1)

    assert used("data", "restore", str(old)).code == 0
    assert searches(used) == 0
    used("search", "oaks")
    assert searches(used) == 1


def test_a_copy_made_beside_a_writer_is_whole_and_writer_and_reader_go_on(
    open_activity: Opener, data_dir: Path, tmp_path: Path
) -> None:
    with open_activity() as activity:
        index(activity, Head("first.md", "first", "First"))
        done = threading.Event()
        settings = load_settings({"data_dir": str(data_dir)})

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
        index(activity, Head("later.md", "later", "Later"))  # into what was restored, not into what was set aside
        with activity.database.reading() as connection:
            assert connection.execute("select count(*) from documents").get == counts[0]["documents"] + 1
            assert connection.pragma("journal_mode") == "wal"


def test_without_anything_to_copy_it_says_so(co: Co) -> None:
    ran = co("data", "backup")

    assert (ran.code, len(ran.err.splitlines())) == (2, 1)
    assert "nothing to copy" in ran.err
    assert co("data", "restore").code == 1
