"""The HNSW index of PostgreSQL: when it is built, and what happens where it cannot be."""

from __future__ import annotations

import contextlib
from collections.abc import Generator
from pathlib import Path

import psycopg
import pytest

from co_cli.index.postgres.postgres_engine import PostgresEngine, PostgresTransaction
from co_cli.index.postgres.postgres_statements import fetch
from co_cli.knowledge_index import KnowledgeIndex
from co_cli.server.access_tokens import AccessTokens
from tests.command import Co
from tests.folder import Vault
from tests.house.test_sample_vault import VAULT
from tests.postgres import new_database, own_server
from tests.server.browser import wait_for
from tests.server.conftest import serving
from tests.vault.team.servers import Team, git

pytestmark = pytest.mark.postgres
resource = pytest.importorskip("resource", reason="Windows has no such limits")
# the last step of the build fails, as it does where the disk is full
FAIL = """
create function fail() returns event_trigger language plpgsql as
$$ begin
    if exists (select from pg_event_trigger_ddl_commands() where object_identity ~ 'hnsw') then
        raise exception using errcode = 'disk_full', message = 'no space is left';
    end if;
end $$;
create event trigger fail on ddl_command_end when tag in ('CREATE INDEX') execute function fail()
"""
INDEXES = "select indisvalid from pg_index join pg_class on oid = indexrelid where relname = 'docs_vec_hnsw'"
SHARED_MEMORY = 64 << 20
"""As much as Docker gives."""


@pytest.fixture(autouse=True)
def few(monkeypatch: pytest.MonkeyPatch) -> None:
    """So few vectors are many."""
    for module in ("vector_tables", "vector_index"):
        monkeypatch.setattr(f"co_cli.index.postgres.{module}.EXACT", 20)


def indexes(address: str) -> list[bool]:
    """Whether each index of vectors is valid."""
    with psycopg.connect(address) as connection:
        return [valid for (valid,) in connection.execute(INDEXES).fetchall()]


def test_vectors_of_many_passages_are_indexed_and_found() -> None:
    engine = PostgresEngine(new_database())
    index = KnowledgeIndex(engine, VAULT)
    index.sync()
    exact = [hit.ref for hit in index.search("who decides what ships")]
    engine.compact()

    with engine.reading() as reader:
        assert isinstance(reader, PostgresTransaction)
        reader.fetch("set local enable_sort = off")  # comparing each of so few would be faster
        assert [hit.ref for hit in index.search("who decides what ships")] == exact
        assert reader.fetch("select pg_stat_get_xact_numscans('docs_vec_hnsw'::regclass)") == [(1,)]
        assert reader.fetch("select current_setting('hnsw.ef_search'), current_setting('hnsw.iterative_scan')") == [
            ("600", "relaxed_order")
        ]
        assert reader.fetch("select reloptions from pg_class where relname = 'docs_vec_hnsw'") == [
            (["m=32", "ef_construction=200"],)
        ]
    assert index.search("who decides what ships", tags=["nobody has this"]) == []
    engine.close()


def test_vectors_are_indexed_when_the_transaction_that_filled_them_has_ended_and_no_other_is_open(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("co_cli.index.postgres.postgres_engine.CONFIGURE", "set lock_timeout = '100ms'")
    engine, other = (PostgresEngine(address) for address in [new_database()] * 2)
    index = KnowledgeIndex(engine, VAULT)

    def is_indexed() -> bool:
        with engine.asking() as connection:
            found = "select indisvalid from pg_index join pg_class on oid = indexrelid where relname = 'docs_vec_hnsw'"
            return fetch(connection, found) == [(True,)]

    with engine.transaction():
        index.sync()
        engine.compact()
    assert is_indexed()
    with engine.asking() as connection:
        ((store,),) = fetch(connection, "select store from co_cli.stores")
    with psycopg.connect(engine.address) as owner:
        fetch(owner, f"drop index {store}.docs_vec_hnsw")
    with other.transaction() as connection:
        fetch(connection, "delete from docs_vec where false")
        engine.compact()
        assert not is_indexed()
        assert index.search("who decides what ships")
    engine.compact()
    assert is_indexed()
    for one in (engine, other):
        one.close()


def test_a_build_that_fails_leaves_no_index_says_why_and_is_tried_again_by_the_next_sync(
    co: Co, vault: Vault, monkeypatch: pytest.MonkeyPatch
) -> None:
    address = new_database()
    monkeypatch.setenv("CO_ENGINE", address)
    monkeypatch.setattr("co_cli.index.sync.MANY", 1)
    for number in range(30):
        vault.write(f"memories/{number}.md", f"Note {number}.")
    with psycopg.connect(address) as owner:
        owner.execute(FAIL)
    assert co("index", "sync").code == 0
    assert indexes(address) == []

    why = "30 vectors are compared one by one: the HNSW index could not be built: no space is left"
    assert f"slow    {why}" in co("index", "status").out
    assert co("index", "status", "--json").json["unindexed"].startswith(why)
    (found,) = [one for one in co("doctor", "--json").json if one["check"] == "vectors"]
    assert (found["level"], found["fix"]) == ("warning", "co index sync")
    assert "Note 7." in co("search", "note 7").out
    with psycopg.connect(address) as owner:
        owner.execute("drop event trigger fail")
    assert co("index", "sync").code == 0

    assert indexes(address) == [True]
    assert "slow" not in co("index", "status").out


def test_a_server_tries_again_by_itself(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("co_cli.server.team_site.INDEX_SECONDS", 0.1)
    team = Team(tmp_path, new_database())
    for number in range(30):
        (team.clone / "memories" / f"{number}.md").write_text(f"Note {number}.\n")
    git(team.clone, "add", "--all")
    git(team.clone, "commit", "--quiet", "-m", "Notes")
    git(team.clone, "push", "--quiet")
    with psycopg.connect(team.address) as owner:
        owner.execute(FAIL)
    kb = team.server("one")
    kb.engine.compact()
    assert (indexes(team.address), bool(kb.engine.unindexed())) == ([], True)

    with serving(kb, AccessTokens.of(kb.vault)):
        with psycopg.connect(team.address) as owner:
            owner.execute("drop event trigger fail")
        wait_for(lambda: indexes(team.address) == [True])
    team.close()


@contextlib.contextmanager
def limited(what: int, soft: int) -> Generator[None]:
    """A limit for this process and for those that it starts."""
    before = resource.getrlimit(what)
    resource.setrlimit(what, (soft, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(what, before)


@pytest.mark.slow
def test_a_build_is_done_by_one_process_where_there_is_no_shared_memory_for_several() -> None:
    small_files = limited(resource.RLIMIT_FSIZE, SHARED_MEMORY)  # here, shared memory is in files
    with small_files, own_server("-c dynamic_shared_memory_type=mmap -c min_parallel_table_scan_size=0 ") as found:
        folder, address = found
        engine = PostgresEngine(address)
        KnowledgeIndex(engine, VAULT).sync()
        engine.compact()

        assert indexes(address) == [True]
        assert engine.unindexed() is None
        assert "could not resize shared memory segment" in (folder / "log").read_text()
        engine.close()
