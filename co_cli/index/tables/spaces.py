"""Vaults with their vector spaces, the passages that wait for a vector, and the embedding cache.

The vectors themselves differ between engines: methods without a body here.
"""

from __future__ import annotations

import json
import time
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from co_cli.embedding.space import Vector, VectorSpace
from co_cli.index.derivation import embedding_text
from co_cli.index.engine import CacheState, StoredSpace, StoredVault, WaitingPassage, text_hash
from co_cli.index.packing import numbers_of, stored_form, vector_of
from co_cli.index.tables.statements import Statements
from co_cli.sources.origin import Origin

CACHE_ENTRIES = 200_000
EVICT_EVERY = 10_000
"""After this many new entries of a space, the cache is cut back to its limit: counting it for each write is slow."""

FIND_SPACE = """
select id from spaces
where provider = :provider and model = :model and dimensions = :dimensions and prompts = :prompts
"""
ADD_SPACE = """
insert into spaces (provider, model, dimensions, prompts) values (:provider, :model, :dimensions, :prompts)
on conflict do nothing
"""
VAULTS = """
select vaults.id, vaults.kind, vaults.root, vaults.name, vaults.only_file, vaults.synced_at, vaults.notes,
    vaults.passages, active.id, active.provider, active.model, active.dimensions, active.prompts,
    building.id, building.provider, building.model, building.dimensions, building.prompts,
    (select count(*) from docs indexed by docs_missing where docs.vault_id = vaults.id and docs.missing is not null)
from vaults left join spaces as active on active.id = vaults.space_id
left join spaces as building on building.id = vaults.building_id
"""
BY_ID = f"{VAULTS} where vaults.id = :id"
BY_ORIGIN = f"{VAULTS} where root = :root and kind = :kind and name = :name and only_file = :only"
SET_SPACES = "update vaults set space_id = :active, building_id = :building where id = :vault"

WAIT_ALL = """
insert into waiting (vault_id, space_id, passage_id)
select docs.vault_id, :space, passages.id from passages join docs on docs.id = passages.doc_id
where docs.vault_id = :vault on conflict do nothing
"""
STOP_WAITING = "delete from waiting where vault_id = :vault and space_id = :space and passage_id among (:ids)"
FORGET_WAITING = "delete from waiting where vault_id = :vault and space_id = :space"
TO_EMBED = """
select passages.id, docs.source, docs.path, docs.hash, passages.first_line, docs.title, passages.heading,
    passages.body, docs.tags, docs.aliases, passages.context
"""
WAITING = f"""
{TO_EMBED} from waiting join passages on passages.id = waiting.passage_id join docs on docs.id = passages.doc_id
where waiting.vault_id = :vault and waiting.space_id = :space order by passages.id limit :limit
"""
WITHOUT_VECTOR = f"""
{TO_EMBED} from passages join docs on docs.id = passages.doc_id
where docs.vault_id = :vault and passages.id in (
    select id from passages except select rowid from {{table}}
    except select passage_id from waiting where space_id = :space
)
"""
STATES = """
select waiting.passage_id, docs.path, docs.hash, passages.first_line
from waiting join passages on passages.id = waiting.passage_id join docs on docs.id = passages.doc_id
where waiting.vault_id = :vault and waiting.space_id = :space and waiting.passage_id among (:ids)
"""
COUNT_WAITING = "select count(*) from waiting where vault_id = :vault and space_id = coalesce(:space, space_id)"

LOOK_UP = "select hash, vector from embedding_cache where space_id = :space and hash among blobs (:hashes)"
KEEP = """
insert into embedding_cache (space_id, hash, vector, used) values (:space, :hash, :vector, :used)
on conflict (space_id, hash) do update set vector = excluded.vector, used = excluded.used
"""
USE = "update embedding_cache set used = :used where space_id = :space and hash among blobs (:hashes)"
COUNT_USE = "update spaces set hits = hits + :hits, misses = misses + :misses where id = :space returning misses"
FORGET_CACHE = "delete from embedding_cache where space_id = :space"
EVICT = """
delete from embedding_cache where used <= (select used from embedding_cache order by used desc limit 1 offset :most)
"""
CACHE_STATE = """
select count(*), cast(coalesce(sum(octet_length(vector)), 0) as bigint),
    (select cast(coalesce(sum(hits), 0) as bigint) from spaces),
    (select cast(coalesce(sum(misses), 0) as bigint) from spaces)
from embedding_cache
"""


