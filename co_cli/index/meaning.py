"""Give passages their vectors: embed those that wait, through the cache, and swap a finished space in.

Words are indexed first and vectors follow, a batch a transaction: whatever stops this, the next call goes on where it
stopped. While another space is built, the old one keeps answering.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable
from typing import Any, NamedTuple, cast

import apsw

from co_cli.embedding.patience import OutOfTimeError, embed_within
from co_cli.embedding.space import Embedder, Vector, VectorSpace
from co_cli.errors import EmbeddingError
from co_cli.index.cache import evict, look_up, remember_vectors, text_hash
from co_cli.index.connection import FileConnection
from co_cli.index.lexicon import LEARN, new_words
from co_cli.index.vault_database import VaultDatabase
from co_cli.index.vectors import (
    WAIT_NO_MORE,
    SpaceState,
    StoredSpace,
    add_space,
    drop_space,
    ids_text,
    open_space,
    part_of,
    put_vectors,
    space_state,
    touch_vectors,
)

BATCH = 1_000
SLOW_BATCH = 64
"""For embedders that take long: a kill costs one batch, and progress moves."""
HASTY_BATCH = 8
"""For those when somebody waits: what is not answered in time is asked for again."""
FIRST = 8
"""Passages that get their vectors while others wait for the transaction: a memory has one."""

Known = dict[int, set[str]]
"""Words that a search.db has, by its inode: another one has to learn them."""

SET_ACTIVE = "update vaults set space_id = :space, building_id = null where id = :vault"
SET_BUILDING = "update vaults set building_id = :space where id = :vault"
LET_ALL_WAIT = """
insert into waiting (vault_id, space_id, passage_id)
select :vault, :space, passages.id from passages join docs on docs.id = passages.doc_id where docs.vault_id = :vault
"""
FORGET_CACHE = "delete from embedding_cache where space_id = :space"
FORGET_WAITING = "delete from waiting where vault_id = :vault and space_id = :space"
COUNT_WAITING = "select count(*) from waiting where vault_id = :vault and space_id = :space"
WAITING = """
select waiting.passage_id, docs.path, docs.hash, passages.first_line, docs.source,
    passages.title, passages.heading, passages.body, passages.tags, passages.aliases,
    passages.context
from waiting join passages on passages.id = waiting.passage_id join docs on docs.id = passages.doc_id
where waiting.vault_id = :vault and waiting.space_id = :space
order by waiting.passage_id limit :limit
"""
STILL_WAITING = """
select waiting.passage_id, docs.path, docs.hash, passages.first_line
from json_each(:ids) as wanted
cross join waiting on
    waiting.vault_id = :vault and waiting.space_id = :space and waiting.passage_id = wanted.value
cross join passages on passages.id = waiting.passage_id cross join docs on docs.id = passages.doc_id
"""


class Embedded(NamedTuple):
    """What one call did: how many passages got their vectors, how many still wait, and what was in the way."""

    done: int = 0
    waiting: int = 0
    problem: str | None = None


def begin_space(database: VaultDatabase, space: VectorSpace, with_vec0: bool) -> SpaceState:
    """Make this the vault's space: at once if it has none, else as the one that is being built."""
    with database.writing() as (connection, vault):
        stored = add_space(connection, space, with_vec0)
        state = space_state(connection, vault)
        known = [found.id for found in (state.active, state.building) if found]
        if state.building and state.building.id != stored.id:
            _abandon(connection, vault, state.building.id)
        if stored.id not in known:
            connection.execute(LET_ALL_WAIT, {"vault": vault, "space": stored.id})
        if state.active is None:
            connection.execute(SET_ACTIVE, {"vault": vault, "space": stored.id})
        else:
            building = None if state.active.id == stored.id else stored.id
            connection.execute(SET_BUILDING, {"vault": vault, "space": building})
        return space_state(connection, vault)


def embed_waiting(
    database: VaultDatabase,
    space: StoredSpace,
    embedder: Embedder,
    progress: Callable[[int, int], None] | None = None,
    deadline: float | None = None,
) -> Embedded:
    """Embed what waits in this space. Stops early at the deadline (monotonic), or when the embedder cannot go on."""
    done = 0
    known: Known = {}
    total = _count(database, space)
    size = BATCH if space.space.provider == "static" else SLOW_BATCH if deadline is None else HASTY_BATCH
    while done < total and (deadline is None or time.monotonic() < deadline):
        with database.reading() as (connection, vault):
            batch = Batch(connection, vault, space, size)
        if not batch.rows:
            break
        problem: str | None = None
        try:
            batch.embed(embedder, _patience(space, deadline))
        except EmbeddingError as error:
            # one that answered before is only slow: what is left waits for the next call
            problem = None if done and isinstance(error, OutOfTimeError) else str(error)
        if not store(database, batch, known):
            break
        done += len(batch.vectors)
        if problem:
            return Embedded(done, _count(database, space), problem)
        if progress:
            progress(done, total)
    return Embedded(done, _count(database, space))


def store(database: VaultDatabase, batch: Batch, known: Known) -> bool:
    """Put what was embedded. False if another search.db was put in place of the one that was read."""
    with database.reading() as (connection, _):
        batch.read_words(connection, known.setdefault(_inode(connection), set()))
    with database.writing() as (connection, vault):
        if not _is_stored(connection, batch.space):
            return False
        batch.put(connection, vault)
    return True


