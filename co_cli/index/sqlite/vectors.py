"""Vectors: a vec0 table for each space, and the nearest to a query.

Vectors have unit length and are stored as in `index/packing.py`. A process that searches again and again keeps them in
memory (`resident.py`); where sqlite-vec cannot be loaded, a plain table holds them and numpy scans it.
"""

from __future__ import annotations

from collections.abc import Sequence
from operator import mul
from typing import Any

from co_cli.embedding.space import Vector
from co_cli.index.packing import asked, numbers_of, stored_form, vector_of
from co_cli.index.sqlite.sqlite_statements import SqliteStatements
from co_cli.index.stored import Match, Scope, StoredSpace, WaitingPassage
from co_cli.index.tables.filters import conditions, is_narrow
from co_cli.index.tables.spaces import origin_by_id, vectors_table
from co_cli.index.tables.statements import notes_of
from co_cli.sources.origin import adapter_of

CHUNK_SIZE = 128
"""Rows that vec0 reserves at a time for each partition. At its default of 1,024 a vault with one note takes 1 MB."""
MOST_NEAREST = 4_096
"""vec0's own limit."""

CREATE_VEC0 = f"""
create virtual table {{table}} using vec0 (
    part text partition key, embedding {{kind}}[{{dimensions}}] distance_metric=cosine, chunk_size={CHUNK_SIZE}
)
"""
CREATE_PLAIN = """
create table {table} (part text not null, embedding blob not null) strict;
create index {table}_by_part on {table} (part)
"""
IS_VEC0 = "select lower(substr(sql, 1, 14)) = 'create virtual' from sqlite_master where name = :table"
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


class SqliteVectors(SqliteStatements):
    """The vectors of one transaction."""

    def nearest(self, scope: Scope, space: StoredSpace, query: Vector, limit: int) -> list[Match]:
        kind = _table_kind(self, space)
        if kind is None:
            return []
        limit = min(limit, MOST_NEAREST)
        in_memory = self.resident.wanted()
        found: list[tuple[int, float]] = []
        for origin_id in scope.origins:
            state = origin_by_id(self, origin_id)
            if space not in (state.active, state.floor):
                continue  # its vectors are of another model
            parts = [part_of(number, source) for number, source in scope.parts if number == origin_id]
            narrow = is_narrow(scope, state)
            where, values = conditions(self.dialect, scope, origin_id) if narrow else ("", {})
            ((stamp,),) = self.fetch(STAMP, {"vault": origin_id})
            stamped = [(part, stamp) for part in parts]
            if kind != "vec0" or (in_memory and self.resident.worth_reading(space, stamped)):
                allowed = None
                if narrow:
                    allowed = {row for (row,) in self.fetch(FILTERED, values, filters=where)}
                wanted = numbers_of(asked(query, space), space)
                found += self.resident.nearest(self.connection, space, stamped, wanted, limit, allowed)
                continue
            within = f"and rowid in ({FILTERED.format(filters=where)})" if narrow else ""
            own = {"table": vectors_table(space.id), "value": _bound("query", space), "within": within}
            bound: dict[str, Any] = {**values, "query": asked(query, space), "limit": limit}
            for part in parts:
                found += self.fetch(NEAREST, {**bound, "part": part}, **own)
        found = sorted(found, key=lambda pair: (-pair[1], pair[0]))[:limit]
        notes = notes_of(self, [passage for passage, _ in found])
        return [Match(passage, notes[passage], cosine) for passage, cosine in found if passage in notes]

    def cosines(self, space: StoredSpace, query: Vector, passages: Sequence[int]) -> dict[int, float]:
        kind = _table_kind(self, space)
        if kind is None or not passages:
            return {}
        ids = list(passages)
        if kind == "vec0":
            own = {"table": vectors_table(space.id), "value": _bound("query", space)}
            return dict(self.fetch(COSINES, {"ids": ids, "query": asked(query, space)}, **own))
        wanted = numbers_of(asked(query, space), space)
        rows = self.fetch(STORED, {"ids": ids}, table=vectors_table(space.id))
        return {passage: sum(map(mul, wanted, numbers_of(blob, space))) for passage, blob in rows}

    def vectors(self, space: StoredSpace, notes: Sequence[int]) -> list[tuple[int, Vector]]:
        if _table_kind(self, space) is None:
            return []
        rows = self.fetch(OF_NOTES, {"ids": list(notes)}, table=vectors_table(space.id))
        return [(note, vector_of(numbers_of(blob, space))) for note, blob in rows]

    def has_vectors(self, space: StoredSpace) -> bool:
        return _table_kind(self, space) is not None

    def make_vectors(self, space: StoredSpace) -> None:
        create, kind = CREATE_VEC0 if self.with_vec0 else CREATE_PLAIN, "int8" if space.packed else "float"
        self.fetch(create, table=vectors_table(space.id), kind=kind, dimensions=f"{space.space.dimensions:d}")

    def replace_vectors(
        self,
        origin_id: int,
        space: StoredSpace,
        passages: Sequence[int],
        vectors: Sequence[tuple[WaitingPassage, Vector]] = (),
    ) -> None:
        table = vectors_table(space.id)
        self.run_many(DROP, [{"id": passage} for passage in passages], table=table)
        value = _bound("embedding", space) if _table_kind(self, space) == "vec0" else ":embedding"
        rows = [
            {"id": passage.id, "part": part_of(origin_id, passage.source), "embedding": stored_form(vector, space)}
            for passage, vector in vectors
        ]
        self.run_many(PUT, rows, table=table, value=value)
        self.fetch(TOUCH, {"vault": origin_id})

    def forget_vectors(self, origin_id: int, space: StoredSpace) -> None:
        for source in adapter_of(origin_by_id(self, origin_id).origin).sources:
            self.fetch(DROP_PART, {"part": part_of(origin_id, source)}, table=vectors_table(space.id))
        self.fetch(TOUCH, {"vault": origin_id})


def _table_kind(tx: SqliteStatements, space: StoredSpace) -> str | None:
    """`vec0`, `plain`, or None if there is no table."""
    found = tx.fetch(IS_VEC0, {"table": vectors_table(space.id)})
    return None if not found else "vec0" if found[0][0] else "plain"


def part_of(origin_id: int, source: str) -> str:
    """The partition that limits a scan to one vault and one source."""
    return f"{origin_id:d}/{source}"


def _bound(name: str, space: StoredSpace) -> str:
    return f"vec_int8(:{name})" if space.packed else f":{name}"
