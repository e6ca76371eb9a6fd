"""Vectors: a table for each space, scanned exactly or by HNSW; spaces, waiting passages and the embedding cache."""

from __future__ import annotations

import json
import struct
import time
from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from co_cli.embedding.space import Vector, VectorSpace
from co_cli.index.derivation import embedding_text
from co_cli.index.engine import CacheState, Match, Scope, StoredSpace, StoredVault, WaitingPassage, text_hash
from co_cli.index.packing import LARGEST, STEPS, asked, numbers_of, vector_of
from co_cli.index.postgres.conditions import Connection, conditions, copy_rows, fetch, is_narrow
from co_cli.sources.origin import Origin

if TYPE_CHECKING:
    from numpy.typing import NDArray

VECTOR = {"passage_id": "int8", "doc_id": "int8", "vault_id": "int4", "source": "text", "embedding": "bytea"}
EXACT = 10_000
"""With no more passages in reach, every vector is compared: as fast as HNSW, and nothing is missed."""
CACHE_ENTRIES = 200_000
EVICT_EVERY = 10_000
"""After so many new entries of a space the cache is cut back to its limit."""
VAULT_LOCK = 1_668_246_388
"""The first half of the key of a vault's advisory lock; the vault is the other."""

CREATE = """
create table {table} (
    passage_id bigint primary key, doc_id bigint not null, vault_id integer not null, source text not null,
    embedding {kind}({dimensions}) not null
);
create index on {table} (doc_id);
create index on {table} (vault_id)
"""
EXISTS = "select to_regclass(%(table)s) is not null"
DROP = "delete from {table} where passage_id = any(%(ids)s)"
DROP_VAULT = "delete from {table} where vault_id = %(vault)s"
NEAREST = """
select passage_id, doc_id, 1 - distance from (
    select passage_id, doc_id, {order} as distance from {table}
    where vault_id = %(vault)s and source = any(%(sources)s) {within} order by distance limit %(limit)s
) as nearest
"""
WITHIN = """
and passage_id in (select passages.id from docs join passages on passages.doc_id = docs.id where {filters})
"""
REACH = """
select count(*) from (
    select from docs join passages on passages.doc_id = docs.id where {filters} limit %(most)s
) as reached
"""
COSINES = "select passage_id, 1 - ({distance}) from {table} where passage_id = any(%(ids)s)"
OF_NOTES = "select doc_id, embedding::text from {table} where doc_id = any(%(ids)s) order by passage_id"

FIND_SPACE = """
select id from spaces
where provider = %(provider)s and model = %(model)s and dimensions = %(dimensions)s and prompts = %(prompts)s
"""
ADD_SPACE = """
insert into spaces (provider, model, dimensions, prompts)
values (%(provider)s, %(model)s, %(dimensions)s, %(prompts)s) on conflict do nothing
"""
VAULTS = """
select vaults.id, vaults.kind, vaults.root, vaults.name, vaults.only_file, vaults.synced_at, vaults.notes,
    vaults.passages, active.id, active.provider, active.model, active.dimensions, active.prompts,
    building.id, building.provider, building.model, building.dimensions, building.prompts
from vaults left join spaces as active on active.id = vaults.space_id
left join spaces as building on building.id = vaults.building_id
"""
BY_ORIGIN = f"{VAULTS} where root = %(root)s and kind = %(kind)s and name = %(name)s and only_file = %(only)s"
SET_SPACES = "update vaults set space_id = %(active)s, building_id = %(building)s where id = %(vault)s"
LOCK = "select pg_advisory_xact_lock(%(key)s, %(vault)s)"

WAIT_ALL = """
insert into waiting (vault_id, space_id, passage_id)
select %(vault)s, %(space)s, id from passages where vault_id = %(vault)s on conflict do nothing
"""
STOP_WAITING = """
delete from waiting where vault_id = %(vault)s and space_id = %(space)s and passage_id = any(%(ids)s)
"""
FORGET_WAITING = "delete from waiting where vault_id = %(vault)s and space_id = %(space)s"
TO_EMBED = """
select passages.id, docs.source, docs.path, docs.hash, passages.first_line, docs.title, passages.heading,
    passages.body, array_to_string(docs.tags, ' '), docs.aliases, passages.context
"""
WAITING = f"""
{TO_EMBED} from waiting join passages on passages.id = waiting.passage_id join docs on docs.id = passages.doc_id
where waiting.vault_id = %(vault)s and waiting.space_id = %(space)s order by waiting.passage_id limit %(limit)s
"""
WITHOUT_VECTOR = f"""
{TO_EMBED} from passages join docs on docs.id = passages.doc_id
where passages.vault_id = %(vault)s and not exists (select from {{table}} where passage_id = passages.id)
    and not exists (select from waiting where space_id = %(space)s and passage_id = passages.id)
"""
STATES = """
select waiting.passage_id, docs.path, docs.hash, passages.first_line, docs.id
from waiting join passages on passages.id = waiting.passage_id join docs on docs.id = passages.doc_id
where waiting.vault_id = %(vault)s and waiting.space_id = %(space)s and waiting.passage_id = any(%(ids)s)
"""
COUNT_WAITING = """
select count(*) from waiting where vault_id = %(vault)s and space_id = coalesce(%(space)s, space_id)
"""

