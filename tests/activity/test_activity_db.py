"""activity.db is never deleted: one of another version is left alone, a damaged one is moved aside."""

from __future__ import annotations

import re
import stat
from importlib import import_module
from pathlib import Path
from pkgutil import walk_packages
from typing import Any

import apsw
import pytest

import co_cli.activity
from co_cli.activity.database import create_activity, versions
from co_cli.activity.events import Head
from co_cli.index.sqlite.database_files import set_aside_before
from tests.activity.conftest import Opener, answer, index, rows
from tests.command import Co, run_together
from tests.damage import spoil_table
from tests.folder import Vault

STATEMENT = re.compile(r"\s*(select|insert|update|delete|with) ")


def fetch(path: Path, statement: str) -> list[Any]:
    connection = apsw.Connection(str(path))
    try:
        return connection.execute(statement).fetchall()
    finally:
        connection.close()


def test_sqlite_accepts_every_statement(tmp_path: Path) -> None:
    """Without activity.db co only knows less, so a wrong statement would not be noticed."""
    modules = [import_module(one.name) for one in walk_packages(co_cli.activity.__path__, "co_cli.activity.")]
    constants = {(module.__name__, name): value for module in modules for name, value in vars(module).items()}
    statements = {key: text for key, text in constants.items() if isinstance(text, str) and STATEMENT.match(text)}
    create_activity(str(tmp_path / "activity.db"))
    connection = apsw.Connection(str(tmp_path / "activity.db"))

    for text in statements.values():
        connection.execute(f"explain {text}", dict.fromkeys(re.findall(r":(\w+)", text)))

    assert len(statements) > 50
    connection.close()


def test_a_file_of_another_version_is_left_alone_and_everything_works_without_it(
    co: Co, vault: Vault, data_dir: Path
) -> None:
    data_dir.mkdir()
    file = data_dir / "activity.db"
    create_activity(str(file))
    vault.write("memories/oak.md", "Oaks live long.")
    for version, problem in ((max(versions()) + 1, "is of a newer co-cli"), (1, "was made before the first release")):
        fetch(file, f"pragma user_version = {version}")
        before = file.read_bytes()

        found, saved = co("search", "oaks"), co("remember", f"Elms fall ill in year {version}.")
        history, stats = co("note", "history", "oak"), co("feedback", "stats")

        assert (found.code, saved.code, found.err, saved.err) == (0, 0, "", "")
        assert problem in history.out.replace("\n", " ").replace("  ", " ")
        assert (stats.code, len(stats.err.splitlines())) == (3, 1)
        assert stats.err.startswith(f"co: {file} {problem}")
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


@pytest.mark.slow
def test_eight_processes_that_open_it_first_at_once_all_write(open_activity: Opener, data_dir: Path) -> None:
    code = """
import sys
from co_cli.activity import Activity
from co_cli.activity.events import Head, Indexed
from co_cli.ground.settings import load_settings
sys.stdin.readline()
with Activity(load_settings({"data_dir": sys.argv[1]}), "/vault") as activity:
    activity.write([Indexed("/vault", 1.0, [Head(f"{sys.argv[2]}.md", sys.argv[2], "Oak")])])
    assert not activity.dropped, activity.problem
"""
    run_together(code, *((data_dir, number) for number in range(8)))

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


def test_a_damaged_file_is_set_aside_and_restarted_and_notes_and_index_are_untouched(
    co: Co, vault: Vault, data_dir: Path
) -> None:
    vault.write("memories/oak.md", "Oaks live long.")
    for number, table in enumerate(("documents", "searches"), 1):
        co("search", "oaks")
        co("feedback", "stats")
        spoil_table(data_dir / "activity.db", table)

        found = co("search", "oaks")
        saved = co("remember", f"Elm number {number} fell ill.")
        co("feedback", "stats")

        assert (found.code, found.err, saved.code) == (0, "", 0), table
        assert saved.err.count("activity.db is damaged") <= 1
        assert len(set_aside_before(str(data_dir / "activity.db"))) == number
        assert co("note", "history", f"elm-number-{number}-fell-ill", "--json").json["changes"]
    assert vault.read("memories/oak.md") == "Oaks live long."


def test_doctor_and_status_name_an_activity_db_that_was_moved_aside_until_it_is_deleted(co: Co, data_dir: Path) -> None:
    co("remember", "Oaks live long.")
    (data_dir / "activity.db").write_bytes(b"no database at all")
    co("remember", "Elms fall ill.")

    [kept] = set_aside_before(str(data_dir / "activity.db"))
    for command in (("doctor",), ("doctor", "--fix"), ("index", "status")):
        assert kept in co(*command).out, command
    assert co("index", "status", "--json").json["moved_aside"] == [kept]

    Path(kept).unlink()
    for command in (("doctor",), ("index", "status")):
        assert "aside" not in co(*command).out, command


def test_a_process_that_stays_goes_on_in_a_new_file_and_loses_nothing_new(
    open_activity: Opener, data_dir: Path, vault: Vault
) -> None:
    with open_activity() as activity:
        activity.searched(answer(vault.root, "oaks", "oak"))
    spoil_table(data_dir / "activity.db", "searches")
    messages: list[str] = []

    with open_activity(tell=messages.append) as activity:
        activity.searched(answer(vault.root, "elms", "elm"))
        assert rows(activity, "select text from searches") == [("elms",)]
        assert activity.dropped == 0
    assert len(messages) == 1
    assert "it is kept as" in messages[0]
