"""How fast a process that stays scans its vectors, beside how fast this machine reads memory."""

from __future__ import annotations

import time

import numpy as np
from numpy.typing import NDArray

from co_cli.benchmarks.measuring import BenchRow, interleaved
from co_cli.embedding.static_file import SPACE
from co_cli.index.resident import best_of

ROWS = 100_000
REPEATS = 15
LIMIT = 50
GOAL = 1.5


def bench_scan(rows: int) -> list[BenchRow]:
    vectors = made_up_vectors(rows)
    question = made_up_vectors(1, seed=2)[0]
    words = vectors.reshape(-1).view(np.int64)
    medians = interleaved(
        {"read": lambda: int(np.bitwise_or.reduce(words)), "scan": lambda: best_of(vectors, question, LIMIT)},
        REPEATS,
        clock=time.process_time,
    )
    read, scan = medians["read"], medians["scan"]
    return [
        BenchRow(f"reading {vectors.nbytes / 1e6:,.0f} MB of memory (CPU)", round(read * 1000, 3), "ms", 1.0),
        BenchRow("memory bandwidth", round(vectors.nbytes / read / 1e9, 2), "GB/s"),
        BenchRow(f"scan of {rows:,} vectors, best {LIMIT} (CPU)", round(scan * 1000, 3), "ms", scan / read, GOAL),
    ]


def made_up_vectors(rows: int, seed: int = 1) -> NDArray[np.float32]:
    random = np.random.default_rng(seed)
    vectors = np.empty((rows, SPACE.dimensions), dtype="<f4")
    for start in range(0, rows, 10_000):  # a block at a time: the numbers are made in twice the size
        block = random.standard_normal((min(10_000, rows - start), SPACE.dimensions))
        vectors[start : start + len(block)] = block / np.linalg.norm(block, axis=1, keepdims=True)
    return vectors
