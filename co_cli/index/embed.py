"""Give passages their vectors, through the cache, and replace one vector space by another without a gap.

Every vault has vectors of the static model, its floor: they are made at once, and answer where others are missing.
Another space is built while the active one answers, and replaces it in one transaction when it is complete, also in
the folders that are searched together. A call that is stopped is continued by the next one.

Environments share an index. One that lacks what a space needs, such as the extra `languages`, and whose user chose no
provider, leaves its vectors alone and uses the floor.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Literal

from co_cli.embedding.embedders import LOCAL_SPACES, Embedders, can_use
from co_cli.embedding.space import Embedder, OutOfTimeError, Vector
from co_cli.embedding.static import SPACE as STATIC
from co_cli.ground.errors import EmbeddingError, SettingsError
from co_cli.ground.priority import gives_way, pause
from co_cli.ground.reports import Progress, counting_passages
from co_cli.index.derivation import derive, text_to_embed
from co_cli.index.engine import Engine
from co_cli.index.stored import IndexedFile, ReadyVectors, StoredOrigin, StoredSpace, WaitingPassage, text_hash
from co_cli.sources.origin import Origin, adapter_of

BATCH = 1_000
SLOW_BATCH = 64
"""For slow embedders: a kill costs one batch, and progress is visible."""
HASTY_BATCH = 8
"""For slow embedders when a user is waiting."""
MANY = 1_000
"""After this many new vectors the engine is compacted."""
REST_SECONDS = 30.0
"""How long a failed embedder is not asked again: not every save should wait for a server that is down."""

_warned: set[str] = set()
_failed: dict[str, tuple[float, str]] = {}


@dataclass(frozen=True, slots=True)
class Embedded:
    """What one call did: passages that got vectors, passages that still wait, and the problem if there was one."""

    done: int = 0
    waiting: int = 0
    problem: str | None = None


@dataclass(frozen=True, slots=True)
class OriginEmbedding:
    """One call that embeds waiting passages, and builds the space that the settings choose."""

    engine: Engine
    origin: Origin
    embedders: Embedders
    deadline: float | None = None
    """A time.monotonic() value; None for no limit."""
    progress: Progress | None = None
    together: Sequence[Origin] = ()
    """What is searched with this origin: a new space replaces the active ones when it is complete in all of them."""
    compacts: bool = True
    """Whether the engine is compacted after many passages; a sync does so at its end."""
    models: Literal["all", "loaded", "floor"] = "all"
    """Which may make vectors: every one, those that need not be loaded first, or the floor's alone."""

    def run(self) -> Embedded | None:
        """None if there is nothing to do: then no model is loaded."""
        target = self.embedders.space
        if target is None:
            return None
        with self.engine.reading() as snapshot:
            known = snapshot.origin(self.origin)
            waits = known is not None and snapshot.is_waiting(known.id)
        newest = known and known.floor and (known.building or known.active)
        if known and newest and newest.space.key == target.key and (waits or known.building is None):
            return self._embed_each(known) if waits else None
        with self.engine.writing() as writer:
            origin_id = writer.add_origin(self.origin)
            state = writer.keep_floor(origin_id, STATIC)
            if state.active is None:
                state = writer.begin_space(origin_id, STATIC)
            if not is_guest(state, self.embedders):
                state = writer.begin_space(origin_id, target)
        return self._embed_each(state)

    def _embed_each(self, known: StoredOrigin) -> Embedded:
        """What waits in each space: the floor first, which takes no time, and the active one if it still answers."""
        floor, active, building = known.floor, known.active, known.building
        done = [self._embed(space) for space in (floor, building) if space and can_use(space.space)]
        is_built = building is not None and not done[-1].waiting and self._finish(building)
        if active and floor and active.id != floor.id and not is_built and can_use(active.space):
            done.append(self._embed(active))
        problem = next((result.problem for result in reversed(done) if result.problem), None)
        return Embedded(sum(result.done for result in done), sum(result.waiting for result in done), problem)

    def _finish(self, building: StoredSpace) -> bool:
        """Let the space that is built answer, if it is complete."""
        with self.engine.writing() as writer:
            found = {stored.id for origin in (self.origin, *self.together) if (stored := writer.origin(origin))}
            return writer.finish_space(found, building)

    def _embed(self, space: StoredSpace) -> Embedded:
        """Embed what waits in one space. A failing embedder stops only its own space."""
        key = space.space.key
        quick = _is_fast(space) or (self.models == "loaded" and self.embedders.is_loaded(space.space))
        if self.models != "all" and not quick:
            return Embedded(waiting=1)
        failed_at, problem = _failed.get(key, (0.0, ""))
        if self.deadline is not None and failed_at and time.monotonic() - failed_at < REST_SECONDS:
            return Embedded(waiting=1, problem=problem)
        try:
            embedder = self.embedders.of(space.space)
            if embedder is None:
                return Embedded(problem="its embedder is gone")
            result = self._embed_batches(embedder, space, self.deadline)
        except SettingsError as error:
            result = Embedded(waiting=1, problem=str(error))
        if result.problem is None:
            _failed.pop(key, None)
            return result
        _failed[key] = time.monotonic(), result.problem
        if key not in _warned:  # once per process, not per note
            from co_cli.notes.logbook import logger  # imports logging, which a search does not need

            _warned.add(key)
            logger("embedding").warning("notes wait for their vectors in %s: %s", key, result.problem)
        return result

    def _embed_batches(self, embedder: Embedder, space: StoredSpace, deadline: float | None) -> Embedded:
        size = BATCH if _is_fast(space) else SLOW_BATCH if deadline is None else HASTY_BATCH
        done, problem = 0, None
        left, waiting = self._waiting(space, size)
        total = left
        while waiting and done < total and (deadline is None or time.monotonic() < deadline):
            known = [passage for passage in waiting if space.space.knows(passage.language)]
            batch = {text_hash(passage.text): passage.text for passage in known}
            with self.engine.reading() as snapshot:
                cached = snapshot.cached(space.space, list(batch))
            missing = {key: text for key, text in batch.items() if key not in cached}
            seconds = None if deadline is None else max(0.0, deadline - time.monotonic())
            made: dict[bytes, Vector | None] = {}
            try:
                vectors = _make(embedder, list(missing.values()), seconds) if missing else []
                made = dict(zip(missing, vectors, strict=True))
            except EmbeddingError as error:
                # one that answered before is only slow: the rest waits for the next call
                problem = None if done and isinstance(error, OutOfTimeError) else str(error)
            vectors_of = {**cached, **made}
            ready = [
                (passage, vectors_of[text_hash(passage.text)])
                for passage in known
                if text_hash(passage.text) in vectors_of
            ]
            ready += [(passage, None) for passage in waiting if not space.space.knows(passage.language)]
            with self.engine.writing() as writer:
                stored = writer.put_vectors(writer.add_origin(self.origin), space, ready)
                if stored or made:
                    writer.cache(space.space, made, [digest for digest in cached if digest not in made])
            done += stored
            before = left
            left, waiting = self._waiting(space, size)
            if problem or left >= before:  # else another process may have stored some
                break
            if self.progress:
                counting_passages(self.progress)(done, total)
        if done >= MANY and self.compacts:
            self.engine.compact()
        return Embedded(done, left, problem)

    def _waiting(self, space: StoredSpace, limit: int = 0) -> tuple[int, list[WaitingPassage]]:
        with self.engine.reading() as snapshot:
            stored = snapshot.origin(self.origin)
            return snapshot.waiting(stored.id, space, limit) if stored else (0, [])


