"""activity.db is never thrown away: it is migrated forward, left alone when newer, set aside when damaged."""

from __future__ import annotations

import re
import stat
import subprocess
import sys
from pathlib import Path

import apsw
import pytest

from co_cli.activity.database import APPLICATION, ActivityDatabase, migrate, migrations
from co_cli.activity.events import Head
from tests.activity.conftest import Opener, answer, index, rows
from tests.command import Co
from tests.rights import can_obey, obey_permissions
from tests.vault import Vault

NEWEST = len(migrations())

TABLES = "select name, sql from sqlite_master where name not like 'sqlite_%' order by name"

OLD_ROWS = {
    1: (
        "insert into vaults (id, root) values (1, '/vault')",
        "insert into documents (id, vault_id, path, hash, title) values (1, 1, 'oak.md', 'a1', 'Oak')",
        "insert into versions (document_id, at, what, hash) values (1, 5.0, 'created', 'a1')",
    ),
    3: (
        "insert into vaults (id, root) values (1, '/vault')",
        "insert into documents (id, vault_id, path, hash, title) values (1, 1, 'oak.md', 'a1', 'Oak')",
        "insert into uses (document_id, recalls, recalled) values (1, 2, 5.0)",
        "insert into questions (id, vault_id, folded, text, asked) values (1, 1, 'oaks', 'Oaks', 1)",
        "insert into queries (vault_id, at, day, question_id, door, backend, state, hits, took_ms, results) "
        "values (1, 5.0, 0, 1, 'cli', 'hybrid', 'found', 1, 2.0, '[]')",
        "insert into judgements (vault_id, document_id, folded, query, good, how, at, ref, candidates) "
        "values (1, 1, 'oaks', 'Oaks', 1, 'said', 5.0, 'article:/oak', '[]')",
    ),
}
"""Something that each version could hold, and that must be there after the next step."""


def tables(path: Path) -> list[tuple[str, str]]:
    connection = apsw.Connection(str(path))
    try:
        return connection.execute(TABLES).fetchall()  # type: ignore[return-value]
    finally:
        connection.close()


def test_each_migration_starts_from_the_version_before_and_loses_nothing(tmp_path: Path) -> None:
    for version, statements in OLD_ROWS.items():
        path = tmp_path / f"{version}.db"
        migrate(str(path), version)
        connection = apsw.Connection(str(path))
        for statement in statements:
            connection.execute(statement)
        connection.close()

        migrate(str(path))

        connection = apsw.Connection(str(path))
        assert (connection.pragma("user_version"), connection.pragma("application_id")) == (NEWEST, APPLICATION)
        for statement in statements:
            table = {"queries": "searches"}.get(statement.split()[2], statement.split()[2])
            assert table == "questions" or connection.execute(f"select count(*) from {table}").get == 1, statement
        connection.close()
    connection = apsw.Connection(str(tmp_path / "3.db"))
    assert connection.execute("select text, folded, front_end, at from searches").fetchall() == [
        ("Oaks", "oaks", "cli", 5.0)
    ]
    connection.close()


def test_an_old_file_comes_to_the_same_tables_as_a_new_one(tmp_path: Path, data_dir: Path) -> None:
    data_dir.mkdir()
    old, new = data_dir / "activity.db", tmp_path / "new.db"
    migrate(str(old), 1)
    migrate(str(new))

    database = ActivityDatabase(str(data_dir))
    with database.reading() as connection:
        assert connection.pragma("user_version") == NEWEST
    database.close()

    assert tables(old) == tables(new)


def test_a_migration_that_fails_leaves_the_version_before(tmp_path: Path) -> None:
    path = tmp_path / "activity.db"
    migrate(str(path), 1)
    connection = apsw.Connection(str(path))
    connection.execute("create table uses (in_the_way text)")
    connection.close()
    before = tables(path)

    with pytest.raises(apsw.SQLError, match="already exists"):
        migrate(str(path))

    connection = apsw.Connection(str(path))
    assert connection.pragma("user_version") == 1
    connection.close()
    assert tables(path) == before


