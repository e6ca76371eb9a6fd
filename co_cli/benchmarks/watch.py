"""What watching costs: how soon a save is found, what an idle watcher uses, and how many syncs a burst of files is."""

from __future__ import annotations

import os
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path
from statistics import median

from co_cli.benchmarks.cold import CO
from co_cli.benchmarks.corpus import write_corpus
from co_cli.benchmarks.measuring import BenchRow
from co_cli.benchmarks.vaults import BenchVault
from co_cli.index.sync import Progress
from co_cli.knowledge_base import KnowledgeBase
from co_cli.places import WATCHERS
from co_cli.service.vouching import SIGN
from co_cli.service.watching import Watcher
from co_cli.settings import load_settings

NOTES = 2_000
SAVES = 20
BURST = 1_000
IDLE_SECONDS = 10.0
PATIENCE = 60.0
HANDLES, TASKS = "/proc/self/fd", "/proc/self/task"


def bench_watch(
    notes: int = NOTES,
    progress: Progress | None = None,
    idle: float = IDLE_SECONDS,
    saves: int = SAVES,
    burst: int = BURST,
) -> list[BenchRow]:
    """Measure in a temporary folder with default settings: nothing of the person's own is read or written."""
    with tempfile.TemporaryDirectory(prefix="co-bench-") as folder:
        vault, data = os.path.join(folder, "vault"), os.path.join(folder, "data")
        os.makedirs(os.path.join(vault, "memories"))
        write_corpus(vault, notes)
        settings = load_settings({"vault": vault, "data_dir": data}, environ={"HOME": folder}, start=folder)
        with KnowledgeBase.open(settings=settings) as kb:
            kb.sync(progress)
            handles, threads = _count(HANDLES), _threads()
            with Watcher(kb) as watcher:
                watcher.caught_up(PATIENCE)
                used = (_count(HANDLES) - handles, _threads() - threads)
                rows = [*_idle(notes, idle, used), *_saves(kb, saves), *_burst(kb, watcher, burst)]
    return rows


@contextmanager
def watched(vault: BenchVault) -> Generator[Callable[[], float]]:
    """`co watch` in a process of its own, once it vouches for the index; the function says what CPU time it used."""
    watcher = subprocess.Popen([*CO, "watch"], env=vault.environment, cwd=vault.folder, stdout=subprocess.DEVNULL)
    try:
        end = time.monotonic() + PATIENCE
        while not any(Path(vault.data, WATCHERS).glob(f"*/{SIGN}")) and time.monotonic() < end:
            time.sleep(0.05)
        yield lambda: _cpu_seconds(watcher.pid)
    finally:
        watcher.terminate()
        watcher.wait()


def _cpu_seconds(process: int) -> float:
    fields = Path(f"/proc/{process}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def _idle(notes: int, seconds: float, used: tuple[int, int]) -> list[BenchRow]:
    before = time.process_time()
    time.sleep(seconds)
    cpu = (time.process_time() - before) / seconds
    return [
        BenchRow(f"watching {notes:,} notes: file handles", used[0], "handles"),
        BenchRow("threads", used[1], "threads"),
        BenchRow(f"CPU while nothing happens, over {seconds:g} s", cpu * 1000, "ms a s"),
    ]


def _saves(kb: KnowledgeBase, count: int) -> list[BenchRow]:
    waited: list[float] = []
    for number in range(count):
        _save(kb, f"saved-{number}", f"zqxsaved{number}")
        saved = time.monotonic()
        _until_found(kb, f"zqxsaved{number}")
        waited.append(time.monotonic() - saved)
    return [
        BenchRow(f"from a save to being found, median of {count}", median(waited), "s"),
        BenchRow("the slowest of them", max(waited), "s"),
    ]


def _burst(kb: KnowledgeBase, watcher: Watcher, files: int) -> list[BenchRow]:
    watcher.caught_up(PATIENCE)
    syncs, started = watcher.syncs, time.monotonic()
    for number in range(files):
        _save(kb, f"burst-{number}", f"zqxburst{number}")
    _until_found(kb, f"zqxburst{files - 1}")
    watcher.caught_up(PATIENCE)
    took, rounds = time.monotonic() - started, watcher.syncs - syncs
    found = sum(bool(kb.search(f"zqxburst{number}", 1, backend="fts5").hits) for number in range(files))
    return [
        BenchRow(f"{files:,} files at once: syncs", rounds, "syncs"),
        BenchRow("the same: found", found, "files"),
        BenchRow("the same: seconds until all are indexed", took, "s"),
    ]


def _save(kb: KnowledgeBase, name: str, word: str) -> None:
    with open(os.path.join(kb.root, "memories", f"{name}.md"), "w", encoding="utf-8") as stream:
        stream.write(f"Somebody saved {word} in an editor.\n")


def _until_found(kb: KnowledgeBase, word: str) -> None:
    end = time.monotonic() + PATIENCE
    while not kb.search(word, 1, backend="fts5").hits and time.monotonic() < end:
        time.sleep(0.005)


def _count(folder: str) -> int:
    return len(os.listdir(folder)) if os.path.isdir(folder) else 0


def _threads() -> int:
    """Those of the system; those of Python where it does not tell."""
    return _count(TASKS) or threading.active_count()
