"""Run statements in one transaction of search.db. Lists are bound as JSON."""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from typing import Any

import apsw

from co_cli.index.derivation import Row, stored_json
from co_cli.index.sqlite.connection import fetch
from co_cli.index.sqlite.resident import ResidentVectors
from co_cli.index.stored import StoredOrigin
from co_cli.index.tables.statements import Dialect

SQLITE = Dialect(among="in", cross_join="cross join", position="instr", hints=True)


class SqliteStatements:
    """One transaction. `with_vec0`: new tables of vectors are those of sqlite-vec."""

    dialect = SQLITE

    def __init__(self, connection: apsw.Connection, resident: ResidentVectors, with_vec0: bool = False) -> None:
        self.connection, self.resident, self.with_vec0 = connection, resident, with_vec0
        self.known: dict[int, StoredOrigin] = {}

    def fetch(self, statement: str, values: Mapping[str, Any] | None = None, **parts: str) -> list[Any]:
        bound: dict[str, Any] = {}
        lists: tuple[tuple[str, str], ...] = ()
        for name, value in values.items() if values else ():
            if isinstance(value, list):
                members, bound[name] = _bound_list(name, value)  # pyright: ignore[reportUnknownArgumentType]
                lists += ((name, members),)
            else:
                bound[name] = value
        return fetch(self.connection, _text(statement, tuple(parts.items()), lists), bound)

    def run(self, statement: str, values: Mapping[str, Any] | None = None, **parts: str) -> None:
        self.fetch(statement, values, **parts)

    def run_many(self, statement: str, rows: Sequence[Row], **parts: str) -> None:
        self.connection.executemany(_text(statement, tuple(parts.items())), rows)

    def add_rows(self, table: str, rows: Sequence[Row]) -> None:
        if rows:
            values = ", ".join(f":{name}" for name in rows[0])
            self.run_many(f"insert into {table} ({', '.join(rows[0])}) values ({values})", rows)

    def take_ids(self, table: str, count: int) -> Sequence[int]:
        ((last,),) = self.fetch(f"select coalesce(max(id), 0) from {table}")
        return range(last + 1, last + 1 + count)

    def lock(self, origin_id: int) -> None:
        """One writer at a time has the whole file."""

    def stored_root(self, root: str) -> str:
        return root

    def local_root(self, stored: str) -> str:
        return stored


class _Parameters(dict[str, str]):
    """What stands for each parameter: its name as SQLite takes it, or what selects the members of a list."""

    def __missing__(self, name: str) -> str:
        return f":{name}"


@functools.lru_cache(500)
def _text(statement: str, parts: tuple[tuple[str, str], ...], lists: tuple[tuple[str, str], ...] = ()) -> str:
    """A statement as SQLite takes it."""
    return SQLITE.compose(statement, dict(parts)) % _Parameters(lists)


def _bound_list(name: str, members: Sequence[Any]) -> tuple[str, str]:
    """What selects the members of a list, and the list as JSON, which has no bytes."""
    if members and isinstance(members[0], bytes):
        return f"select unhex(value) from json_each(:{name})", stored_json([member.hex() for member in members])
    return f"select value from json_each(:{name})", stored_json(list(members))
