"""A save through one server of a team: one transaction, seen by the others at once."""

from __future__ import annotations

import contextlib
import errno
import json
import os
import signal
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from multiprocessing.connection import Connection
from pathlib import Path

import psycopg
import pytest

from co_cli.activity import acting
from co_cli.agent.memory_files import MemoryFiles
from co_cli.entrance.knowledge_base import KnowledgeBase
from co_cli.ground.errors import IndexUnavailableError, InvalidInputError, NoteConflictError, NoteFileError, VaultError
from co_cli.ground.saves import SaveReceipt
from co_cli.ground.settings import load_settings
from co_cli.importers.note_importer import ImportRequest, import_export
from co_cli.index.postgres import postgres_engine
from co_cli.index.postgres.postgres_statements import ORIGIN_LOCK, fetch
from co_cli.server.access_tokens import AccessTokens
from co_cli.upkeep.verification import verify
from co_cli.vault.team import team_vault
from co_cli.vault.team.schema import MIGRATIONS
from tests.command import Co
from tests.soak.runner import Process
from tests.soak.team import open_server
from tests.vault.team.servers import Team, commit, git, keep, kept_texts, team_of

pytestmark = pytest.mark.postgres


def test_of_two_servers_only_one_makes_the_vectors_that_wait(team: Team) -> None:
    one, two = team.server("one", "encoder"), team.server("two", "encoder")
    assert two.waiting().passages == 1
    with one.vault.engine.embedding(one.vault.index.origin, 0):  # it is at work
        assert not two.embed(60)
        assert two.waiting().passages == 1

    two.embed(60)
    assert [kb.waiting().passages for kb in (one, two)] == [0, 0]


def test_a_save_on_one_server_is_read_on_another_at_once(team: Team) -> None:
    one, two = team.server("one"), team.server("two")
    saved = one.remember("Elms like water.", tags=["tree"])

    assert two.note(saved.ref).body.strip() == "Elms like water."
    assert two.search("elms").hits[0].ref == saved.ref
    two.update(saved.ref, "Elms like light.", version=two.note(saved.ref).version)
    assert one.note(saved.ref).body.strip() == "Elms like light."
    with pytest.raises(InvalidInputError, match="git filter-repo"):
        one.erase(saved.ref)
    two.forget(saved.ref)
    assert [note.ref for note in one.notes()] == ["memory:oak"]
    assert one.restore(saved.ref).outcome == "restored"
    assert two.note(saved.ref).body.strip() == "Elms like light."
    assert two.sync().touched == 0


def test_a_text_that_clients_of_two_servers_save_at_once_is_one_note_with_its_vector(team: Team) -> None:
    servers = [team.server("one"), team.server("two")]
    with ThreadPoolExecutor(6) as pool:
        saved = list(pool.map(lambda kb: kb.remember("Elms like water."), servers * 3))

    assert sorted(one.outcome for one in saved) == ["created", *["duplicate"] * 5]
    assert {one.ref for one in saved} == {"memory:elms-like-water"}
    assert team.ask("select count(*) from team.changes where path like '%elm%'") == [(1,)]
    for kb in servers:
        assert "meaning" in kb.search("moisture for elm trees").hits[0].signals
        assert kb.index.unembedded() == 0


def test_a_change_based_on_a_text_that_another_server_has_replaced_is_refused(team: Team) -> None:
    one, two = team.server("one"), team.server("two")
    read = one.note("memory:oak").version
    two.update("memory:oak", "Oaks live very long.", version=read)

    with pytest.raises(NoteConflictError):
        one.update("memory:oak", "Oaks are old.", version=read)
    assert one.note("memory:oak").body.strip() == "Oaks live very long."