def is_guest(known: StoredOrigin, embedders: Embedders) -> bool:
    """Whether the vault has vectors of others, which can neither be used here nor were given up by a choice."""
    return not embedders.chosen and not all(can_use(space.space) for space in known.spaces)


def embed_ahead(origin: Origin, embedders: Embedders, path: str, data: bytes) -> list[ReadyVectors]:
    """The vectors of a note that will be written, so that they are stored with it.

    They are those of the floor, and of the chosen space if its model is loaded already and there are few: nobody waits
    for a model or a server to save a note. Any path in the folder of its kind gives the same ones.
    """
    from co_cli.sources.passages import cut_note  # parsers, which a search does without

    spaces = {STATIC.key: STATIC} if embedders.space else {}
    if embedders.space and embedders.space.provider in LOCAL_SPACES and embedders.is_loaded(embedders.space):
        spaces[embedders.space.key] = embedders.space
    note = adapter_of(origin).read(origin, path, data)
    derived = derive(IndexedFile(path, "", 0.0, note, cut_note(note)[0]), note)
    found: list[ReadyVectors] = []
    for space in spaces.values():
        texts = [text_to_embed(derived.columns, row) for row, _ in derived.passages if space.knows(row["language"])]
        if space is not STATIC and len(texts) > HASTY_BATCH:
            continue  # made in the background, where no search has to wait behind them
        with suppress(EmbeddingError, SettingsError):  # whoever embeds what waits says why
            embedder = embedders.of(space)
            vectors = embedder.embed(texts, "document") if embedder and texts else []
            found.append(ReadyVectors(space, dict(zip(map(text_hash, texts), vectors, strict=True))))
    return found


def embed_text(engine: Engine, embedder: Embedder, text: str) -> Vector | None:
    """The vector of a text, from the cache if it was embedded before. The first call returns what later ones will."""
    key = text_hash(text)
    with engine.reading() as snapshot:
        known = snapshot.cached(embedder.space, [key])
    fresh = {} if known else {key: embedder.embed([text], "document")[0]}
    with engine.writing() as writer:
        writer.cache(embedder.space, fresh, list(known))
        return (known or writer.cached(embedder.space, [key]))[key]


def _make(embedder: Embedder, texts: list[str], seconds: float | None) -> list[Vector | None]:
    if not gives_way() or embedder.space.provider not in LOCAL_SPACES:
        return embedder.embed(texts, "document", seconds)
    made: list[Vector | None] = []
    for text in texts:
        pause()
        made += embedder.embed([text], "document")
    return made


def _is_fast(space: StoredSpace) -> bool:
    return space.space.provider == STATIC.provider
