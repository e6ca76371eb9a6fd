"""How many of everyone's ten nearest neighbours are still among the ten nearest on the map, and how long it takes."""

from __future__ import annotations

import time
from collections.abc import Sequence

import numpy as np

from benchmarks.measuring import BenchRow
from benchmarks.vaults import Bar
from co_cli.embedding.static import shared_embedder
from co_cli.evaluation.sets import read_set
from co_cli.server.layout import NEIGHBOURS, Matrix, arrange, main_components, nearest


def bench_layout(folders: Sequence[str], bar: Bar | None = None) -> list[BenchRow]:
    rows: list[BenchRow] = []
    embedder = shared_embedder()
    for number, folder in enumerate(folders):
        found = read_set(folder)
        made = embedder.embed([f"{one.title}\n{one.text}" for one in found.documents], "document")
        vectors = np.array([np.frombuffer(vector, "<f4") for vector in made if vector])
        started = time.process_time()
        places = arrange(vectors)
        took = time.process_time() - started
        name = f"{found.name}, {len(vectors):,} texts"
        kept, plain = kept_neighbours(vectors, places), kept_neighbours(vectors, main_components(vectors))
        rows += [
            BenchRow(f"{name}: neighbours kept by the map", kept, ""),
            BenchRow(f"{name}: by the two main components", plain, ""),
            BenchRow(f"{name}: the map (CPU)", took, "s"),
        ]
        if bar:
            bar(number + 1, len(folders))
    return rows


def kept_neighbours(vectors: Matrix, places: Matrix) -> float:
    """The mean share of each one's ten nearest vectors that are among its ten nearest places."""
    by_meaning = nearest(vectors, NEIGHBOURS)
    shares: list[float] = []
    for number, near in enumerate(by_meaning):
        distances = ((places - places[number]) ** 2).sum(1)
        distances[number] = np.inf
        shares.append(len(np.intersect1d(near, np.argpartition(distances, NEIGHBOURS)[:NEIGHBOURS])) / len(near))
    return float(np.mean(shares))
