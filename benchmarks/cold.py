"""What one `co search` costs in a fresh process, with the default installation and with static vectors.

Beside a bare Python start and a bare walk of the vault. By the clock, two cores share the reading; on a busy machine
only CPU time can be compared.
"""

from __future__ import annotations

import subprocess
import sys
import time
from statistics import median

from benchmarks.measuring import BenchRow
from benchmarks.vaults import Bar, bench_vault, walk
from co_cli.ground.errors import KnowledgeError

REPEATS = 9
CO = (sys.executable, "-c", "from co_cli.cli.app import run; run()")
"""What the script `co` does."""
WALK = "a bare walk of the vault"
QUERY = "who approved the late refund for the customer"


def bench_cold(notes: int, bar: Bar | None = None) -> list[BenchRow]:
    if sys.platform == "win32":
        raise KnowledgeError("this benchmark needs the CPU time of child processes, which Windows does not report")
    with bench_vault(notes, bar, provider="encoder") as default, bench_vault(notes, bar) as static:
        commands = {
            "python -c pass": (static, [sys.executable, "-c", "pass"]),
            "co search, encoder and reader": (default, [*CO, "search", QUERY]),
            "co search, encoder": (default, [*CO, "search", QUERY, "--no-read"]),
            "co search, static vectors and reader": (static, [*CO, "search", QUERY]),
            "co search, static vectors": (static, [*CO, "search", QUERY, "--no-read"]),
            "co search --backend fts5": (default, [*CO, "search", QUERY, "--backend", "fts5"]),
        }
        for vault, command in commands.values():
            child_seconds(command, vault.environment, vault.folder)  # compile, and fill the file cache
        taken: dict[str, list[float]] = {}
        for _ in range(REPEATS):
            for name, (vault, command) in commands.items():
                started = time.perf_counter()
                seconds = child_seconds(command, vault.environment, vault.folder)
                taken.setdefault(f"{name} (clock)", []).append(time.perf_counter() - started)
                taken.setdefault(f"{name} (CPU)", []).append(seconds)
            started = time.process_time()
            walk(static.root)
            taken.setdefault(f"{WALK} (CPU)", []).append(time.process_time() - started)
    return [BenchRow(name, round(median(seconds) * 1000, 1), "ms") for name, seconds in taken.items()]


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
