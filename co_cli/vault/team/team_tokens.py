"""The tokens of a team vault, in its database: every server knows them at once."""

from __future__ import annotations

from typing import Any

from co_cli.ground.access import Token, TokenChange
from co_cli.ground.values import fields_of
from co_cli.index.postgres.postgres_engine import PostgresEngine
from co_cli.index.postgres.postgres_statements import fetch

COLUMNS = "name, role, created, expires, per_second, last_used"
ADD = f"""
insert into team.tokens (hash, vault_id, name, role, created, expires, per_second)
values (%(hash)s, %(id)s, %(name)s, %(role)s, %(created)s, %(expires)s, %(per_second)s)
on conflict (vault_id, name) where not replaced do nothing returning {COLUMNS}
"""
REPLACE = f"""
update team.tokens set replaced = true, expires = case expires when '' then %(until)s else least(expires, %(until)s) end
where vault_id = %(id)s and name = %(name)s and not replaced returning {COLUMNS}
"""
CLEAR = "delete from team.tokens where vault_id = %(id)s and replaced and expires <= %(created)s"
REMOVE = f"delete from team.tokens where vault_id = %(id)s and name = %(name)s returning replaced, {COLUMNS}"
FIND = f"select {COLUMNS} from team.tokens where vault_id = %(id)s and hash = %(hash)s"
ALL = f"select {COLUMNS} from team.tokens where vault_id = %(id)s and not replaced order by created, name"
USED = "update team.tokens set last_used = %(moment)s where vault_id = %(id)s and hash = %(hash)s"
RECORD = """
insert into team.audit (vault_id, moment, who, action, path)
values (%(id)s, extract(epoch from %(moment)s::timestamptz), %(who)s, %(action)s, '')
"""
CHANGES = """
select to_char(to_timestamp(moment) at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS"Z"'), who, action
from team.audit where vault_id = %(id)s and path = '' order by id desc limit %(limit)s
"""


class TeamTokens:
    """Those of one vault, which has this name and number."""

    def __init__(self, engine: PostgresEngine, vault: str, number: int) -> None:
        self.vault, self._engine, self._number = vault, engine, number

    def add(self, key: str, token: Token, change: TokenChange) -> bool:
        with self._engine.transaction():
            added = bool(self._ask(ADD, hash=key, **fields_of(token)))
            if added:
                self._ask(RECORD, **change._asdict())
        return added

    def replace(self, key: str, token: Token, until: str, change: TokenChange) -> bool:
        with self._engine.transaction():
            self._ask(CLEAR, created=token.created)
            replaced = bool(self._ask(REPLACE, name=token.name, until=until))
            return replaced and self.add(key, token, change)

    def remove(self, name: str, change: TokenChange) -> Token | None:
        with self._engine.transaction():
            removed = sorted(self._ask(REMOVE, name=name))  # those that were replaced come last
            if removed:
                self._ask(RECORD, **change._asdict())
        return self._token(removed[0][1:]) if removed else None

    def find(self, key: str) -> Token | None:
        return next(map(self._token, self._ask(FIND, hash=key)), None)

    def all(self) -> list[Token]:
        return [self._token(row) for row in self._ask(ALL)]

    def use(self, key: str, moment: str) -> None:
        self._ask(USED, hash=key, moment=moment)

    def changes(self, limit: int) -> list[TokenChange]:
        return [TokenChange(*row) for row in self._ask(CHANGES, limit=limit)]

    def _token(self, row: Any) -> Token:
        name, role, created, expires, per_second, last_used = row
        return Token(name, role, self.vault, created, expires, per_second, last_used)

    def _ask(self, statement: str, **values: Any) -> list[Any]:
        with self._engine.asking() as connection:
            return fetch(connection, statement, {**values, "id": self._number})
