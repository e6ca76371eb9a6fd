"""Vectors of a space kept in memory by a long-lived process and scanned with numpy: at the speed of memory.

Each partition is read once, and again when the vault's vectors have changed, which its stamp in search.db tells.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import apsw
import numpy as np

from co_cli.embedding.space import Vector
from co_cli.index.vectors import EVERY, Neighbour, StoredSpace

if TYPE_CHECKING:
    from numpy.typing import NDArray


PATIENCE = 3
"""Searches that find the same change before it is read: to read every vector takes as long as many scans of vec0."""


class Matrix(NamedTuple):
    """The vectors of one partition, as of one stamp."""

    stamp: int
    ids: NDArray[np.int64]
    vectors: NDArray[np.float32]


class ResidentVectors:
    """Partitions by (space, part). Threads may share it: what they read is never changed, only replaced."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._held: dict[tuple[int, str], Matrix] = {}
        self._asked: dict[tuple[int, str], tuple[int, int]] = {}
        """Of what is held no longer: its stamp now, and how often it was asked for since."""

    def worth_reading(self, space: StoredSpace, parts: Sequence[tuple[str, int]]) -> bool:
        """Are these held, or to be read? Not again and again while somebody writes: then vec0 had better scan."""
        with self._lock:
            changed = [
                (space.id, part, stamp)
                for part, stamp in parts
                if (held := self._held.get((space.id, part))) is not None and held.stamp != stamp
            ]
            worth = True
            for number, part, stamp in changed:
                before, times = self._asked.get((number, part), (stamp, 0))
                times = times + 1 if before == stamp else 1
                self._asked[number, part] = stamp, times
                worth = worth and times > PATIENCE
            return worth

    def nearest(
        self,
        connection: apsw.Connection,
        space: StoredSpace,
        parts: Sequence[tuple[str, int]],
        query: Vector,
        limit: int,
        allowed: set[int] | None,
    ) -> list[Neighbour]:
        """The nearest passages of these partitions (each with its stamp), best first; only those allowed, if given."""
        wanted = np.frombuffer(query, dtype="<f4")
        found: list[Neighbour] = []
        for part, stamp in parts:
            matrix = self._matrix(connection, space, part, stamp)
            ids, vectors = matrix.ids, matrix.vectors
            if allowed is not None:
                chosen = np.isin(ids, np.fromiter(allowed, np.int64, len(allowed)))
                ids, vectors = ids[chosen], vectors[chosen]
            scores = vectors @ wanted
            top = np.argpartition(scores, -limit)[-limit:] if len(scores) > limit else np.arange(len(scores))
            found += [Neighbour(int(ids[place]), float(scores[place])) for place in top]
        return sorted(found, key=lambda neighbour: (-neighbour.cosine, neighbour.passage_id))[:limit]

    def _matrix(self, connection: apsw.Connection, space: StoredSpace, part: str, stamp: int) -> Matrix:
        with self._lock:
            held = self._held.get((space.id, part))
        if held is not None and held.stamp == stamp:
            return held
        rows = connection.execute(EVERY.format(table=space.table), {"part": part}).fetchall()
        ids = np.fromiter((int(str(row[0])) for row in rows), np.int64, len(rows))
        joined = b"".join(bytes(row[1]) for row in rows)  # pyright: ignore[reportArgumentType]
        vectors = np.frombuffer(joined, dtype="<f4").reshape(len(rows), space.space.dimensions)
        matrix = Matrix(stamp, ids, vectors)
        with self._lock:
            for older in [key for key in self._held if key[1] == part]:
                del self._held[older]  # of a space that does not answer any more
            self._held[space.id, part] = matrix
            self._asked.pop((space.id, part), None)
        return matrix
