"""What a sync costs: the first one, one without changes and one after ten edits, beside a bare walk of the tree."""

from __future__ import annotations

import os
import time

from benchmarks.corpus import EPOCH, Writer
from benchmarks.measuring import BenchRow, interleaved
from benchmarks.vaults import Bar, bench_vault, walk

REPEATS = 9
EDITS = 10
GOAL = 1.15
EDITS_GOAL, LARGE = 1.3, 100_000
"""What ten edits may cost beside a sync without changes, in a vault where the walk is most of the work."""


def bench_sync(notes: int, bar: Bar | None = None) -> list[BenchRow]:
    with bench_vault(notes, synced=False) as vault, vault.open() as kb:
        started = time.perf_counter()
        kb.sync(bar)
        first = time.perf_counter() - started
        medians = interleaved(
            {"walk": lambda: walk(kb.root), "no-op": kb.sync, "edits": kb.sync},
            REPEATS,
            before={"edits": Editor(vault.paths).edit},
        )
    bare = medians["walk"]
    return [
        BenchRow(f"first sync of {notes:,} notes", round(first, 3), "s"),
        BenchRow("first sync, notes a second", round(notes / first, 1), "notes/s"),
        BenchRow("bare walk (scandir + stat)", round(bare * 1000, 3), "ms", 1.0),
        _against("sync when nothing changed", medians["no-op"], bare, GOAL),
        _against(f"sync after {EDITS} edits", medians["edits"], bare),
        _against(
            f"sync after {EDITS} edits, beside one when nothing changed",
            medians["edits"],
            medians["no-op"],
            EDITS_GOAL if notes >= LARGE else None,
        ),
    ]


class Editor:
    """Somebody who adds a sentence to ten notes, each time to other ones."""

    def __init__(self, paths: list[str]) -> None:
        self._paths, self._round, self._writer = paths, 0, Writer(seed=11)

    def edit(self) -> None:
        self._round += 1
        step = max(len(self._paths) // EDITS, 1)
        for path in self._paths[self._round % step :: step][:EDITS]:
            with open(path, "a", encoding="utf-8", newline="\n") as stream:
                stream.write(self._writer.sentence() + "\n")
            # an edit of a moment ago is looked at twice, which would be timed as part of the next round
            os.utime(path, (EPOCH + self._round, EPOCH + self._round))


def _against(name: str, seconds: float, yardstick: float, goal: float | None = None) -> BenchRow:
    return BenchRow(name, round(seconds * 1000, 3), "ms", round(seconds / yardstick, 3), goal)
