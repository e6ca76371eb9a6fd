"""Run the shared SQL on PostgreSQL, and insert rows with COPY."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence
from itertools import islice
from typing import Any

import psycopg
from psycopg.adapt import Dumper
from psycopg.pq import Format, PipelineStatus

from co_cli.index.derivation import Row, stored_text
from co_cli.index.stored import StoredOrigin
from co_cli.index.tables.statements import Dialect
from co_cli.notes.logbook import logger

Connection = psycopg.Connection[Any]
FEW = 50
"""Rows that are inserted in one round trip; copying them takes five."""
LONG = 500
"""A statement with more members in a list is planned for them; that takes longer than a search has."""
ROLE = "co_cli_member"
"""Everything is read and written as this role, which owns nothing: row-level security applies to it."""
ORIGIN_LOCK = 1_668_246_388
"""The first half of the key of a vault's advisory lock; the vault is the other."""
STALLED_SECONDS = 5
"""A process that is silent for this long inside a transaction loses it: one that is frozen must not stop all others."""
TRY_LOCK = "select pg_try_advisory_xact_lock(%(key)s, %(number)s)"
PATIENCE = "select setting::int from pg_settings where name = 'lock_timeout'"
WAIT_FOR_LOCK = """
select set_config('lock_timeout', %(some)s, true), pg_advisory_xact_lock(%(key)s, %(number)s),
    set_config('lock_timeout', %(patience)s, true)
"""
END_STALLED = f"""
select pg_terminate_backend(pid) from pg_locks join pg_stat_activity using (pid)
where locktype = 'advisory' and database = (select oid from pg_database where datname = current_database()) and granted
    and classid = %(key)s and objid = %(number)s and wait_event in ('ClientRead', 'ClientWrite')
    and greatest(query_start, state_change) < clock_timestamp() - interval '{STALLED_SECONDS} seconds'
"""
"""PostgreSQL itself ends only those that are idle, not those in the middle of a pipeline."""
log = logger("engine")
POSTGRES = Dialect(among="= any", cross_join="join", position="strpos", hints=False)


class InBinary(bytes):
    """A value as PostgreSQL has it in binary, of the type that its column has."""


class InBinaryDumper(Dumper):
    format = Format.BINARY  # and no type: the server knows that of the column

    def dump(self, obj: InBinary) -> bytes:
        return obj


psycopg.adapters.register_dumper(InBinary, InBinaryDumper)


class VisibleOrigins:
    """Which vaults an engine sees: those that it was asked for, by their stored names.

    `ending` is added to every name, for vaults that a rebuild fills.
    """

    def __init__(self, roots: Mapping[str, str], ending: str = "") -> None:
        self._stored, self._local, self._ending = roots, {name: root for root, name in roots.items()}, ending
        self.seen = {name + ending for name in self._local}

    def stored(self, root: str) -> str:
        return self._stored.get(root, root) + self._ending

    def local(self, stored: str) -> str:
        name = stored.removesuffix(self._ending)
        return self._local.get(name, name)

    @property
    def setting(self) -> str:
        return "\1".join(sorted(self.seen))


