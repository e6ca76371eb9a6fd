"""Run the shared SQL on PostgreSQL, and insert rows with COPY."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import psycopg

from co_cli.index.derivation import Row, stored_text
from co_cli.index.engine import StoredVault
from co_cli.index.tables.statements import Dialect

Connection = psycopg.Connection[Any]
FEW = 50
"""Rows that are inserted in one round trip; copying them takes five."""
ROLE = "co_cli_member"
"""Everything is read and written as this role, which owns nothing: row-level security applies to it."""
VAULT_LOCK = 1_668_246_388
"""The first half of the key of a vault's advisory lock; the vault is the other."""
POSTGRES = Dialect(among="= any", cross_join="join", position="strpos", hints=False)


class VisibleVaults:
    """Which vaults an engine sees: those that it was asked for, by their stored names."""

    def __init__(self, roots: Mapping[str, str]) -> None:
        self.stored, self.local = dict(roots), {name: root for root, name in roots.items()}
        self.seen = {*self.local}

    @property
    def setting(self) -> str:
        return "\1".join(sorted(self.seen))


class PostgresStatements:
    """Statements of one transaction."""

    dialect = POSTGRES

    def __init__(
        self, connection: Connection, visible: VisibleVaults, known: dict[int, StoredVault] | None = None
    ) -> None:
        self.connection, self.visible, self.known = connection, visible, known
        self.locked: set[int] = set()
        """The vaults that nobody else can write to until this transaction ends."""

    def fetch(self, statement: str, values: Mapping[str, Any] | None = None, **parts: str) -> list[Any]:
        return fetch(self.connection, self.dialect.compose(statement, parts), values)

    def run_many(self, statement: str, rows: Sequence[Row], **parts: str) -> None:
        cleaned = [{name: clean(value) for name, value in row.items()} for row in rows]
        self.connection.cursor().executemany(self.dialect.compose(statement, parts).encode(), cleaned)

    def add_rows(self, table: str, rows: Sequence[Row]) -> None:
        if 0 < len(rows) <= FEW:
            values = ", ".join(f"%({name})s" for name in rows[0])
            self.run_many(f"insert into {table} ({', '.join(rows[0])}) values ({values})", rows)
        elif rows:
            self.copy(table, list(rows[0]), (row.values() for row in rows))

    def copy(self, table: str, columns: Sequence[str] | Mapping[str, str], rows: Iterable[Iterable[Any]]) -> None:
        """Columns with their types are copied in binary. Row-level security does not know COPY: only the owner may."""
        binary = "(format binary)" if isinstance(columns, Mapping) else ""
        statement = f"copy {table} ({', '.join(columns)}) from stdin {binary}"
        self.fetch("set local role none")
        with self.connection.cursor().copy(statement.encode()) as copy:
            if isinstance(columns, Mapping):
                copy.set_types(list(columns.values()))
            for row in rows:
                copy.write_row([stored_text(value) if isinstance(value, str) else value for value in row])
        self.fetch(f"set local role {ROLE}")

    def take_ids(self, table: str, count: int) -> Sequence[int]:
        statement = f"select nextval('{table}_ids') from generate_series(1, %(count)s)"
        return [number for (number,) in self.fetch(statement, {"count": count})]

    def lock(self, vault: int) -> None:
        if vault not in self.locked:
            self.fetch("select pg_advisory_xact_lock(%(key)s, %(vault)s)", {"key": VAULT_LOCK, "vault": vault})
            self.locked.add(vault)

    def stored_root(self, root: str) -> str:
        stored = self.visible.stored.get(root, root)
        if stored not in self.visible.seen:
            self.visible.seen.add(stored)
            self.fetch("select set_config('co_cli.roots', %(roots)s, true)", {"roots": self.visible.setting})
        return stored

    def local_root(self, stored: str) -> str:
        return self.visible.local.get(stored, stored)


def fetch(connection: Connection, statement: str, values: Mapping[str, Any] | None = None) -> list[Any]:
    """Every row; the statement says what is in it."""
    bound = {name: clean(value) for name, value in values.items()} if values else None
    cursor = connection.execute(statement.encode(), bound)
    return cursor.fetchall() if cursor.description else []


def clean(value: Any) -> Any:
    """Text that PostgreSQL accepts."""
    if isinstance(value, str):
        return stored_text(value)
    if isinstance(value, list) and value and isinstance(value[0], str):
        return [stored_text(member) for member in value]  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType]
    return value  # pyright: ignore[reportUnknownVariableType]
