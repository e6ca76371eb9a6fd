"""What one `remember` costs in a large vault, duplicate check, fsync and index included, beside the write alone."""

from __future__ import annotations

import os
import time

from benchmarks.corpus import Writer
from benchmarks.measuring import BenchRow, interleaved
from benchmarks.vaults import Bar, bench_vault
from co_cli.notes.files import create_exclusively

REPEATS = 25
GOAL = 3.0


def bench_remember(notes: int, bar: Bar | None = None) -> list[BenchRow]:
    """By the clock, which has the fsyncs, and in CPU time, which has not. The encoder is not loaded for a save."""
    return [row for provider in ("static", "encoder") for row in _bench(notes, provider, bar)]


def _bench(notes: int, provider: str, bar: Bar | None) -> list[BenchRow]:
    with bench_vault(notes, bar, provider=provider) as vault, vault.open() as kb:
        alone = os.path.join(vault.folder, "alone")
        os.makedirs(alone)
        kb.sync()
        writer, names = Writer(seed=23), iter(range(10_000))
        tasks = {
            "write": lambda: create_exclusively(os.path.join(alone, f"{next(names)}.md"), writer.sentence().encode()),
            "remember": lambda: kb.remember(writer.sentence()),
        }
        interleaved(tasks, 3)  # a process that stays has what it imports
        wall = interleaved(tasks, REPEATS)
        cpu = interleaved(tasks, REPEATS, clock=time.process_time)
    return [
        BenchRow("writing and syncing one file", round(wall["write"] * 1000, 3), "ms", 1.0),
        BenchRow(
            f"{provider}: remember in a vault of {notes:,} notes",
            round(wall["remember"] * 1000, 3),
            "ms",
            wall["remember"] / wall["write"],
            GOAL,
        ),
        BenchRow("writing one file (CPU)", round(cpu["write"] * 1000, 3), "ms", 1.0),
        BenchRow(
            f"{provider}: remember (CPU)",
            round(cpu["remember"] * 1000, 3),
            "ms",
            cpu["remember"] / cpu["write"] if cpu["write"] else None,  # some clocks do not see so short a time
        ),
    ]
