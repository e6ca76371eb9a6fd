"""What reading costs: a search whose first 20 results are all read.

Two idle cores take half of the CPU time; on a busy machine only that can be compared.
"""

from __future__ import annotations

import sys
import time
from concurrent.futures import ThreadPoolExecutor
from itertools import count
from random import Random

from benchmarks.cold import child_output
from benchmarks.corpus import real_words
from benchmarks.measuring import BenchRow, interleaved
from benchmarks.vaults import Bar, bench_vault, questions
from co_cli.embedding.reader import CrossEncoder

QUERIES, READ = 20, 20
CLIENTS, AT_ONCE = 8, 5.0
"""Searches at once, and how many times as long as one they may take."""
WORDS = {"short notes": 14, "passages of 135 words": 135}
GOALS = {
    "short notes": 0.12,
    "passages of 135 words": 0.35,
}
"""Seconds that 20 texts may take on two idle cores; the ratio is to this."""
LOADING, MEMORY = 0.15, 120_000
"""Seconds, and kilobytes as Linux counts them."""
CHILD = """
import time
import numpy
from co_cli.embedding.reader import CrossEncoder

def held():
    return int(dict(line.split(":", 1) for line in open("/proc/self/status"))["VmRSS"].split()[0])

before, started = held(), time.perf_counter()
reader = CrossEncoder()
reader.scores("", [])
loaded = time.perf_counter() - started
reader.scores("how long does it take?", ["It takes a while. " * 40] * 20)
print(loaded, held() - before)
"""


def bench_reader(notes: int, bar: Bar | None = None) -> list[BenchRow]:
    with bench_vault(notes, bar) as vault, vault.open() as kb:
        asked = questions(QUERIES)
        turns = {name: iter(asked * 4) for name in ("read", "not read")}
        tasks = {name: lambda name=name: kb.search(next(turns[name]), read=name == "read") for name in turns}
        interleaved(tasks, 2)  # loads the model
        medians = interleaved(tasks, QUERIES)
        command = [sys.executable, "-c", CHILD]
        loaded, kilobytes = map(float, child_output(command, vault.environment, vault.folder).split())
    rows = [
        BenchRow(
            f"co search, {name}, {notes:,} notes",
            round(medians[name] * 1000, 1),
            "ms",
            medians[name] / medians["not read"],
        )
        for name in turns
    ]
    rows += [row for texts in WORDS for row in _readings(texts)]
    rows.append(BenchRow("loading the reader", round(loaded * 1000, 1), "ms", loaded / LOADING, 1))
    rows.append(BenchRow("memory of the reader", round(kilobytes / 1000, 1), "MB", kilobytes / MEMORY, 1))
    return rows


def _readings(name: str) -> list[BenchRow]:
    """What it takes to read 20 texts: each model, and questions of several clients at once."""
    chance, numbers, words = Random(1), count(), real_words()[:5_000]
    texts = [" ".join(chance.choices(words, k=WORDS[name])) for _ in range(READ)]
    reader = CrossEncoder()

    def read(_: int = 0) -> None:
        reader.scores(f"who has the number {next(numbers)} and where is it?", texts)  # new, so that none is known

    def read_at_once() -> None:
        with ThreadPoolExecutor(CLIENTS) as clients:
            list(clients.map(read, range(CLIENTS)))

    alone, at_once = "one client", f"{CLIENTS} clients"
    tasks = {alone: read, at_once: read_at_once}
    interleaved(tasks, 1)  # loads the models
    medians, busy = interleaved(tasks, 7), interleaved(tasks, 3, clock=time.process_time)
    rows: list[BenchRow] = []
    for kind, seconds in medians.items():
        ratio, most = seconds / GOALS[name], 1.0
        if kind == at_once:
            ratio, most = seconds / medians[alone], AT_ONCE
        rows.append(BenchRow(f"{READ} {name}: {kind}", round(seconds * 1000, 1), "ms", ratio, most))
        rows.append(BenchRow(f"{READ} {name}: {kind} (CPU)", round(busy[kind] * 1000, 1), "ms"))
    return rows
