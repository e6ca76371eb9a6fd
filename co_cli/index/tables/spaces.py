"""Vaults with their vector spaces, the passages that wait for a vector, and the embedding cache.

How the vectors themselves are stored differs between engines.
"""

from __future__ import annotations

import time
from collections.abc import Collection, Mapping, Sequence
from types import MappingProxyType
from typing import Any

from co_cli.embedding.space import Vector, VectorSpace
from co_cli.index.derivation import text_to_embed
from co_cli.index.packing import numbers_of, stored_form, vector_of
from co_cli.index.stored import CacheState, StoredOrigin, StoredSpace, WaitingPassage, text_hash
from co_cli.index.tables.statements import Statements, Tables
from co_cli.sources.origin import Origin

CACHE_ENTRIES = 200_000
EVICT_EVERY = 10_000
"""After this many new entries of a space, the cache is cut back to its limit: counting it for each write is slow."""

FIND_SPACE = """
select id from spaces
where provider = %(provider)s and model = %(model)s and dimensions = %(dimensions)s and prompts = %(prompts)s
"""
ADD_SPACE = """
insert into spaces (provider, model, dimensions, prompts) values (%(provider)s, %(model)s, %(dimensions)s, %(prompts)s)
on conflict do nothing
"""
ORIGINS = """
select vaults.id, vaults.source, vaults.root, vaults.name, vaults.only_file, vaults.synced_at, vaults.notes,
    vaults.passages, active.id, active.provider, active.model, active.dimensions, active.prompts,
    building.id, building.provider, building.model, building.dimensions, building.prompts,
    floor.id, floor.provider, floor.model, floor.dimensions, floor.prompts,
    (select count(*) from docs {hint} where docs.vault_id = vaults.id and docs.missing is not null)
from vaults left join spaces as active on active.id = vaults.space_id
left join spaces as building on building.id = vaults.building_id
left join spaces as floor on floor.id = vaults.floor_id {which}
"""
BY_ID = "where vaults.id = %(id)s"
BY_ORIGIN = "where root = %(root)s and source = %(source)s and name = %(name)s and only_file = %(only)s"
IN_ORDER = "order by vaults.id"
SET_SPACES = "update vaults set space_id = %(active)s, building_id = %(building)s where id = %(vault)s"
SET_FLOOR = "update vaults set floor_id = %(space)s where id = %(vault)s"

WAIT_ALL = """
insert into waiting (vault_id, space_id, passage_id)
select docs.vault_id, %(space)s, passages.id from passages join docs on docs.id = passages.doc_id
where docs.vault_id = %(vault)s on conflict do nothing
"""
STOP_WAITING = (
    "delete from waiting where vault_id = %(vault)s and space_id = %(space)s and passage_id {among} (%(ids)s)"
)
FORGET_WAITING = "delete from waiting where vault_id = %(vault)s and space_id = %(space)s"
TO_EMBED = """
select passages.id, docs.source, docs.path, docs.hash, passages.first_line, docs.id, passages.language, docs.title,
    docs.tags, docs.aliases, passages.heading, passages.body, passages.context
"""
WAITING = f"""
{TO_EMBED} from waiting join passages on passages.id = waiting.passage_id join docs on docs.id = passages.doc_id
where waiting.vault_id = %(vault)s and waiting.space_id = %(space)s order by waiting.passage_id limit %(limit)s
"""
WITHOUT_VECTOR = f"""
{TO_EMBED} from passages join docs on docs.id = passages.doc_id
where docs.vault_id = %(vault)s and passages.id in (
    select id from passages except select rowid from {{table}}
    except select passage_id from waiting where space_id = %(space)s
)
"""
STATES = """
select waiting.passage_id, docs.path, docs.hash, passages.first_line
from waiting join passages on passages.id = waiting.passage_id join docs on docs.id = passages.doc_id
where waiting.vault_id = %(vault)s and waiting.space_id = %(space)s and waiting.passage_id {among} (%(ids)s)
"""
IS_WAITING_IN = "select 1 from waiting where vault_id = %(vault)s and space_id = %(space)s limit 1 offset %(more_than)s"
IS_WAITING = "select 1 from waiting where vault_id = %(vault)s limit 1 offset %(more_than)s"
COUNT_WAITING = "select count(*) from waiting where vault_id = %(vault)s and space_id = coalesce(%(space)s, space_id)"

