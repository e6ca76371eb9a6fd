"""What a vault takes: search.db on disk beside the notes, and a process that searched, beside its vectors."""

from __future__ import annotations

import os
import sys

import apsw

from benchmarks.cold import child_output
from benchmarks.measuring import BenchRow
from benchmarks.vaults import Bar, bench_vault, questions

MB = 1_000_000
DISK_GOAL, MEMORY_GOAL, BESIDE_MB = 1.6, 1.5, 150
"""A process may take one and a half times its vectors, and so many megabytes for Python and all it imports."""
SEARCHES = 20

TABLES = "select name, sum(pgsize) from dbstat group by name order by 2 desc"
GROUPS = {
    "vectors": ("docs_vec",),
    "cache of vectors": ("embedding_cache",),
    "words": ("docs_fts",),
    "passages": ("passages",),
}
CHILD = """
import os, sys, threading, time
from co_cli.entrance.knowledge_base import KnowledgeBase
with KnowledgeBase.open() as kb:
    for query in sys.argv[1:]:
        kb.search(query, read=False)
    time.sleep(0.5)
    status = dict(line.split(":", 1) for line in open("/proc/self/status"))
    print(status["RssAnon"].split()[0], status["VmRSS"].split()[0])
    print(threading.active_count(), len(os.listdir("/proc/self/fd")))
"""


def bench_footprint(notes: int, bar: Bar | None = None) -> list[BenchRow]:
    with bench_vault(notes, bar) as vault:
        own, path = sum(map(os.path.getsize, vault.paths)), os.path.join(vault.data, "search.db")
        stored, connection = os.path.getsize(path), apsw.Connection(path)
        passages = int(str(connection.execute("select count(*) from passages").get))
        sizes = {str(name): int(str(size)) for name, size in connection.execute(TABLES)}
        connection.close()
        rows = [
            BenchRow(f"{notes:,} notes on disk", round(own / MB, 2), "MB", 1.0),
            BenchRow("search.db", round(stored / MB, 2), "MB", stored / own, DISK_GOAL),
        ]
        rest = stored
        for name, prefixes in GROUPS.items():
            size = sum(value for table, value in sizes.items() if table.startswith(prefixes))
            rest -= size
            rows.append(BenchRow(f"  {name}", round(size / MB, 2), "MB", size / own))
        rows.append(BenchRow("  everything else", round(rest / MB, 2), "MB", rest / own))
        memory = "memory of a process that searched"
        if not sys.platform.startswith("linux"):
            return [*rows, BenchRow(memory, 0.0, "MB", skipped="only Linux tells it in /proc")]
        command = [sys.executable, "-c", CHILD, *questions(SEARCHES)]
        held, mapped, threads, handles = map(int, child_output(command, vault.environment, vault.folder).split())
    vectors = passages * 256 * 4
    allowed = MEMORY_GOAL * vectors + BESIDE_MB * MB
    return [
        *rows,
        BenchRow(f"vectors of {passages:,} passages", round(vectors / MB, 2), "MB"),
        BenchRow(
            f"{memory}, beside 1.5 times its vectors and {BESIDE_MB} MB",
            held * 1024 / MB,
            "MB",
            held * 1024 / allowed,
            1.0,
        ),
        BenchRow("with the pages of search.db that the system shows it, and can take back", mapped * 1024 / MB, "MB"),
        BenchRow("its threads", threads, ""),
        BenchRow("its open files", handles, ""),
    ]
