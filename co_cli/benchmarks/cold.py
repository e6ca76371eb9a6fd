"""What one `co search` costs in a fresh process, beside a bare Python start and a bare walk of the vault."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from statistics import median

from co_cli.benchmarks.corpus import write_corpus
from co_cli.benchmarks.measuring import BenchRow
from co_cli.benchmarks.sync import Bar, walk
from co_cli.errors import KnowledgeError
from co_cli.knowledge_base import KnowledgeBase
from co_cli.settings import load_settings

REPEATS = 15
GOAL = 3.5
CO = (sys.executable, "-c", "from co_cli.cli.app import run; run()")
"""What the script `co` does."""
QUERY = "who approved the late refund for the customer"


def bench_cold(notes: int, bar: Bar | None = None) -> list[BenchRow]:
    if sys.platform == "win32":
        raise KnowledgeError(
            "co bench cold needs a system that tells the CPU time of a child process; Windows does not"
        )
    with tempfile.TemporaryDirectory(prefix="co-bench-") as folder:
        vault, data = os.path.join(folder, "vault"), os.path.join(folder, "data")
        os.makedirs(vault)
        write_corpus(vault, notes)
        environment = {
            "PATH": os.environ.get("PATH", ""),
            "HOME": folder,
            "CO_VAULT": vault,
            "CO_DATA_DIR": data,
            # an installed package has its bytecode; so has this one, whatever the environment says
            "PYTHONPYCACHEPREFIX": os.path.join(folder, "bytecode"),
        }
        settings = load_settings({}, environ=environment, start=folder)
        with KnowledgeBase.open(settings=settings) as kb:
            kb.sync(bar)
        if bar:
            bar.done()
        commands = {
            "bare": [sys.executable, "-c", "pass"],
            "hybrid": [*CO, "search", QUERY],
            "words": [*CO, "search", QUERY, "--backend", "fts5"],
        }
        for command in commands.values():
            _cpu_seconds(command, environment, folder)  # compile, and fill the file cache
        taken: dict[str, list[float]] = {name: [] for name in (*commands, "walk")}
        for _ in range(REPEATS):
            for name, command in commands.items():
                taken[name].append(_cpu_seconds(command, environment, folder))
            started = time.process_time()
            walk(vault)
            taken["walk"].append(time.process_time() - started)
    bare, walked = median(taken["bare"]), median(taken["walk"])
    hybrid, words = median(taken["hybrid"]), median(taken["words"])
    return [
        BenchRow("python -c pass (CPU)", round(bare * 1000, 2), "ms", 1.0),
        BenchRow(f"bare walk of {notes:,} notes (CPU)", round(walked * 1000, 2), "ms"),
        BenchRow(
            "co search, hybrid, less the walk", round((hybrid - walked) * 1000, 2), "ms", (hybrid - walked) / bare, GOAL
        ),
        BenchRow(
            "co search --backend fts5, less the walk", round((words - walked) * 1000, 2), "ms", (words - walked) / bare
        ),
    ]


def _cpu_seconds(command: list[str], environment: dict[str, str], folder: str) -> float:
    import resource  # not on Windows

    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run(command, env=environment, cwd=folder, capture_output=True, check=False)
    if done.returncode not in (0, 1):
        raise KnowledgeError(f"{' '.join(command)} failed: {done.stderr.decode(errors='replace').strip()}")
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return (after.ru_utime + after.ru_stime) - (before.ru_utime + before.ru_stime)