LOOK_UP = "select hash, vector from embedding_cache where space_id = %(space)s and hash {among} (%(hashes)s)"
KEEP = """
insert into embedding_cache (space_id, hash, vector, used) values (%(space)s, %(hash)s, %(vector)s, %(used)s)
on conflict (space_id, hash) do update set vector = excluded.vector, used = excluded.used
"""
USE = "update embedding_cache set used = %(used)s where space_id = %(space)s and hash {among} (%(hashes)s)"
COUNT_USE = (
    "update spaces set hits = hits + %(hits)s, misses = misses + %(misses)s where id = %(space)s returning misses"
)
FORGET_CACHE = "delete from embedding_cache where space_id = %(space)s"
CACHED = "select hash from embedding_cache"
TEXTS = f"{TO_EMBED} from passages join docs on docs.id = passages.doc_id"
DROP_CACHED = "delete from embedding_cache where hash {among} (%(hashes)s)"
EVICT = """
delete from embedding_cache where used <= (select used from embedding_cache order by used desc limit 1 offset %(most)s)
"""
CACHE_STATE = """
select count(*), cast(coalesce(sum(octet_length(vector)), 0) as bigint),
    (select cast(coalesce(sum(hits), 0) as bigint) from spaces),
    (select cast(coalesce(sum(misses), 0) as bigint) from spaces)
from embedding_cache
"""


