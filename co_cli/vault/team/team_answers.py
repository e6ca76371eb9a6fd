"""What saves with a client's key were answered, in the team's database: every server knows it, for a day."""

from __future__ import annotations

import time
from collections.abc import Mapping

from co_cli.ground.saves import Saved, SaveKey
from co_cli.ground.values import DAY, fields_of
from co_cli.index.postgres.postgres_statements import Connection, fetch, run

FIND = """
select request, answer, seq from team.answers
where vault_id = %(vault)s and key = %(key)s and moment > %(since)s
"""
ADD = """
with old as (delete from team.answers where vault_id = %(vault)s and moment <= %(since)s and key <> %(key)s)
insert into team.answers (vault_id, key, request, answer, seq, moment)
values (%(vault)s, %(key)s, %(request)s, %(answer)s, %(seq)s, %(now)s)
on conflict (vault_id, key) do update
set request = excluded.request, answer = excluded.answer, seq = excluded.seq, moment = excluded.moment
"""


def find_answer(connection: Connection, vault: int, key: SaveKey) -> Saved | None:
    """Raises KeyReusedError if another save had this key."""
    found = fetch(connection, FIND, {"vault": vault, "key": key.key, "since": time.time() - DAY})
    return key.read(*found[0]) if found else None


def add_answers(connection: Connection, vault: int, answers: Mapping[SaveKey, Saved], seq: int | None) -> None:
    """In the transaction of the save with this number. Answers older than a day are deleted."""
    now = time.time()
    for key, saved in answers.items():
        made = {"vault": vault, **fields_of(key), "answer": key.write(saved), "seq": seq}
        run(connection, ADD, {**made, "now": now, "since": now - DAY})
