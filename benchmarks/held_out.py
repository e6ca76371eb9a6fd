"""Choose a number without looking at the sets it is judged on: for each family of sets, on all the other families.

Sets whose names begin the same before `_`, or whose meta.json has the same `origin`, are one family. Each family counts
the same, and so do the sets of one.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import mean
from typing import NamedTuple

from benchmarks.measuring import BenchRow
from benchmarks.vaults import Bar
from co_cli.evaluation.baselines import Desk, hybrid
from co_cli.evaluation.running import Evaluation, Method, mean_marks, method
from co_cli.evaluation.sets import read_set
from co_cli.ground.errors import InvalidInputError
from co_cli.ground.settings import load_settings

SAMPLE = 300
CURRENT = "co"

Scores = Mapping[str, Mapping[str, float]]
"""nDCG@10 by candidate, then by set."""


class Choice(NamedTuple):
    """What was chosen without a family, and what it and the current search are worth there."""

    family: str
    candidate: str
    held_out: float
    current: float


def candidates() -> dict[str, Method]:
    """What to choose from. Replace this to try other numbers; every candidate is asked in the same vaults."""

    def weighted(share: float) -> Method:
        def ask(desk: Desk, text: str) -> list[str]:
            return [ref for ref, _ in hybrid(desk, text, any_term=True, share=share)][:10]

        return ask

    return {f"simple, meaning {share}": weighted(share) for share in (0.3, 0.4, 0.5, 0.6, 0.7)}


def bench_held_out(folders: Sequence[str], bar: Bar | None = None) -> list[BenchRow]:
    families = families_of(folders)
    methods = {CURRENT: method(CURRENT), **candidates()}
    scores: dict[str, dict[str, float]] = {name: {} for name in methods}
    settings = load_settings({})
    for folder in folders:
        found = read_set(folder)
        found = found._replace(questions=found.questions[:: -(-len(found.questions) // SAMPLE)])
        with tempfile.TemporaryDirectory(prefix="co-bench-", ignore_cleanup_errors=True) as work:
            evaluation = Evaluation(settings, work, bar) if bar else Evaluation(settings, work)
            for run in evaluation.ask(found, methods):
                scores[run.method][found.name] = mean_marks([marks for _, marks, _ in run.answers]).ndcg10
    chosen = choose(scores, families)
    rows = [
        BenchRow(f"{one.family}: {one.candidate} (co: {one.current:.4f})", one.held_out, "nDCG@10") for one in chosen
    ]
    every = {name: family_mean(scores[name], families) for name in scores}
    rows += [BenchRow(f"all families: {name}", value, "nDCG@10") for name, value in every.items()]
    return [*rows, BenchRow("mean of what was chosen on the others", mean(one.held_out for one in chosen), "nDCG@10")]


def choose(scores: Scores, families: Mapping[str, str]) -> list[Choice]:
    """For each family the candidate that is best on all the others."""
    found: list[Choice] = []
    for family in dict.fromkeys(families.values()):
        others = {name: other for name, other in families.items() if other != family}
        own = {name: family for name in families if name not in others}
        best = max((name for name in scores if name != CURRENT), key=lambda name: family_mean(scores[name], others))
        found.append(Choice(family, best, family_mean(scores[best], own), family_mean(scores[CURRENT], own)))
    return found


def family_mean(scores: Mapping[str, float], families: Mapping[str, str]) -> float:
    """Of these sets; each family counts the same."""
    names = dict.fromkeys(families.values())
    return mean(mean(scores[name] for name in families if families[name] == family) for family in names)


def families_of(folders: Sequence[str]) -> dict[str, str]:
    """The family of each set, by their names."""
    found: dict[str, str] = {}
    origins: dict[str, str] = {}
    for folder in map(Path, folders):
        meta = folder / "meta.json"
        origin = json.loads(meta.read_text("utf-8")).get("origin") if meta.exists() else None
        stem = folder.resolve().name.partition("_")[0]
        family = origins.get(origin or stem) or origins.get(stem) or stem
        origins[origin or stem] = origins[stem] = found[folder.resolve().name] = family
    if len(set(found.values())) < 2:
        raise InvalidInputError("held_out needs sets of at least two families: one is judged, the others choose")
    return found
