"""Stores: schemas with everything derived. Make one, drop one, and swap vaults inside one; as their owner."""

from __future__ import annotations

import contextlib
import uuid
from collections.abc import Collection, Generator
from pathlib import Path

import psycopg

from co_cli.index.postgres.postgres_statements import ROLE, Connection, fetch
from co_cli.index.postgres.vector_tables import OF_VISIBLE, PROTECT

SCHEMA = Path(__file__).with_name("schema.sql").read_text("utf-8")
DAMAGE = (psycopg.InternalError, psycopg.errors.UndefinedTable, psycopg.errors.UndefinedColumn)
FRESH, OLD = "\2fresh", "\2old"
"""What is added to the name of a vault that a rebuild fills, and to the name of the one that it replaced."""

OF_ORIGINS = """
select table_name from information_schema.columns where table_schema = %(store)s and column_name = 'vault_id'
"""
SHARE = f"""
grant usage on schema {{store}} to {ROLE}; grant usage on all sequences in schema {{store}} to {ROLE};
grant select, insert, update, delete on spaces, embedding_cache to {ROLE}
"""
HAS_ROLE = f"select 1 from pg_roles where rolname = '{ROLE}'"
IS_MEMBER = f"select pg_has_role('{ROLE}', 'set')"
KEEP_CACHE = """
insert into {fresh}.spaces select * from {store}.spaces;
insert into {fresh}.embedding_cache select * from {store}.embedding_cache;
select setval(pg_get_serial_sequence('{fresh}.spaces', 'id'), max(id)) from {fresh}.spaces
"""
HAS_OTHERS = """
select exists (
    select from {store}.vaults where notes > 0 and root <> all (%(roots)s) and strpos(root, chr(2)) = 0
)
"""
SWAP = (
    """
    update {store}.vaults set root = root || %(old)s where (root, source, name, only_file) in (
        select left(root, -length(%(fresh)s)), source, name, only_file from {store}.vaults
        where right(root, length(%(fresh)s)) = %(fresh)s
    )
    """,
    """
    update {store}.vaults set root = left(root, -length(%(fresh)s)) where right(root, length(%(fresh)s)) = %(fresh)s
    """,
)
FORGET = "delete from {store}.{table} where vault_id in (select id from {store}.vaults where strpos(root, chr(2)) > 0)"
FORGET_ORIGINS = "delete from {store}.vaults where strpos(root, chr(2)) > 0"


@contextlib.contextmanager
def as_owner(connection: Connection) -> Generator[None]:
    """Let a connection make and change tables for a while."""
    ((role,),) = fetch(connection, "select current_setting('role')")
    fetch(connection, "set role none")
    try:
        yield
    finally:
        if not connection.broken:
            fetch(connection, f"set role {role}")


@contextlib.contextmanager
def advisory_lock(connection: Connection, key: int) -> Generator[None]:
    """Hold an advisory lock; a connection that breaks gives it back."""
    fetch(connection, "select pg_advisory_lock(%(key)s)", {"key": key})
    try:
        yield
    finally:
        if not connection.broken:
            fetch(connection, "select pg_advisory_unlock(%(key)s)", {"key": key})


def make_role(connection: Connection) -> None:
    """The role belongs to the whole server: other databases may make it at the same time, or an administrator did."""
    if not fetch(connection, HAS_ROLE):
        with contextlib.suppress(psycopg.errors.DuplicateObject, psycopg.errors.UniqueViolation):
            fetch(connection, f"create role {ROLE} nologin")
    if not fetch(connection, IS_MEMBER)[0][0]:
        fetch(connection, f"grant {ROLE} to current_user")


def make_store(connection: Connection) -> str:
    store = f"co_store_{uuid.uuid4().hex[:12]}"
    with connection.transaction():
        fetch(connection, f"create schema {store}; set local search_path = {store}, public; {SCHEMA}")
        fetch(connection, PROTECT.format(table="vaults", condition="visible(root)"))
        for (table,) in fetch(connection, OF_ORIGINS, {"store": store}):
            fetch(connection, PROTECT.format(table=table, condition=OF_VISIBLE))
        fetch(connection, SHARE.format(store=store))
    return store


def drop_store(connection: Connection, store: str) -> None:
    """Drop a store, unless somebody still reads it: then the next rebuild does."""
    with contextlib.suppress(psycopg.errors.LockNotAvailable, *DAMAGE), connection.transaction():
        fetch(connection, f"lock table {store}.vaults in access exclusive mode nowait; drop schema {store} cascade")


def keep_cache(connection: Connection, store: str, fresh: str) -> None:
    """Copy the embedding cache of a store that can be read."""
    with contextlib.suppress(*DAMAGE), connection.transaction():
        fetch(connection, KEEP_CACHE.format(fresh=fresh, store=store))


def has_others(connection: Connection, store: str, roots: Collection[str]) -> bool:
    """Whether a store has vaults with other names. One that cannot be read has nothing to keep."""
    try:
        return fetch(connection, HAS_OTHERS.format(store=store), {"roots": list(roots)})[0][0]
    except DAMAGE:
        return False


def swap_origins(connection: Connection, store: str) -> None:
    """Give each vault that was filled again the name of the one that it replaces."""
    with connection.transaction():
        for statement in SWAP:
            fetch(connection, statement.format(store=store), {"fresh": FRESH, "old": OLD})


def forget_swapped(connection: Connection, store: str) -> None:
    """Delete what a rebuild has replaced, or has left when it was stopped."""
    with connection.transaction():
        for (table,) in fetch(connection, OF_ORIGINS, {"store": store}):
            fetch(connection, FORGET.format(store=store, table=table))
        fetch(connection, FORGET_ORIGINS.format(store=store))
