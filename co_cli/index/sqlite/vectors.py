"""Vectors: a vec0 table for each space, the nearest to a query, spaces, waiting passages and the embedding cache.

Vectors have unit length and are stored as in `index/packing.py`. A process that has numpy loaded, or searches again and
again, keeps them in memory (`resident.py`); where sqlite-vec cannot be loaded, a plain table holds them and numpy scans
it.
"""

from __future__ import annotations

import time
from collections.abc import Collection, Mapping, Sequence
from operator import mul
from typing import Any

import apsw

from co_cli.embedding.space import Vector, VectorSpace
from co_cli.index.derivation import embedding_text
from co_cli.index.engine import CacheState, Match, Scope, StoredSpace, StoredVault, WaitingPassage, text_hash
from co_cli.index.packing import asked, numbers_of, stored_form, vector_of
from co_cli.index.sqlite.connection import fetch
from co_cli.index.sqlite.filters import conditions, ids_text, is_narrow, notes_of
from co_cli.index.sqlite.resident import ResidentVectors
from co_cli.sources.origin import Origin, kind_of

CHUNK_SIZE = 128
"""Rows that vec0 reserves at a time for each partition. At its default of 1,024 a vault with one note takes 1 MB."""
MOST_NEAREST = 4_096
"""vec0's own limit."""
CACHE_ENTRIES = 200_000
EVICT_EVERY = 10_000
"""After so many new entries of a space the cache is cut back to its limit: counting it for each write is slow."""

CREATE_VEC0 = """
create virtual table {table} using vec0 (
    part text partition key, embedding {kind}[{dimensions}] distance_metric=cosine, chunk_size={chunk_size}
)
"""
CREATE_PLAIN = """
create table {table} (part text not null, embedding blob not null) strict;
create index {table}_by_part on {table} (part)
"""
IS_VEC0 = "select sql like 'create virtual%' from sqlite_master where name = ?"
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

FIND_SPACE = """
select id from spaces
where provider = :provider and model = :model and dimensions = :dimensions and prompts = :prompts
"""
ADD_SPACE = """
insert into spaces (provider, model, dimensions, prompts) values (:provider, :model, :dimensions, :prompts)
"""
VAULTS = """
select vaults.id, vaults.kind, vaults.root, vaults.name, vaults.only, vaults.synced_at, vaults.notes, vaults.passages,
    active.id, active.provider, active.model, active.dimensions, active.prompts,
    building.id, building.provider, building.model, building.dimensions, building.prompts
from vaults left join spaces as active on active.id = vaults.space_id
left join spaces as building on building.id = vaults.building_id
"""
BY_ID = f"{VAULTS} where vaults.id = :id"
BY_ORIGIN = f"{VAULTS} where root = :root and kind = :kind and name = :name and only = :only"
SET_SPACES = "update vaults set space_id = :active, building_id = :building where id = :vault"

WAIT = "insert into waiting (vault_id, space_id, passage_id) values (:vault, :space, :id) on conflict do nothing"
WAIT_ALL = """
insert into waiting (vault_id, space_id, passage_id)
select :vault, :space, passages.id from passages join docs on docs.id = passages.doc_id
where docs.vault_id = :vault on conflict do nothing
"""
STOP_WAITING = """
delete from waiting where vault_id = :vault and space_id = :space
    and passage_id in (select value from json_each(:ids))
"""
FORGET_WAITING = "delete from waiting where vault_id = :vault and space_id = :space"
TO_EMBED = """
select passages.id, docs.source, docs.path, docs.hash, passages.first_line, docs.title, passages.heading,
    passages.body, (select group_concat(tag.value, ' ') from json_each(docs.tags) as tag), docs.aliases,
    passages.context
"""
WAITING = f"""
{TO_EMBED} from waiting join passages on passages.id = waiting.passage_id join docs on docs.id = passages.doc_id
where waiting.vault_id = :vault and waiting.space_id = :space order by passages.id limit :limit
"""
WITHOUT_VECTOR = f"""
{TO_EMBED} from passages join docs on docs.id = passages.doc_id
where docs.vault_id = :vault and passages.id not in (select rowid from {{table}})
    and passages.id not in (select passage_id from waiting where space_id = :space)
"""
STATES = """
select waiting.passage_id, docs.path, docs.hash, passages.first_line
from waiting join passages on passages.id = waiting.passage_id join docs on docs.id = passages.doc_id
where waiting.vault_id = :vault and waiting.space_id = :space
    and waiting.passage_id in (select value from json_each(:ids))
"""
COUNT_WAITING = "select count(*) from waiting where vault_id = :vault and space_id = coalesce(:space, space_id)"