def test_a_newer_file_is_left_alone_and_everything_goes_on_without_it(co: Co, vault: Vault, data_dir: Path) -> None:
    data_dir.mkdir()
    migrate(str(data_dir / "activity.db"))
    connection = apsw.Connection(str(data_dir / "activity.db"))
    connection.pragma("user_version", NEWEST + 1)
    connection.close()
    before = (data_dir / "activity.db").read_bytes()
    vault.write("memories/oak.md", "Oaks live long.")

    found, saved, history, stats = (
        co("search", "oaks"),
        co("remember", "Elms fall ill."),
        co("note", "history", "oak"),
        co("feedback", "stats"),
    )

    assert (found.code, saved.code) == (0, 0)
    assert found.err == saved.err == ""
    assert "note: " in history.out
    assert "newer co-cli" in history.out
    assert stats.code == 3
    assert stats.err.startswith(f"co: {data_dir / 'activity.db'} is of a newer co-cli (version {NEWEST + 1}")
    assert len(stats.err.splitlines()) == 1
    assert (data_dir / "activity.db").read_bytes() == before


@pytest.mark.parametrize(
    "content", [b"not a database at all, but somebody's notes" * 50, b"SQLite format 3\0" + b"\xff" * 5000]
)
def test_a_file_that_is_no_database_is_set_aside(
    open_activity: Opener, data_dir: Path, vault: Vault, content: bytes
) -> None:
    data_dir.mkdir()
    (data_dir / "activity.db").write_bytes(content)

    with open_activity() as activity:
        index(activity, Head("oak.md", "a1", "Oak"))
        assert rows(activity, "select path from documents") == [("oak.md",)]

    kept = [path for path in data_dir.iterdir() if path.name.startswith("activity.db.2")]
    assert [path.read_bytes() for path in kept] == [content]


def test_an_empty_file_and_a_missing_folder_are_no_matter(open_activity: Opener, data_dir: Path, vault: Vault) -> None:
    for prepare in (lambda: None, lambda: (data_dir / "activity.db").write_bytes(b"")):
        with open_activity() as activity:
            prepare()
            activity.searched(answer(vault.root, "oaks", "oak"))
            assert activity.flush()
        for file in data_dir.glob("activity.db*"):
            file.unlink()


def test_it_is_for_nobody_else_to_read(open_activity: Opener, data_dir: Path, vault: Vault) -> None:
    with open_activity() as activity:
        activity.searched(answer(vault.root, "oaks", "oak"))
        assert activity.flush()
        with open_activity(brief=True) as brief:
            brief.searched(answer(vault.root, "elms"))
        files = [path for path in data_dir.glob("activity*") if path.suffix != ".lock"]

        assert {path.name for path in files} == {"activity.db", "activity.db-wal", "activity.db-shm", "activity.spool"}
        assert {stat.S_IMODE(path.stat().st_mode) for path in files} == {0o600}


def test_eight_processes_that_open_it_first_at_once_all_write(
    open_activity: Opener, data_dir: Path, vault: Vault
) -> None:
    code = (
        "import sys\n"
        "from co_cli.activity import Activity\n"
        "from co_cli.activity.events import Head, Indexed\n"
        "from co_cli.settings import load_settings\n"
        "sys.stdin.readline()\n"
        "with Activity(load_settings({'data_dir': sys.argv[1]}), '/vault') as activity:\n"
        "    activity.writer.write([Indexed('/vault', 1.0, [Head(f'{sys.argv[2]}.md', sys.argv[2], 'Oak')])])\n"
        "    assert not activity.dropped, activity.problem\n"
    )
    processes = [
        subprocess.Popen([sys.executable, "-c", code, str(data_dir), str(number)], stdin=subprocess.PIPE)
        for number in range(8)
    ]
    for process in processes:
        assert process.stdin is not None
        process.stdin.write(b"go\n")
        process.stdin.flush()
    for process in processes:
        process.communicate(timeout=60)

    assert [process.returncode for process in processes] == [0] * 8
    with open_activity() as activity:
        assert rows(activity, "select count(*) from documents") == [(8,)]


def test_deleting_it_loses_no_note_and_breaks_nothing(co: Co, vault: Vault, data_dir: Path) -> None:
    vault.write("memories/oak.md", "Oaks live long.")
    co("search", "oaks")
    assert co("feedback", "stats").code == 0

    for file in data_dir.glob("activity*"):
        file.unlink()

    assert co("search", "oaks").code == 0
    assert [change["what"] for change in co("note", "history", "oak", "--json").json["changes"]] == ["seen"]
    assert co("feedback", "stats", "--json").json["searches"] == 1
    assert vault.read("memories/oak.md") == "Oaks live long."


