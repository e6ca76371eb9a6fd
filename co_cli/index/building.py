"""Bring a vault's vectors to where the settings want them, without ever being without vectors on the way.

A vault without any gets the embedded static space at once; another space is built behind the active one and swapped in
when it is complete. An embedder that fails stops only its own space.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable

import apsw

from co_cli.embedding.embedders import Embedders
from co_cli.embedding.space import VectorSpace
from co_cli.embedding.static_file import SPACE as STATIC
from co_cli.errors import SettingsError
from co_cli.index.meaning import Embedded, begin_space, embed_first, embed_waiting, swap_space
from co_cli.index.vault_database import VaultDatabase
from co_cli.index.vectors import SpaceState, StoredSpace, space_state
from co_cli.logbook import logger

REST_SECONDS = 30.0
"""After a failure an embedder is left alone for so long: a save must not wait for a server that is down each time."""

log = logger("embedding")
_warned: set[str] = set()
_failed_at: dict[str, tuple[float, str]] = {}


def embed_vault(
    database: VaultDatabase,
    embedders: Embedders,
    state: SpaceState,
    progress: Callable[[int, int], None] | None,
    seconds: float | None,
) -> Embedded:
    deadline = None if seconds is None else time.monotonic() + seconds
    with_vec0 = database.database.extension is not None
    target = embedders.space

    def work(space: StoredSpace) -> Embedded:
        return _embed(database, embedders, space, progress, None if _is_fast(space) else deadline)

    active = state.active or begin_space(database, STATIC, with_vec0).active
    if active is None or target is None:
        return Embedded()
    if active.space.key == target.key:
        if state.building:
            begin_space(database, target, with_vec0)  # the settings went back: give the half-built one up
        return work(active)
    done = work(active) if _is_fast(active) else Embedded()
    building = begin_space(database, target, with_vec0).building
    if building is None:  # another process was quicker
        return done
    built = work(building)
    if not built.waiting and swap_space(database, building):
        return Embedded(done.done + built.done)
    if not _is_fast(active):
        done = work(active)  # it goes on answering, so new notes belong there too
    return Embedded(done.done + built.done, done.waiting + built.waiting, built.problem or done.problem)


def begin_with(database: VaultDatabase, embedders: Embedders, connection: apsw.Connection, vault: int) -> None:
    """Give the first note of a vault its vectors, in the transaction that brings it. Others get theirs after it."""
    if embedders.space is None or space_state(connection, vault).active is not None:
        return
    with contextlib.suppress(SettingsError):  # who embeds what waits says what is wrong
        embedder = embedders.of(STATIC)
        if embedder is None:
            return
        embed_first(connection, vault, STATIC, embedder, database.database.extension is not None)


def _is_fast(space: StoredSpace) -> bool:
    return space.space.provider == STATIC.provider


def _embed(
    database: VaultDatabase,
    embedders: Embedders,
    space: StoredSpace,
    progress: Callable[[int, int], None] | None,
    deadline: float | None,
) -> Embedded:
    embedder = embedders.of(space.space)
    if embedder is None:
        return Embedded(problem="its embedder is gone")
    failed_at, problem = _failed_at.get(space.space.key, (0.0, ""))
    if deadline is not None and failed_at and time.monotonic() - failed_at < REST_SECONDS:
        return Embedded(waiting=1, problem=problem)
    try:
        result = embed_waiting(database, space, embedder, progress, deadline)
    except SettingsError as error:
        result = Embedded(waiting=1, problem=str(error))
    if result.problem:
        _failed_at[space.space.key] = time.monotonic(), _warn(space.space, result.problem)
    else:
        _failed_at.pop(space.space.key, None)
    return result


def _warn(space: VectorSpace, problem: str) -> str:
    """Say it once a process, not once a note."""
    if space.key not in _warned:
        _warned.add(space.key)
        log.warning("notes wait for their vectors in %s: %s", space.key, problem)
    return problem