class PostgresStatements:
    """Statements of one transaction."""

    dialect = POSTGRES

    def __init__(self, connection: Connection, visible: VisibleOrigins) -> None:
        self.connection, self.visible = connection, visible
        self.known: dict[int, StoredOrigin] = {}
        self.locked: set[int] = set()
        """The vaults that nobody else can write to until this transaction ends."""

    def fetch(self, statement: str, values: Mapping[str, Any] | None = None, **parts: str) -> list[Any]:
        return fetch(self.connection, self.dialect.compose(statement, parts), values)

    def run(self, statement: str, values: Mapping[str, Any] | None = None, **parts: str) -> None:
        run(self.connection, self.dialect.compose(statement, parts), values)

    def run_many(self, statement: str, rows: Sequence[Row], **parts: str) -> None:
        cleaned = [{name: clean(value) for name, value in row.items()} for row in rows]
        self.connection.cursor().executemany(self.dialect.compose(statement, parts).encode(), cleaned)

    def add_rows(self, table: str, rows: Sequence[Row]) -> None:
        if rows and (len(rows) <= FEW or is_pipelined(self.connection)):  # COPY needs a round trip of its own
            values = ", ".join(f"%({name})s" for name in rows[0])
            self.run_many(f"insert into {table} ({', '.join(rows[0])}) values ({values})", rows)
        elif rows:
            self.copy(table, list(rows[0]), (row.values() for row in rows))

    def put_binary(self, table: str, columns: Mapping[str, str], rows: Sequence[Sequence[Any]]) -> None:
        """Insert rows of columns with these types. What is sent as `bytea` is as its own type is in binary."""
        if len(rows) > FEW and not is_pipelined(self.connection):
            self.copy(table, columns, rows)
            return
        sent = [(name, InBinary if kind == "bytea" else None) for name, kind in columns.items()]
        few = [
            {name: value if kind is None else kind(value) for (name, kind), value in zip(sent, row, strict=True)}
            for row in rows
        ]
        self.add_rows(table, few)

    def copy(self, table: str, columns: Sequence[str] | Mapping[str, str], rows: Iterable[Iterable[Any]]) -> None:
        """Columns with their types are copied in binary. Row-level security does not know COPY: only the owner may."""
        binary = "(format binary)" if isinstance(columns, Mapping) else ""
        statement = f"copy {table} ({', '.join(columns)}) from stdin {binary}"
        self.fetch("set local role none")
        left = iter(rows)
        while few := list(islice(left, 20 * FEW)):  # one COPY of many seconds would look like a process that stopped
            with self.connection.cursor().copy(statement.encode()) as copy:
                if isinstance(columns, Mapping):
                    copy.set_types(list(columns.values()))
                for row in few:
                    copy.write_row([stored_text(value) if isinstance(value, str) else value for value in row])
        self.fetch(f"set local role {ROLE}")

    def take_ids(self, table: str, count: int) -> Sequence[int]:
        statement = f"select nextval('{table}_ids') from generate_series(1, %(count)s)"
        return [number for (number,) in self.fetch(statement, {"count": count})]

    def lock(self, origin_id: int) -> None:
        if origin_id not in self.locked:
            take_lock(self.connection, ORIGIN_LOCK, origin_id)
            self.locked.add(origin_id)
            self.known.clear()  # another writer may have changed it before

    def stored_root(self, root: str) -> str:
        stored = self.visible.stored(root)
        if stored not in self.visible.seen:
            self.visible.seen.add(stored)
            self.fetch("select set_config('co_cli.roots', %(roots)s, true)", {"roots": self.visible.setting})
        return stored

    def local_root(self, stored: str) -> str:
        return self.visible.local(stored)


def fetch(connection: Connection, statement: str, values: Mapping[str, Any] | None = None) -> list[Any]:
    """Every row; the statement says what is in it. In a pipeline, what was run before it is sent along."""
    cursor = run(connection, statement, values)
    return [] if cursor.rownumber is None and not is_pipelined(connection) else cursor.fetchall()


def take_lock(connection: Connection, key: int, number: int) -> None:
    """Take an advisory lock until the transaction ends. A process that holds it and does nothing is disconnected."""
    held = {"key": key, "number": number}
    if fetch(connection, TRY_LOCK, held)[0][0]:
        return
    ((patience,),) = fetch(connection, PATIENCE)  # milliseconds
    end, some = time.monotonic() + patience / 1000, min(patience, 1000 * STALLED_SECONDS)
    while True:
        try:
            with connection.transaction():
                fetch(connection, WAIT_FOR_LOCK, {**held, "some": str(some), "patience": str(patience)})
            return
        except psycopg.errors.LockNotAvailable:
            if time.monotonic() >= end:
                raise
            fetch(connection, "set local role none")
            if fetch(connection, END_STALLED, held):
                log.warning("a process that stopped while it wrote was disconnected")
            fetch(connection, f"set local role {ROLE}")
            some = min(some, 1000)  # it may have stopped while this one waited


def is_pipelined(connection: Connection) -> bool:
    return connection.info.pipeline_status != PipelineStatus.OFF


def run(
    connection: Connection, statement: str, values: Mapping[str, Any] | None = None
) -> psycopg.Cursor[tuple[Any, ...]]:
    """Run a statement. In a pipeline, nobody waits for it: an error is raised later, by what does wait."""
    bound = {name: clean(value) for name, value in values.items()} if values else None
    # prepared, it would soon be planned for any list, and such a plan compares each row with each member of the list
    prepare = False if bound and any(map(_is_long, bound.values())) else None
    return connection.execute(statement.encode(), bound, prepare=prepare)


def _is_long(value: Any) -> bool:
    return isinstance(value, list) and len(value) > LONG  # pyright: ignore[reportUnknownArgumentType]


def clean(value: Any) -> Any:
    """Text that PostgreSQL accepts."""
    if isinstance(value, str):
        return stored_text(value)
    if isinstance(value, list) and value and isinstance(value[0], str):
        return [stored_text(member) for member in value]  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType]
    return value  # pyright: ignore[reportUnknownVariableType]