def test_every_save_says_who_it_was_in_the_audit_and_in_git(team: Team) -> None:
    kb = team.server("one")
    for number, name in enumerate(("mara", "mara", "bex")):
        token = acting.set(f"web:{name}")
        kb.remember(f"Fact {number} of {name}.", on_related="keep")
        acting.reset(token)
    kb.forget("memory:oak")
    keep(kb)

    with psycopg.connect(team.address) as connection:
        rows = connection.execute("select who, action, path from team.audit order by id").fetchall()
    assert rows[:3] == [
        ("mara", "create", "memories/fact-0-of-mara.md"),
        ("mara", "create", "memories/fact-1-of-mara.md"),
        ("bex", "create", "memories/fact-2-of-bex.md"),
    ]
    assert {(action, path) for _, action, path in rows[3:]} >= {("remove", "memories/oak.md")}
    for change in ("delete from team.audit", "update team.audit set who = 'bex'"):
        with pytest.raises(IndexUnavailableError, match="permission denied"), team_of(kb).engine.asking() as asking:
            asking.execute(change.encode())
    commits = git(team.remote, "log", "--format=%an: %s", "-3").splitlines()
    assert commits[1:] == ["bex: Save memories/fact-2-of-bex.md", "mara: Save memories/fact-0-of-mara.md and 1 more"]


def test_a_receipt_says_committed_and_pushed_when_it_is(team: Team) -> None:
    kb = team.server("one")
    seq = kb.remember("Elms like water.").seq
    assert seq
    assert team_of(kb).receipt(seq) == SaveReceipt(seq, True, None, False)
    assert team_of(kb).wait_pushed(seq, 0).pushed is False

    keep(kb)

    assert team_of(kb).wait_pushed(seq, 5) == SaveReceipt(seq, True, git(team.remote, "rev-parse", "HEAD"), True)
    assert kb.remember("Elms like water.").seq is None, "a repeat saves nothing"
    for unknown in (seq + 1, 0, -1, 10**20):
        with pytest.raises(InvalidInputError, match=f"there is no save {unknown}"):
            team_of(kb).receipt(unknown)


def test_a_move_has_a_receipt_also_if_another_note_supersedes_the_moved_one_by_its_title(team: Team) -> None:
    team.push("memories/elm.md", "---\nsupersedes: oak\n---\nElms live longer.\n")
    one = team.server("one")
    moved = one.update("memory:oak", path="trees/oak.md")

    assert moved.ref == "memory:trees/oak"
    assert not team_of(one).receipt(moved.seq or 0).pushed
    keep(one)
    assert team_of(one).receipt(moved.seq or 0).pushed


def test_a_save_that_the_database_refuses_leaves_the_folder_as_it_was(team: Team) -> None:
    kb = team.server("one")
    team.ask("create function team.refuse() returns trigger language plpgsql as 'begin raise exception ''full''; end'")
    team.ask("create trigger refuse before insert on team.changes execute function team.refuse()")

    with pytest.raises(psycopg.Error):
        kb.update("memory:oak", "Oaks are gone.")
    with pytest.raises(psycopg.Error):
        kb.remember("Elms like water.")
    assert {file.name for file in (team.place / "one" / "memories").iterdir()} == {"oak.md"}
    assert kb.note("memory:oak").body == "Oaks live long.\n"
    assert [note.ref for note in kb.notes()] == ["memory:oak"]
    assert kb.search("elms").hits[0].ref == "memory:oak"

    team.ask("drop trigger refuse on team.changes")
    assert kb.remember("Elms like water.").seq


def save_and_hang(pipe: Connection, folder: str, address: str) -> None:
    kb = open_server(Path(folder), address)
    kb.update("memory:oak", "Oaks are gone.")
    pipe.send("saved")


def kill_during_a_save(team: Team, name: str, table: str = "team.changes") -> None:
    """Kill a server that is about to insert a row into this table."""
    team.ask("create function team.hang() returns trigger language plpgsql as 'begin perform pg_sleep(60); end'")
    team.ask(f"create trigger hang before insert on {table} execute function team.hang()")
    victim = Process(save_and_hang, str(team.place / name), team.address)
    while not team.ask(
        "select pid from pg_stat_activity where wait_event = 'PgSleep' and datname = current_database()"
    ):
        assert not victim.pipe.poll(0.01), "it did not hang"
    victim.kill()
    victim.close()
    team.ask(
        "select pg_terminate_backend(pid) from pg_stat_activity where datname = current_database() "
        "and pid <> pg_backend_pid()"
    )
    team.ask(f"drop trigger hang on {table}")