LOOK_UP = "select hash, vector from embedding_cache where space_id = %(space)s and hash = any(%(hashes)s::bytea[])"
KEEP = """
insert into embedding_cache (space_id, hash, vector, used)
select %(space)s, *, %(now)s from unnest(%(hashes)b::bytea[], %(vectors)b::bytea[])
on conflict (space_id, hash) do update set vector = excluded.vector, used = excluded.used
"""
USE = """
update embedding_cache set used = %(now)s where space_id = %(space)s and hash = any(%(hashes)s::bytea[])
"""
COUNT_USE = """
update spaces set hits = hits + %(hits)s, misses = misses + %(misses)s where id = %(space)s returning misses
"""
FORGET_CACHE = "delete from embedding_cache where space_id = %(space)s"
EVICT = """
delete from embedding_cache where (space_id, hash) in (
    select space_id, hash from embedding_cache order by used
    limit greatest(0, (select count(*) from embedding_cache) - %(most)s)
)
"""
CACHE_STATE = """
select count(*), coalesce(sum(octet_length(vector)), 0)::bigint, (select coalesce(sum(hits), 0)::bigint from spaces),
    (select coalesce(sum(misses), 0)::bigint from spaces)
from embedding_cache
"""


class VectorTables:
    """The part of a read transaction that knows vectors, and the vaults with their spaces."""

    connection: Connection
    roots: Mapping[str, str]
    """The stored names of folders of this machine."""
    known: dict[int, StoredVault] | None = None
    """The vaults, in a transaction that does not change them."""

    def nearest(self, scope: Scope, space: StoredSpace, query: Vector, limit: int) -> list[Match]:
        found: list[Match] = []
        for vault in scope.vaults:
            state = self.vault_by_id(vault)
            if state.active != space:
                continue  # its vectors are of another model
            narrow = is_narrow(scope, state)
            where, values = conditions(scope, vault)
            bound = {**values, "vault": vault, "limit": limit, "query": _text(asked(query, space), space)}
            reach = state.passages
            if narrow and reach > EXACT:
                counted = {**values, "most": EXACT + 1}
                reach = fetch(self.connection, REACH.format(filters=where), counted)[0][0]
            within = WITHIN.format(filters=where) if narrow else ""
            rows: list[Any] = []
            exact = f"({_distance(space)}) + 0"  # no index is used
            approximate = _distance(space, "halfvec")
            for order in (exact,) if reach <= EXACT else (approximate, exact):
                statement = _about(NEAREST, space, within=within, order=order)
                rows = fetch(self.connection, statement, bound)
                if len(rows) >= min(limit, reach):  # else HNSW gave up before it had found enough
                    break
            found += [Match(*row) for row in rows]
        return sorted(found, key=lambda one: (-one.score, one.passage))[:limit]

    def cosines(self, space: StoredSpace, query: Vector, passages: Sequence[int]) -> dict[int, float]:
        if not passages or not self._has_table(space):
            return {}
        bound = {"ids": list(passages), "query": _text(asked(query, space), space)}
        return dict(fetch(self.connection, _about(COSINES, space), bound))

    def vectors(self, space: StoredSpace, notes: Sequence[int]) -> list[tuple[int, Vector]]:
        if not self._has_table(space):
            return []
        rows = fetch(self.connection, _about(OF_NOTES, space), {"ids": list(notes)})
        return [(note, vector_of(numbers_of(_blob(text, space), space))) for note, text in rows]

    def vault(self, origin: Origin) -> StoredVault | None:
        if self.known is not None:
            plain = origin._replace(tier="")
            same = (one for one in self.every_vault().values() if one.origin == plain)
            return next((one._replace(origin=origin) for one in same), None)
        found = fetch(self.connection, BY_ORIGIN, self.stored_origin(origin))
        return _vault(found[0])._replace(origin=origin) if found else None

    def vaults(self) -> list[StoredVault]:
        found = [_vault(row) for row in fetch(self.connection, f"{VAULTS} order by vaults.id")]
        return [one._replace(origin=one.origin._replace(root=self.local_root(one.origin.root))) for one in found]

    def stored_origin(self, origin: Origin) -> dict[str, str]:
        return {**origin._asdict(), "root": self.roots.get(origin.root, origin.root)}

    def local_root(self, stored: str) -> str:
        return next((root for root, name in self.roots.items() if name == stored), stored)

    def every_vault(self) -> dict[int, StoredVault]:
        found = self.known or {one.id: one for one in self.vaults()}
        self.known = None if self.known is None else found
        return found

    def vault_by_id(self, vault: int) -> StoredVault:
        return self.every_vault()[vault]

    def waiting(self, vault: int, space: StoredSpace | None = None, limit: int = 0) -> tuple[int, list[WaitingPassage]]:
        bound = {"vault": vault, "space": space.id if space else None, "limit": limit}
        count = int(fetch(self.connection, COUNT_WAITING, bound)[0][0])
        return count, [_to_embed(row) for row in fetch(self.connection, WAITING, bound)] if limit else []

    def cached(self, space: VectorSpace, hashes: Sequence[bytes]) -> dict[bytes, Vector | None]:
        stored = self.find_space(space)
        if stored is None:
            return {}
        rows = fetch(self.connection, LOOK_UP, {"hashes": list(hashes), "space": stored.id}, binary=True)
        return {one: None if blob is None else vector_of(numbers_of(blob, stored)) for one, blob in rows}

    def cache_state(self) -> CacheState:
        return CacheState(*fetch(self.connection, CACHE_STATE)[0])

    def lost_vectors(self, vault: int) -> int:
        """How many passages have no vector and do not wait for one, although their text has a meaning."""
        active = self.vault_by_id(vault).active
        if active is None:
            return 0
        rows = fetch(self.connection, _about(WITHOUT_VECTOR, active), {"vault": vault, "space": active.id})
        hashes = [text_hash(_to_embed(row).text) for row in rows]
        cached = self.cached(active.space, hashes)
        return sum(cached.get(one, b"") is not None for one in hashes)

    def find_space(self, space: VectorSpace) -> StoredSpace | None:
        found = fetch(self.connection, FIND_SPACE, space._asdict())
        return StoredSpace(found[0][0], space) if found else None

    def _has_table(self, space: StoredSpace) -> bool:
        return bool(fetch(self.connection, EXISTS, {"table": vectors_table(space.id)})[0][0])


