"""What is special about PostgreSQL; what it shares with every engine is in test_engine_contract.py."""

from __future__ import annotations

import contextlib
import re
import threading
import time
import uuid
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import psycopg
import pytest

from co_cli.embedding.embedders import Embedders
from co_cli.entrance.knowledge_base import KnowledgeBase
from co_cli.evaluation.baselines import Desk
from co_cli.evaluation.running import Evaluation, Marks, mean_marks, method
from co_cli.evaluation.sets import read_vault
from co_cli.ground.errors import IndexUnavailableError, SettingsError
from co_cli.ground.settings import load_settings
from co_cli.index.postgres.postgres_engine import PostgresEngine, PostgresTransaction
from co_cli.index.postgres.postgres_statements import LONG, ROLE
from co_cli.knowledge_index import KnowledgeIndex
from co_cli.sources.origin import Origin
from co_cli.vault.team.schema import connect_team
from tests.command import Co
from tests.embedding.meaning.servers import TurnedOllama
from tests.evaluation.tiny_set import trees
from tests.folder import Vault
from tests.house.test_sample_vault import VAULT
from tests.index.contents import contents
from tests.postgres import new_database, own_server, replica_of
from tests.server.browser import wait_for

pytestmark = pytest.mark.postgres
NOTES = 100
ODD = " words" * 2_000 + "\0 and much more text"
ADDRESSES_WITH_PASSWORDS = [
    "postgresql://me:s3/cret@db/notes",
    "postgresql://me:s3/cret=@db/notes?sslmode=require",
    "postgresql://me@db/notes?password=s3/cret",
]
QUERIES = ('"kept in git"', '"the" -deploy', "deploy -blue", "who decides", "zebra", "the of and", "x" * 5_000, "a\0b")


@pytest.fixture
def address(monkeypatch: pytest.MonkeyPatch) -> str:
    """An empty database, which the settings name."""
    found = new_database()
    monkeypatch.setenv("CO_ENGINE", found)
    return found


def store_of(connection: psycopg.Connection[Any]) -> str:
    """The schema that answers."""
    ((store,),) = connection.execute("select store from co_cli.stores").fetchall()
    return store


def is_standby(engine: PostgresEngine) -> bool:
    """Whether the replica answers a search."""
    with engine.reading() as reader:
        assert isinstance(reader, PostgresTransaction)
        return reader.fetch("select pg_is_in_recovery()")[0][0]


def first_tens(engine: str, data_dir: Path) -> tuple[dict[str, list[str]], Marks]:
    """What `co eval` finds for each question of the sample vault, its figures, and what odd queries find."""
    found: dict[str, list[str]] = {}
    ask = method("co:hybrid")

    def recorded(desk: Desk, text: str) -> list[str]:
        found[text] = ask(desk, text)
        return found[text]

    settings = load_settings({"vault": str(VAULT), "data_dir": str(data_dir)}, {"CO_ENGINE": engine})
    with KnowledgeBase.open(settings=settings) as kb:
        [run] = Evaluation(settings, "").ask(read_vault(str(VAULT)), {"co": recorded}, kb.vault)
        assert kb.engine.problem() is None
        for query in QUERIES:
            recorded(Desk(kb.vault), query)
    return found, mean_marks([marks for _, marks, _ in run.answers])


@pytest.mark.slow
def test_both_engines_give_the_same_answers(tmp_path: Path) -> None:
    (ours, worth), (theirs, worth_of_theirs) = (first_tens(one, tmp_path) for one in (new_database(), "sqlite"))

    different = [question for question in theirs if ours[question] != theirs[question]]
    assert len(theirs) > 150
    assert len(different) <= 0.05 * len(theirs)
    assert worth == pytest.approx(worth_of_theirs, abs=0.005)