class SpaceRows(Tables):
    """The part of the storage contract that is about vaults, their vectors and the cache, for every engine."""

    def origin(self, origin: Origin) -> StoredOrigin | None:
        known = [stored for stored in self.known.values() if stored.origin == origin._replace(tier="")]
        found = known or _read_origins(self, BY_ORIGIN, stored_origin(self, origin))
        if found:
            self.known[found[0].id] = found[0]
        return found[0]._replace(origin=origin) if found else None

    def origins(self) -> list[StoredOrigin]:
        return _read_origins(self, IN_ORDER, {})

    def waiting(
        self, origin_id: int, space: StoredSpace | None = None, limit: int = 0
    ) -> tuple[int, list[WaitingPassage]]:
        bound = {"vault": origin_id, "space": space.id if space else None, "limit": limit}
        count = int(self.fetch(COUNT_WAITING, bound)[0][0])
        return count, [_to_embed(row) for row in self.fetch(WAITING, bound)] if limit else []

    def is_waiting(self, origin_id: int, more_than: int = 0, space: StoredSpace | None = None) -> bool:
        bound = {"vault": origin_id, "more_than": more_than}
        return bool(self.fetch(IS_WAITING_IN, {**bound, "space": space.id}) if space else self.fetch(IS_WAITING, bound))

    def cached(self, space: VectorSpace, hashes: Sequence[bytes]) -> dict[bytes, Vector | None]:
        stored = find_space(self, space)
        if stored is None:
            return {}
        rows = self.fetch(LOOK_UP, {"hashes": list(hashes), "space": stored.id})
        return {bytes(key): None if blob is None else vector_of(numbers_of(blob, stored)) for key, blob in rows}

    def cache_state(self) -> CacheState:
        return CacheState(*self.fetch(CACHE_STATE)[0])

    def keep_floor(self, origin_id: int, space: VectorSpace) -> StoredOrigin:
        self.lock(origin_id)
        stored, state = _add_space(self, space), origin_by_id(self, origin_id)
        if not state.floor or state.floor.id != stored.id:
            self.run(SET_FLOOR, {"vault": origin_id, "space": stored.id})
            self._wait_in(origin_id, stored, state)
        return origin_by_id(self, origin_id)

    def begin_space(self, origin_id: int, space: VectorSpace) -> StoredOrigin:
        self.lock(origin_id)
        stored, state = _add_space(self, space), origin_by_id(self, origin_id)
        if state.building and state.building.id != stored.id:
            _abandon(self, origin_id, state.building)
        if state.building and state.building.id == stored.id:
            return state
        active = state.active or stored
        _set_spaces(self, origin_id, active.id, None if active.id == stored.id else stored.id)
        self._wait_in(origin_id, stored, state)
        self.finish_space([origin_id], stored)
        return origin_by_id(self, origin_id)

    def finish_space(self, origin_ids: Collection[int], space: StoredSpace) -> bool:
        for origin_id in sorted(origin_ids):  # in one order, or two writers wait for each other
            self.lock(origin_id)
        states = [origin_by_id(self, origin_id) for origin_id in origin_ids]
        others = [state for state in states if state.notes and state.active != space]
        if any(state.building != space or self.is_waiting(state.id, 0, space) for state in others):
            return False
        for state in states:
            if state.active and state.building == space:
                _set_spaces(self, state.id, space.id, None)
                _abandon(self, state.id, state.active)
        return True

    def _wait_in(self, origin_id: int, stored: StoredSpace, before: StoredOrigin) -> None:
        """Let every passage wait for a vector in a space that the origin did not have."""
        if stored.id not in [known.id for known in before.spaces]:
            self.fetch(WAIT_ALL, {"vault": origin_id, "space": stored.id})
        self.known.clear()

    def reembed(self, origin_id: int, space: StoredSpace, forget_cache: bool = False) -> None:
        self.lock(origin_id)
        if forget_cache:
            self.fetch(FORGET_CACHE, {"space": space.id})
        self.fetch(WAIT_ALL, {"vault": origin_id, "space": space.id})

    def put_vectors(
        self, origin_id: int, space: StoredSpace, vectors: Sequence[tuple[WaitingPassage, Vector | None]]
    ) -> int:
        self.lock(origin_id)
        stored = find_space(self, space.space)
        if stored is None or stored.id != space.id:
            return 0  # another store was put in place of the one in which the space was looked up
        bound = {"vault": origin_id, "space": space.id, "ids": [passage.id for passage, _ in vectors]}
        states = {row[0]: tuple(row[1:]) for row in self.fetch(STATES, bound)}
        # a passage may be gone, embedded by another process, or changed under the same number
        still = [(passage, vector) for passage, vector in vectors if states.get(passage.id) == passage.state]
        ids = [passage.id for passage, _ in still]
        self.run(STOP_WAITING, {**bound, "ids": ids})
        self.replace_vectors(
            origin_id, space, ids, [(passage, vector) for passage, vector in still if vector is not None]
        )
        return len(still)

    def cache(self, space: VectorSpace, fresh: Mapping[bytes, Vector | None], used: Collection[bytes] = ()) -> None:
        _keep(self, _add_space(self, space), fresh, used)

    def drop_unused_cached(self) -> None:
        used = {text_hash(_to_embed(row).text) for row in self.fetch(TEXTS)}
        unused = {bytes(key) for (key,) in self.fetch(CACHED)} - used
        if unused:
            self.run(DROP_CACHED, {"hashes": sorted(unused)})


def origin_by_id(tx: Statements, origin_id: int) -> StoredOrigin:
    if origin_id not in tx.known:
        tx.known[origin_id] = _read_origins(tx, BY_ID, {"id": origin_id})[0]
    return tx.known[origin_id]


def stored_origin(tx: Statements, origin: Origin) -> dict[str, str]:
    return {**origin._asdict(), "root": tx.stored_root(origin.root)}


def count_lost_vectors(tx: SpaceRows, origin_id: int) -> int:
    """How many passages have no vector and do not wait for one, although their text has a meaning."""
    active = origin_by_id(tx, origin_id).active
    if active is None or not tx.has_vectors(active):
        return 0
    rows = tx.fetch(WITHOUT_VECTOR, {"vault": origin_id, "space": active.id}, table=vectors_table(active.id))
    lost = [passage for passage in map(_to_embed, rows) if active.space.knows(passage.language)]
    hashes = [text_hash(passage.text) for passage in lost]
    cached = tx.cached(active.space, hashes)
    return sum(cached.get(key, b"") is not None for key in hashes)


def find_space(tx: Statements, space: VectorSpace) -> StoredSpace | None:
    found = tx.fetch(FIND_SPACE, space._asdict())
    return StoredSpace(found[0][0], space) if found else None


