"""What one `co search` costs in a fresh process, beside a bare Python start and a bare walk of the vault."""

from __future__ import annotations

import subprocess
import sys
import time
from statistics import median

from benchmarks.measuring import BenchRow
from benchmarks.vaults import Bar, bench_vault, walk
from co_cli.ground.errors import KnowledgeError

REPEATS = 15
GOAL, LARGE_GOAL, LARGE = 10.0, 20.0, 100_000
CO = (sys.executable, "-c", "from co_cli.cli.app import run; run()")
"""What the script `co` does."""
QUERY = "who approved the late refund for the customer"


def bench_cold(notes: int, bar: Bar | None = None) -> list[BenchRow]:
    if sys.platform == "win32":
        raise KnowledgeError("this benchmark needs the CPU time of child processes, which Windows does not report")
    with bench_vault(notes, bar) as vault:
        commands = {
            "bare": [sys.executable, "-c", "pass"],
            "hybrid": [*CO, "search", QUERY],
            "words": [*CO, "search", QUERY, "--backend", "fts5"],
        }
        for command in commands.values():
            child_seconds(command, vault.environment, vault.folder)  # compile, and fill the file cache
        taken: dict[str, list[float]] = {name: [] for name in (*commands, "walk")}
        for _ in range(REPEATS):
            for name, command in commands.items():
                taken[name].append(child_seconds(command, vault.environment, vault.folder))
            started = time.process_time()
            walk(vault.root)
            taken["walk"].append(time.process_time() - started)
    bare, walked = median(taken["bare"]), median(taken["walk"])
    hybrid, words = median(taken["hybrid"]), median(taken["words"])
    return [
        BenchRow("python -c pass (CPU)", round(bare * 1000, 2), "ms", 1.0),
        BenchRow(f"bare walk of {notes:,} notes (CPU)", round(walked * 1000, 2), "ms"),
        BenchRow(
            "co search, hybrid, less the walk",
            round((hybrid - walked) * 1000, 2),
            "ms",
            (hybrid - walked) / bare,
            GOAL if notes < LARGE else LARGE_GOAL,
        ),
        BenchRow(
            "co search --backend fts5, less the walk", round((words - walked) * 1000, 2), "ms", (words - walked) / bare
        ),
    ]


def child_seconds(command: list[str], environment: dict[str, str], folder: str) -> float:
    """The CPU time of a process that is started for it."""
    import resource  # not on Windows

    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    child_output(command, environment, folder)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return (after.ru_utime + after.ru_stime) - (before.ru_utime + before.ru_stime)


def child_output(command: list[str], environment: dict[str, str], folder: str) -> str:
    done = subprocess.run(command, env=environment, cwd=folder, capture_output=True, check=False)
    if done.returncode not in (0, 1):
        raise KnowledgeError(f"{' '.join(command)} failed: {done.stderr.decode(errors='replace').strip()}")
    return done.stdout.decode(errors="replace")
