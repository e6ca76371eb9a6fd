"""Which space answers in a vault, and its vectors: a table, and the nearest to a query, with or without sqlite-vec.

Whoever asks, the answer is the same: vec0 scans in a cold process (nothing to import), numpy scans what a long-lived
one keeps in memory, and a plain table is read and scanned where sqlite-vec does not load. Vectors are of unit length.
"""

from __future__ import annotations

import sys

import apsw

from co_cli.embedding.space import Vector, VectorSpace
from co_cli.index.connection import fetch
from co_cli.index.filters import Reach, conditions
from co_cli.record import Record
from co_cli.values import SOURCES, Filters

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from co_cli.index.resident import ResidentVectors

CHUNK_SIZE = 128
"""Rows that vec0 sets aside at a time for each partition. At its default of 1,024 a vault with one note takes 1 MB."""
MOST_NEAREST = 4_096
"""vec0's own limit."""
SKETCHED_FROM = 40_000
"""Passages for which a first look at their sketches pays: what is measured after it lies far apart in the file."""

FIND_SPACE = """
select id from spaces
where provider = :provider and model = :model and dimensions = :dimensions and prompts = :prompts
"""
ADD_SPACE = """
insert into spaces (provider, model, dimensions, prompts, vector_weight, noise)
values (:provider, :model, :dimensions, :prompts, :vector_weight, :noise)
"""
STATE = "select space_id, building_id from vaults where id = :vault"
ANY_WAITING = "select 1 from waiting where vault_id = :vault limit 1"
WAITING_BY_SPACE = "select space_id, count(*) from waiting where vault_id = :vault group by space_id"
OPEN_SPACE = "select id, provider, model, dimensions, prompts, vector_weight, noise from spaces where id = :id"

CREATE_VEC0 = """
create virtual table {table} using vec0 (
    part text partition key, embedding float[{dimensions}] distance_metric=cosine, {sketch}chunk_size={chunk_size}
)
"""
SKETCH = "sketch int8[{dimensions}] distance_metric=L1, "
"""The vector again in a quarter of the bytes: a first look that is five times as fast."""
CREATE_PLAIN = """
create table {table} (part text not null, embedding blob not null) strict;
create index {table}_by_part on {table} (part)
"""
IS_VEC0 = "select sql like 'create virtual%' from sqlite_master where name = :table"

PUT = "insert into {table} (rowid, part, embedding) values (:id, :part, :embedding)"
PUT_SKETCHED = """
insert into {table} (rowid, part, embedding, sketch)
values (:id, :part, :embedding, vec_quantize_int8(:embedding, 'unit'))
"""
DROP = "delete from {table} where rowid = :id"
DROP_PART = "delete from {table} where part = :part"
SPACES_OF = """
select space_id from vaults where id = :vault and space_id is not null
union select building_id from vaults where id = :vault and building_id is not null
"""
WAIT = "insert into waiting (vault_id, space_id, passage_id) values (:vault, :space, :id) on conflict do nothing"
WAIT_NO_MORE = "delete from waiting where vault_id = :vault and space_id = :space and passage_id = :id"

# the order of this join matters: `rowid in (...)` alone would read every vector
AT = """
select vectors.rowid, {value}
from json_each(:ids) as wanted cross join {table} as vectors where vectors.rowid = wanted.value
"""
COSINE = "1.0 - vec_distance_cosine(vectors.embedding, :query)"
# vec0 chooses among those within the distance: a quarter of its time, if that leaves few
NEAREST = """
select rowid, 1.0 - distance from {table}
where embedding match :query and k = :limit and part = :part and distance <= :furthest
"""
FURTHEST = 2.0
"""The distance of opposite vectors."""
ROUNDING = 1e-6
NEAREST_FILTERED = (
    NEAREST
    + """
and rowid in (select passages.id from passages join docs on docs.id = passages.doc_id where {filters})
"""
)
FILTERED = "select passages.id from passages join docs on docs.id = passages.doc_id where {filters}"
STAMP = "select vector_stamp from vaults where id = :vault"
TOUCH = "update vaults set vector_stamp = random() where id = :vault"
EVERY = "select rowid, embedding from {table} where part = :part"


class StoredSpace(Record):
    """A space and its id in this search.db."""

    id: int
    space: VectorSpace

    @property
    def table(self) -> str:
        return table_of(self.id)

    @property
    def sketched(self) -> bool:
        """Has its vec0 table a sketch of each vector? To ask another embedder takes longer than any scan."""
        return self.space.provider == "static"


class SpaceState(Record):
    """Which space answers in this vault, and which one is being built."""

    active: StoredSpace | None = None
    building: StoredSpace | None = None