def test_an_edited_vault_has_the_rows_of_one_that_is_indexed_from_scratch(vault: Vault) -> None:
    engine, scratch = PostgresEngine(new_database()), PostgresEngine(new_database())
    index = KnowledgeIndex(engine, vault.root, embedders=Embedders("none"))
    for number in range(8):
        vault.write(f"memories/{number}.md", f"Note {number} about oaks, elms and [[{number + 1}]].")
    index.sync()
    vault.write("memories/1.md", f"---\ntitle: Changed\ntags: [a/b]\n---\nText {ODD}")
    vault.write("memories/long.md", "A key " + "k" * 9_000)
    vault.delete("memories/2.md")
    index.sync()
    KnowledgeIndex(scratch, vault.root, embedders=Embedders("none")).sync()

    assert contents(engine, vault.root) == contents(scratch, vault.root)
    engine.close()
    scratch.close()


def test_the_planner_gets_counts_as_a_vault_is_filled_but_not_at_a_save(vault: Vault) -> None:
    engine = PostgresEngine(new_database())
    index = KnowledgeIndex(engine, vault.root, embedders=Embedders("none"))
    for number in range(63):
        vault.write(f"memories/{number}.md", f"Note {number}.")
    index.sync()
    vault.write("memories/63.md", "Note 63.")
    index.index_file(None, "memories/63.md")

    with engine.reading() as reader:
        assert isinstance(reader, PostgresTransaction)
        ((counted,),) = reader.fetch("select reltuples from pg_class where oid = to_regclass('docs')")
    engine.close()
    assert counted == 63


SHOW_PLANS = f"""
set local role none; load 'auto_explain'; set auto_explain.log_level = warning; set auto_explain.log_min_duration = 0;
set auto_explain.log_parameter_max_length = -1; set local role {ROLE}
"""


def test_a_statement_with_many_paths_is_planned_for_them_and_not_for_any_list(vault: Vault) -> None:
    """A plan for any list compares each row with each member: a first sync would take the square of its notes."""
    engine = PostgresEngine(new_database())
    index = KnowledgeIndex(engine, vault.root, embedders=Embedders("none"))
    plans: list[str] = []
    with engine.transaction() as connection:
        for number in range(12):  # after a few times, PostgreSQL plans once for all
            vault.write(f"memories/{number}.md", f"Note {number}.")
            index.sync()
        for number in range(LONG + 1):
            vault.write(f"articles/{number}.md", f"Article {number}.")
        connection.execute(SHOW_PLANS.encode())
        connection.add_notice_handler(lambda notice: plans.append(notice.message_primary or ""))
        index.sync()
    engine.close()

    large = [plan for plan in plans if plan.count("articles/") > LONG]
    assert len(large) >= 3
    assert [plan for plan in large if "ANY ($" in plan] == []


def test_a_transaction_spans_other_tables_and_is_joined_by_the_thread_that_opened_it(vault: Vault) -> None:
    engine = PostgresEngine(new_database())
    index = KnowledgeIndex(engine, vault.root, embedders=Embedders("none"))
    vault.write("memories/oak.md", "Oaks live long.")
    with engine.transaction() as connection, engine.transaction() as inner:
        assert inner is connection
        connection.execute("set local role none; create table public.outbox (path text)")
        connection.execute(f"grant all on public.outbox to {ROLE}; set local role {ROLE}".encode())
        connection.execute("insert into public.outbox values ('oak')")
        index.sync()
        with pytest.raises(ZeroDivisionError), engine.writing() as writer:
            writer.drop_files(writer.add_origin(Origin("vault", str(vault.root))), None)
            _ = 1 / 0
        assert [hit.ref for hit in index.search("oaks")] == ["memory:oak"], "a part that fails, fails alone"
        with ThreadPoolExecutor() as others:
            assert others.submit(index.search, "oaks").result() == []
    vault.write("memories/elm.md", "Elms too.")
    with pytest.raises(ZeroDivisionError), engine.transaction() as connection:
        connection.execute("insert into public.outbox values ('elm')")
        index.sync()
        _ = 1 / 0

    with engine.transaction() as connection:
        assert connection.execute("select path from public.outbox").fetchall() == [("oak",)]
    assert [note.ref for note in index.notes.docs()] == ["memory:oak"]
    engine.close()


