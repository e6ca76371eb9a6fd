"""Vectors: a vec0 table for each space, and the nearest to a query.

Vectors have unit length and are stored as in `index/packing.py`. A process that has numpy loaded, or searches again and
again, keeps them in memory (`resident.py`); where sqlite-vec cannot be loaded, a plain table holds them and numpy scans
it.
"""

from __future__ import annotations

from collections.abc import Sequence
from operator import mul
from typing import Any

import apsw

from co_cli.embedding.space import Vector
from co_cli.index.engine import Match, Scope, StoredSpace, WaitingPassage
from co_cli.index.packing import asked, numbers_of, stored_form, vector_of
from co_cli.index.sqlite.resident import ResidentVectors
from co_cli.index.tables.filters import conditions, is_narrow
from co_cli.index.tables.spaces import SpaceReader, SpaceWriter, vectors_table
from co_cli.sources.origin import kind_of

CHUNK_SIZE = 128
"""Rows that vec0 reserves at a time for each partition. At its default of 1,024 a vault with one note takes 1 MB."""
MOST_NEAREST = 4_096
"""vec0's own limit."""

CREATE_VEC0 = """
create virtual table {table} using vec0 (
    part text partition key, embedding {kind}[{dimensions}] distance_metric=cosine, chunk_size={chunk_size}
)
"""
CREATE_PLAIN = """
create table {table} (part text not null, embedding blob not null) strict;
create index {table}_by_part on {table} (part)
"""
IS_VEC0 = "select sql like 'create virtual%' from sqlite_master where name = :table"
PUT = "insert into {table} (rowid, part, embedding) values (:id, :part, {value})"
DROP = "delete from {table} where rowid = :id"
DROP_PART = "delete from {table} where part = :part"
NEAREST = """
select rowid, 1.0 - distance from {table} where embedding match {value} and k = :limit and part = :part {within}
"""
# the order of this join matters: `rowid in (...)` alone would read every vector
COSINES = """
select vectors.rowid, 1.0 - vec_distance_cosine(vectors.embedding, {value})
from json_each(:ids) as wanted cross join {table} as vectors where vectors.rowid = wanted.value
"""
STORED = """
select vectors.rowid, vectors.embedding
from json_each(:ids) as wanted cross join {table} as vectors where vectors.rowid = wanted.value
"""
OF_NOTES = """
select passages.doc_id, vectors.embedding
from json_each(:ids) as wanted cross join passages cross join {table} as vectors
where passages.doc_id = wanted.value and vectors.rowid = passages.id
"""
FILTERED = "select passages.id from passages join docs on docs.id = passages.doc_id where {filters}"
STAMP = "select vector_stamp from vaults where id = :vault"
TOUCH = "update vaults set vector_stamp = random() where id = :vault"


