"""What `co mcp` costs until a client can use it, beside importing its SDK alone. Clients wait a few seconds at most."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Mapping, Sequence
from statistics import median
from typing import Any

from benchmarks.cold import CO
from benchmarks.measuring import BenchRow
from benchmarks.vaults import Bar, bench_vault
from co_cli.errors import KnowledgeError

REPEATS = 7
GOAL = 2.5
INITIALIZE = {
    "method": "initialize",
    "params": {
        "protocolVersion": "2025-11-25",
        "capabilities": {},
        "clientInfo": {"name": "benchmarks", "version": "1"},
    },
}
LIST_TOOLS = {"method": "tools/list"}
RECALL = {
    "method": "tools/call",
    "params": {"name": "recall_memory", "arguments": {"query": "who approved the late refund for the customer"}},
}


def bench_mcp(notes: int, bar: Bar | None = None, repeats: int = REPEATS, warm: int = 1) -> list[BenchRow]:
    """`warm` rounds come first and do not count: they compile, and fill the file cache."""
    if sys.platform == "win32":
        raise KnowledgeError("this benchmark needs the CPU time of child processes, which Windows does not report")
    with bench_vault(notes, bar) as vault:
        yardstick = [sys.executable, "-c", "import mcp.server"]
        server = [*CO, "mcp"]
        tasks: dict[str, tuple[list[str], tuple[dict[str, Any], ...]]] = {
            "import": (yardstick, ()),
            "initialised": (server, (INITIALIZE,)),
            "tools": (server, (INITIALIZE, LIST_TOOLS)),
            "recall": (server, (INITIALIZE, LIST_TOOLS, RECALL)),
        }
        taken: dict[str, list[float]] = {name: [] for name in tasks}
        for number in range(warm + repeats):
            for name, (command, requests) in tasks.items():
                seconds = cpu_until_answered(command, requests, vault.environment, vault.folder)
                if number >= warm:
                    taken[name].append(seconds)
    cost = {name: median(values) for name, values in taken.items()}
    bare = cost["import"]
    return [
        BenchRow('python -c "import mcp.server" (CPU)', round(bare * 1000, 1), "ms", 1.0),
        BenchRow(
            "co mcp until it is initialised",
            round(cost["initialised"] * 1000, 1),
            "ms",
            cost["initialised"] / bare,
            GOAL,
        ),
        BenchRow("co mcp until its tools are listed", round(cost["tools"] * 1000, 1), "ms", cost["tools"] / bare),
        BenchRow(
            f"co mcp until {notes:,} notes were asked", round(cost["recall"] * 1000, 1), "ms", cost["recall"] / bare
        ),
    ]


def cpu_until_answered(
    command: Sequence[str], requests: Sequence[Mapping[str, Any]], environment: dict[str, str], folder: str
) -> float:
    """The CPU time of a program until it has answered these requests; then it is killed. Without any, until it ends."""
    import resource  # not on Windows

    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    with subprocess.Popen(
        command,
        env=environment,
        cwd=folder,
        text=True,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stderr is not None
        for number, request in enumerate(requests):
            process.stdin.write(json.dumps({"jsonrpc": "2.0", "id": number, **request}) + "\n")
            process.stdin.flush()
            answer = process.stdout.readline()
            if '"result"' not in answer:
                process.kill()
                raise KnowledgeError(f"co mcp did not answer: {answer or process.stderr.read().strip()}")
        if requests:
            process.kill()
        elif process.wait():
            raise KnowledgeError(f"{' '.join(command)} failed: {process.stderr.read().strip()}")
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return (after.ru_utime + after.ru_stime) - (before.ru_utime + before.ru_stime)
