"""The embedding cache: vectors of texts that were embedded before, for all vaults, bounded by number.

Inside the caller's transaction. Keyed by the space and the hash of the exact text, so that renaming a file, editing a
field that is not embedded, or restoring a note asks no server and no large model again. Nothing of the embedded model
is kept: it makes a vector as fast as one is read here.
"""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Sequence
from typing import NamedTuple

import apsw

from co_cli.embedding.space import Vector

LARGEST = 200_000
"""Entries. At 256 dimensions that is 200 MB; a vault of 100,000 notes can be re-embedded from it."""

# the order of this join matters: the other way round reads the whole cache for every text
LOOK = """
select wanted.key, embedding_cache.vector, embedding_cache.used
from json_each(:hashes) as wanted cross join embedding_cache
where embedding_cache.space_id = :space and embedding_cache.hash = unhex(wanted.value)
"""
PUT = """
insert into embedding_cache (space_id, hash, vector, used) values (:space, :hash, :vector, :used)
on conflict (space_id, hash) do update set vector = excluded.vector, used = excluded.used
"""
USE = "update embedding_cache set used = :used where space_id = :space and hash = :hash"
COUNT_USE = "update spaces set hits = hits + :hits, misses = misses + :misses where id = :space"
SIZE = "select count(*), coalesce(sum(length(vector)), 0) from embedding_cache"
RATE = "select coalesce(sum(hits), 0), coalesce(sum(misses), 0) from spaces"
EVICT = """
delete from embedding_cache where rowid in
    (select rowid from embedding_cache order by used limit max(0, (select count(*) from embedding_cache) - :largest))
"""


class CacheState(NamedTuple):
    """How full the cache is, and how often it helped."""

    entries: int
    bytes: int
    hits: int
    misses: int

    @property
    def hit_rate(self) -> float | None:
        asked = self.hits + self.misses
        return self.hits / asked if asked else None


class Cached(NamedTuple):
    """A text that was embedded before; None if it has no meaning in the space."""

    vector: Vector | None


def text_hash(text: str) -> bytes:
    return hashlib.blake2b(text.encode("utf-8", "replace"), digest_size=16).digest()


def look_up(connection: apsw.Connection, space_id: int, hashes: Sequence[bytes]) -> dict[int, Cached]:
    """Place in `hashes` to the cached answer."""
    if not hashes:
        return {}
    wanted = json.dumps([value.hex() for value in hashes])
    rows = connection.execute(LOOK, {"hashes": wanted, "space": space_id})
    return {int(str(place)): Cached(None if vector is None else bytes(vector)) for place, vector, _ in rows}  # pyright: ignore[reportArgumentType]


def remember_vectors(
    connection: apsw.Connection,
    space_id: int,
    fresh: Sequence[tuple[bytes, Vector | None]],
    reused: Sequence[bytes],
) -> None:
    """Keep what was embedded now, mark what was used again, and count both."""
    now = time.time_ns()
    for value, vector in fresh:
        connection.execute(PUT, {"space": space_id, "hash": value, "vector": vector, "used": now})
    for value in reused:
        connection.execute(USE, {"space": space_id, "hash": value, "used": now})
    connection.execute(COUNT_USE, {"space": space_id, "hits": len(reused), "misses": len(fresh)})


def evict(connection: apsw.Connection, largest: int | None = None) -> None:
    """Forget what was used least recently, until no more than `largest` entries are left."""
    largest = LARGEST if largest is None else largest
    if (connection.execute("select max(rowid) from embedding_cache").get or 0) > largest:  # else nothing to count
        connection.execute(EVICT, {"largest": largest})


def cache_state(connection: apsw.Connection) -> CacheState:
    entries, size = connection.execute(SIZE).get
    hits, misses = connection.execute(RATE).get
    return CacheState(entries, size, hits, misses)
