"""The schema `team`, made by numbered SQL files: each runs once, in order, by the first program that has it."""

from __future__ import annotations

import time
from pathlib import Path

from co_cli.ground.errors import IndexUnavailableError
from co_cli.index.postgres.postgres_engine import PostgresEngine
from co_cli.index.postgres.postgres_statements import ROLE, fetch

MIGRATIONS = Path(__file__).with_name("migrations")
CHANNEL = "co_cli_team"
"""NOTIFY on it says which vault has something to commit, or to fetch."""
MIGRATION_LOCK = 7_165_064_744_911_533
PREPARE = """
create schema if not exists team;
create table if not exists team.migrations (name text primary key, ran_at double precision not null)
"""
RAN = "insert into team.migrations (name, ran_at) values (%(name)s, %(now)s)"
ADD_VAULT = "insert into team.vaults (name) values (%(name)s) on conflict (name) do nothing"
VAULT_ID = "select id from team.vaults where name = %(name)s"


def connect_team(engine: PostgresEngine, name: str) -> int:
    """The number of a vault in the schema `team`; both are made if they are not there."""
    with engine.transaction() as connection:
        fetch(connection, "select pg_advisory_xact_lock(%(key)s)", {"key": MIGRATION_LOCK})
        fetch(connection, "set local role none")  # only the owner may make tables
        fetch(connection, PREPARE)
        done = {found for (found,) in fetch(connection, "select name from team.migrations")}
        files = {file.name: file for file in sorted(MIGRATIONS.glob("*.sql"))}
        if done - files.keys():
            raise IndexUnavailableError(f"{engine.path} is of a newer co-cli: `pip install -U co-cli`")
        for file in (file for missing, file in files.items() if missing not in done):
            fetch(connection, "set local search_path = team")
            fetch(connection, file.read_text("utf-8"))
            fetch(connection, RAN, {"name": file.name, "now": time.time()})
        fetch(connection, f"set local role {ROLE}")
        fetch(connection, ADD_VAULT, {"name": name})
        return int(fetch(connection, VAULT_ID, {"name": name})[0][0])