def test_a_server_killed_between_the_file_and_the_commit_leaves_the_folder_as_it_was(team: Team) -> None:
    team.server("one").close()
    kill_during_a_save(team, "one")

    kb = team.server("one")
    assert kb.note("memory:oak").body == "Oaks live long.\n"
    assert any("Oaks are gone." in text for text in kept_texts(team.place / "one")), "nobody was told that it is saved"
    assert verify(kb.index).agrees
    kb.update("memory:oak", "Oaks live very long.")
    assert team.server("two").note("memory:oak").body.strip() == "Oaks live very long."


def save_and_freeze(pipe: Connection, folder: str, address: str, where: str) -> None:
    """Stop in the middle of a save, as a machine does that is suspended; then go on, and save again."""
    kb = open_server(Path(folder), address)
    team = team_of(kb)
    with (
        contextlib.suppress(IndexUnavailableError, psycopg.Error),
        contextlib.nullcontext() if where == "vectors" else team.lock(),
        team.engine.transaction() as connection,
        contextlib.nullcontext() if where == "transaction" else connection.pipeline(),
    ):
        if where == "vectors":  # as a thread that stores them, while nobody saves
            fetch(connection, "select pg_advisory_xact_lock(%(key)s, 1)", {"key": ORIGIN_LOCK})
        else:
            team.touch("memories/oak.md")
            (Path(folder) / "memories" / "oak.md").write_text("Oaks are gone.\n")
        connection.execute("select 1")
        pipe.send("inside")
        os.kill(os.getpid(), signal.SIGSTOP)
        connection.execute("select 1")
    pipe.send(kb.note("memory:oak").body)
    kb.remember("Ashes burn well.")
    pipe.send("saved")


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="processes cannot be frozen")
@pytest.mark.parametrize("where", ["pipeline", "transaction", "vectors"])
def test_a_server_frozen_in_the_middle_of_a_save_stops_others_for_seconds_only(team: Team, where: str) -> None:
    team.server("one").close()
    two = team.server("two")
    frozen = Process(save_and_freeze, str(team.place / "one"), team.address, where)
    assert frozen.says() == "inside"
    began = time.monotonic()
    two.remember("Elms like water.")
    assert time.monotonic() - began < 12

    os.kill(frozen.pid or 0, signal.SIGCONT)
    assert frozen.says() == "Oaks live long.\n", "it takes back what it did not save"
    assert frozen.says() == "saved"
    assert frozen.end() == 0
    assert {note.ref for note in two.notes()} == {"memory:oak", "memory:elms-like-water", "memory:ashes-burn-well"}
    assert verify(two.index).agrees


def test_a_server_killed_while_it_indexes_what_another_version_saved_indexes_it_later(team: Team) -> None:
    one = team.server("one")
    team.server("two").close()
    one.remember("Elms like water.")
    team.ask("update team.changes set version = 7")
    with one.engine.writing() as writer:  # as if it had been saved to the index of the other version only
        writer.drop_files(writer.add_origin(one.index.origin), ["memories/elms-like-water.md"])
    ((store,),) = team.ask("select store from co_cli.stores")
    kill_during_a_save(team, "two", f"{store}.docs")

    two = team.server("two")
    assert two.search("water").hits[0].ref == "memory:elms-like-water"
    assert verify(two.index).agrees


