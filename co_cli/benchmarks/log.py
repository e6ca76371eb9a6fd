"""What a query log of a million rows costs: `co stats`, and a search that is written down beside one that is not."""

from __future__ import annotations

import os
import random
import tempfile
import time
from collections.abc import Callable

from co_cli.activity import Activity
from co_cli.activity.events import Searched
from co_cli.activity.query_log import DAY, log_searches
from co_cli.benchmarks.corpus import Writer, write_corpus
from co_cli.benchmarks.measuring import BenchRow, interleaved
from co_cli.benchmarks.sync import Bar
from co_cli.knowledge_base import KnowledgeBase
from co_cli.service.usage import usage_of
from co_cli.settings import load_settings

ROWS = 1_000_000
BATCH = 10_000
DAYS = 300
ROUNDS = 400
GOAL = 1.02
SECOND = 1_000.0


def bench_log(notes: int, rows: int = ROWS, bar: Bar | None = None, rounds: int = ROUNDS) -> list[BenchRow]:
    """`bar` hears of the rows as they are written."""
    with tempfile.TemporaryDirectory(prefix="co-bench-") as folder:
        vault = os.path.join(folder, "vault")
        os.makedirs(vault)
        write_corpus(vault, notes)
        flags = {"vault": vault, "data_dir": os.path.join(folder, "data")}
        settings = load_settings(flags, environ={"HOME": folder}, start=folder)
        with KnowledgeBase.open(settings=settings) as kb, Activity.of(settings, kb.root) as activity:
            kb.sync()
            started = time.perf_counter()
            fill(activity, rows, bar)
            filled = time.perf_counter() - started
            if bar:
                bar.done()
            stats = interleaved({"stats": lambda: usage_of(activity, [kb.index], time.time(), 30, 10)}, 5)["stats"]
            year = interleaved({"stats": lambda: usage_of(activity, [kb.index], time.time(), 365, 10)}, 5)["stats"]
            plain, logged = _searches(kb, activity, rounds)
            size = os.path.getsize(activity.database.path)
        return [
            BenchRow(f"writing {rows:,} rows, each", round(filled / rows * 1e6, 1), "µs"),
            BenchRow("activity.db", round(size / 1e6, 1), "MB"),
            BenchRow("co stats, 30 days", round(stats * 1000, 1), "ms", stats * 1000 / SECOND, 1.0),
            BenchRow("co stats --days 365", round(year * 1000, 1), "ms", year * 1000 / SECOND, 1.0),
            BenchRow("a search that is not written down", round(plain * 1000, 3), "ms", 1.0),
            BenchRow("a search that is written down", round(logged * 1000, 3), "ms", logged / plain, GOAL),
        ]


def fill(activity: Activity, rows: int, bar: Callable[[int, int], None] | None = None, seed: int = 5) -> None:
    """As if people and agents had searched for most of a year: a few questions often, most of them once."""
    chance, now = random.Random(seed), time.time()
    words = Writer(seed=seed).sentence().split()
    for start in range(0, rows, BATCH):
        batch: list[Searched] = []
        for place in range(start, min(start + BATCH, rows)):
            number = int(chance.paretovariate(0.35)) if chance.random() < 0.5 else place
            state = "found" if number % 7 else "absent"
            took = chance.lognormvariate(3, 0.7)
            text = f"{words[number % len(words)]} {words[number // 7 % len(words)]} {number}"
            results = tuple((f"memory:note-{number * step % 9973}", 0.5) for step in range(1, 6))
            at = now - DAYS * DAY * (1 - place / rows)
            batch.append(Searched(activity.root, at, "cli", text, "hybrid", state, 10, took, None, results, ()))
        with activity.database.writing() as connection:
            log_searches(connection, batch)
        if bar:
            bar(min(start + BATCH, rows), rows)


def _searches(kb: KnowledgeBase, activity: Activity, rounds: int) -> tuple[float, float]:
    """The same questions, one after the other: each once plainly and once written down, in turn who comes first."""
    writer = Writer(seed=31)
    queries = [" ".join(writer.sentence().split()[:8]) for _ in range(40)]
    for query in queries:
        kb.search(query)  # a process that stays has its vectors and words in memory

    def plain(query: str) -> None:
        kb.search(query)

    def logged(query: str) -> None:
        activity.searched(kb.search(query))

    taken: dict[str, list[float]] = {"plain": [], "logged": []}
    for turn in range(rounds):
        query = queries[turn % len(queries)]
        pair = [("plain", plain), ("logged", logged)]
        for name, ask in pair if turn % 2 else reversed(pair):
            started = time.perf_counter()
            ask(query)
            taken[name].append(time.perf_counter() - started)
    activity.flush()
    middle = {name: sorted(seconds)[len(seconds) // 2] for name, seconds in taken.items()}
    return middle["plain"], middle["logged"]