@pytest.mark.skipif(not can_obey(), reason="root cannot give up its right to ignore permissions here")
def test_a_folder_that_cannot_be_written_fails_no_search(co: Co, vault: Vault, data_dir: Path) -> None:
    vault.write("memories/oak.md", "Oaks live long.")
    co("search", "oaks")
    (data_dir / "activity.spool").unlink(missing_ok=True)
    data_dir.chmod(0o500)
    try:
        ran = co.process("search", "oaks", "--no-sync", before=obey_permissions)
        left = [path.name for path in data_dir.iterdir() if path.name == "activity.spool"]
    finally:
        data_dir.chmod(0o700)

    assert (ran.code, ran.err, left) == (0, "", [])
    assert "memory:oak" in ran.out


def test_an_unusable_file_drops_and_counts(open_activity: Opener, data_dir: Path, vault: Vault) -> None:
    (data_dir / "activity.db").mkdir(parents=True)  # a folder, of all things

    with open_activity() as activity:
        activity.searched(answer(vault.root, "oaks", "oak"))

        assert not activity.flush()
        assert activity.dropped == 1
        assert "activity.db" in (activity.problem or "")


def spoil(file: Path, table: str) -> None:
    connection = apsw.Connection(str(file))
    page = int(str(connection.execute("select rootpage from sqlite_master where name = :name", {"name": table}).get))
    connection.close()
    with file.open("r+b") as stream:
        stream.seek((page - 1) * 4096)
        stream.write(b"\xff" * 4096)


@pytest.mark.parametrize("table", ["documents", "searches"])
def test_a_damaged_file_is_set_aside_and_restarted_and_notes_and_index_are_untouched(
    co: Co, vault: Vault, data_dir: Path, table: str
) -> None:
    vault.write("memories/oak.md", "Oaks live long.")
    co("search", "oaks")
    co("feedback", "stats")
    index, file = (data_dir / "search.db").read_bytes(), data_dir / "activity.db"
    spoil(file, table)

    found = co("search", "oaks")
    saved = co("remember", "Elms fall ill.")
    co("feedback", "stats")
    stats = co("feedback", "stats", "--json")

    assert (found.code, found.err, saved.code) == (0, "", 0)
    assert saved.err.count("activity.db is damaged") <= 1
    [kept] = [path for path in data_dir.iterdir() if re.fullmatch(r"activity\.db\.\d+T\d+Z", path.name)]
    assert stats.code == 0
    assert co("note", "history", "elms-fall-ill", "--json").json["changes"]
    assert vault.read("memories/oak.md") == "Oaks live long."
    assert len(index) <= (data_dir / "search.db").stat().st_size
    assert kept.stat().st_size >= 4096


def test_a_process_that_stays_goes_on_in_a_new_file_and_loses_nothing_new(
    open_activity: Opener, data_dir: Path, vault: Vault
) -> None:
    with open_activity() as activity:
        activity.searched(answer(vault.root, "oaks", "oak"))
        assert activity.flush()
    spoil(data_dir / "activity.db", "searches")
    told: list[str] = []

    with open_activity() as activity:
        activity.on_set_aside = told.append
        activity.searched(answer(vault.root, "elms", "elm"))
        assert activity.flush()
        assert rows(activity, "select text from searches") == [("elms",)]
        assert activity.dropped == 0
    assert len(told) == 1
    assert "it is kept as" in told[0]


def test_damage_that_nobody_met_is_found_by_the_doctor_and_moved_aside_by_fix(
    open_activity: Opener, data_dir: Path, vault: Vault
) -> None:
    assert ActivityDatabase(str(data_dir)).check() is None
    assert not data_dir.exists()
    with open_activity() as activity:
        activity.searched(answer(vault.root, "oaks", "oak"))
    assert ActivityDatabase(str(data_dir)).check() is None
    spoil(data_dir / "activity.db", "judgements")

    assert "`co doctor --fix` starts a new one" in (ActivityDatabase(str(data_dir)).check() or "")
    assert "it is kept as" in (ActivityDatabase(str(data_dir)).check(fix=True) or "")
    assert ActivityDatabase(str(data_dir)).check() is None