def test_a_text_that_nobody_saved_is_kept_aside_when_its_place_is_needed(team: Team) -> None:
    one, two = team.server("one"), team.server("two")
    (team.place / "two" / "memories" / "oak.md").write_text("Typed into the folder.\n")
    one.update("memory:oak", "Oaks live very long.")

    assert two.note("memory:oak").body.strip() == "Oaks live very long."
    assert kept_texts(team.place / "two") == ["Typed into the folder.\n"]


def test_a_folder_that_cannot_be_written_stays_behind_and_searches_answer(
    team: Team, monkeypatch: pytest.MonkeyPatch
) -> None:
    one, two = team.server("one"), team.server("two")
    one.remember("Elms like water.")

    def fail(handle: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as full:
        full.setattr(os, "fsync", fail)
        team_of(two).catch_up()
        assert two.search("elms").hits[0].ref == "memory:elms-like-water"
        with pytest.raises(NoteFileError, match="free some space"):
            two.remember("Ashes burn well.")
    assert two.note("memory:elms-like-water").body.strip() == "Elms like water."


def test_where_the_state_cannot_be_written_a_save_that_was_committed_succeeds_and_an_undo_says_why(team: Team) -> None:
    one, two = team.server("one"), team.server("two")
    blocked = team.place / "two" / ".git" / "co-cli" / "state.json.new"
    blocked.mkdir()
    assert two.remember("Ashes burn well.").seq
    assert one.note("memory:ashes-burn-well").body.strip() == "Ashes burn well."
    with pytest.raises(NoteFileError, match="check the disk"), team_of(two).lock():
        team_of(two).touch("memories/oak.md")
        (team.place / "two" / "memories" / "oak.md").write_text("Not saved.\n")
        raise InvalidInputError("wrong")
    blocked.rmdir()
    one.remember("Elms like water.")
    assert two.note("memory:oak").body.strip() == "Oaks live long."
    assert {note.ref for note in two.notes()} == {"memory:oak", "memory:elms-like-water", "memory:ashes-burn-well"}
    assert verify(two.index).agrees
    assert team_of(two).differences() == []


def test_a_folder_that_is_gone_is_named_and_not_made_again(team: Team) -> None:
    one = team.server("one")
    (team.place / "one").rename(team.place / "away")

    with pytest.raises(VaultError, match="is not there"):
        one.remember("Elms like water.")
    assert not (team.place / "one").exists()
    (team.place / "away").rename(team.place / "one")
    assert one.remember("Elms like water.").seq


def test_the_first_server_brings_what_its_folder_has_and_git_lacks(team: Team) -> None:
    git(team.place, "clone", "--quiet", str(team.remote), "one")
    commit(team.place / "one", "memories/elm.md", "Committed, but not pushed.\n")
    (team.place / "one" / "memories" / "ash.md").write_text("Not committed.\n")
    one = team.server("one")
    keep(one)

    assert team.pushed("memories/elm.md") == "Committed, but not pushed."
    assert team.pushed("memories/ash.md") == "Not committed."
    assert sorted(note.ref for note in team.server("two").notes()) == ["memory:ash", "memory:elm", "memory:oak"]


def test_a_folder_that_was_away_too_long_starts_again_from_git(team: Team) -> None:
    one, two = team.server("one"), team.server("two")
    one.remember("Elms like water.")
    one.forget("memory:oak")
    keep(one)
    team.ask("update team.changes set saved_at = 0")
    keep(one)
    assert team.ask("select count(*) from team.changes") == [(1,)], "the last one stays"

    assert two.note("memory:elms-like-water").body.strip() == "Elms like water."
    assert not (team.place / "two" / "memories" / "oak.md").exists()
    assert team_of(two).differences() == []
    assert kept_texts(team.place / "two") == []


def test_a_long_note_that_was_saved_a_thousand_times_comes_to_a_server_that_was_away(team: Team) -> None:
    one, two = team.server("one"), team.server("two")
    one.remember("Elms like water.")
    for size, count in ((1_000_000, 1_100), (9, 1)):  # PostgreSQL refuses an array of more than 1 GB
        text = f"convert_to(repeat('x', {size}), 'UTF8')"
        team.ask(
            "set default_toast_compression = lz4;"
            "insert into team.changes (vault_id, path, data, author, saved_at, version)"
            f" select vault_id, path, {text}, author, saved_at, version from team.changes, generate_series(1, {count})"
            " where seq = 1"
        )

    assert two.note("memory:elms-like-water").body == "xxxxxxxxx"


def test_what_a_server_of_another_version_saved_is_indexed_by_this_one(team: Team) -> None:
    one, two, three = (team.server(name) for name in ("one", "two", "three"))
    one.remember("Elms like water.")
    team.ask("update team.changes set version = 7")
    for kb in (two, three):
        with kb.engine.writing() as writer:  # as if it had been saved to the index of the other version only
            writer.drop_files(writer.add_origin(kb.index.origin), ["memories/elms-like-water.md"])
        if kb is two:
            kb.note("memory:oak")
        else:
            with pytest.raises(NoteConflictError), kb.store.lock():
                kb.store.create_at("memories/oak.md", b"Oaks.")
            kb.update("memory:oak", "Oaks live very long.")
        assert kb.search("elms").hits[0].ref == "memory:elms-like-water"


def test_a_rebuild_and_another_version_make_an_index_of_their_own_and_keep_saves_tokens_and_history(
    team: Team, monkeypatch: pytest.MonkeyPatch
) -> None:
    one = team.server("one")
    secret, token = AccessTokens.of(one.vault).create("read", "mara")
    saved = one.remember("Elms like water.")
    tables = ("team.changes", "(select hash, name, role, created from team.tokens) as lasting", "team.audit")
    kept = [team.ask(f"select * from {table}") for table in tables]
    assert secret not in str(kept)
    one.rebuild()
    with monkeypatch.context() as later:
        version = postgres_engine.VERSION + 1
        for module in (postgres_engine, team_vault):
            later.setattr(module, "VERSION", version)
        two = team.server("two")
        assert two.search("what do elms like").hits[0].ref == saved.ref
        assert AccessTokens.of(two.vault).find(secret) == token

    assert len(team.ask("select distinct store from co_cli.stores")) == 2
    assert [team.ask(f"select * from {table}") for table in tables] == kept
    assert one.search("what do elms like").hits[0].ref == saved.ref
    keep(one)
    assert "Elms like water." in team.pushed("memories/elms-like-water.md")


def test_a_server_that_is_older_than_the_schema_says_so_and_saves_nothing(team: Team) -> None:
    team.server("one")
    team.ask("insert into team.migrations values ('999_later.sql', 0)")
    old = team.server("two")

    with pytest.raises(IndexUnavailableError, match="is of a newer co-cli: `pip install -U co-cli`"):
        old.remember("Elms like water.")
    assert team.ask("select path from team.changes") == []


def test_servers_that_start_at_once_with_an_empty_database_make_one_schema(team: Team) -> None:
    with ThreadPoolExecutor(4) as starting:
        servers = list(starting.map(team.server, ("one", "two", "three", "four")))

    names = [file.name for file in sorted(MIGRATIONS.glob("*.sql"))]
    assert team.ask("select name from team.migrations order by name") == [(name,) for name in names]
    assert team.ask("select count(*) from co_cli.stores") == [(1,)]
    saved = servers[0].remember("Elms like water.")
    assert {kb.search("elms").hits[0].ref for kb in servers} == {saved.ref}


def test_on_sqlite_a_save_in_a_git_repository_is_a_file_and_no_commit(team: Team, tmp_path: Path) -> None:
    head = git(team.clone, "rev-parse", "HEAD")
    settings = load_settings({"vault": str(team.clone), "data_dir": str(tmp_path / "data")}, {})
    with KnowledgeBase.open(settings=settings) as kb:
        kb.remember("Elms like water.")
        kb.update("memory:oak", "Oaks live very long.")

    assert git(team.clone, "rev-parse", "HEAD") == head
    assert git(team.clone, "status", "--porcelain", "memories").split() == [
        "M", "memories/oak.md", "??", "memories/elms-like-water.md",
    ]  # fmt: skip


def test_a_folder_that_is_ahead_of_a_restored_database_starts_again_from_it(team: Team) -> None:
    one, two = team.server("one"), team.server("two")
    one.remember("Elms like water.")
    backup = team.ask("select max(seq) from team.changes")
    one.remember("Firs are green.")
    assert two.note("memory:firs-are-green")
    one.remember("Ashes burn well.")
    team.ask("delete from team.changes where path like '%firs%' or path like '%ashes%'")
    team.ask(f"alter table team.changes alter seq restart with {int(str(backup[0][0])) + 1}")
    assert team_of(two).lag() > 0.0, "it was not compared with this database yet"
    one.rebuild()
    one.remember("Beeches give shade.")
    one.remember("Willows bend.")

    assert two.note("memory:beeches-give-shade").body.strip() == "Beeches give shade."
    assert not (team.place / "two" / "memories" / "firs-are-green.md").exists()
    assert "Firs are green." in kept_texts(team.place / "two")[0]
    assert verify(two.index).agrees


def test_a_folder_with_the_number_of_the_last_change_before_a_restore_starts_again_from_the_database(
    team: Team,
) -> None:
    one, two = team.server("one"), team.server("two")
    one.remember("Elms like water.")
    assert two.note("memory:elms-like-water")
    team.ask("delete from team.changes")
    team.ask("alter table team.changes alter seq restart with 1")
    one.rebuild()
    one.remember("Firs are green.")
    keep(one)
    team.ask("update team.changes set saved_at = 0")  # old enough to be deleted
    keep(one)

    assert two.note("memory:firs-are-green").body.strip() == "Firs are green."
    assert team_of(two).differences() == []
    assert not (team.place / "two" / "memories" / "elms-like-water.md").exists()


def test_old_changes_that_are_deleted_while_a_server_catches_up_are_not_missed(
    team: Team, monkeypatch: pytest.MonkeyPatch
) -> None:
    one, two = team.server("one"), team.server("two")
    for text in ("Elms like water.", "Firs are green."):
        one.remember(text)
    keep(one)
    positions, first = team_of(two)._positions, iter([True])

    def delete_then() -> object:
        found = positions()
        for _ in first:
            team.ask("update team.changes set saved_at = 0 where path like '%elms%'")
            keep(one)
        return found

    monkeypatch.setattr(team_of(two), "_positions", delete_then)
    team_of(two).catch_up()
    assert team.ask("select count(*) from team.changes") == [(1,)]
    team_of(two).catch_up()
    assert team_of(two).differences() == []


def test_a_server_that_lacks_much_applies_it_in_parts(team: Team, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("co_cli.vault.team.team_vault.AT_ONCE", 3)
    one, two = team.server("one"), team.server("two")
    for number in range(7):
        team.push(f"plans/{number}.md", f"Plan {number}.\n")
    keep(one)
    team_of(two).catch_up()
    git(team.clone, "rm", "--quiet", "-r", "plans")
    for path in ("plans", *(f"lists/{number}.md" for number in range(7))):
        commit(team.clone, path, f"This is {path}.\n")
    git(team.clone, "push", "--quiet")
    keep(one)

    three = team.server("three")
    team_of(three).copy.set_position(None)
    for kb in (two, three):
        team_of(kb).catch_up()
        assert team_of(kb).differences() == []
        assert (Path(kb.root) / "plans").read_text() == "This is plans.\n"
        assert len(list((Path(kb.root) / "lists").iterdir())) == 7
        assert kept_texts(Path(kb.root)) == []


def test_large_files_are_left_to_git_lfs(team: Team) -> None:
    pointer = "version https://git-lfs.github.com/spec/v1\noid sha256:1\nsize 3\n"
    team.push("pictures/map.png", pointer)
    git(team.place, "clone", "--quiet", str(team.remote), "one")
    (team.place / "one" / "pictures" / "map.png").write_bytes(b"PNG")
    kb = team.server("one")
    team.push("pictures/map.png", pointer.replace("3", "4"))
    keep(kb)

    assert verify(kb.index).agrees
    assert team.ask("select count(*) from team.changes") == [(0,)]
    assert (team.place / "one" / "pictures" / "map.png").read_bytes() == b"PNG"
    assert team.pushed("pictures/map.png").endswith("size 4")


def test_another_repository_of_the_same_name_is_refused_with_the_fix(team: Team) -> None:
    team.server("one")
    other = team.place / "other" / "notes"
    other.mkdir(parents=True)
    git(other, "init", "--quiet")
    commit(other, "memories/elm.md", "Elms.\n")

    with pytest.raises(VaultError, match="git config"):
        team.open(other)
    git(other, "config", "co.vault", "others")
    assert [note.ref for note in team.open(other).notes()] == ["memory:elm"]


def test_a_plain_folder_on_postgres_is_no_team_vault(team: Team) -> None:
    plain = team.place / "plain"
    (plain / "memories").mkdir(parents=True)
    kb = team.open(plain)

    assert kb.vault.authority is None
    assert kb.remember("Elms like water.").seq is None


def test_what_agents_and_importers_write_is_saved_and_found_too(team: Team, tmp_path: Path) -> None:
    one, two = team.server("one"), team.server("two")
    files = MemoryFiles(one)
    with files.writing():
        files.write("memories/trees/elm.md", "Elms like water.\n")
    with files.writing():
        assert files.move("memories/trees", "memories/plants")
    export = tmp_path / "mem0.json"
    export.write_text(json.dumps([{"id": "1", "memory": "Ashes burn well."}]))
    import_export(one.vault, ImportRequest("mem0", [str(export)], write=True))

    assert two.search("water").hits[0].ref == "memory:plants/elm"
    assert two.search("burn").hits[0].ref.startswith("memory:ashes")
    assert two.note("memory:plants/elm").body.endswith("Elms like water.\n")
    assert team_of(two).differences() == []


PLANTED = {
    "a file": None,
    "a saved text": "update team.changes set data = 'Elms are gone.' where path like '%elms%'",
    "the commit": "update team.vaults set commit = null",
    "a row of the index": "update {store}.docs set hash = 'x' where ref = 'memory:oak'",
}


@pytest.mark.parametrize("what", PLANTED)
def test_verify_proves_that_folder_and_index_are_commit_and_saves_and_finds_a_planted_difference(
    team: Team, what: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    kb = team.server("one")
    kb.remember("Elms like water.")
    assert verify(kb.index).agrees

    if PLANTED[what] is None:
        (team.place / "one" / "memories" / "oak.md").write_text("Oaks are gone.\n")
    else:
        ((store,),) = team.ask("select store from co_cli.stores")
        team.ask(str(PLANTED[what]).format(store=store))
    found = verify(kb.index)

    name = "memories/elms-like-water.md" if what == "a saved text" else "memories/oak.md"
    assert name in [difference.path for difference in found.origins[0].differing]


def test_repair_puts_folder_and_index_right(team: Team, co: Co, monkeypatch: pytest.MonkeyPatch) -> None:
    kb = team.server("one")
    kb.remember("Elms like water.")
    (team.place / "one" / "memories" / "oak.md").write_text("Oaks are gone.\n")
    monkeypatch.setenv("CO_VAULT", kb.root)
    monkeypatch.setenv("CO_ENGINE", team.address)

    ran = co("index", "verify")
    assert (ran.code, "memories/oak.md: differs from what was committed or saved" in ran.out) == (3, True)
    assert co("index", "verify", "--repair").code == 0
    assert kb.note("memory:oak").body == "Oaks live long.\n"
    assert kept_texts(team.place / "one") == ["Oaks are gone.\n"]