# the order of this join matters: the other way round reads the whole cache for every text
LOOK_UP = """
select embedding_cache.hash, embedding_cache.vector
from json_each(:hashes) as wanted cross join embedding_cache
where embedding_cache.space_id = :space and embedding_cache.hash = unhex(wanted.value)
"""
KEEP = """
insert into embedding_cache (space_id, hash, vector, used) values (:space, :hash, :vector, :used)
on conflict (space_id, hash) do update set vector = excluded.vector, used = excluded.used
"""
USE = "update embedding_cache set used = :used where space_id = :space and hash = :hash"
COUNT_USE = "update spaces set hits = hits + :hits, misses = misses + :misses where id = :space returning misses"
FORGET_CACHE = "delete from embedding_cache where space_id = :space"
EVICT = """
delete from embedding_cache where rowid in
    (select rowid from embedding_cache order by used limit max(0, (select count(*) from embedding_cache) - :most))
"""
CACHE_STATE = """
select count(*), coalesce(sum(length(vector)), 0), (select coalesce(sum(hits), 0) from spaces),
    (select coalesce(sum(misses), 0) from spaces)
from embedding_cache
"""


class VectorReader:
    """The part of a read transaction that knows vectors, and the vaults with their spaces."""

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
            if self.vault_by_id(vault).active != space:
                continue  # its vectors are of another model
            parts = [part_of(one, source) for one, source in scope.parts if one == vault]
            narrow = is_narrow(self.connection, scope, vault)
            where, values = conditions(scope, vault) if narrow else ("", {})
            stamp = int(self.connection.execute(STAMP, {"vault": vault}).get or 0)
            stamped = [(part, stamp) for part in parts]
            if kind != "vec0" or (in_memory and self.resident.worth_reading(space, stamped)):
                allowed = None
                if narrow:
                    allowed = {row for (row,) in fetch(self.connection, FILTERED.format(filters=where), values)}
                wanted = numbers_of(asked(query, space), space)
                found += self.resident.nearest(self.connection, space, stamped, wanted, limit, allowed)
                continue
            within = f"and rowid in ({FILTERED.format(filters=where)})" if narrow else ""
            statement = NEAREST.format(table=vectors_table(space.id), value=_bound("query", space), within=within)
            bound: dict[str, Any] = {**values, "query": asked(query, space), "limit": limit}
            for part in parts:
                found += fetch(self.connection, statement, {**bound, "part": part})
        found = sorted(found, key=lambda pair: (-pair[1], pair[0]))[:limit]
        notes = notes_of(self.connection, [passage for passage, _ in found])
        return [Match(passage, notes[passage], cosine) for passage, cosine in found if passage in notes]

    def cosines(self, space: StoredSpace, query: Vector, passages: Sequence[int]) -> dict[int, float]:
        kind = self._table_kind(space)
        if kind is None or not passages:
            return {}
        ids = ids_text(passages)
        if kind == "vec0":
            statement = COSINES.format(table=vectors_table(space.id), value=_bound("query", space))
            return dict(fetch(self.connection, statement, {"ids": ids, "query": asked(query, space)}))
        wanted = numbers_of(asked(query, space), space)
        rows = fetch(self.connection, STORED.format(table=vectors_table(space.id)), {"ids": ids})
        return {passage: sum(map(mul, wanted, numbers_of(blob, space))) for passage, blob in rows}

    def vectors(self, space: StoredSpace, notes: Sequence[int]) -> list[tuple[int, Vector]]:
        if self._table_kind(space) is None:
            return []
        rows = fetch(self.connection, OF_NOTES.format(table=vectors_table(space.id)), {"ids": ids_text(notes)})
        return [(note, vector_of(numbers_of(blob, space))) for note, blob in rows]

    def vault(self, origin: Origin) -> StoredVault | None:
        found = fetch(self.connection, BY_ORIGIN, origin._asdict())
        return _vault(found[0])._replace(origin=origin) if found else None

    def vaults(self) -> list[StoredVault]:
        return [_vault(row) for row in fetch(self.connection, f"{VAULTS} order by vaults.id")]

    def vault_by_id(self, vault: int) -> StoredVault:
        return _vault(fetch(self.connection, BY_ID, {"id": vault})[0])

    def waiting(self, vault: int, space: StoredSpace | None = None, limit: int = 0) -> tuple[int, list[WaitingPassage]]:
        bound = {"vault": vault, "space": space.id if space else None, "limit": limit}
        count = int(self.connection.execute(COUNT_WAITING, bound).get or 0)
        return count, [_to_embed(row) for row in fetch(self.connection, WAITING, bound)] if limit else []

    def cached(self, space: VectorSpace, hashes: Sequence[bytes]) -> dict[bytes, Vector | None]:
        stored = self.find_space(space)
        if stored is None:
            return {}
        wanted = "[" + ",".join(f'"{one.hex()}"' for one in hashes) + "]"
        rows = fetch(self.connection, LOOK_UP, {"hashes": wanted, "space": stored.id})
        return {bytes(one): None if blob is None else vector_of(numbers_of(blob, stored)) for one, blob in rows}

    def lost_vectors(self, vault: int) -> int:
        """How many passages have no vector and do not wait for one, although their text has a meaning."""
        active = self.vault_by_id(vault).active
        if active is None or self._table_kind(active) is None:
            return 0
        bound = {"vault": vault, "space": active.id}
        rows = fetch(self.connection, WITHOUT_VECTOR.format(table=vectors_table(active.id)), bound)
        hashes = [text_hash(_to_embed(row).text) for row in rows]
        cached = self.cached(active.space, hashes)
        return sum(cached.get(one, b"") is not None for one in hashes)

    def cache_state(self) -> CacheState:
        return CacheState(*fetch(self.connection, CACHE_STATE)[0])

    def find_space(self, space: VectorSpace) -> StoredSpace | None:
        found = self.connection.execute(FIND_SPACE, space._asdict()).get
        return None if found is None else StoredSpace(found, space)

    def _table_kind(self, space: StoredSpace) -> str | None:
        """`vec0`, `plain`, or None if there is no table."""
        found = self.connection.execute(IS_VEC0, (vectors_table(space.id),)).get
        return None if found is None else "vec0" if found else "plain"


