"""Vectors of a space kept in memory by a long-lived process and scanned with numpy: at the speed of memory.

Each partition is read once, and again when the vault's vectors have changed, which its stamp in search.db tells.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, NamedTuple, cast

import apsw
import numpy as np

from co_cli.embedding.space import Vector
from co_cli.index.connection import fetch
from co_cli.index.packing import finest, unpack
from co_cli.index.vectors import EVERY, Neighbour, StoredSpace, is_vec0

if TYPE_CHECKING:
    from numpy.typing import NDArray

VALID = "select validity from {table}_chunks where partition00 = :part order by chunk_id"
CHUNKS = """
select chunks.rowids, vectors.vectors
from {table}_chunks as chunks cross join {table}_vector_chunks00 as vectors on vectors.rowid = chunks.chunk_id
where chunks.partition00 = :part order by chunks.chunk_id
"""


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
        wanted = np.array(unpack(finest(query)), "<f4") if space.packed else np.frombuffer(query, dtype="<f4")
        found: list[Neighbour] = []
        for part, stamp in parts:
            matrix = self._matrix(connection, space, part, stamp)
            ids, vectors = matrix.ids, matrix.vectors
            if allowed is not None:
                chosen = np.isin(ids, np.fromiter(allowed, np.int64, len(allowed)))
                ids, vectors = ids[chosen], vectors[chosen]
            places, cosines = best_of(vectors, wanted, limit)
            found += map(Neighbour, ids[places].tolist(), cosines.tolist())
        return sorted(found, key=lambda neighbour: (-neighbour.cosine, neighbour.passage_id))[:limit]

    def _matrix(self, connection: apsw.Connection, space: StoredSpace, part: str, stamp: int) -> Matrix:
        with self._lock:
            held = self._held.get((space.id, part))
        if held is not None and held.stamp == stamp:
            return held
        matrix = Matrix(stamp, *_read(connection, space, part))
        with self._lock:
            for older in [key for key in self._held if key[1] == part]:
                del self._held[older]  # of a space that does not answer any more
            self._held[space.id, part] = matrix
            self._asked.pop((space.id, part), None)
        return matrix


def _read(connection: apsw.Connection, space: StoredSpace, part: str) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
    """The passages of a partition, and their vectors."""
    if is_vec0(connection, space.table):
        with suppress(apsw.SQLError, ValueError):  # a vec0 that keeps its chunks in another way
            return _read_chunks(connection, space, part)
    rows = fetch(connection, EVERY.format(table=space.table), {"part": part})
    ids = np.fromiter((row[0] for row in rows), np.int64, len(rows))
    return ids, _numbers(b"".join(row[1] for row in rows), space)


def _numbers(stored: bytes, space: StoredSpace) -> NDArray[np.float32]:
    """Stored vectors, one behind the other, as rows of unit length."""
    if not space.packed:
        return np.frombuffer(stored, "<f4").reshape(-1, space.space.dimensions)
    rows = np.frombuffer(stored, np.int8).reshape(-1, space.space.dimensions).astype("<f4")
    lengths = np.sqrt(np.einsum("ij,ij->i", rows, rows))
    rows /= np.where(lengths > 0, lengths, 1)[:, None]  # what vec0 has set aside and nobody uses has no length
    return rows


def _read_chunks(
    connection: apsw.Connection, space: StoredSpace, part: str
) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
    """As vec0 has them on disk: a tenth of the time that it takes to give them out one by one."""
    valid = [
        np.unpackbits(np.frombuffer(validity, np.uint8), bitorder="little").astype(bool)
        for (validity,) in fetch(connection, VALID.format(table=space.table), {"part": part})
    ]
    count = sum(int(rows.sum()) for rows in valid)
    ids, vectors = np.empty(count, np.int64), np.empty((count, space.space.dimensions), "<f4")
    at = 0
    # one chunk at a time into its place: a list of them would take as much memory again
    for rows, (rowids, chunk) in zip(
        valid, connection.execute(CHUNKS.format(table=space.table), {"part": part}), strict=True
    ):
        found = np.frombuffer(cast("bytes", rowids), "<i8")[rows]
        ids[at : at + len(found)] = found
        vectors[at : at + len(found)] = _numbers(cast("bytes", chunk), space)[rows]
        at += len(found)
    return ids, vectors


def best_of(
    vectors: NDArray[np.float32], wanted: NDArray[np.float32], limit: int
) -> tuple[NDArray[np.intp], NDArray[np.float32]]:
    """The rows nearest to a vector, in no order, and their cosines."""
    # not `@`: that has a thread for each core wait for the others, ten times as long where cores are busy
    scores = np.einsum("ij,j->i", vectors, wanted)
    places = np.argpartition(scores, -limit)[-limit:] if len(scores) > limit else np.arange(len(scores))
    return places, scores[places]
