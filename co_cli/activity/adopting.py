"""A vault whose folder has another place now: what is known of it by the old one is joined to the new one.

Inside the caller's transaction. The new place may have a history of its own already, from the first look at it: where
both know a document the old history comes first, and what was seen at the new place follows it.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import NamedTuple

import apsw

from co_cli.activity.versions import join, remove, vault_id
from co_cli.index.sqlite.connection import fetch

FIND_VAULT = "select id from vaults where root = :root"
OTHER_VAULTS = """
select id, root, (select count(*) from documents where vault_id = vaults.id and gone is null) from vaults
where root <> :root
"""
HEADS = "select path, hash from documents where vault_id = :vault and hash is not null and gone is null"
PAIRS = """
select ours.id, ours.hash, ours.gone, theirs.id from documents as ours
join documents as theirs on theirs.vault_id = :new and theirs.path = ours.path
where ours.vault_id = :old
"""
FIRST_VERSION = """
select id, hash from versions where document_id = :id and what in ('seen', 'created') order by at, id limit 1
"""
DROP_VERSION = "delete from versions where id = :version"
CALL_IT = "update versions set what = :what where id = :version"
TAKE_HEAD = """
update documents set (hash, title, size, updated, gone) =
    (select hash, title, size, updated, gone from documents where id = :other)
where id = :id and (select hash from documents where id = :other) is not null
"""
GONE_FROM_HERE = "select path from documents where vault_id = :new and hash is not null and gone is null"
# a statement each, in this order; none of them reads what a later one changes
JOIN = (
    "update documents set vault_id = :new where vault_id = :old",
    "delete from judgements as ours where vault_id = :old and exists (select 1 from judgements as theirs "
    "where theirs.vault_id = :new and theirs.document_id = ours.document_id and theirs.folded = ours.folded "
    "and theirs.at >= ours.at)",
    "update or replace judgements set vault_id = :new where vault_id = :old",
    "update tunings set vault_id = :new where vault_id = :old",
    "update queries set vault_id = :new where vault_id = :old",
    "update queries set question_id = (select theirs.id from questions as theirs join questions as ours "
    "on ours.id = question_id and theirs.vault_id = :new and theirs.folded = ours.folded) "
    "where question_id in (select ours.id from questions as ours join questions as theirs "
    "on theirs.vault_id = :new and theirs.folded = ours.folded where ours.vault_id = :old)",
    "insert into questions (vault_id, folded, text, asked) "
    "select :new, folded, text, asked from questions where vault_id = :old "
    "and folded in (select folded from questions where vault_id = :new) "
    "on conflict (vault_id, folded) do update set asked = asked + excluded.asked",
    "delete from questions where vault_id = :old and folded in (select folded from questions where vault_id = :new)",
    "update questions set vault_id = :new where vault_id = :old",
    "insert into days select :new, day, searches, unanswered, degraded from days where vault_id = :old "
    "on conflict do update set searches = searches + excluded.searches, "
    "unanswered = unanswered + excluded.unanswered, degraded = degraded + excluded.degraded",
    "insert into latencies select :new, day, bucket, searches from latencies where vault_id = :old "
    "on conflict do update set searches = searches + excluded.searches",
    "insert into doors select :new, day, door, searches from doors where vault_id = :old "
    "on conflict do update set searches = searches + excluded.searches",
    "delete from days where vault_id = :old",
    "delete from latencies where vault_id = :old",
    "delete from doors where vault_id = :old",
    "update vaults set seen = min(ifnull(seen, 9e99), (select ifnull(seen, 9e99) from vaults where id = :old)) "
    "where id = :new",
    "update vaults set seen = null where seen = 9e99",
    "delete from vaults where id = :old",
)


class Elsewhere(NamedTuple):
    """Another vault that activity.db knows."""

    root: str
    documents: int
    alike: int
    """How many of them stand at the same path here, with the same content."""


def vaults_like(connection: apsw.Connection, root: str, holds: Callable[[str, str], bool]) -> list[Elsewhere]:
    """Other vaults whose folders are gone, those that share most documents with this one first.

    `holds`: does the file at this path have the content of this hash? Asked of the files, for what nobody has synced
    yet is here all the same.
    """
    found: list[Elsewhere] = []
    for vault, other, documents in fetch(connection, OTHER_VAULTS, {"root": root}):
        if documents and not os.path.isdir(other):
            heads = fetch(connection, HEADS, {"vault": vault})
            found.append(Elsewhere(other, documents, sum(holds(path, known) for path, known in heads)))
    return sorted(found, key=lambda one: -one.alike)


def adopt(
    connection: apsw.Connection, old: str, new: str, at: float, there: Callable[[str], bool] = lambda path: True
) -> int:
    """Join what is known of the vault at `old` to the one at `new`; how many documents came. `there`: is it here?"""
    source = connection.execute(FIND_VAULT, {"root": old}).get
    if source is None:
        return 0
    target, _ = vault_id(connection, new)
    vaults = {"old": source, "new": target}
    count = int(str(connection.execute("select count(*) from documents where vault_id = :old", {"old": source}).get))
    for ours, had, gone, theirs in fetch(connection, PAIRS, vaults):
        _begin_later(connection, theirs, had, gone is not None)
        connection.execute(TAKE_HEAD, {"id": ours, "other": theirs})
        join(connection, ours, theirs)
    for statement in JOIN:
        connection.execute(statement, {name: vaults[name] for name in vaults if f":{name}" in statement})
    for (path,) in fetch(connection, GONE_FROM_HERE, {"new": target}):
        if not there(path):
            remove(connection, target, path, at)
    return count


def _begin_later(connection: apsw.Connection, document: int, had: str | None, gone: bool) -> None:
    """The first look at a document in its new place is no beginning: it was as it had been, came back, or changed."""
    first = connection.execute(FIRST_VERSION, {"id": document}).fetchone()
    if first is not None and had is not None:
        if first[1] == had and not gone:
            connection.execute(DROP_VERSION, {"version": first[0]})
        else:
            connection.execute(CALL_IT, {"version": first[0], "what": "restored" if gone else "updated"})
