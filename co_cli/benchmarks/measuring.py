"""Timings into rows: what was measured, how long it took, against what, and what we promise."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from statistics import median
from typing import NamedTuple


class BenchRow(NamedTuple):
    """One figure. A ratio is to a yardstick of the same run, so that it means the same on every machine."""

    name: str
    value: float
    unit: str
    ratio: float | None = None
    goal: float | None = None
    """The largest ratio that we promise."""

    @property
    def kept(self) -> bool | None:
        """Is the promise kept? None if there is none."""
        return None if self.goal is None or self.ratio is None else self.ratio <= self.goal


def interleaved(
    tasks: Mapping[str, Callable[[], object]], repeats: int, before: Mapping[str, Callable[[], object]] | None = None
) -> dict[str, float]:
    """The median seconds of each task. Each round runs every task once, so that a slow minute hits all of them.

    `before` prepares a task and is not timed.
    """
    seconds: dict[str, list[float]] = {name: [] for name in tasks}
    for _ in range(repeats):
        for name, task in tasks.items():
            if before and name in before:
                before[name]()
            started = time.perf_counter()
            task()
            seconds[name].append(time.perf_counter() - started)
    return {name: median(values) for name, values in seconds.items()}
