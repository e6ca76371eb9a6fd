"""What a search costs in a running process while notes wait for their vectors, compared with an idle one."""

from __future__ import annotations

import time
from statistics import median, quantiles

from benchmarks.measuring import BenchRow
from benchmarks.vaults import Bar, bench_vault, questions
from co_cli.entrance.knowledge_base import KnowledgeBase
from co_cli.ground.settings import load_settings
from co_cli.searching.freshness import VectorThread

ROUNDS, QUERIES, PAUSE = 6, 20, 0.05
"""Rounds of searches, idle and not in turns; and seconds between two searches, in which vectors are made."""


def bench_waiting(notes: int, bar: Bar | None = None) -> list[BenchRow]:
    with bench_vault(notes, bar) as vault:
        flags = {"vault": vault.root, "data_dir": vault.data, "knowledge_embedding_provider": "encoder"}
        settings = load_settings(flags, environ={"HOME": vault.folder}, start=vault.folder)
        with KnowledgeBase.open(settings=settings) as kb:
            kb.sync(seconds=0)
            asked = iter(questions((2 * ROUNDS + 1) * QUERIES))  # none twice: scores of the reader are kept
            taken: dict[str, list[float]] = {"idle": [], "waiting": []}

            def ask(name: str) -> None:
                for _ in range(QUERIES):
                    time.sleep(PAUSE)
                    started = time.perf_counter()
                    kb.search(next(asked))
                    taken[name].append(time.perf_counter() - started)

            ask("idle")  # warm up
            taken["idle"].clear()
            before = kb.waiting().passages
            busy = 0.0
            for _ in range(ROUNDS):
                ask("idle")
                vectors, started = VectorThread(kb.embed), time.perf_counter()
                vectors.wake()
                ask("waiting")
                vectors.close()
                busy += time.perf_counter() - started
            made = (before - kb.waiting().passages) / busy
    idle, waiting = taken["idle"], taken["waiting"]
    p95 = [quantiles(values, n=20)[-1] for values in (idle, waiting)]
    return [
        BenchRow(f"search, {notes:,} notes, idle (median)", round(median(idle) * 1000, 1), "ms", 1.0),
        BenchRow(
            "search while vectors are made (median)",
            round(median(waiting) * 1000, 1),
            "ms",
            median(waiting) / median(idle),
        ),
        BenchRow("search, idle (95 %)", round(p95[0] * 1000, 1), "ms", 1.0),
        BenchRow("search while vectors are made (95 %)", round(p95[1] * 1000, 1), "ms", p95[1] / p95[0]),
        BenchRow("vectors that are made meanwhile", round(made, 1), "a second"),
    ]
