"""What one `remember` costs in a large vault, duplicate check, fsync and index included, beside the write alone."""

from __future__ import annotations

import os
import tempfile

from co_cli.benchmarks.corpus import Writer, write_corpus
from co_cli.benchmarks.measuring import BenchRow, interleaved
from co_cli.benchmarks.sync import Bar
from co_cli.knowledge_base import KnowledgeBase
from co_cli.notes.files import create_exclusively
from co_cli.settings import load_settings

REPEATS = 25
GOAL = 3.0


def bench_remember(notes: int, bar: Bar | None = None) -> list[BenchRow]:
    with tempfile.TemporaryDirectory(prefix="co-bench-") as folder:
        vault, data = os.path.join(folder, "vault"), os.path.join(folder, "data")
        os.makedirs(vault)
        write_corpus(vault, notes)
        alone = os.path.join(folder, "alone")
        os.makedirs(alone)
        settings = load_settings({"vault": vault, "data_dir": data}, environ={"HOME": folder}, start=folder)
        with KnowledgeBase.open(settings=settings) as kb:
            kb.sync(bar)
            if bar:
                bar.done()
            writer, names = Writer(seed=23), iter(range(10_000))
            medians = interleaved(
                {
                    "write": lambda: create_exclusively(
                        os.path.join(alone, f"{next(names)}.md"), writer.sentence().encode()
                    ),
                    "remember": lambda: kb.remember(writer.sentence()),
                },
                REPEATS,
            )
    bare, saving = medians["write"], medians["remember"]
    return [
        BenchRow("writing and syncing one file", round(bare * 1000, 3), "ms", 1.0),
        BenchRow(f"remember in a vault of {notes:,} notes", round(saving * 1000, 3), "ms", saving / bare, GOAL),
    ]