def _keep(
    tx: Statements, stored: StoredSpace, fresh: Mapping[bytes, Vector | None], used: Collection[bytes] = ()
) -> None:
    now = time.time_ns()
    rows: list[dict[str, Any]] = [
        {"space": stored.id, "hash": key, "vector": vector and stored_form(vector, stored), "used": now}
        for key, vector in sorted(fresh.items())  # in one order, or two writers wait for each other
    ]
    tx.run_many(KEEP, rows)
    if used:
        tx.run(USE, {"space": stored.id, "hashes": sorted(used), "used": now})
    bound = {"space": stored.id, "hits": len(used), "misses": len(rows)}
    ((misses,),) = tx.fetch(COUNT_USE, bound)
    if misses % EVICT_EVERY < len(rows):
        tx.run(EVICT, {"most": CACHE_ENTRIES})


def add_waiting(
    tx: Tables,
    origin_id: int,
    passages: Sequence[int],
    embedded: Mapping[str, Sequence[tuple[WaitingPassage, Vector | None]]] = MappingProxyType({}),
) -> int:
    """New passages wait for a vector in each of the vault's spaces, but for those that are embedded in it.

    Returns how many wait.
    """
    spaces = origin_by_id(tx, origin_id).spaces
    waits = 0 if spaces else len(passages)
    for space in spaces:
        made = embedded.get(space.space.key, ())
        done = {passage.id for passage, _ in made}
        rows = [
            {"vault_id": origin_id, "space_id": space.id, "passage_id": number}
            for number in passages
            if number not in done
        ]
        tx.add_rows("waiting", rows)
        waits += len(rows)
        if made:
            tx.replace_vectors(
                origin_id, space, [*done], [(passage, vector) for passage, vector in made if vector is not None]
            )
            _keep(tx, space, {text_hash(passage.text): vector for passage, vector in made})
    return waits


def drop_vectors(tx: Tables, origin_id: int, passages: Sequence[int]) -> None:
    for space in origin_by_id(tx, origin_id).spaces:
        tx.replace_vectors(origin_id, space, passages)
        tx.run(STOP_WAITING, {"vault": origin_id, "space": space.id, "ids": list(passages)})


def vectors_table(space: int) -> str:
    return "docs_vec" if space == 1 else f"docs_vec_{space:d}"


def _read_origins(tx: Statements, which: str, values: Mapping[str, Any]) -> list[StoredOrigin]:
    rows = tx.fetch(ORIGINS, values, hint=tx.dialect.indexed_by("docs_missing"), which=which)
    found: list[StoredOrigin] = []
    for row in rows:
        spaces = [
            StoredSpace(part[0], VectorSpace(*part[1:])) if part[1] else None
            for part in (row[8:13], row[13:18], row[18:23])
        ]
        origin = Origin(row[1], tx.local_root(row[2]), *row[3:5])
        found.append(StoredOrigin(row[0], origin, *row[5:8], *spaces, missing=row[23]))
    return found


def _add_space(tx: Tables, space: VectorSpace) -> StoredSpace:
    stored = find_space(tx, space)
    if stored is None:
        tx.fetch(ADD_SPACE, space._asdict())  # others who add it wait here until this is committed
        stored = find_space(tx, space)
    assert stored
    if not tx.has_vectors(stored):
        tx.make_vectors(stored)
    return stored


def _set_spaces(tx: Statements, origin_id: int, active: int, building: int | None) -> None:
    tx.run(SET_SPACES, {"vault": origin_id, "active": active, "building": building})
    tx.known.clear()


def _abandon(tx: Tables, origin_id: int, space: StoredSpace) -> None:
    """Forget the vectors of a space, unless it is the floor."""
    floor = origin_by_id(tx, origin_id).floor
    if floor and floor.id == space.id:
        return
    tx.fetch(FORGET_WAITING, {"vault": origin_id, "space": space.id})
    tx.forget_vectors(origin_id, space)


def _to_embed(row: Any) -> WaitingPassage:
    note = dict(zip(("title", "tags", "aliases"), row[7:10], strict=True), source=row[1])
    text = text_to_embed(note, dict(zip(("heading", "body", "context"), row[10:], strict=True)))
    return WaitingPassage(row[0], row[1], text, tuple(row[2:5]), row[6], row[5])
