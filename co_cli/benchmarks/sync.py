"""What a sync costs: the first one, one without changes and one after ten edits, beside a bare walk of the tree."""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Callable
from typing import Protocol

from co_cli.benchmarks.corpus import EPOCH, Writer, write_corpus
from co_cli.benchmarks.measuring import BenchRow, interleaved
from co_cli.knowledge_base import KnowledgeBase
from co_cli.settings import load_settings

NOTES = 10_000
REPEATS = 9
EDITS = 10
GOAL = 1.15
EDITS_GOAL, LARGE = 1.3, 100_000
"""What ten edits may cost beside a sync without changes, in a vault where the walk is most of the work."""


class Bar(Protocol):
    """Shows how far the first sync is."""

    def __call__(self, done: int, total: int) -> None: ...
    def done(self) -> None: ...


def bench_sync(notes: int = NOTES, make_bar: Callable[[], Bar] | None = None) -> list[BenchRow]:
    """Measure in a temporary folder with default settings: nothing of the person's own is read or written."""
    with tempfile.TemporaryDirectory(prefix="co-bench-") as folder:
        vault, data = os.path.join(folder, "vault"), os.path.join(folder, "data")
        os.makedirs(vault)
        paths = write_corpus(vault, notes)
        settings = load_settings({"vault": vault, "data_dir": data}, environ={"HOME": folder}, start=folder)
        with KnowledgeBase.open(settings=settings) as kb:
            bar = make_bar() if make_bar else None
            started = time.perf_counter()
            kb.sync(bar)
            first = time.perf_counter() - started
            if bar:
                bar.done()
            medians = interleaved(
                {"walk": lambda: walk(kb.root), "no-op": kb.sync, "edits": kb.sync},
                REPEATS,
                before={"edits": Editor(paths).edit},
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


def walk(root: str) -> int:
    """The least that finding a change can cost: every folder listed, every file's state asked for."""
    count = 0
    waiting = [root]
    while waiting:
        with os.scandir(waiting.pop()) as entries:
            for entry in entries:
                if entry.is_dir(follow_symlinks=False):
                    waiting.append(entry.path)
                else:
                    entry.stat(follow_symlinks=False)
                    count += 1
    return count


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