class SpaceReader(Statements):
    """The part of a read transaction that knows vaults and their spaces."""

    known: dict[int, StoredVault] | None = None
    """The vaults, in a transaction that does not change them."""

    def stored_root(self, root: str) -> str:
        """The name under which a folder is stored."""
        return root

    def local_root(self, stored: str) -> str:
        """The folder of this machine that has this name."""
        return stored

    def has_vectors(self, space: StoredSpace) -> bool:
        """Whether the space has its table."""
        raise NotImplementedError

    def vault(self, origin: Origin) -> StoredVault | None:
        stored = self.stored_origin(origin)
        known = [one for one in (self.known or {}).values() if one.origin == origin._replace(tier="")]
        found = known or [self._vault(row) for row in self.fetch(BY_ORIGIN, stored)]
        if found and self.known is not None:
            self.known[found[0].id] = found[0]
        return found[0]._replace(origin=origin) if found else None

    def vaults(self) -> list[StoredVault]:
        return [self._vault(row) for row in self.fetch(f"{VAULTS} order by vaults.id")]

    def vault_by_id(self, vault: int) -> StoredVault:
        known = {} if self.known is None else self.known
        if vault not in known:
            known[vault] = self._vault(self.fetch(BY_ID, {"id": vault})[0])
        return known[vault]

    def stored_origin(self, origin: Origin) -> dict[str, str]:
        return {**origin._asdict(), "root": self.stored_root(origin.root)}

    def waiting(self, vault: int, space: StoredSpace | None = None, limit: int = 0) -> tuple[int, list[WaitingPassage]]:
        bound = {"vault": vault, "space": space.id if space else None, "limit": limit}
        count = int(self.fetch(COUNT_WAITING, bound)[0][0])
        return count, [_to_embed(row) for row in self.fetch(WAITING, bound)] if limit else []

    def cached(self, space: VectorSpace, hashes: Sequence[bytes]) -> dict[bytes, Vector | None]:
        stored = self.find_space(space)
        if stored is None:
            return {}
        rows = self.fetch(LOOK_UP, {"hashes": list(hashes), "space": stored.id})
        return {bytes(one): None if blob is None else vector_of(numbers_of(blob, stored)) for one, blob in rows}

    def lost_vectors(self, vault: int) -> int:
        """How many passages have no vector and do not wait for one, although their text has a meaning."""
        active = self.vault_by_id(vault).active
        if active is None or not self.has_vectors(active):
            return 0
        statement = WITHOUT_VECTOR.format(table=vectors_table(active.id))
        hashes = [text_hash(_to_embed(row).text) for row in self.fetch(statement, {"vault": vault, "space": active.id})]
        cached = self.cached(active.space, hashes)
        return sum(cached.get(one, b"") is not None for one in hashes)

    def cache_state(self) -> CacheState:
        return CacheState(*self.fetch(CACHE_STATE)[0])

    def find_space(self, space: VectorSpace) -> StoredSpace | None:
        found = self.fetch(FIND_SPACE, space._asdict())
        return StoredSpace(found[0][0], space) if found else None

    def _vault(self, row: Any) -> StoredVault:
        spaces = [StoredSpace(part[0], VectorSpace(*part[1:])) if part[1] else None for part in (row[8:13], row[13:18])]
        origin = Origin(row[1], self.local_root(row[2]), *row[3:5])
        return StoredVault(row[0], origin, *row[5:8], *spaces, missing=row[18])