def embed_first(connection: apsw.Connection, vault: int, space: VectorSpace, embedder: Embedder, vec0: bool) -> None:
    """Begin the space of a vault that has none with the vectors of its first note, in the transaction that brings it.

    So there is no moment at which somebody may search the note and the vault has no vector. It is for a model in this
    process: who waits for the transaction must not wait for a server.
    """
    stored = add_space(connection, space, vec0)
    connection.execute(LET_ALL_WAIT, {"vault": vault, "space": stored.id})
    connection.execute(SET_ACTIVE, {"vault": vault, "space": stored.id})
    batch = Batch(connection, vault, stored, FIRST)
    with contextlib.suppress(EmbeddingError):
        batch.embed(embedder, None)
    batch.put(connection, vault)


class Batch:
    """Some of the passages that wait in a space: read in one transaction, embedded, put in another."""

    def __init__(self, connection: apsw.Connection, vault: int, space: StoredSpace, size: int) -> None:
        self.space = space
        self.rows = connection.execute(WAITING, {"vault": vault, "space": space.id, "limit": size}).fetchall()
        self.texts = [embedding_text(*map(str, row[5:])) for row in self.rows]
        self._hashes = [text_hash(text) for text in self.texts] if space.cached else []
        cached = look_up(connection, space.id, self._hashes)
        self._cached = list(cached)
        self._missing = [place for place in range(len(self.rows)) if place not in cached]
        self.vectors: dict[int, Vector | None] = {place: found.vector for place, found in cached.items()}
        """By the place of the row."""
        self._new_words: list[dict[str, Any]] = []
        self._new_in = 0

    def embed(self, embedder: Embedder, seconds: float | None) -> None:
        """Make the vectors that the cache did not have."""
        if self._missing:
            made = embed_within(embedder, [self.texts[place] for place in self._missing], seconds)
            self.vectors.update(zip(self._missing, made, strict=True))

    def read_words(self, connection: apsw.Connection, known: set[str]) -> None:
        """See which of its words search.db does not know, and code them: before `put`, for nobody can write meanwhile.

        `known` are words that are known to be there; those of these passages are added.
        """
        self._new_in, self._new_words = _inode(connection), []
        with contextlib.suppress(EmbeddingError):  # the embedded model is damaged: what it would add is left out
            self._new_words = new_words(connection, self.texts, known)

    def put(self, connection: apsw.Connection, vault: int) -> None:
        """Store the vectors of those that still wait, and what comes with them."""
        if self._new_in != _inode(connection):  # nobody looked in this search.db
            self.read_words(connection, set())
        ids = ids_text([int(str(row[0])) for row in self.rows])
        still = set(connection.execute(STILL_WAITING, {"vault": vault, "space": self.space.id, "ids": ids}))
        placed: list[tuple[int, str, Vector]] = []
        served: list[int] = []
        for place, vector in self.vectors.items():
            # forgotten or embedded by another process meanwhile; or a new passage has the number of an old one
            if self.rows[place][:4] not in still:
                continue
            passage, source = int(str(self.rows[place][0])), str(self.rows[place][4])
            if vector is not None:
                placed.append((passage, part_of(vault, source), vector))
            served.append(passage)
        connection.execute(WAIT_NO_MORE, {"vault": vault, "space": self.space.id, "ids": ids_text(served)})
        put_vectors(connection, self.space, placed)
        if self.space.cached:
            fresh = [(self._hashes[place], self.vectors[place]) for place in self._missing if place in self.vectors]
            remember_vectors(connection, self.space.id, fresh, [self._hashes[place] for place in self._cached])
            evict(connection)
        connection.executemany(LEARN, self._new_words)
        touch_vectors(connection, vault)


def embed_again(database: VaultDatabase, space: StoredSpace, fresh: bool) -> None:
    """Let every passage wait for another vector in this space; the old ones answer until then. `fresh`: no cache."""
    with database.writing() as (connection, vault):
        if fresh:
            connection.execute(FORGET_CACHE, {"space": space.id})
        connection.execute(FORGET_WAITING, {"vault": vault, "space": space.id})
        connection.execute(LET_ALL_WAIT, {"vault": vault, "space": space.id})


def swap_space(database: VaultDatabase, space: StoredSpace) -> bool:
    """Let a complete space take over, in one transaction; the old one's vectors go.

    False if something still waits, or if another process gave this space up meanwhile.
    """
    with database.writing() as (connection, vault):
        state = space_state(connection, vault)
        waits = connection.execute(COUNT_WAITING, {"vault": vault, "space": space.id}).get
        if waits or state.building is None or state.building.space.key != space.space.key:
            return False
        connection.execute(SET_ACTIVE, {"vault": vault, "space": state.building.id})
        if state.active:
            _abandon(connection, vault, state.active.id)
    return True


def embedding_text(title: str, heading: str, body: str, tags: str, aliases: str, context: str = "") -> str:
    """What is embedded of a passage: its words and what its note says about itself. The first line is the title.

    Of the context no more than the passage is long, and its end rather than its beginning: it must not outweigh it.
    """
    return "\n".join(part for part in (title, heading, body, tags, aliases, context[-len(body) :]) if part)


def _abandon(connection: apsw.Connection, vault: int, space_id: int) -> None:
    connection.execute(FORGET_WAITING, {"vault": vault, "space": space_id})
    drop_space(connection, vault, space_id)


def _patience(space: StoredSpace, deadline: float | None) -> float | None:
    """Seconds that a server has for its answer; a model in this process is not left alone with its work."""
    return None if deadline is None or space.space.provider == "minilm" else deadline - time.monotonic()


def _inode(connection: apsw.Connection) -> int:
    return cast("FileConnection", connection).inode


def _is_stored(connection: apsw.Connection, space: StoredSpace) -> bool:
    stored = open_space(connection, space.id)
    return stored is not None and stored.space.key == space.space.key


def _count(database: VaultDatabase, space: StoredSpace) -> int:
    with database.reading() as (connection, vault):
        return int(connection.execute(COUNT_WAITING, {"vault": vault, "space": space.id}).get)
