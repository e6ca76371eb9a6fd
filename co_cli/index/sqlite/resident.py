"""Vectors kept in memory by a long-lived process and scanned with numpy: ten times as fast as vec0.

Each partition is read once, and again when the vault's vectors have changed, which its stamp in search.db tells.
Reading all takes longer than a few scans of vec0, so a process that searches once leaves them where they are.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import apsw

from co_cli.index.sqlite.connection import fetch
from co_cli.index.stored import StoredSpace
from co_cli.index.tables.spaces import vectors_table

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

FEW_SCANS = 3
"""Scans of a process for which vec0 is faster."""
EVERY = "select rowid, embedding from {table} where part = :part"


class Matrix(NamedTuple):
    """The vectors of one partition, as of one stamp."""

    stamp: int
    ids: NDArray[np.int64]
    vectors: NDArray[np.float32]


class ResidentVectors:
    """Partitions by space and part. Threads may share it: what they read is only ever replaced."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._scans = 0
        self._held: dict[tuple[int, str], Matrix] = {}
        self._changed: dict[tuple[int, str], int] = {}
        """The stamps with which changed partitions were last asked for."""

    def wanted(self) -> bool:
        """Whether this process scans so often that it keeps vectors in memory."""
        self._scans += 1
        return self._scans > FEW_SCANS

    def worth_reading(self, space: StoredSpace, parts: Sequence[tuple[str, int]]) -> bool:
        """Whether these are held, or did not change between two searches: reading all takes longer than a scan."""
        worth = True
        with self._lock:
            for part, stamp in parts:
                held = self._held.get((space.id, part))
                if held is not None and held.stamp != stamp:
                    worth = worth and self._changed.get((space.id, part)) == stamp
                    self._changed[space.id, part] = stamp
        return worth

    def nearest(
        self,
        connection: apsw.Connection,
        space: StoredSpace,
        parts: Sequence[tuple[str, int]],
        query: Sequence[float],
        limit: int,
        allowed: set[int] | None,
    ) -> list[tuple[int, float]]:
        """The nearest passages of these partitions (each with its stamp); only those allowed, if given."""
        import numpy as np  # 150 ms, which a single search by words or static vectors does not pay

        wanted = np.array(query, "<f4")
        found: list[tuple[int, float]] = []
        for part, stamp in parts:
            matrix = self._matrix(connection, space, part, stamp)
            ids, vectors = matrix.ids, matrix.vectors
            if allowed is not None:
                chosen = np.isin(ids, np.fromiter(allowed, np.int64, len(allowed)))
                ids, vectors = ids[chosen], vectors[chosen]
            # not `@`: that starts a thread for each core, ten times as slow where cores are busy
            scores = np.einsum("ij,j->i", vectors, wanted)
            places = np.argpartition(scores, -limit)[-limit:] if len(scores) > limit else np.arange(len(scores))
            found += zip(ids[places].tolist(), scores[places].tolist(), strict=True)
        return sorted(found, key=lambda pair: (-pair[1], pair[0]))[:limit]

    def _matrix(self, connection: apsw.Connection, space: StoredSpace, part: str, stamp: int) -> Matrix:
        with self._lock:
            held = self._held.get((space.id, part))
        if held is not None and held.stamp == stamp:
            return held
        matrix = _read(connection, space, part, stamp)
        with self._lock:
            for older in [key for key in self._held if key[1] == part]:
                del self._held[older]  # of a space that no longer answers
            self._held[space.id, part] = matrix
        return matrix


def _read(connection: apsw.Connection, space: StoredSpace, part: str, stamp: int) -> Matrix:
    import numpy as np

    rows: list[Any] = fetch(connection, EVERY.format(table=vectors_table(space.id)), {"part": part})
    ids = np.fromiter((row[0] for row in rows), np.int64, len(rows))
    stored = b"".join(row[1] for row in rows)
    if not space.packed:
        return Matrix(stamp, ids, np.frombuffer(stored, "<f4").reshape(-1, space.space.dimensions))
    vectors = np.frombuffer(stored, np.int8).reshape(-1, space.space.dimensions).astype("<f4")
    lengths = np.sqrt(np.einsum("ij,ij->i", vectors, vectors))
    vectors /= np.where(lengths > 0, lengths, 1)[:, None]
    return Matrix(stamp, ids, vectors)
