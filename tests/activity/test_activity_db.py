"""activity.db is never thrown away: it is migrated forward, left alone when newer, moved aside when damaged."""

from __future__ import annotations

import stat
import subprocess
import sys
from pathlib import Path
from typing import Any

import apsw
import pytest

from co_cli.activity.database import APPLICATION, migrate, migrations
from co_cli.activity.events import Head
from co_cli.index.sqlite.database_files import set_aside_before
from tests.activity.conftest import Opener, answer, index, rows
from tests.command import Co
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
"""What a version could hold, and what must survive the next ones."""
RENAMED = {"queries": "searches", "questions": "searches"}


def fetch(path: Path, statement: str) -> list[Any]:
    connection = apsw.Connection(str(path))
    try:
        return connection.execute(statement).fetchall()
    finally:
        connection.close()


def test_migrations_lose_nothing_and_lead_to_the_tables_of_a_new_file(tmp_path: Path) -> None:
    migrate(str(tmp_path / "new.db"))
    for version, statements in OLD_ROWS.items():
        path = tmp_path / f"{version}.db"
        migrate(str(path), version)
        for statement in statements:
            fetch(path, statement)

        migrate(str(path))

        assert fetch(path, "pragma user_version") + fetch(path, "pragma application_id") == [(NEWEST,), (APPLICATION,)]
        assert fetch(path, TABLES) == fetch(tmp_path / "new.db", TABLES)
        for table in (statement.split()[2] for statement in statements):
            assert fetch(path, f"select count(*) from {RENAMED.get(table, table)}") == [(1,)], (version, table)
    searches = fetch(tmp_path / "3.db", "select text, folded, front_end, at from searches")
    assert searches == [("Oaks", "oaks", "cli", 5.0)]


def test_a_migration_that_fails_leaves_the_version_before(tmp_path: Path) -> None:
    path = tmp_path / "activity.db"
    migrate(str(path), 1)
    fetch(path, "create table uses (in_the_way text)")
    before = fetch(path, TABLES)

    with pytest.raises(apsw.SQLError, match="already exists"):
        migrate(str(path))

    assert (fetch(path, "pragma user_version"), fetch(path, TABLES)) == ([(1,)], before)


def test_a_newer_file_is_left_alone_and_everything_goes_on_without_it(co: Co, vault: Vault, data_dir: Path) -> None:
    data_dir.mkdir()
    file = data_dir / "activity.db"
    migrate(str(file))
    fetch(file, f"pragma user_version = {NEWEST + 1}")
    before = file.read_bytes()
    vault.write("memories/oak.md", "Oaks live long.")

    found, saved = co("search", "oaks"), co("remember", "Elms fall ill.")
    history, stats = co("note", "history", "oak"), co("feedback", "stats")

    assert (found.code, saved.code, found.err, saved.err) == (0, 0, "", "")
    assert "newer co-cli" in history.out
    assert stats.code == 3
    assert stats.err.startswith(f"co: {file} is of a newer co-cli (version {NEWEST + 1}")
    assert len(stats.err.splitlines()) == 1
    assert file.read_bytes() == before


def test_a_file_that_is_no_database_is_set_aside(open_activity: Opener, data_dir: Path) -> None:
    for content in (b"", b"somebody's notes" * 50, b"SQLite format 3\0" + b"\xff" * 5000):
        data_dir.mkdir(exist_ok=True)
        (data_dir / "activity.db").write_bytes(content)
        with open_activity() as activity:
            index(activity, Head("oak.md", "a1", "Oak"))
            assert rows(activity, "select path from documents") == [("oak.md",)]

        kept = set_aside_before(str(data_dir / "activity.db"))
        assert [Path(file).read_bytes() for file in kept] == ([content] if content else [])
        for file in data_dir.glob("activity.db*"):
            file.unlink()


def test_nobody_else_can_read_it(open_activity: Opener, data_dir: Path, vault: Vault) -> None:
    with open_activity() as activity:
        activity.searched(answer(vault.root, "oaks", "oak"))
        assert activity.flush()
        with open_activity(brief=True) as brief:
            brief.searched(answer(vault.root, "elms"))
        files = [path for path in data_dir.glob("activity*") if path.suffix != ".lock"]

        assert {path.name for path in files} == {"activity.db", "activity.db-wal", "activity.db-shm", "activity.spool"}
        assert {stat.S_IMODE(path.stat().st_mode) for path in files} == {0o600}


def test_eight_processes_that_open_it_first_at_once_all_write(open_activity: Opener, data_dir: Path) -> None:
    code = (
        "import sys\n"
        "from co_cli.activity import Activity\n"
        "from co_cli.activity.events import Head, Indexed\n"
        "from co_cli.settings import load_settings\n"
        "sys.stdin.readline()\n"
        "with Activity(load_settings({'data_dir': sys.argv[1]}), '/vault') as activity:\n"
        "    activity.write([Indexed('/vault', 1.0, [Head(f'{sys.argv[2]}.md', sys.argv[2], 'Oak')])])\n"
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
    assert rows(open_activity(), "select count(*) from documents") == [(8,)]


def test_deleting_it_loses_no_note_and_breaks_nothing(co: Co, vault: Vault, data_dir: Path) -> None:
    vault.write("memories/oak.md", "Oaks live long.")
    co("search", "oaks")
    assert co("feedback", "stats").code == 0

    for file in data_dir.glob("activity*"):
        file.unlink()

    assert co("search", "oaks").code == 0
    assert [change["what"] for change in co("note", "history", "oak", "--json").json["changes"]] == ["seen"]
    assert co("feedback", "stats", "--json").json["searches"] == 1


def spoil(file: Path, table: str) -> None:
    [(page,)] = fetch(file, f"select rootpage from sqlite_master where name = '{table}'")
    with file.open("r+b") as stream:
        stream.seek((page - 1) * 4096)
        stream.write(b"\xff" * 4096)


def test_a_damaged_file_is_set_aside_and_restarted_and_notes_and_index_are_untouched(
    co: Co, vault: Vault, data_dir: Path
) -> None:
    vault.write("memories/oak.md", "Oaks live long.")
    for number, table in enumerate(("documents", "searches"), 1):
        co("search", "oaks")
        co("feedback", "stats")
        spoil(data_dir / "activity.db", table)

        found = co("search", "oaks")
        saved = co("remember", f"Elm number {number} fell ill.")
        co("feedback", "stats")

        assert (found.code, found.err, saved.code) == (0, "", 0), table
        assert saved.err.count("activity.db is damaged") <= 1
        assert len(set_aside_before(str(data_dir / "activity.db"))) == number
        assert co("note", "history", f"elm-number-{number}-fell-ill", "--json").json["changes"]
    assert vault.read("memories/oak.md") == "Oaks live long."


def test_a_process_that_stays_goes_on_in_a_new_file_and_loses_nothing_new(
    open_activity: Opener, data_dir: Path, vault: Vault
) -> None:
    with open_activity() as activity:
        activity.searched(answer(vault.root, "oaks", "oak"))
    spoil(data_dir / "activity.db", "searches")
    messages: list[str] = []

    with open_activity() as activity:
        activity.on_set_aside = messages.append
        activity.searched(answer(vault.root, "elms", "elm"))
        assert rows(activity, "select text from searches") == [("elms",)]
        assert activity.dropped == 0
    assert len(messages) == 1
    assert "it is kept as" in messages[0]
