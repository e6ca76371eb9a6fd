"""Is one run better than another, or was it luck? A paired bootstrap with a fixed seed.

Draw as many questions as there are, with replacement, ten thousand times, and see how much the mean difference moves:
95 of 100 such differences are within the interval.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from benchmarks.measuring import BenchRow
from benchmarks.vaults import Bar
from co_cli.evaluation.running import Marks
from co_cli.ground.errors import InvalidInputError

if TYPE_CHECKING:
    from numpy.typing import NDArray

DRAWS = 10_000
DRAWS_AT_A_TIME = 500
SEED = 20_261_115
MEAN = "mean"


class Comparison(NamedTuple):
    """One measure of two runs on a set: both means, their difference and its 95 % interval."""

    set: str
    measure: str
    first: float
    second: float
    difference: float
    low: float
    high: float
    questions: int

    @property
    def verdict(self) -> str:
        """What may be said: nothing, if the interval has zero in it."""
        return "better" if self.low > 0 else "worse" if self.high < 0 else "unsure"


def compare(first: dict[str, dict[str, Marks]], second: dict[str, dict[str, Marks]]) -> list[Comparison]:
    """By set and over the mean of the sets, on the questions that both runs answered."""
    pairs = _pairs(first, second)
    found = [one for name, pair in pairs.items() for one in _compare(name, [pair])]
    return found + (_compare(MEAN, list(pairs.values())) if len(pairs) > 1 else [])


def bench_compare(files: Sequence[str], bar: Bar | None = None) -> list[BenchRow]:
    """Two files of `co eval --json`; FILE.json:METHOD compares another method than co."""
    if len(files) != 2:
        raise InvalidInputError("compare takes two files of `co eval --json`")
    found = [one for one in compare(*map(read_marks, files)) if one.measure in ("ndcg10", "recall10")]
    rows: list[BenchRow] = []
    for one in found:
        name = f"{one.set} ({one.questions}), {one.measure}: {one.first:.4f} to {one.second:.4f}"
        rows.append(BenchRow(f"{name} [{one.low:+.4f}, {one.high:+.4f}] {one.verdict}", one.difference, ""))
    return rows


def read_marks(name: str) -> dict[str, dict[str, Marks]]:
    """By set, then by question."""
    path, _, method = name.partition(".json")
    method = method.removeprefix(":") or "co"
    try:
        rows = json.loads(Path(f"{path}.json").read_text("utf-8"))
        found = {
            row["set"]: {question: Marks(*marks) for question, marks in row["marks"].items()}
            for row in rows
            if row["method"] == method and "marks" in row
        }
    except (AttributeError, KeyError, OSError, TypeError, ValueError) as error:
        raise InvalidInputError(f"{path}.json is not a file of `co eval --json`: {error}") from None
    if not found:
        raise InvalidInputError(f"{path}.json has no run of {method}")
    return found


Pair = tuple["NDArray[np.float64]", "NDArray[np.float64]"]


def _pairs(first: dict[str, dict[str, Marks]], second: dict[str, dict[str, Marks]]) -> dict[str, Pair]:
    """By set, the marks of the questions that both answered."""
    found: dict[str, Pair] = {}
    for name in (name for name in first if name in second):
        shared = [question for question in first[name] if question in second[name]]
        if shared:
            found[name] = (
                np.array([first[name][one] for one in shared]),
                np.array([second[name][one] for one in shared]),
            )
    if not found:
        raise InvalidInputError(
            f"the two runs share no question: they are of {', '.join(first)} and of {', '.join(second)}"
        )
    return found


def _compare(name: str, pairs: Sequence[Pair]) -> list[Comparison]:
    """The mean of these sets, each of which counts the same."""
    random = np.random.default_rng(SEED)
    drawn = np.mean([_drawn_means(second - first, random) for first, second in pairs], axis=0)
    low, high = np.quantile(drawn, [0.025, 0.975], axis=0)
    first, second = (np.mean([run.mean(axis=0) for run in runs], axis=0) for runs in zip(*pairs, strict=True))
    questions = sum(len(run) for run, _ in pairs)
    figures = np.round([first, second, second - first, low, high], 4).T.tolist()
    return [
        Comparison(name, measure, *figures[place][:5], questions=questions)
        for place, measure in enumerate(Marks._fields)
    ]


def _drawn_means(differences: NDArray[np.float64], random: np.random.Generator) -> NDArray[np.float64]:
    """The mean of each measure in every draw."""
    count = len(differences)
    parts: list[NDArray[np.float64]] = []
    for _ in range(DRAWS // DRAWS_AT_A_TIME):
        places = random.integers(0, count, size=(DRAWS_AT_A_TIME, count))
        parts.append(differences[places].mean(axis=1))
    return np.concatenate(parts)