class Neighbour(Record):
    """A passage and the cosine between it and the query."""

    passage_id: int
    cosine: float


def table_of(space_id: int) -> str:
    return "docs_vec" if space_id == 1 else f"docs_vec_{space_id:d}"


def part_of(vault_id: int, source: str) -> str:
    """The partition that prunes a scan to one vault and one source."""
    return f"{vault_id:d}/{source}"


def find_space(connection: apsw.Connection, space: VectorSpace) -> StoredSpace | None:
    found = connection.execute(FIND_SPACE, space._asdict()).get
    return None if found is None else StoredSpace(found, space)


def open_space(connection: apsw.Connection, space_id: int) -> StoredSpace | None:
    row = connection.execute(OPEN_SPACE, {"id": space_id}).fetchone()
    return StoredSpace(row[0], VectorSpace(*row[1:])) if row else None  # type: ignore[arg-type]


def space_state(connection: apsw.Connection, vault_id: int) -> SpaceState:
    row = connection.execute(STATE, {"vault": vault_id}).fetchone()
    if row is None:
        return SpaceState()
    return SpaceState(*(None if found is None else open_space(connection, int(str(found))) for found in row))


def any_waiting(connection: apsw.Connection, vault_id: int) -> bool:
    return connection.execute(ANY_WAITING, {"vault": vault_id}).get is not None


def waiting_by_space(connection: apsw.Connection, vault_id: int) -> dict[int, int]:
    rows = connection.execute(WAITING_BY_SPACE, {"vault": vault_id})
    return {int(str(space)): int(str(count)) for space, count in rows}


def add_space(connection: apsw.Connection, space: VectorSpace, with_vec0: bool) -> StoredSpace:
    """The space's row and its table of vectors, made if they are not there yet."""
    stored = find_space(connection, space)
    if stored is None:
        connection.execute(ADD_SPACE, space._asdict())
        stored = StoredSpace(connection.last_insert_rowid(), space)
    if not connection.table_exists("main", stored.table):
        create = CREATE_VEC0 if with_vec0 else CREATE_PLAIN
        sketch = SKETCH.format(dimensions=space.dimensions) if stored.sketched else ""
        values = {"dimensions": space.dimensions, "chunk_size": CHUNK_SIZE, "sketch": sketch}
        connection.execute(create.format(table=stored.table, **values))
    return stored


def put_vectors(connection: apsw.Connection, space: StoredSpace, rows: Sequence[tuple[int, str, Vector]]) -> None:
    """Passage, partition and vector each, in place of the one it had, if any: vec0 knows no upsert."""
    put = PUT_SKETCHED if space.sketched and is_vec0(connection, space.table) else PUT
    connection.executemany(DROP.format(table=space.table), [{"id": row[0]} for row in rows])
    values = [{"id": passage, "part": part, "embedding": vector} for passage, part, vector in rows]
    connection.executemany(put.format(table=space.table), values)


def touch_vectors(connection: apsw.Connection, vault_id: int) -> None:
    """Tell whoever keeps this vault's vectors in memory that they changed."""
    connection.execute(TOUCH, {"vault": vault_id})


def spaces_of(connection: apsw.Connection, vault_id: int) -> list[int]:
    """The spaces in which passages of this vault have vectors, or are to get them."""
    return [int(str(space)) for (space,) in connection.execute(SPACES_OF, {"vault": vault_id}).fetchall()]


def let_wait(connection: apsw.Connection, vault_id: int, passage_ids: Sequence[int]) -> None:
    """New passages wait for their vectors in each of the vault's spaces."""
    for space in spaces_of(connection, vault_id):
        connection.executemany(WAIT, [{"vault": vault_id, "space": space, "id": passage} for passage in passage_ids])


def drop_vectors(connection: apsw.Connection, vault_id: int, passage_ids: Sequence[int]) -> None:
    """Forget these passages in each of the vault's spaces."""
    for space in spaces_of(connection, vault_id):
        for passage in passage_ids:
            connection.execute(DROP.format(table=table_of(space)), {"id": passage})
            connection.execute(WAIT_NO_MORE, {"vault": vault_id, "space": space, "id": passage})
    touch_vectors(connection, vault_id)


def drop_space(connection: apsw.Connection, vault_id: int, space_id: int) -> None:
    """Forget every vector that this vault has in a space."""
    for source in SOURCES:  # whichever of them this vault has
        connection.execute(DROP_PART.format(table=table_of(space_id)), {"part": part_of(vault_id, source)})
    touch_vectors(connection, vault_id)