class VectorTableWriter(VectorTables):
    """The part of a write transaction that changes vectors."""

    locked: set[int]
    """The vaults that nobody else can write to until this transaction ends."""

    def lock(self, vault: int) -> None:
        """Wait until nobody else writes to this vault."""
        if vault not in self.locked:
            fetch(self.connection, LOCK, {"key": VAULT_LOCK, "vault": vault})
            self.locked.add(vault)

    def begin_space(self, vault: int, space: VectorSpace) -> StoredVault:
        self.lock(vault)
        stored, state = self._add_space(space), self.vault_by_id(vault)
        if state.building and state.building.id != stored.id:
            self.forget_vectors(vault, state.building)
        if stored.id not in [one.id for one in (state.active, state.building) if one]:
            fetch(self.connection, WAIT_ALL, {"vault": vault, "space": stored.id})
        active = state.active or stored
        building = None if active.id == stored.id else stored.id
        fetch(self.connection, SET_SPACES, {"vault": vault, "active": active.id, "building": building})
        self._finish_space(vault)
        return self.vault_by_id(vault)

    def reembed(self, vault: int, space: StoredSpace, forget_cache: bool = False) -> None:
        self.lock(vault)
        if forget_cache:
            fetch(self.connection, FORGET_CACHE, {"space": space.id})
        fetch(self.connection, WAIT_ALL, {"vault": vault, "space": space.id})

    def put_vectors(
        self, vault: int, space: StoredSpace, vectors: Sequence[tuple[WaitingPassage, Vector | None]]
    ) -> int:
        self.lock(vault)
        stored = self.find_space(space.space)
        if stored is None or stored.id != space.id:
            return 0  # another store was put in place of the one in which the space was looked up
        bound = {"vault": vault, "space": space.id, "ids": [passage.id for passage, _ in vectors]}
        states = {row[0]: (row[1:4], row[4]) for row in fetch(self.connection, STATES, bound)}
        # a passage may be gone, embedded by another process, or changed under the same number
        still = [(one, vector) for one, vector in vectors if one.id in states and states[one.id][0] == one.state]
        bound["ids"] = [passage.id for passage, _ in still]
        fetch(self.connection, STOP_WAITING, bound)
        fetch(self.connection, _about(DROP, space), bound)
        rows = [
            (passage.id, states[passage.id][1], vault, passage.source, _binary(vector, space))
            for passage, vector in still
            if vector is not None
        ]
        copy_rows(self.connection, vectors_table(space.id), VECTOR, rows)
        self._finish_space(vault)
        return len(still)

    def cache(self, space: VectorSpace, fresh: Mapping[bytes, Vector | None], used: Collection[bytes] = ()) -> None:
        stored = self._add_space(space)
        keys = sorted(fresh)  # in one order, or two writers wait for each other
        vectors = [vector and _numbers(vector, stored).tobytes() for vector in map(fresh.get, keys)]
        bound = {"space": stored.id, "now": time.time_ns()}
        if keys:
            fetch(self.connection, KEEP, {**bound, "hashes": keys, "vectors": vectors})
        if used:
            fetch(self.connection, USE, {**bound, "hashes": sorted(used)})
        ((misses,),) = fetch(self.connection, COUNT_USE, {**bound, "hits": len(used), "misses": len(keys)})
        if misses % EVICT_EVERY < len(keys):
            fetch(self.connection, EVICT, {"most": CACHE_ENTRIES})

    def add_waiting(self, vault: int, passages: Sequence[int]) -> None:
        """New passages wait for a vector in each of the vault's spaces."""
        for space in self.spaces_of(vault):
            rows = [(vault, space.id, passage) for passage in passages]
            copy_rows(self.connection, "waiting", ("vault_id", "space_id", "passage_id"), rows)

    def drop_vectors(self, vault: int, passages: Sequence[int]) -> None:
        for space in self.spaces_of(vault):
            bound = {"vault": vault, "space": space.id, "ids": list(passages)}
            fetch(self.connection, _about(DROP, space), bound)
            fetch(self.connection, STOP_WAITING, bound)

    def spaces_of(self, vault: int) -> list[StoredSpace]:
        state = self.vault_by_id(vault)
        return [space for space in (state.active, state.building) if space]

    def forget_vectors(self, vault: int, space: StoredSpace) -> None:
        fetch(self.connection, FORGET_WAITING, {"vault": vault, "space": space.id})
        fetch(self.connection, _about(DROP_VAULT, space), {"vault": vault})

    def _finish_space(self, vault: int) -> None:
        """Let a space that was built replace the active one, if it is complete."""
        state = self.vault_by_id(vault)
        if state.active and state.building and not self.waiting(vault, state.building)[0]:
            fetch(self.connection, SET_SPACES, {"vault": vault, "active": state.building.id, "building": None})
            self.forget_vectors(vault, state.active)

    def _add_space(self, space: VectorSpace) -> StoredSpace:
        if self.find_space(space) is None:
            fetch(self.connection, ADD_SPACE, space._asdict())  # others who add it wait here until this is committed
        stored = self.find_space(space)
        assert stored
        if not self._has_table(stored):
            kind = stored_type(stored)
            fetch(self.connection, _about(CREATE, stored, kind=kind, dimensions=space.dimensions))
        return stored