class VectorWriter(VectorReader):
    """The part of a write transaction that changes vectors."""

    with_vec0: bool

    def begin_space(self, vault: int, space: VectorSpace) -> StoredVault:
        stored, state = self.add_space(space), self.vault_by_id(vault)
        if state.building and state.building.id != stored.id:
            self._abandon(vault, state.building)
        if stored.id not in [one.id for one in (state.active, state.building) if one]:
            self.connection.execute(WAIT_ALL, {"vault": vault, "space": stored.id})
        active = state.active or stored
        building = None if active.id == stored.id else stored.id
        self.connection.execute(SET_SPACES, {"vault": vault, "active": active.id, "building": building})
        self._finish_space(vault)
        return self.vault_by_id(vault)

    def _finish_space(self, vault: int) -> None:
        """Let a space that was built replace the active one, if it is complete."""
        state = self.vault_by_id(vault)
        if state.active and state.building and not self.waiting(vault, state.building)[0]:
            self.connection.execute(SET_SPACES, {"vault": vault, "active": state.building.id, "building": None})
            self._abandon(vault, state.active)

    def reembed(self, vault: int, space: StoredSpace, forget_cache: bool = False) -> None:
        if forget_cache:
            self.connection.execute(FORGET_CACHE, {"space": space.id})
        self.connection.execute(WAIT_ALL, {"vault": vault, "space": space.id})

    def put_vectors(
        self, vault: int, space: StoredSpace, vectors: Sequence[tuple[WaitingPassage, Vector | None]]
    ) -> int:
        stored = self.find_space(space.space)
        if stored is None or stored.id != space.id:
            return 0  # another search.db was put in place of the one in which the space was looked up
        ids = ids_text(passage.id for passage, _ in vectors)
        bound = {"vault": vault, "space": space.id, "ids": ids}
        states = {row[0]: tuple(row[1:]) for row in fetch(self.connection, STATES, bound)}
        # a passage may be gone, embedded by another process, or changed under the same number
        still = [(passage, vector) for passage, vector in vectors if states.get(passage.id) == passage.state]
        self.connection.execute(STOP_WAITING, {**bound, "ids": ids_text(passage.id for passage, _ in still)})
        table = vectors_table(space.id)
        self.connection.executemany(DROP.format(table=table), [{"id": passage.id} for passage, _ in still])
        value = _bound("embedding", space) if self._table_kind(space) == "vec0" else ":embedding"
        rows = [
            {"id": passage.id, "part": part_of(vault, passage.source), "embedding": stored_form(vector, space)}
            for passage, vector in still
            if vector is not None
        ]
        self.connection.executemany(PUT.format(table=table, value=value), rows)
        self.connection.execute(TOUCH, {"vault": vault})
        self._finish_space(vault)
        return len(still)

    def cache(self, space: VectorSpace, fresh: Mapping[bytes, Vector | None], used: Collection[bytes] = ()) -> None:
        stored, now = self.add_space(space), time.time_ns()
        rows: list[dict[str, Any]] = [
            {"space": stored.id, "hash": one, "vector": vector and stored_form(vector, stored), "used": now}
            for one, vector in fresh.items()
        ]
        self.connection.executemany(KEEP, rows)
        self.connection.executemany(USE, [{"space": stored.id, "hash": one, "used": now} for one in used])
        misses = self.connection.execute(COUNT_USE, {"space": stored.id, "hits": len(used), "misses": len(rows)}).get
        if int(misses or 0) % EVICT_EVERY < len(rows):
            self.connection.execute(EVICT, {"most": CACHE_ENTRIES})

    def add_waiting(self, vault: int, passages: Sequence[int]) -> None:
        """New passages wait for a vector in each of the vault's spaces."""
        for space in self._spaces(vault):
            rows = [{"vault": vault, "space": space.id, "id": passage} for passage in passages]
            self.connection.executemany(WAIT, rows)

    def drop_vectors(self, vault: int, passages: Sequence[int]) -> None:
        for space in self._spaces(vault):
            rows = [{"id": passage} for passage in passages]
            self.connection.executemany(DROP.format(table=vectors_table(space.id)), rows)
            bound = {"vault": vault, "space": space.id, "ids": ids_text(passages)}
            self.connection.execute(STOP_WAITING, bound)
        self.connection.execute(TOUCH, {"vault": vault})

    def add_space(self, space: VectorSpace) -> StoredSpace:
        stored = self.find_space(space)
        if stored is None:
            self.connection.execute(ADD_SPACE, space._asdict())
            stored = StoredSpace(self.connection.last_insert_rowid(), space)
        table = vectors_table(stored.id)
        if not self.connection.table_exists("main", table):
            create = CREATE_VEC0 if self.with_vec0 else CREATE_PLAIN
            kind = "int8" if stored.packed else "float"
            self.connection.execute(
                create.format(table=table, kind=kind, dimensions=space.dimensions, chunk_size=CHUNK_SIZE)
            )
        return stored

    def _spaces(self, vault: int) -> list[StoredSpace]:
        state = self.vault_by_id(vault)
        return [space for space in (state.active, state.building) if space]

    def _abandon(self, vault: int, space: StoredSpace) -> None:
        self.connection.execute(FORGET_WAITING, {"vault": vault, "space": space.id})
        for source in kind_of(self.vault_by_id(vault).origin).sources:
            statement = DROP_PART.format(table=vectors_table(space.id))
            self.connection.execute(statement, {"part": part_of(vault, source)})
        self.connection.execute(TOUCH, {"vault": vault})


def vectors_table(space: int) -> str:
    return "docs_vec" if space == 1 else f"docs_vec_{space:d}"


def part_of(vault: int, source: str) -> str:
    """The partition that limits a scan to one vault and one source."""
    return f"{vault:d}/{source}"


def _vault(row: Any) -> StoredVault:
    spaces = [StoredSpace(part[0], VectorSpace(*part[1:])) if part[1] else None for part in (row[8:13], row[13:])]
    return StoredVault(row[0], Origin(*row[1:5]), *row[5:8], *spaces)


def _to_embed(row: Any) -> WaitingPassage:
    title = "" if row[1] == "conversation" else row[5]  # what was said first is not what this turn is about
    return WaitingPassage(row[0], row[1], embedding_text(title, *(text or "" for text in row[6:])), tuple(row[2:5]))


def _bound(name: str, space: StoredSpace) -> str:
    return f"vec_int8(:{name})" if space.packed else f":{name}"
