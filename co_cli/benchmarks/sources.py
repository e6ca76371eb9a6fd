"""What a search of one source costs where search.db holds another of the same size."""

from __future__ import annotations

import os
import tempfile
from contextlib import ExitStack

from co_cli.benchmarks.corpus import Writer, write_corpus
from co_cli.benchmarks.measuring import BenchRow, interleaved
from co_cli.benchmarks.sync import Bar
from co_cli.knowledge_base import KnowledgeBase
from co_cli.settings import load_settings

QUERIES = 40
WORDS = 8
GOAL = 2.0


def bench_sources(notes: int, bar: Bar | None = None) -> list[BenchRow]:
    with tempfile.TemporaryDirectory(prefix="co-bench-") as folder, ExitStack() as stack:
        vault, other = os.path.join(folder, "vault"), os.path.join(folder, "other")
        for root in (vault, other):
            os.makedirs(root)
            write_corpus(root, notes)
        alone, beside = (stack.enter_context(_open(folder, vault, name)) for name in ("alone", "beside"))
        beside.add_source(other, progress=bar)
        for kb in (alone, beside):
            kb.sync(bar)
        if bar:
            bar.done()
        writer = Writer(seed=31)
        queries = [" ".join(writer.sentence().split()[:WORDS]) for _ in range(QUERIES)]
        for query in queries:
            for kb in (alone, beside):
                kb.search(query)  # a process that stays has its vectors and words in memory
        turn = iter([query for query in queries * 10 for _ in range(5)])
        medians = interleaved(
            {
                "one": lambda: alone.search(next(turn)),
                "one, memories": lambda: alone.search(next(turn), sources=["memory"]),
                "both, memories": lambda: beside.search(next(turn), sources=["memory"]),
                "both, the folder": lambda: beside.search(next(turn), sources=["folder:other"]),
                "both": lambda: beside.search(next(turn)),
            },
            QUERIES,
        )
        one, filtered = medians["one"], medians["one, memories"]
        count = alone.index.counts().passages
    return [
        BenchRow(f"everything, {count:,} passages", round(one * 1000, 3), "ms", 1.0),
        BenchRow("memories alone", round(filtered * 1000, 3), "ms", filtered / one),
        BenchRow(
            "memories alone, beside a folder of as many",
            round(medians["both, memories"] * 1000, 3),
            "ms",
            medians["both, memories"] / filtered,
            GOAL,
        ),
        BenchRow(
            "the folder alone", round(medians["both, the folder"] * 1000, 3), "ms", medians["both, the folder"] / one
        ),
        BenchRow("everything of both", round(medians["both"] * 1000, 3), "ms", medians["both"] / one, GOAL),
    ]


def _open(folder: str, vault: str, name: str) -> KnowledgeBase:
    flags = {"vault": vault, "data_dir": os.path.join(folder, name)}
    return KnowledgeBase.open(settings=load_settings(flags, environ={"HOME": folder}, start=folder))