class SpaceWriter(SpaceReader):
    """The part of a write transaction that changes spaces and what waits for them."""

    def make_vectors(self, space: StoredSpace) -> None:
        """Make the table of a new space."""
        raise NotImplementedError

    def replace_vectors(
        self,
        vault: int,
        space: StoredSpace,
        passages: Sequence[int],
        vectors: Sequence[tuple[WaitingPassage, Vector]] = (),
    ) -> None:
        """Drop the vectors of passages, and store these."""
        raise NotImplementedError

    def forget_vectors(self, vault: int, space: StoredSpace) -> None:
        """Drop every vector of a vault."""
        raise NotImplementedError

    def begin_space(self, vault: int, space: VectorSpace) -> StoredVault:
        self.lock(vault)
        stored, state = self.add_space(space), self.vault_by_id(vault)
        if state.building and state.building.id != stored.id:
            self._abandon(vault, state.building)
        if stored.id not in [one.id for one in (state.active, state.building) if one]:
            self.fetch(WAIT_ALL, {"vault": vault, "space": stored.id})
        active = state.active or stored
        building = None if active.id == stored.id else stored.id
        self.fetch(SET_SPACES, {"vault": vault, "active": active.id, "building": building})
        self._finish_space(vault)
        return self.vault_by_id(vault)

    def reembed(self, vault: int, space: StoredSpace, forget_cache: bool = False) -> None:
        self.lock(vault)
        if forget_cache:
            self.fetch(FORGET_CACHE, {"space": space.id})
        self.fetch(WAIT_ALL, {"vault": vault, "space": space.id})

    def put_vectors(
        self, vault: int, space: StoredSpace, vectors: Sequence[tuple[WaitingPassage, Vector | None]]
    ) -> int:
        self.lock(vault)
        stored = self.find_space(space.space)
        if stored is None or stored.id != space.id:
            return 0  # another store was put in place of the one in which the space was looked up
        bound = {"vault": vault, "space": space.id, "ids": [passage.id for passage, _ in vectors]}
        states = {row[0]: tuple(row[1:]) for row in self.fetch(STATES, bound)}
        # a passage may be gone, embedded by another process, or changed under the same number
        still = [(passage, vector) for passage, vector in vectors if states.get(passage.id) == passage.state]
        ids = [passage.id for passage, _ in still]
        self.fetch(STOP_WAITING, {**bound, "ids": ids})
        self.replace_vectors(vault, space, ids, [(one, vector) for one, vector in still if vector is not None])
        self._finish_space(vault)
        return len(still)

    def cache(self, space: VectorSpace, fresh: Mapping[bytes, Vector | None], used: Collection[bytes] = ()) -> None:
        stored, now = self.add_space(space), time.time_ns()
        rows: list[dict[str, Any]] = [
            {"space": stored.id, "hash": one, "vector": vector and stored_form(vector, stored), "used": now}
            for one, vector in sorted(fresh.items())  # in one order, or two writers wait for each other
        ]
        self.run_many(KEEP, rows)
        self.fetch(USE, {"space": stored.id, "hashes": sorted(used), "used": now})
        bound = {"space": stored.id, "hits": len(used), "misses": len(rows)}
        ((misses,),) = self.fetch(COUNT_USE, bound)
        if misses % EVICT_EVERY < len(rows):
            self.fetch(EVICT, {"most": CACHE_ENTRIES})

    def add_waiting(self, vault: int, passages: Sequence[int]) -> None:
        """New passages wait for a vector in each of the vault's spaces."""
        for space in self._spaces(vault):
            rows = [{"vault_id": vault, "space_id": space.id, "passage_id": passage} for passage in passages]
            self.add_rows("waiting", rows)

    def drop_vectors(self, vault: int, passages: Sequence[int]) -> None:
        for space in self._spaces(vault):
            self.replace_vectors(vault, space, passages)
            self.fetch(STOP_WAITING, {"vault": vault, "space": space.id, "ids": list(passages)})

    def add_space(self, space: VectorSpace) -> StoredSpace:
        stored = self.find_space(space)
        if stored is None:
            self.fetch(ADD_SPACE, space._asdict())  # others who add it wait here until this is committed
            stored = self.find_space(space)
        assert stored
        if not self.has_vectors(stored):
            self.make_vectors(stored)
        return stored

    def _finish_space(self, vault: int) -> None:
        """Let a space that was built replace the active one, if it is complete."""
        state = self.vault_by_id(vault)
        if state.active and state.building and not self.waiting(vault, state.building)[0]:
            self.fetch(SET_SPACES, {"vault": vault, "active": state.building.id, "building": None})
            self._abandon(vault, state.active)

    def _spaces(self, vault: int) -> list[StoredSpace]:
        state = self.vault_by_id(vault)
        return [space for space in (state.active, state.building) if space]

    def _abandon(self, vault: int, space: StoredSpace) -> None:
        self.fetch(FORGET_WAITING, {"vault": vault, "space": space.id})
        self.forget_vectors(vault, space)


def vectors_table(space: int) -> str:
    return "docs_vec" if space == 1 else f"docs_vec_{space:d}"


def _to_embed(row: Any) -> WaitingPassage:
    title, heading, body, tags, *rest = row[5:]
    title = "" if row[1] == "conversation" else title  # what was said first is not what this turn is about
    text = embedding_text(title, heading, body, " ".join(json.loads(tags)), *rest)
    return WaitingPassage(row[0], row[1], text, tuple(row[2:5]))