def test_servers_with_folders_of_their_own_share_a_vault_by_its_name(tmp_path: Path) -> None:
    address, folders = new_database(), [tmp_path / "one", tmp_path / "two"]
    engines = [PostgresEngine(address, roots={str(folder): "team"}) for folder in folders]
    here, there = [KnowledgeIndex(engine, folder) for engine, folder in zip(engines, folders, strict=True)]
    (folders[0] / "memories").mkdir(parents=True)
    (folders[0] / "memories" / "oak.md").write_text("Oaks live long.")
    here.sync()

    assert [hit.ref for hit in there.search("oaks")] == ["memory:oak"]
    with engines[1].reading() as reader:
        (stored,) = reader.origins()
        assert stored == reader.origin(Origin("vault", str(folders[1])))
        notes = reader.find_notes(stored.id, "ref", ["memory:oak"])
        (passage,) = reader.passages(notes=[note.id for note in notes]).values()
    assert {stored.origin.root, notes[0].root, passage.root} == {str(folders[1])}
    for engine in engines:
        engine.close()


def test_writers_of_one_vault_wait_for_each_other_and_not_for_those_of_another(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("co_cli.index.postgres.postgres_engine.CONFIGURE", "set lock_timeout = '100ms'")
    first, second = (PostgresEngine(address) for address in [new_database()] * 2)
    folders = {name: Vault(tmp_path / name) for name in ("one", "two")}
    for folder in folders.values():
        folder.write("memories/oak.md", "Oaks live long.")
        KnowledgeIndex(first, folder.root, embedders=Embedders("none")).sync()
        folder.write("memories/elm.md", "Elms like water.")
    one, two = (KnowledgeIndex(second, folder.root, embedders=Embedders("none")) for folder in folders.values())

    with first.writing() as writer:
        writer.drop_files(writer.add_origin(one.origin), ["memories/oak.md"])
        two.index_file(None, "memories/elm.md")
        with pytest.raises(IndexUnavailableError, match="another process is writing: try again"):
            one.index_file(None, "memories/elm.md")
    one.index_file(None, "memories/elm.md")

    assert [note.ref for note in one.notes.docs()] == ["memory:elm"]
    assert sorted(note.ref for note in two.notes.docs()) == ["memory:elm", "memory:oak"]
    for engine in (first, second):
        engine.close()


TEAM_ROWS = (
    "insert into team.changes (vault_id, path, author, saved_at, version) select id, 'x', 'me', 1, 1 from team.vaults",
    "insert into team.tokens (hash, vault_id, name, role, created) select name, id, 'me', 'read', '' from team.vaults",
    "insert into team.audit (vault_id, moment, who, action, path) select id, 1, 'me', 'saved', 'x' from team.vaults",
    "insert into team.taken (vault_id, path) select id, 'x' from team.vaults",
    "insert into team.answers (vault_id, key, request, answer, moment) select id, 'x', 'x', '{}', 1 from team.vaults",
)


def test_a_connection_for_one_vault_sees_no_row_of_another_in_any_table(tmp_path: Path) -> None:
    address, engines = new_database(), dict[str, PostgresEngine]()
    for name in ("theirs", "ours"):
        (tmp_path / name / "memories").mkdir(parents=True)
        (tmp_path / name / "memories" / "oak.md").write_text(f"---\nsupersedes: elm\n---\n{name} [[ash]]")
        engine = engines[name] = PostgresEngine(address, roots={str(tmp_path / name): name})
        index = KnowledgeIndex(engine, tmp_path / name)
        index.sync()
        (tmp_path / name / "memories" / "yew.md").write_text(f"{name} yew")
        index.index_file("memory", tmp_path / name / "memories" / "yew.md", embed=False)
        connect_team(engine, name)
        with engine.transaction() as connection:
            for statement in TEAM_ROWS:
                connection.execute(statement.encode())

    with psycopg.connect(address) as owner, engines["ours"].transaction() as connection:
        tables = owner.execute(
            "select table_schema || '.' || table_name from information_schema.columns where column_name = 'vault_id'"
        ).fetchall()
        seen = {
            table.split(".")[1]: [
                [vault for (vault,) in asked.execute(f"select distinct vault_id from {table} order by 1".encode())]
                for asked in (owner, connection)
            ]
            for (table,) in tables
        }
        assert len(seen) >= 15
        assert {table: found for table, found in seen.items() if found != [[1, 2], [2]]} == {}
        assert connection.execute("select name from team.vaults").fetchall() == [("ours",)]
        assert connection.execute("select root from vaults").fetchall() == [("ours",)]
        of_theirs = f"select id from {store_of(owner)}.terms where vault_id = 1"
        their_terms = [one for (one,) in owner.execute(of_theirs.encode())]
        asked = "select passage_id from find_words(%s, %s, '{1:1}/1000000000', 10)"
        assert connection.execute(asked, [1, their_terms]).fetchall() == []
        for forbidden in (
            "insert into vaults (root, source, name, only_file) values ('theirs', 'folder', '', '')",
            "insert into team.tokens (hash, vault_id, name, role, created) values ('x', 1, 'me', 'admin', '')",
            "update team.changes set vault_id = 1",
        ):
            with pytest.raises(psycopg.errors.InsufficientPrivilege), connection.transaction():
                connection.execute(forbidden.encode())
    for engine in engines.values():
        engine.close()


@pytest.mark.slow
def test_a_replica_that_stops_replaying_is_noticed_and_the_primary_asked(
    vault: Vault, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("co_cli.index.postgres.replica.EVERY_SECONDS", 0.0)
    vault.write("memories/oak.md", "Oaks live long.")
    with own_server() as (folder, address), replica_of(folder) as copy:
        writing = PostgresEngine(address)
        KnowledgeIndex(writing, vault.root).sync()
        engine = PostgresEngine(address, replica=copy)
        index = KnowledgeIndex(engine, vault.root)
        assert engine.replica
        while not engine.replica.keeps_up():  # it is only just behind
            pass

        assert [hit.ref for hit in index.search("oaks")] == ["memory:oak"]
        assert is_standby(engine)
        with psycopg.connect(copy, autocommit=True) as standby:
            standby.execute("select pg_wal_replay_pause()")
        vault.write("memories/elm.md", "Elms live long.")
        KnowledgeIndex(writing, vault.root).sync()
        with monkeypatch.context() as strict:
            strict.setattr("co_cli.index.postgres.replica.LATE_SECONDS", 0.0)
            assert index.search("elms")[0].ref == "memory:elm"
            assert not is_standby(engine)
        assert re.search("the replica is [1-9].* bytes behind: the primary answers", str(engine.replica.problem))
        with psycopg.connect(copy, autocommit=True) as standby:
            standby.execute("select pg_wal_replay_resume()")
        while not engine.replica.keeps_up():
            pass
        assert (is_standby(engine), engine.replica.problem) == (True, None)
        engine.close()
        writing.close()


@pytest.mark.slow
def test_a_replica_of_the_database_before_a_restore_does_not_answer() -> None:
    with own_server() as (folder, address), replica_of(folder) as copy, own_server() as (_, restored):
        with psycopg.connect(address, autocommit=True) as connection:
            for _ in range(4):  # each fills a file of 16 MB
                connection.execute("create table if not exists filler (); select pg_switch_wal()")
                connection.execute("drop table filler")
        engine, old = PostgresEngine(restored, replica=copy), PostgresEngine(address, replica=copy)
        assert old.replica
        assert engine.replica
        wait_for(old.replica.keeps_up)

        assert not is_standby(engine)
        assert "never had" in str(engine.replica.problem)
        assert engine.replica.behind > 0
        for opened in (engine, old):
            opened.close()


@pytest.mark.slow
def test_a_replica_that_cannot_be_reached_is_left_alone(vault: Vault, tmp_path: Path) -> None:
    vault.write("memories/oak.md", "Oaks live long.")
    engine = PostgresEngine(new_database(), replica=f"postgresql://me@/notes?host={tmp_path}")
    index = KnowledgeIndex(engine, vault.root)
    index.sync()

    assert [hit.ref for hit in index.search("oaks")] == ["memory:oak"]
    assert engine.replica
    assert "cannot be used" in str(engine.replica.problem)
    assert engine.replica.behind > 0
    engine.close()


def test_a_database_whose_machine_is_gone_is_noticed_after_half_a_minute(address: str) -> None:
    engine = PostgresEngine(address)
    with engine.reading() as reader:
        assert isinstance(reader, PostgresTransaction)
        found = reader.connection.info.get_parameters()  # TCP settings: these tests use a Unix socket
    engine.close()

    assert found["tcp_user_timeout"] == "30000"
    idle, interval, count = (int(found[f"keepalives_{part}"]) for part in ("idle", "interval", "count"))
    assert idle + interval * count == 30


def test_a_server_that_restarts_is_used_again(address: str, vault: Vault) -> None:
    vault.write("memories/oak.md", "Oaks live long.")
    with KnowledgeBase.open(vault.root) as kb:
        kb.sync()
        with psycopg.connect(address) as owner:  # as a restart ends every connection
            owner.execute(
                "select pg_terminate_backend(pid) from pg_stat_activity where pid <> pg_backend_pid() and datname = "
                "current_database()"
            )
        assert [hit.ref for hit in kb.search("oaks").hits] == ["memory:oak"]


@pytest.mark.slow
def test_a_writer_that_copies_rows_for_long_is_not_disconnected_by_those_who_wait(address: str, vault: Vault) -> None:
    origin = Origin("vault", str(vault.root))
    with contextlib.closing(PostgresEngine(address)) as engine, contextlib.closing(PostgresEngine(address)) as other:

        def add() -> int:
            with other.writing() as writer:
                return writer.add_origin(origin)

        def slowly() -> Iterator[tuple[str]]:
            end = time.monotonic() + 7.5
            while time.monotonic() < end:
                yield ("Oaks live long.",)
                time.sleep(0.001)

        known = add()
        with ThreadPoolExecutor() as others, engine.writing() as writer:
            assert isinstance(writer, PostgresTransaction)
            assert writer.add_origin(origin) == known
            for statement in ("set local role none", "create temp table texts (text text)", f"set local role {ROLE}"):
                writer.fetch(statement)
            waiting = others.submit(add)
            writer.copy("texts", ["text"], slowly())
            assert not waiting.done()
        assert waiting.result() == known


@pytest.mark.parametrize("seconds", [0.5, 1.5])
def test_a_lock_is_waited_for_in_a_pipeline_too(address: str, vault: Vault, seconds: float) -> None:
    origin = Origin("vault", str(vault.root))
    with contextlib.closing(PostgresEngine(address)) as engine, contextlib.closing(PostgresEngine(address)) as other:
        with engine.writing() as writer:
            known = writer.add_origin(origin)
        inside = threading.Event()

        def hold() -> None:
            with other.writing() as writer:
                writer.add_origin(origin)
                inside.set()
                time.sleep(seconds)

        with ThreadPoolExecutor() as others, engine.writing() as writer:
            assert isinstance(writer, PostgresTransaction)
            holding = others.submit(hold)
            inside.wait()
            writer.fetch("set local lock_timeout = '1s'")
            with contextlib.ExitStack() as stack:
                if seconds > 1:
                    stack.enter_context(pytest.raises(psycopg.errors.LockNotAvailable))
                    stack.enter_context(writer.connection.transaction())
                stack.enter_context(writer.connection.pipeline())
                writer.lock(known)
                assert writer.fetch("show lock_timeout") == [("1s",)]
            holding.result()
            assert writer.fetch("select current_user") == [(ROLE,)]


def test_a_damaged_store_is_named_with_the_fix_and_the_files_answer_until_it_is_rebuilt(
    co: Co, vault: Vault, address: str
) -> None:
    vault.write("memories/oak.md", "Oaks live long.")
    assert co("index", "sync").code == 0
    with psycopg.connect(address) as connection:
        store = store_of(connection)
        connection.execute(f"drop table {store}.passages, {store}.spaces".encode())

    ran = co("index", "status")
    assert (ran.code, len(ran.err.strip().splitlines())) == (3, 1)
    assert "`co index rebuild` makes the index again" in ran.err
    assert "Oaks live long." in co("search", "oaks").out
    assert co("index", "rebuild").code == 0
    assert co("index", "verify").code == 0


def test_the_command_works_on_postgres_and_names_it(co: Co, vault: Vault, address: str) -> None:
    vault.write("memories/oak.md", "Oaks live long.")

    assert "Oaks live long." in co("search", "oaks").out
    assert address in co("index", "status").out
    assert f"{address} is sound (notes: 1, passages: 1)" in co("doctor").out
    assert co("index", "rebuild").code == 0
    assert co("index", "verify").code == 0
    assert not (Path(co("config", "show", "data_dir").out.strip()) / "search.db").exists()


def test_a_rebuild_of_one_vault_leaves_those_of_others_alone(
    co: Co, vault: Vault, address: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    vault.write("memories/oak.md", "Oaks live long.")
    theirs = Vault(tmp_path / "theirs")
    theirs.write("memories/elm.md", "Elms like water.")
    engine = PostgresEngine(address)
    other = KnowledgeIndex(engine, theirs.root)
    other.sync()
    assert co("index", "sync").code == 0

    def state() -> tuple[str, list[Any], list[str]]:
        with psycopg.connect(address) as owner:
            store = store_of(owner)
            rows = owner.execute(f"select root, source, notes from {store}.vaults order by root".encode()).fetchall()
            counts = [
                f"select '{table}', (select count(*) from {store}.{table}), (select max(doc_id) from {store}.{table} "
                f"where vault_id = {vault_of(owner, theirs)})"
                for table in ("passages", "words", "names", "docs_vec")
            ]
            return store, rows, [str(owner.execute(one.encode()).fetchall()) for one in counts]

    def vault_of(owner: psycopg.Connection[Any], whose: Vault) -> int:
        found = f"select id from {store_of(owner)}.vaults where root = '{whose.root}'"
        return owner.execute(found.encode()).fetchall()[0][0]

    before = state()
    with psycopg.connect(address) as owner:
        ours = vault_of(owner, vault)
    assert co("index", "rebuild").code == 0

    assert state() == before
    with psycopg.connect(address) as owner:
        assert vault_of(owner, vault) != ours, "it was filled again"
    assert [hit.ref for hit in other.search("elms")] == ["memory:elm"]
    assert "Oaks live long." in co("search", "oaks").out
    assert co("index", "verify").code == 0

    monkeypatch.setattr("co_cli.index.postgres.postgres_engine.swap_origins", lambda *_: 1 / 0)
    with KnowledgeBase.open(vault.root) as kb, pytest.raises(ZeroDivisionError):
        kb.rebuild()
    assert state() == before, "one that fails leaves nothing"
    with psycopg.connect(address) as owner:
        owner.execute(f"drop table {before[0]}.names".encode())
    monkeypatch.undo()
    monkeypatch.setenv("CO_ENGINE", address)
    with KnowledgeBase.open(vault.root) as kb:
        kb.rebuild()
        assert kb.engine.problem() is None
    other.sync()
    assert [hit.ref for hit in other.search("elms")] == ["memory:elm"], "in a new store, as the old one was damaged"
    engine.close()


def test_an_evaluation_leaves_nothing_in_the_database(co: Co, vault: Vault, address: str, tmp_path: Path) -> None:
    for places in ((), (str(trees(tmp_path / "trees")),)):
        assert co("eval", *places, "--method", "co", "--sample", "2").code == 0

    with psycopg.connect(address) as owner:
        store = store_of(owner)
        for table in ("docs", "passages", "words", "terms", "docs_vec"):
            assert owner.execute(f"select count(*) from {store}.{table}".encode()).fetchall() == [(0,)], table


@pytest.mark.usefixtures("vault")
def test_two_evaluations_do_not_share_an_index(co: Co, address: str) -> None:
    for _ in range(2):
        assert co("eval", "--method", "co:fts5", "--sample", "1").code == 0

    with psycopg.connect(address) as owner:
        roots = owner.execute(f"select root from {store_of(owner)}.vaults".encode()).fetchall()
        assert [Path(root).name for (root,) in roots if "co-eval-" in root] == ["knowledge", "knowledge"], roots


def test_a_server_that_cannot_be_reached_is_named_with_the_fix_and_without_the_password(
    co: Co, vault: Vault, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    vault.write("memories/oak.md", "Oaks live long.")
    monkeypatch.setenv("CO_ENGINE", f"postgresql://me@/notes?host={tmp_path}")
    ran = co("index", "status")
    assert ran.code == 3
    assert "cannot be used" in ran.err
    assert "is the server running" in ran.err
    assert len(ran.err.strip().splitlines()) == 1
    assert "Oaks live long." in co("search", "oaks").out, "the files answer"

    engine = PostgresEngine(f"postgresql://me:s3cret@/notes?host={tmp_path}&password=s3cret")
    with pytest.raises(IndexUnavailableError) as raised, engine.reading():
        pass
    assert "s3cret" not in f"{raised.value}{engine.path}"


def test_a_pgvector_that_is_too_old_is_named_with_the_fix(
    co: Co, address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with psycopg.connect(address) as owner:
        owner.execute("create extension vector")
        ((version,),) = owner.execute("select extversion from pg_extension where extname = 'vector'").fetchall()
    monkeypatch.setattr("co_cli.index.postgres.postgres_engine.OLDEST_PGVECTOR", (99, 0))

    ran = co("index", "status")

    assert (ran.code, f"has pgvector {version}: `alter extension vector update`" in ran.err) == (3, True)


def test_a_user_who_may_not_create_roles_is_told_what_an_administrator_has_to_do_and_that_is_enough(
    address: str,
) -> None:
    user = f"user_{uuid.uuid4().hex[:8]}"
    engine = PostgresEngine(address.replace("postgres@", f"{user}@"))
    with psycopg.connect(address, autocommit=True) as administrator:
        with contextlib.suppress(psycopg.errors.DuplicateObject, psycopg.errors.UniqueViolation):
            administrator.execute(f"create role {ROLE}".encode())
        administrator.execute(f"create extension vector; create role {user} login".encode())
        administrator.execute(f"grant create on database {administrator.info.dbname} to {user}".encode())

        with pytest.raises(IndexUnavailableError, match=f"grant {ROLE} to YOU"), engine.reading():
            pass
        administrator.execute(f"grant {ROLE} to {user}".encode())

    with engine.reading() as reader:
        assert reader.origins() == []
    engine.close()


@pytest.mark.parametrize("engine", ["mysql://me@db/notes", *ADDRESSES_WITH_PASSWORDS, "sqlite3"])
@pytest.mark.parametrize("setting", ["CO_ENGINE", "CO_ENGINE_REPLICA"])
def test_an_engine_that_is_unknown_or_has_a_password_is_refused(setting: str, engine: str) -> None:
    with pytest.raises(SettingsError) as refused:
        load_settings({}, {setting: engine})
    assert "s3/cret" not in str(refused.value)


def test_a_password_comes_from_the_environment_or_pgpass_and_is_in_no_output_and_no_file(
    co: Co, vault: Vault, data_dir: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    vault.write("memories/oak.md", "Oaks live long.")
    (tmp_path / "pgpass").write_text("*:*:*:mara:s3/cret\n")
    (tmp_path / "pgpass").chmod(0o600)
    with own_server() as (folder, address):
        theirs = address.replace("postgres@", "mara@")
        monkeypatch.setenv("CO_ENGINE", theirs)
        monkeypatch.delenv("PGPASSWORD", raising=False)
        (folder / "data" / "pg_hba.conf").write_text("local all postgres trust\nlocal all all scram-sha-256\n")
        with psycopg.connect(address, autocommit=True) as owner:
            owner.execute("create role mara login superuser password 's3/cret'; select pg_reload_conf()")
        wait_for(lambda: co("index", "status").code == 3)  # until it has read the file
        ran = [co("index", "status")]
        assert "no password supplied" in ran[0].err
        assert "PGPASSWORD_FILE" in ran[0].err
        monkeypatch.setenv("PGPASSWORD", "wr0ng")
        ran.append(co("index", "status"))
        monkeypatch.delenv("PGPASSWORD")
        monkeypatch.setenv("PGPASSFILE", str(tmp_path / "pgpass"))
        ran.append(co("index", "sync"))
        monkeypatch.delenv("PGPASSFILE")
        monkeypatch.setenv("PGPASSWORD", "s3/cret")
        commands = "search oaks --verbose|index status|doctor --json|config show --json|data backup activity-copy.db"
        ran += [co(*command.split()) for command in commands.split("|")]
        assert f"`pg_dump --schema team {theirs}` backs them up" in ran[-1].out
        monkeypatch.setenv("CO_ENGINE", f"{theirs}&sslmod=off")
        ran.append(co("index", "status"))

    assert [one.code for one in ran] == [3, 3, 0, 0, 0, 0, 0, 0, 3]
    assert 'invalid URI query parameter: "sslmod"' in ran[-1].err
    said = "".join(one.out + one.err for one in ran)
    assert [secret for secret in ("s3/cret", "wr0ng") if secret in said] == []
    assert [file for file in data_dir.rglob("*") if file.is_file() and b"s3/cret" in file.read_bytes()] == []


def test_a_project_may_not_choose_the_engine(tmp_path: Path) -> None:
    (tmp_path / ".co-cli").mkdir()
    (tmp_path / ".co-cli" / "settings.toml").write_text('engine = "postgresql://evil/notes"\n')

    with pytest.raises(SettingsError, match="a project may not set engine"):
        load_settings({}, {"HOME": str(tmp_path)}, str(tmp_path))


def test_two_servers_on_one_database_share_the_work_and_no_passage_is_embedded_twice(
    address: str, vault: Vault, tmp_path: Path
) -> None:
    for number in range(NOTES):
        vault.write(f"memories/{number}.md", f"Order {number} is shipped from shelf {number * 7} of the warehouse.")
    with contextlib.closing(TurnedOllama()) as ollama, contextlib.ExitStack() as stack:
        chosen = {"provider": "ollama", "model": "shared-by-two-servers", "host": ollama.url}
        flags = {"vault": str(vault.root), **{f"knowledge_embedding_{name}": value for name, value in chosen.items()}}
        one, other = (
            stack.enter_context(KnowledgeBase.open(settings=load_settings({**flags, "data_dir": str(tmp_path / name)})))
            for name in ("one", "other")
        )
        one.sync(seconds=0)
        in_foreground = threading.Thread(target=other.sync)
        ollama.meanwhile = lambda: (other.embed(60), in_foreground.start())  # the first leaves it, the second waits
        one.embed(60)
        in_foreground.join(60)

        assert len(ollama.documents) == len({*ollama.documents}) == NOTES
        assert (other.status().space, other.status().unembedded) == ("ollama:shared-by-two-servers:256:1", 0)