def cosines(
    connection: apsw.Connection, space: StoredSpace, query: Vector, passage_ids: Sequence[int]
) -> dict[int, float]:
    """The exact cosine of each of these passages that has a vector."""
    ids = ids_text(passage_ids)
    with_vec0 = is_vec0(connection, space.table)
    if with_vec0 is None:
        return {}
    if with_vec0:
        return dict(fetch(connection, AT.format(table=space.table, value=COSINE), {"ids": ids, "query": query}))
    rows = fetch(connection, AT.format(table=space.table, value="vectors.embedding"), {"ids": ids})
    wanted = memoryview(query).cast("f")
    return {passage: dot(wanted, memoryview(blob).cast("f")) for passage, blob in rows}


def vectors_at(connection: apsw.Connection, space: StoredSpace, passage_ids: Sequence[int]) -> dict[int, Vector]:
    """The vector of each of these passages that has one."""
    if is_vec0(connection, space.table) is None:
        return {}
    rows = AT.format(table=space.table, value="vectors.embedding")
    return dict(fetch(connection, rows, {"ids": ids_text(passage_ids)}))


def ids_text(ids: Sequence[int]) -> str:
    """As json_each reads it, without importing json."""
    return f"[{','.join(map(str, ids))}]"


def dot(one: memoryview[float], other: memoryview[float]) -> float:
    return sum(map(float.__mul__, one, other))


def nearest(
    connection: apsw.Connection,
    space: StoredSpace,
    reach: Reach,
    query: Vector,
    filters: Filters,
    limit: int,
    resident: ResidentVectors | None = None,
    at_least: float = -1.0,
) -> list[Neighbour]:
    """The passages within reach that are nearest to the query, best first.

    Whoever knows `limit` passages with a cosine of `at_least` or more says so, and is answered sooner.
    """
    limit = min(limit, MOST_NEAREST)
    where, values = conditions(filters, reach)
    narrowed = filters._replace(sources=(), roots=()) != Filters()  # those are in the reach already
    with_vec0 = is_vec0(connection, space.table)
    if with_vec0 is None:
        return []
    if resident is not None or not with_vec0:
        from co_cli.index.resident import ResidentVectors

        scan = resident if resident is not None else ResidentVectors()
        stamps = {vault: int(connection.execute(STAMP, {"vault": vault}).get or 0) for vault in reach.vaults}
        stamped = [(part_of(vault, source), stamps[vault]) for vault, source in reach.parts]
        if not with_vec0 or scan.worth_reading(space, stamped):
            allowed = None
            if narrowed:
                allowed = {int(str(row)) for (row,) in connection.execute(FILTERED.format(filters=where), values)}
            return scan.nearest(connection, space, stamped, query, limit, allowed)
    parts = [part_of(vault, source) for vault, source in reach.parts]
    if space.sketched and not narrowed and _passages_within(connection, reach) >= SKETCHED_FROM:
        from co_cli.index.sketches import nearest_by_sketch

        seen = nearest_by_sketch(connection, space, parts, query, limit)
        if seen is not None:
            return seen
    statement = (NEAREST_FILTERED if narrowed else NEAREST).format(table=space.table, filters=where)
    bound = {**(values if narrowed else {}), "query": query, "limit": limit}
    guess = at_least if narrowed else max(at_least, space.space.noise)
    found = _scan(connection, statement, bound, parts, guess)
    if len(found) < limit and guess > at_least:  # in a small vault, or for an odd question
        found = _scan(connection, statement, bound, parts, at_least)
    return found


def _passages_within(connection: apsw.Connection, reach: Reach) -> int:
    return connection.execute(f"select sum(passages) from vaults where id in ({reach.ids})").get or 0


def _scan(
    connection: apsw.Connection, statement: str, bound: dict[str, Any], parts: list[str], at_least: float
) -> list[Neighbour]:
    """The nearest of all parts that are as near as `at_least`: those within a bound are chosen sooner."""
    limit = bound["limit"]
    found: list[Neighbour] = []
    for part in parts:
        furthest = min(1.0 - at_least, FURTHEST) + ROUNDING
        rows = connection.execute(statement, {**bound, "part": part, "furthest": furthest})
        found += [Neighbour(*row) for row in rows]  # type: ignore[arg-type]
        found = sorted(found, key=lambda neighbour: (-neighbour.cosine, neighbour.passage_id))[:limit]
        if len(found) == limit:  # what the next part has must be as near as these
            at_least = max(at_least, found[-1].cosine)
    return found


def is_vec0(connection: apsw.Connection, table: str) -> bool | None:
    """None if there is no such table: another search.db was put in place of the one that was asked about spaces."""
    found = connection.execute(IS_VEC0, {"table": table}).get
    return None if found is None else bool(found)


def prefer_resident(searches: int) -> bool:
    """A process that has numpy anyway, or searches again and again, keeps the vectors in memory."""
    return "numpy" in sys.modules or searches > 3