class VectorReader(SpaceReader):
    """The part of a read transaction that knows vectors."""

    connection: apsw.Connection
    resident: ResidentVectors

    def nearest(self, scope: Scope, space: StoredSpace, query: Vector, limit: int) -> list[Match]:
        kind = self._table_kind(space)
        if kind is None:
            return []
        limit = min(limit, MOST_NEAREST)
        in_memory = self.resident.wanted()
        found: list[tuple[int, float]] = []
        for vault in scope.vaults:
            state = self.vault_by_id(vault)
            if state.active != space:
                continue  # its vectors are of another model
            parts = [part_of(one, source) for one, source in scope.parts if one == vault]
            narrow = is_narrow(scope, state)
            where, values = conditions(scope, vault) if narrow else ("", {})
            ((stamp,),) = self.fetch(STAMP, {"vault": vault})
            stamped = [(part, stamp) for part in parts]
            if kind != "vec0" or (in_memory and self.resident.worth_reading(space, stamped)):
                allowed = None
                if narrow:
                    allowed = {row for (row,) in self.fetch(FILTERED.format(filters=where), values)}
                wanted = numbers_of(asked(query, space), space)
                found += self.resident.nearest(self.connection, space, stamped, wanted, limit, allowed)
                continue
            within = f"and rowid in ({FILTERED.format(filters=where)})" if narrow else ""
            statement = NEAREST.format(table=vectors_table(space.id), value=_bound("query", space), within=within)
            bound: dict[str, Any] = {**values, "query": asked(query, space), "limit": limit}
            for part in parts:
                found += self.fetch(statement, {**bound, "part": part})
        found = sorted(found, key=lambda pair: (-pair[1], pair[0]))[:limit]
        notes = self.notes_of([passage for passage, _ in found])
        return [Match(passage, notes[passage], cosine) for passage, cosine in found if passage in notes]

    def cosines(self, space: StoredSpace, query: Vector, passages: Sequence[int]) -> dict[int, float]:
        kind = self._table_kind(space)
        if kind is None or not passages:
            return {}
        ids = list(passages)
        if kind == "vec0":
            statement = COSINES.format(table=vectors_table(space.id), value=_bound("query", space))
            return dict(self.fetch(statement, {"ids": ids, "query": asked(query, space)}))
        wanted = numbers_of(asked(query, space), space)
        rows = self.fetch(STORED.format(table=vectors_table(space.id)), {"ids": ids})
        return {passage: sum(map(mul, wanted, numbers_of(blob, space))) for passage, blob in rows}

    def vectors(self, space: StoredSpace, notes: Sequence[int]) -> list[tuple[int, Vector]]:
        if self._table_kind(space) is None:
            return []
        rows = self.fetch(OF_NOTES.format(table=vectors_table(space.id)), {"ids": list(notes)})
        return [(note, vector_of(numbers_of(blob, space))) for note, blob in rows]

    def has_vectors(self, space: StoredSpace) -> bool:
        return self._table_kind(space) is not None

    def _table_kind(self, space: StoredSpace) -> str | None:
        """`vec0`, `plain`, or None if there is no table."""
        found = self.fetch(IS_VEC0, {"table": vectors_table(space.id)})
        return None if not found else "vec0" if found[0][0] else "plain"


class VectorWriter(VectorReader, SpaceWriter):
    """The part of a write transaction that changes vectors."""

    with_vec0: bool

    def make_vectors(self, space: StoredSpace) -> None:
        create, kind = CREATE_VEC0 if self.with_vec0 else CREATE_PLAIN, "int8" if space.packed else "float"
        sizes = {"dimensions": space.space.dimensions, "chunk_size": CHUNK_SIZE}
        self.fetch(create.format(table=vectors_table(space.id), kind=kind, **sizes))

    def replace_vectors(
        self,
        vault: int,
        space: StoredSpace,
        passages: Sequence[int],
        vectors: Sequence[tuple[WaitingPassage, Vector]] = (),
    ) -> None:
        table = vectors_table(space.id)
        self.run_many(DROP.format(table=table), [{"id": passage} for passage in passages])
        value = _bound("embedding", space) if self._table_kind(space) == "vec0" else ":embedding"
        rows = [
            {"id": passage.id, "part": part_of(vault, passage.source), "embedding": stored_form(vector, space)}
            for passage, vector in vectors
        ]
        self.run_many(PUT.format(table=table, value=value), rows)
        self.fetch(TOUCH, {"vault": vault})

    def forget_vectors(self, vault: int, space: StoredSpace) -> None:
        for source in kind_of(self.vault_by_id(vault).origin).sources:
            self.fetch(DROP_PART.format(table=vectors_table(space.id)), {"part": part_of(vault, source)})
        self.fetch(TOUCH, {"vault": vault})


def part_of(vault: int, source: str) -> str:
    """The partition that limits a scan to one vault and one source."""
    return f"{vault:d}/{source}"


def _bound(name: str, space: StoredSpace) -> str:
    return f"vec_int8(:{name})" if space.packed else f":{name}"