def vectors_table(space: int) -> str:
    return f"vectors_{space:d}"


def stored_type(space: StoredSpace) -> str:
    """Whole numbers up to 127 are exact in a halfvec."""
    return "halfvec" if space.packed else "vector"


def _distance(space: StoredSpace, kind: str | None = None) -> str:
    """The cosine distance as SQL; as `halfvec` it is what HNSW indexes."""
    size = f"({space.space.dimensions:d})"
    own = stored_type(space)
    column = "embedding" if kind in (None, own) else f"embedding::{kind}{size}"
    return f"{column} <=> %(query)s::{kind or own}{size}"


def _about(statement: str, space: StoredSpace, **parts: object) -> str:
    return statement.format(table=vectors_table(space.id), distance=_distance(space), **parts)


def _text(blob: bytes, space: StoredSpace) -> str:
    """A vector as PostgreSQL reads it."""
    return str(memoryview(blob).cast("b" if space.packed else "f").tolist())


def _numbers(vector: Vector, space: StoredSpace) -> NDArray[Any]:
    """What `stored_form` gives, fifty times as fast."""
    numbers = np.frombuffer(vector, "<f4")
    return np.clip(np.rint(numbers * STEPS), -LARGEST, LARGEST).astype(np.int8) if space.packed else numbers


def _binary(vector: Vector, space: StoredSpace) -> bytes:
    """A vector as COPY takes it."""
    numbers = _numbers(vector, space)
    return struct.pack(">HH", len(numbers), 0) + numbers.astype(">f2" if space.packed else ">f4").tobytes()


def _blob(text: str, space: StoredSpace) -> bytes:
    numbers = json.loads(text)
    return struct.pack(f"{len(numbers)}{'b' if space.packed else 'f'}", *numbers)


def _vault(row: Any) -> StoredVault:
    spaces = [StoredSpace(part[0], VectorSpace(*part[1:])) if part[1] else None for part in (row[8:13], row[13:])]
    return StoredVault(row[0], Origin(*row[1:5]), *row[5:8], *spaces)


def _to_embed(row: Any) -> WaitingPassage:
    title = "" if row[1] == "conversation" else row[5]  # what was said first is not what this turn is about
    return WaitingPassage(row[0], row[1], embedding_text(title, *(text or "" for text in row[6:])), tuple(row[2:5]))
