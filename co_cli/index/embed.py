"""Give passages their vectors, through the cache, and replace one vector space by another without a gap.

A vault without vectors gets those of the embedded model at once. Another space is built while the active one answers,
and replaces it in one transaction when it is complete. A call that is stopped is continued by the next one.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Sequence
from typing import NamedTuple

from co_cli.embedding.embedders import Embedders
from co_cli.embedding.space import Embedder, OutOfTimeError, Vector
from co_cli.embedding.static import SPACE as STATIC
from co_cli.errors import EmbeddingError, SettingsError
from co_cli.index.engine import Engine, StoredSpace, WaitingPassage, text_hash
from co_cli.sources.origin import Origin

BATCH = 1_000
SLOW_BATCH = 64
"""For slow embedders: a kill costs one batch, and progress is visible."""
HASTY_BATCH = 8
"""For slow embedders when a user is waiting."""
REST_SECONDS = 30.0
"""How long a failed embedder is not asked again: not every save should wait for a server that is down."""

Progress = Callable[[int, int], None]

_warned: set[str] = set()
_failed: dict[str, tuple[float, str]] = {}


class Embedded(NamedTuple):
    """What one call did: passages that got vectors, passages that still wait, and the problem if there was one."""

    done: int = 0
    waiting: int = 0
    problem: str | None = None


class EmbeddingDeadline(NamedTuple):
    """How long a call may take, and what to call with its progress."""

    at: float | None = None
    """A time.monotonic() value; None for no limit."""
    progress: Progress | None = None


def embed_vault(engine: Engine, origin: Origin, embedders: Embedders, deadline: EmbeddingDeadline) -> Embedded:
    """Embed waiting passages, and build the space that the settings choose."""
    target = embedders.space
    if target is None:
        return Embedded()
    with engine.writing() as writer:
        vault = writer.add_vault(origin)
        known = writer.vault(origin)
        if known is None or known.active is None:
            writer.begin_space(vault, STATIC)
        stored = writer.begin_space(vault, target)
    active, building = stored.active, stored.building
    if active is None:
        return Embedded()
    if building is None:
        return _embed(engine, origin, embedders, active, deadline)
    done = _embed(engine, origin, embedders, active, deadline) if _is_fast(active) else Embedded()
    built = _embed(engine, origin, embedders, building, deadline)
    if not built.waiting:
        return Embedded(done.done + built.done)
    if not _is_fast(active):
        done = _embed(engine, origin, embedders, active, deadline)  # it still answers, so new notes belong there too
    return Embedded(done.done + built.done, done.waiting + built.waiting, built.problem or done.problem)


def embed_text(engine: Engine, embedder: Embedder, text: str) -> Vector | None:
    """The vector of a text, from the cache if it was embedded before. The first call returns what later ones will."""
    key = text_hash(text)
    with engine.reading() as reader:
        known = reader.cached(embedder.space, [key])
    fresh = {} if known else {key: embedder.embed([text], "document")[0]}
    with engine.writing() as writer:
        writer.cache(embedder.space, fresh, list(known))
        return (known or writer.cached(embedder.space, [key]))[key]


def _embed(
    engine: Engine, origin: Origin, embedders: Embedders, space: StoredSpace, deadline: EmbeddingDeadline
) -> Embedded:
    """Embed what waits in one space. A failing embedder stops only its own space."""
    if _is_fast(space):
        deadline = EmbeddingDeadline(None, deadline.progress)
    key = space.space.key
    failed_at, problem = _failed.get(key, (0.0, ""))
    if deadline.at is not None and failed_at and time.monotonic() - failed_at < REST_SECONDS:
        return Embedded(waiting=1, problem=problem)
    try:
        embedder = embedders.of(space.space)
        if embedder is None:
            return Embedded(problem="its embedder is gone")
        result = _embed_batches(engine, origin, embedder, space, deadline)
    except SettingsError as error:
        result = Embedded(waiting=1, problem=str(error))
    if result.problem is None:
        _failed.pop(key, None)
        return result
    _failed[key] = time.monotonic(), result.problem
    if key not in _warned:  # once per process, not per note
        from co_cli.logbook import logger  # imports logging, which a search does not need

        _warned.add(key)
        logger("embedding").warning("notes wait for their vectors in %s: %s", key, result.problem)
    return result


def _embed_batches(
    engine: Engine, origin: Origin, embedder: Embedder, space: StoredSpace, deadline: EmbeddingDeadline
) -> Embedded:
    size = BATCH if _is_fast(space) else SLOW_BATCH if deadline.at is None else HASTY_BATCH
    done, problem = 0, None
    total = _waiting(engine, origin, space)[0]
    while done < total and (deadline.at is None or time.monotonic() < deadline.at):
        batch = _waiting(engine, origin, space, size)[1]
        if not batch:
            break
        with engine.reading() as reader:
            cached = reader.cached(space.space, [text_hash(passage.text) for passage in batch])
        made: dict[bytes, Vector | None] = {}
        try:
            made = _embed_missing(embedder, batch, cached.keys(), deadline)
        except EmbeddingError as error:
            # one that answered before is only slow: the rest waits for the next call
            problem = None if done and isinstance(error, OutOfTimeError) else str(error)
        known = {**cached, **made}
        ready = [(one, known[text_hash(one.text)]) for one in batch if text_hash(one.text) in known]
        with engine.writing() as writer:
            stored = writer.put_vectors(writer.add_vault(origin), space, ready)
            if stored or made:
                writer.cache(space.space, made, [one for one in cached if one not in made])
        done += stored
        if problem or not stored:
            break
        if deadline.progress:
            deadline.progress(done, total)
    return Embedded(done, _waiting(engine, origin, space)[0], problem)


def _waiting(engine: Engine, origin: Origin, space: StoredSpace, limit: int = 0) -> tuple[int, list[WaitingPassage]]:
    with engine.reading() as reader:
        vault = reader.vault(origin)
        return reader.waiting(vault.id, space, limit) if vault else (0, [])


def _embed_missing(
    embedder: Embedder, batch: Sequence[WaitingPassage], cached: Collection[bytes], deadline: EmbeddingDeadline
) -> dict[bytes, Vector | None]:
    texts = {text_hash(one.text): one.text for one in batch}
    missing = {key: text for key, text in texts.items() if key not in cached}
    if not missing:
        return {}
    seconds = None if deadline.at is None else max(0.0, deadline.at - time.monotonic())
    return dict(zip(missing, embedder.embed(list(missing.values()), "document", seconds), strict=True))


def _is_fast(space: StoredSpace) -> bool:
    return space.space.provider == STATIC.provider
