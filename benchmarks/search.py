"""What one search costs in a running process, compared with the `simple` baseline in the same run."""

from __future__ import annotations

import time

from benchmarks.measuring import BenchRow, interleaved
from benchmarks.vaults import Bar, bench_vault, questions
from co_cli.evaluation.baselines import BASELINES, Desk

QUERIES = 40
GOAL = 1.3


def bench_search(notes: int, bar: Bar | None = None) -> list[BenchRow]:
    return [row for provider in ("static", "encoder") for row in _bench(notes, provider, bar)]


def _bench(notes: int, provider: str, bar: Bar | None) -> list[BenchRow]:
    with bench_vault(notes, bar, provider=provider) as vault, vault.open() as kb:
        desk, asked = Desk(kb.vault), questions(QUERIES)
        turns = {name: iter(asked * 2) for name in ("simple", "co")}

        def simple() -> None:
            desk.begin()
            BASELINES["simple"](desk, next(turns["simple"]))

        tasks = {"simple": simple, "co": lambda: kb.search(next(turns["co"]), read=False)}
        interleaved(tasks, QUERIES)  # warm up: vectors and words are in memory afterwards
        medians = interleaved(tasks, QUERIES, clock=time.process_time)
    simple_s, product = medians["simple"], medians["co"]
    return [
        BenchRow(f"{provider}: simple baseline, {notes:,} notes (CPU)", round(simple_s * 1000, 3), "ms", 1.0),
        BenchRow(
            f"{provider}: co search, snippets included (CPU)", round(product * 1000, 3), "ms", product / simple_s, GOAL
        ),
    ]
