"""`co index watch` in its own process: how soon a save is found, and what waiting and a burst of files cost."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from statistics import median

from benchmarks.cold import CO
from benchmarks.measuring import BenchRow
from benchmarks.vaults import Bar, BenchVault, bench_vault
from co_cli.entrance.knowledge_base import KnowledgeBase

SAVES = 20
BURST = 1_000
IDLE_SECONDS = 10.0
PATIENCE = 60.0


def bench_watch(
    notes: int, bar: Bar | None = None, saves: int = SAVES, burst: int = BURST, idle: float = IDLE_SECONDS
) -> list[BenchRow]:
    with bench_vault(notes, bar) as vault, vault.open() as kb, _watching(vault) as watcher:
        _save(vault, "ready")
        _until_found(kb, "ready")
        waited: list[float] = []
        for number in range(saves):
            _save(vault, f"saved{number}")
            started = time.monotonic()
            _until_found(kb, f"saved{number}")
            waited.append(time.monotonic() - started)
        before = _cpu_seconds(watcher)
        time.sleep(idle)
        cpu = (_cpu_seconds(watcher) - before) / idle
        started = time.monotonic()
        for number in range(burst):
            _save(vault, f"burst{number}")
        for number in range(burst):
            _until_found(kb, f"burst{number}")
        took = time.monotonic() - started
    return [
        BenchRow(f"from a save to being found, {notes:,} notes, median of {saves}", median(waited), "s"),
        BenchRow("the slowest of them", max(waited), "s"),
        BenchRow(f"{burst:,} files at once, until all are found", took, "s"),
        BenchRow(f"CPU while nothing happens, over {idle:g} s", cpu * 1000, "ms a s")
        if sys.platform == "linux"
        else BenchRow("CPU while nothing happens", 0.0, "ms a s", skipped="only Linux reports it in /proc"),
    ]


@contextmanager
def _watching(vault: BenchVault) -> Generator[int]:
    """The process id of `co index watch`."""
    watcher = subprocess.Popen(
        [*CO, "index", "watch"], env=vault.environment, cwd=vault.folder, stdout=subprocess.DEVNULL
    )
    try:
        yield watcher.pid
    finally:
        watcher.terminate()
        watcher.wait()


def _cpu_seconds(process: int) -> float:
    if sys.platform != "linux":
        return 0.0
    fields = Path(f"/proc/{process}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def _save(vault: BenchVault, word: str) -> None:
    Path(vault.root, "memories", f"{word}.md").write_text(f"Somebody saved zqx{word} in an editor.\n", "utf-8")


def _until_found(kb: KnowledgeBase, word: str) -> None:
    end = time.monotonic() + PATIENCE
    while not kb.search(f"zqx{word}", 1, backend="fts5").hits:
        if time.monotonic() > end:
            raise TimeoutError(f"{word} was not found within {PATIENCE:g} seconds")
        time.sleep(0.005)
