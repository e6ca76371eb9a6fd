"""Which space answers in a vault, and its vectors: a table, and the nearest to a query, with or without sqlite-vec.

Whoever asks, the answer is the same: vec0 scans in a cold process (nothing to import), numpy scans what a long-lived
one keeps in memory, and a plain table is read and scanned where sqlite-vec does not load. Vectors are of unit length;
those of the embedded model are stored a byte a number (packing.py).
"""

from __future__ import annotations

import sys

import apsw

from co_cli.embedding.space import Vector, VectorSpace
from co_cli.index.connection import fetch
from co_cli.index.filters import Reach, conditions
from co_cli.index.packing import Packed, finest, pack, unpack, unpack_all
from co_cli.record import Record
from co_cli.values import SOURCES, Filters

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from typing import Any

    from co_cli.index.resident import ResidentVectors

CHUNK_SIZE = 128
"""Rows that vec0 sets aside at a time for each partition. At its default of 1,024 a vault with one note takes 1 MB."""
MOST_NEAREST = 4_096
"""vec0's own limit."""
MEASURED = 8
"""How many vectors are measured for each that is wanted, after a first look at all of them; among few, half as many."""
FEW = 3_000
LEAST_MEASURED = 200
"""Nobody gains by measuring fewer; where no more passages are filed the answer is that of measuring all."""
SAMPLE = 64
"""Passages whose distance tells what is near for a question."""
FURTHEST = 1 << 30
"""Further than any two packed vectors are apart."""

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
    part text partition key, embedding {numbers}, chunk_size={chunk_size}
)
"""
NUMBERS = "float[{dimensions}] distance_metric=cosine"
PACKED_NUMBERS = "int8[{dimensions}] distance_metric=L1"
CREATE_PLAIN = """
create table {table} (part text not null, embedding blob not null) strict;
create index {table}_by_part on {table} (part)
"""
IS_VEC0 = "select sql like 'create virtual%' from sqlite_master where name = :table"

PUT = "insert into {table} (rowid, part, embedding) values (:id, :part, :embedding)"
PUT_PACKED = "insert into {table} (rowid, part, embedding) values (:id, :part, vec_int8(:embedding))"
DROP = "delete from {table} where rowid = :id"
DROP_PART = "delete from {table} where part = :part"
SPACES_OF = """
select space_id from vaults where id = :vault and space_id is not null
union select building_id from vaults where id = :vault and building_id is not null
"""
WAIT = "insert into waiting (vault_id, space_id, passage_id) values (:vault, :space, :id) on conflict do nothing"
WAIT_NO_MORE = """
delete from waiting
where vault_id = :vault and space_id = :space and passage_id in (select value from json_each(:ids))
"""

# the order of this join matters: `rowid in (...)` alone would read every vector
AT = """
select vectors.rowid, {value}
from json_each(:ids) as wanted cross join {table} as vectors where vectors.rowid = wanted.value
"""
COSINE = "1.0 - vec_distance_cosine(vectors.embedding, :query)"
PACKED_COSINE = "1.0 - vec_distance_cosine(vectors.embedding, vec_int8(:query))"
# vec0 chooses among those within the distance, which takes long if that leaves many
LOOK = """
select distance, rowid from {table}
where embedding match vec_int8(:query) and k = :limit and part = :part and distance <= :furthest
"""
SAMPLED = """
select vec_distance_l1(vectors.embedding, vec_int8(:query))
from json_each(:ids) as wanted cross join {table} as vectors where vectors.rowid = wanted.value
"""
HIGHEST = "select max(id) from passages"
FILTERED = "select passages.id from passages join docs on docs.id = passages.doc_id where {filters}"
WITHIN = "and rowid in (select value from json_each(:allowed))"
WITHIN_FILTERS = f"and rowid in ({FILTERED})"
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
    def packed(self) -> bool:
        """Are its vectors stored a byte a number? What another embedder answers is kept as it came."""
        return self.space.provider == "static"

    @property
    def cached(self) -> bool:
        """Are its vectors worth keeping for a text that comes again? The embedded model makes one as fast as it is
        read, and writing it down takes longer than either."""
        return self.space.provider != "static"


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
        numbers = (PACKED_NUMBERS if stored.packed else NUMBERS).format(dimensions=space.dimensions)
        connection.execute(create.format(table=stored.table, numbers=numbers, chunk_size=CHUNK_SIZE))
    return stored


def put_vectors(connection: apsw.Connection, space: StoredSpace, rows: Sequence[tuple[int, str, Vector]]) -> None:
    """Passage, partition and vector each, in place of the one it had, if any: vec0 knows no upsert."""
    put = PUT_PACKED if space.packed and is_vec0(connection, space.table) else PUT
    connection.executemany(DROP.format(table=space.table), [{"id": row[0]} for row in rows])
    vectors = [row[2] for row in rows]
    stored = pack(vectors) if space.packed else vectors
    values = [{"id": row[0], "part": row[1], "embedding": vector} for row, vector in zip(rows, stored, strict=True)]
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
        connection.executemany(DROP.format(table=table_of(space)), [{"id": passage} for passage in passage_ids])
        connection.execute(WAIT_NO_MORE, {"vault": vault_id, "space": space, "ids": ids_text(passage_ids)})
    touch_vectors(connection, vault_id)


def drop_space(connection: apsw.Connection, vault_id: int, space_id: int) -> None:
    """Forget every vector that this vault has in a space."""
    for source in SOURCES:  # whichever of them this vault has
        connection.execute(DROP_PART.format(table=table_of(space_id)), {"part": part_of(vault_id, source)})
    touch_vectors(connection, vault_id)


def cosines(
    connection: apsw.Connection, space: StoredSpace, query: Vector, passage_ids: Sequence[int]
) -> dict[int, float]:
    """The cosine of each of these passages that has a vector, as far as stored numbers tell."""
    with_vec0 = is_vec0(connection, space.table)
    if with_vec0:
        value, asked = (PACKED_COSINE, finest(query)) if space.packed else (COSINE, query)
        values = {"ids": ids_text(passage_ids), "query": asked}
        return dict(fetch(connection, AT.format(table=space.table, value=value), values))
    wanted = unpack(finest(query)) if space.packed else memoryview(query).cast("f")
    return {passage: dot(wanted, numbers) for passage, numbers in vectors_at(connection, space, passage_ids).items()}


def vectors_at(
    connection: apsw.Connection, space: StoredSpace, passage_ids: Sequence[int]
) -> dict[int, Sequence[float]]:
    """The vector of each of these passages that has one."""
    if is_vec0(connection, space.table) is None:
        return {}
    rows = fetch(connection, AT.format(table=space.table, value="vectors.embedding"), {"ids": ids_text(passage_ids)})
    if space.packed:
        return dict(zip([passage for passage, _ in rows], unpack_all([blob for _, blob in rows]), strict=True))
    return {passage: memoryview(blob).cast("f") for passage, blob in rows}


def ids_text(ids: Sequence[int]) -> str:
    """As json_each reads it, without importing json."""
    return f"[{','.join(map(str, ids))}]"


def dot(one: Iterable[float], other: Iterable[float]) -> float:
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
    if space.packed:
        return _look(connection, space, parts, query, limit, where if narrowed else "", values)
    from co_cli.index.exact_scan import scan_exactly  # of another embedder, which takes longer than any import

    return scan_exactly(connection, space, parts, query, limit, where if narrowed else "", values, at_least)


def _look(
    connection: apsw.Connection,
    space: StoredSpace,
    parts: list[str],
    query: Vector,
    limit: int,
    where: str,
    values: dict[str, Any],
) -> list[Neighbour]:
    """A first look at all vectors tells who may be near, and those are measured.

    vec0 adds up how far whole numbers are apart without multiplying, which compilers make five times as fast as a
    cosine: 15,000 passages take 4.3 ms and not 5.7, 150,000 take 36 and not 74. Of the true nearest 50, such a look at
    15,000 generated passages, which are all alike, has 99 in a hundred.
    """
    highest = int(connection.execute(HIGHEST).get or 0)
    wanted = MEASURED * limit if highest > FEW else MEASURED * limit // 2
    measured = min(max(wanted, LEAST_MEASURED), MOST_NEAREST)
    allowed = [row for (row,) in fetch(connection, FILTERED.format(filters=where), values)] if where else []
    if where and len(allowed) <= measured:
        candidates = allowed
    else:
        asked = pack([query])[0]
        statement = LOOK.format(table=space.table) + (WITHIN if where else "")
        bound: dict[str, Any] = {"query": asked, "limit": measured, **({"allowed": ids_text(allowed)} if where else {})}
        rows: list[Any] = []
        for furthest in (FURTHEST,) if where else _bounds(connection, space, asked, measured, highest):
            bound["furthest"] = furthest
            rows = [row for part in parts for row in fetch(connection, statement, {**bound, "part": part})]
            if 2 * len(rows) >= measured:
                break
        candidates = [passage for _, passage in sorted(rows)[:measured]]
    # in the order in which they lie in the file; of equals the first stays first
    near = cosines(connection, space, query, sorted(candidates))
    best = sorted(near.items(), key=lambda pair: -pair[1])[:limit]
    return [Neighbour(passage, cosine) for passage, cosine in best]


def _bounds(connection: apsw.Connection, space: StoredSpace, asked: Packed, measured: int, highest: int) -> list[int]:
    """How far to look, and how much further if that finds too few. In a small vault everywhere at once."""
    if highest <= 8 * measured:
        return [FURTHEST]
    step = highest // SAMPLE
    ids = ids_text(range(1, step * SAMPLE, step))
    rows = fetch(connection, SAMPLED.format(table=space.table), {"ids": ids, "query": asked})
    sample = sorted(distance for (distance,) in rows)
    near = len(sample) * 5 * measured // (2 * highest) + 1  # to look once more costs more than to find too many
    return [*(sample[place] for place in (near, 4 * near) if place < len(sample)), FURTHEST]


def is_vec0(connection: apsw.Connection, table: str) -> bool | None:
    """None if there is no such table: another search.db was put in place of the one that was asked about spaces."""
    found = connection.execute(IS_VEC0, {"table": table}).get
    return None if found is None else bool(found)


def prefer_resident(searches: int) -> bool:
    """A process that has numpy anyway, or searches again and again, keeps the vectors in memory."""
    return "numpy" in sys.modules or searches > 3
