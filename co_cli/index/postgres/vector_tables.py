"""Vectors: a table for each space, scanned exactly or by HNSW."""

from __future__ import annotations

import json
import struct
from collections.abc import Sequence
from typing import Any

import numpy as np

from co_cli.embedding.space import Vector
from co_cli.index.packing import LARGEST, STEPS, asked
from co_cli.index.postgres.postgres_statements import ROLE, PostgresStatements
from co_cli.index.stored import Match, Scope, StoredSpace, WaitingPassage
from co_cli.index.tables.filters import conditions, is_narrow
from co_cli.index.tables.spaces import origin_by_id, vectors_table

VECTOR = {"rowid": "int8", "doc_id": "int8", "vault_id": "int4", "source": "text", "embedding": "bytea"}
EXACT = 10_000
"""With no more passages in reach, every vector is compared: as fast as HNSW, and nothing is missed."""

PROTECT = f"""
alter table {{table}} enable row level security;
create policy visible on {{table}} using ({{condition}});
grant select, insert, update, delete on {{table}} to {ROLE}
"""
OF_VISIBLE = "vault_id = any (array(select id from vaults))"
CREATE = f"""
set local role none;
create table {{table}} (
    rowid bigint primary key, doc_id bigint not null, vault_id integer not null, source text not null,
    embedding {{kind}}({{dimensions}}) not null
);
create index on {{table}} (doc_id);
create index on {{table}} (vault_id);
{PROTECT};
set local role {ROLE}
"""
EXISTS = "select to_regclass(%(table)s) is not null"
DROP = "delete from {table} where rowid = any(%(ids)s)"
DROP_ORIGIN = "delete from {table} where vault_id = %(vault)s"
NEAREST = """
select rowid, doc_id, 1 - distance from (
    select rowid, doc_id, {order} as distance from {table}
    where vault_id = %(vault)s and source = any(%(sources)s) {within} order by distance limit %(limit)s
) as nearest
"""
WITHIN = "and rowid in (select passages.id from docs join passages on passages.doc_id = docs.id where {filters})"
REACH = """
select count(*) from (
    select from docs join passages on passages.doc_id = docs.id where {filters} limit %(most)s
) as reached
"""
COSINES = "select rowid, 1 - ({distance}) from {table} where rowid = any(%(ids)s)"
OF_NOTES = "select doc_id, embedding::text from {table} where doc_id = any(%(ids)s) order by rowid"


class PostgresVectors(PostgresStatements):
    """The vectors of one transaction."""

    def nearest(self, scope: Scope, space: StoredSpace, query: Vector, limit: int) -> list[Match]:
        found: list[Match] = []
        table = vectors_table(space.id)
        for origin_id in scope.origins:
            state = origin_by_id(self, origin_id)
            if space not in (state.active, state.floor):
                continue  # its vectors are of another model
            narrow = is_narrow(scope, state)
            where, values = conditions(self.dialect, scope, origin_id)
            bound = {**values, "vault": origin_id, "limit": limit, "query": _text(asked(query, space), space)}
            reach = state.passages
            if narrow and reach > EXACT:
                reach = self.fetch(REACH, {**values, "most": EXACT + 1}, filters=where)[0][0]
            within = WITHIN.format(filters=where) if narrow else ""
            rows: list[Any] = []
            exact = f"({_distance(space)}) + 0"  # no index is used
            approximate = _distance(space, "halfvec")
            for order in (exact,) if reach <= EXACT else (approximate, exact):
                rows = self.fetch(NEAREST, bound, table=table, within=within, order=order)
                if len(rows) >= min(limit, reach):  # else HNSW gave up before it had found enough
                    break
            found += [Match(*row) for row in rows]
        return sorted(found, key=lambda match: (-match.score, match.passage))[:limit]

    def cosines(self, space: StoredSpace, query: Vector, passages: Sequence[int]) -> dict[int, float]:
        if not passages or not self.has_vectors(space):
            return {}
        bound = {"ids": list(passages), "query": _text(asked(query, space), space)}
        return dict(self.fetch(COSINES, bound, table=vectors_table(space.id), distance=_distance(space)))

    def vectors(self, space: StoredSpace, notes: Sequence[int]) -> list[tuple[int, Vector]]:
        if not self.has_vectors(space):
            return []
        rows = self.fetch(OF_NOTES, {"ids": list(notes)}, table=vectors_table(space.id))
        stored = [(note, np.array(json.loads(text), "<f4")) for note, text in rows]
        return [(note, (numbers / np.linalg.norm(numbers)).tobytes()) for note, numbers in stored]

    def has_vectors(self, space: StoredSpace) -> bool:
        return bool(self.fetch(EXISTS, {"table": vectors_table(space.id)})[0][0])

    def make_vectors(self, space: StoredSpace) -> None:
        table, dimensions = vectors_table(space.id), f"{space.space.dimensions:d}"
        self.fetch(CREATE, table=table, condition=OF_VISIBLE, kind=stored_type(space), dimensions=dimensions)

    def replace_vectors(
        self,
        origin_id: int,
        space: StoredSpace,
        passages: Sequence[int],
        vectors: Sequence[tuple[WaitingPassage, Vector]] = (),
    ) -> None:
        self.run(DROP, {"ids": list(passages)}, table=vectors_table(space.id))
        rows = [
            (passage.id, passage.note, origin_id, passage.source, _binary(vector, space)) for passage, vector in vectors
        ]
        self.put_binary(vectors_table(space.id), VECTOR, rows)

    def forget_vectors(self, origin_id: int, space: StoredSpace) -> None:
        self.fetch(DROP_ORIGIN, {"vault": origin_id}, table=vectors_table(space.id))


def stored_type(space: StoredSpace) -> str:
    """Whole numbers up to 127 are exact in a halfvec."""
    return "halfvec" if space.packed else "vector"


def _distance(space: StoredSpace, kind: str | None = None) -> str:
    """The cosine distance as SQL; as `halfvec` it is what HNSW indexes."""
    size = f"({space.space.dimensions:d})"
    own = stored_type(space)
    column = "embedding" if kind in (None, own) else f"embedding::{kind}{size}"
    return f"{column} <=> %(query)s::{kind or own}{size}"


def _text(blob: bytes, space: StoredSpace) -> str:
    """A vector as PostgreSQL reads it."""
    return str(memoryview(blob).cast("b" if space.packed else "f").tolist())


def _binary(vector: Vector, space: StoredSpace) -> bytes:
    """What `stored_form` gives, as COPY takes it; fifty times as fast."""
    numbers = np.frombuffer(vector, "<f4")
    numbers = np.clip(np.rint(numbers * STEPS), -LARGEST, LARGEST) if space.packed else numbers
    return struct.pack(">HH", len(numbers), 0) + numbers.astype(">f2" if space.packed else ">f4").tobytes()
