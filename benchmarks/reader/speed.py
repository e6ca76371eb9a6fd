"""What reading costs: a search whose first 20 results are all read, with numpy and with onnxruntime."""

from __future__ import annotations

import importlib.util
import sys
import time
from dataclasses import replace

from benchmarks.cold import child_output
from benchmarks.measuring import BenchRow, interleaved
from benchmarks.vaults import Bar, bench_vault, questions
from co_cli.embedding.reader import LARGE, SMALL, CrossEncoder
from co_cli.retrieval.rerank import READ
from co_cli.vault import Opening

QUERIES = 20
GOALS = {"numpy": 0.35, "onnxruntime": 0.2}
"""Seconds that the small reader may take on two idle cores; its ratio is to this."""
LOADING, MEMORY = 0.15, 120_000
"""Seconds, and kilobytes as Linux counts them."""
CHILD = """
import time
import numpy
from co_cli.embedding.reader import SMALL, CrossEncoder

def held():
    return int(dict(line.split(":", 1) for line in open("/proc/self/status"))["VmRSS"].split()[0])

before, started = held(), time.perf_counter()
reader = CrossEncoder(SMALL, onnx=False)
reader._loaded
loaded = time.perf_counter() - started
reader.scores("how long does it take?", ["It takes a while. " * 40] * 20)
print(loaded, held() - before)
"""


def bench_reader(notes: int, bar: Bar | None = None) -> list[BenchRow]:
    runtimes = ["numpy", *(name for name in ("onnxruntime",) if importlib.util.find_spec(name))]
    with bench_vault(notes, bar) as vault, vault.open(opening=Opening(read_all=True)) as kb:
        asked = questions(QUERIES)
        turns = {name: iter(asked * 4) for name in ("unread", *runtimes, "large")}
        readers = {name: CrossEncoder(SMALL, onnx=name != "numpy") for name in runtimes}
        readers["large"] = CrossEncoder(LARGE)

        def search(name: str) -> None:
            kb.vault = replace(kb.vault, reader=readers[name])
            found = kb.search(next(turns[name]), read=True)
            if found.meta["read"] not in (0, READ):  # 0: the question is the name of a note
                raise RuntimeError(f"{found.meta['read']} results were read, not {READ}")

        tasks = {name: lambda name=name: search(name) for name in readers}
        tasks["unread"] = lambda: kb.search(next(turns["unread"]), read=False)
        interleaved(tasks, 2)  # loads the models
        medians = interleaved(tasks, QUERIES, clock=time.perf_counter)
        command = [sys.executable, "-c", CHILD]
        loaded, kilobytes = map(float, child_output(command, vault.environment, vault.folder).split())
    unread = medians["unread"]
    rows = [BenchRow(f"co search, not read, {notes:,} notes", round(unread * 1000, 1), "ms", 1.0)]
    for name in runtimes:
        seconds, goal = medians[name], GOALS[name]
        rows.append(
            BenchRow(f"{READ} read by the small reader, {name}", round(seconds * 1000, 1), "ms", seconds / goal, 1)
        )
    rows.append(BenchRow(f"{READ} read by the large reader, {runtimes[-1]}", round(medians["large"] * 1000, 1), "ms"))
    rows.append(BenchRow("loading the small reader", round(loaded * 1000, 1), "ms", loaded / LOADING, 1))
    rows.append(BenchRow("memory of the small reader", round(kilobytes / 1000, 1), "MB", kilobytes / MEMORY, 1))
    return rows
