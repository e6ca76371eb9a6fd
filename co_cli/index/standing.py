"""Which notes hold at a moment: those with a window of validity, and those that another note took the place of.

`succession.py` decides the same without search.db. Few notes say so: a search asks the reader first whether any within
its reach does, and mostly needs nothing of this.
"""

from __future__ import annotations

import apsw

from co_cli.index.connection import fetch
from co_cli.index.names import fold_name, name_number
from co_cli.record import Record
from co_cli.typed import whole

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

PUT_SUPERSESSION = """
insert into supersessions (vault_id, name, doc_id) values (:vault, :name, :doc) on conflict do nothing
"""
DROP_SUPERSESSIONS = "delete from supersessions where doc_id = :doc"
# a note is superseded from the moment on at which the newer one is there and holds
STANDINGS = """
select docs.id, docs.created, docs.valid_from, docs.valid_until, (
    select newer.ref from names
    cross join supersessions on supersessions.vault_id = names.vault_id and supersessions.name = names.name
    cross join docs as newer on newer.id = supersessions.doc_id
    where names.doc_id = docs.id and newer.id <> docs.id and max(newer.created, coalesce(newer.valid_from, 0)) <= :now
        and not exists (  -- of two that supersede each other, the newer one holds
            select 1 from names as theirs
            cross join supersessions as back on back.vault_id = theirs.vault_id and back.name = theirs.name
            where theirs.doc_id = newer.id and back.doc_id = docs.id
                and (docs.created, docs.id) > (newer.created, newer.id)
        )
    order by newer.created desc limit 1
), docs.superseded_by, docs.vault_id
from docs where docs.id in (select value from json_each(:ids))
"""
CREATED = """
select max(newer.created, coalesce(newer.valid_from, 0)), newer.ref, newer.id
from names cross join docs as newer on newer.id = names.doc_id
where names.vault_id = :vault and names.name = :name limit 1
"""
VAULT_OF = "select vault_id from docs where id = :doc"


class Standing(Record):
    """When a note holds."""

    created: float
    valid_from: float | None
    valid_until: float | None
    superseded_by: str | None
    """The note that had taken its place by then."""


def supersession_rows(vault_id: int, doc: int, targets: Sequence[str]) -> list[dict[str, apsw.SQLiteValue]]:
    """What PUT_SUPERSESSION takes for what one note supersedes."""
    names = {fold_name(whole(target)) for target in targets}
    return [{"vault": vault_id, "name": name_number(name), "doc": doc} for name in names if name]


def standings(
    connection: apsw.Connection, doc_ids: Sequence[int], now: float, tiers: Mapping[int, str]
) -> dict[int, Standing]:
    """Of these notes. `tiers` is what stands before the refs of other people's vaults, by the vaults' ids."""
    ids = f"[{','.join(map(str, doc_ids))}]"
    found: dict[int, Standing] = {}
    for doc, created, first, last, newer, named, vault in fetch(connection, STANDINGS, {"ids": ids, "now": now}):
        if newer is None and named is not None:
            newer = _meant(connection, vault, doc, named, now)
        found[doc] = Standing(created, first, last, newer and tiers.get(vault, "") + newer)
    return found


def named_successor(connection: apsw.Connection, doc: int, named: str, now: float) -> str | None:
    """The note that one says took its place, if that had happened by then. Its file may be newer than its row."""
    vault = connection.execute(VAULT_OF, {"doc": doc}).get
    return _meant(connection, vault, doc, whole(named), now)


def _meant(connection: apsw.Connection, vault: int, doc: int, named: str, now: float) -> str | None:
    rows = fetch(connection, CREATED, {"vault": vault, "name": name_number(fold_name(named))})
    # a note that is not here may still have taken its place; one that names itself means nothing
    since, ref, which = rows[0] if rows else (now, named, None)
    return ref if since <= now and which != doc else None
