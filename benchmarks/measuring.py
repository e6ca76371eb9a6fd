"""Timings into rows: what was measured, how long it took, against what, and what we promise."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from itertools import pairwise
from statistics import median
from typing import NamedTuple

GROWING = ("ms", "s", "MB")
LINEAR = 1.25
"""What more than linear growth is called, beside what machines do by themselves."""


class BenchRow(NamedTuple):
    """One figure. A ratio is to a yardstick of the same run, so that it means the same on every machine."""

    name: str
    value: float
    unit: str
    ratio: float | None = None
    goal: float | None = None
    """The largest ratio that we promise."""
    skipped: str | None = None
    """Why there is no figure."""

    @property
    def kept(self) -> bool | None:
        """Is the promise kept? None if there is none."""
        return None if self.goal is None or self.ratio is None else self.ratio <= self.goal


def interleaved(
    tasks: Mapping[str, Callable[[], object]],
    repeats: int,
    before: Mapping[str, Callable[[], object]] | None = None,
    clock: Callable[[], float] = time.perf_counter,
) -> dict[str, float]:
    """The median seconds of each task. Each round runs every task once, so that a slow minute hits all of them.

    `before` prepares a task and is not timed. `time.process_time` as the clock counts the processor alone.
    """
    seconds: dict[str, list[float]] = {name: [] for name in tasks}
    for _ in range(repeats):
        for name, task in tasks.items():
            if before and name in before:
                before[name]()
            started = clock()
            task()
            seconds[name].append(clock() - started)
    return {name: median(values) for name, values in seconds.items()}


def growth(tables: Mapping[int, list[BenchRow]]) -> list[BenchRow]:
    """How much each figure grew from one size to the next, beside how much the size did.

    More than 1 is faster than linear.
    """
    found: list[BenchRow] = []
    sizes = sorted(tables)
    for small, large in pairwise(sizes):
        before = [row for row in tables[small] if row.unit in GROWING and row.value]
        after = [row for row in tables[large] if row.unit in GROWING and row.value]
        if len(before) != len(after):
            continue
        for one, other in zip(before, after, strict=True):
            times = other.value / one.value
            name = f"{other.name}: {large:,} beside {small:,}"
            found.append(BenchRow(name, round(times, 3), "times", times / (large / small), LINEAR))
    return found
