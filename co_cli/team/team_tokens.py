"""The tokens of a team vault, in its database: every server knows them at once."""

from __future__ import annotations

from co_cli.access import Token
from co_cli.index.postgres.postgres_engine import PostgresEngine
from co_cli.index.postgres.postgres_statements import fetch
from co_cli.values import fields_of

ADD = """
insert into team.tokens (hash, vault_id, name, role, created)
values (%(hash)s, %(id)s, %(name)s, %(role)s, %(created)s) on conflict (vault_id, name) do nothing
returning name, role, created
"""
REMOVE = "delete from team.tokens where vault_id = %(id)s and name = %(name)s returning name, role, created"
FIND = "select name, role, created from team.tokens where vault_id = %(id)s and hash = %(hash)s"
ALL = "select name, role, created from team.tokens where vault_id = %(id)s order by created, name"


class TeamTokens:
    """Those of one vault, which has this name and number."""

    def __init__(self, engine: PostgresEngine, vault: str, number: int) -> None:
        self.vault, self._engine, self._number = vault, engine, number

    def add(self, key: str, token: Token) -> bool:
        return bool(self._ask(ADD, hash=key, **fields_of(token)))

    def remove(self, name: str) -> Token | None:
        return next(iter(self._ask(REMOVE, name=name)), None)

    def find(self, key: str) -> Token | None:
        return next(iter(self._ask(FIND, hash=key)), None)

    def all(self) -> list[Token]:
        return self._ask(ALL)

    def _ask(self, statement: str, **values: str) -> list[Token]:
        with self._engine.asking() as connection:
            rows = fetch(connection, statement, {**values, "id": self._number})
        return [Token(name, role, self.vault, created) for name, role, created in rows]
