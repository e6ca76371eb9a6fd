"""Ranking by words in a table of many passages: all that have a word, and only those that can reach the top."""

from __future__ import annotations

import os
import tempfile
import time

import apsw

from co_cli.benchmarks.corpus import Writer
from co_cli.benchmarks.measuring import BenchRow, interleaved
from co_cli.benchmarks.sync import Bar
from co_cli.benchmarks.vaults import questions
from co_cli.index.best_words import RANKED, best_by_words
from co_cli.index.connection import SCHEMA, fetch
from co_cli.index.match import read_query
from co_cli.index.words import piece_counts
from co_cli.retrieval.candidates import BY_WORDS

ROWS = 100_000
QUERIES = 20
SENTENCES = 3
BATCH = 5_000

PUT = """
insert into docs_fts (rowid, title, heading, body, tags, aliases, grams, context)
values (:id, :title, '', :body, '', '', '', '')
"""


def bench_words(rows: int, bar: Bar | None = None) -> list[BenchRow]:
    with tempfile.TemporaryDirectory(prefix="co-bench-") as folder:
        connection = apsw.Connection(os.path.join(folder, "search.db"))
        connection.pragma("journal_mode", "wal")
        connection.pragma("synchronous", "off")
        connection.execute(SCHEMA.decode())
        writer, started = Writer(seed=3), time.process_time()
        for start in range(0, rows, BATCH):
            with connection:
                for number in range(start, min(start + BATCH, rows)):
                    body = " ".join(writer.sentence() for _ in range(SENTENCES))
                    connection.execute(PUT, {"id": number + 1, "title": writer.sentence(), "body": body})
            if bar:
                bar(min(start + BATCH, rows), rows)
        if bar:
            bar.done()
        made = time.process_time() - started
        asked = [read_query(query) for query in questions(QUERIES)]
        turns = {name: iter(asked) for name in ("all", "best", "counting")}

        def best(counting: bool) -> None:
            query = next(turns["counting" if counting else "best"])
            counts = piece_counts(connection, query)
            if not counting:
                best_by_words(connection, counts, rows, BY_WORDS)

        medians = interleaved(
            {
                "all": lambda: fetch(connection, RANKED, {"match": next(turns["all"]).any_term(), "limit": BY_WORDS}),
                "best": lambda: best(False),
                "counting": lambda: best(True),
            },
            QUERIES,
            clock=time.process_time,
        )
        connection.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_TRUNCATE)
        size = os.path.getsize(os.path.join(folder, "search.db"))
        connection.close()
    ranked = medians["all"]
    return [
        BenchRow(f"writing {rows:,} passages, words alone (CPU)", round(made, 3), "s"),
        BenchRow("the file", round(size / 1e6, 1), "MB"),
        BenchRow(f"ranking all that have a word, best {BY_WORDS} (CPU)", round(ranked * 1000, 3), "ms", 1.0),
        BenchRow("ranking what can reach the top", round(medians["best"] * 1000, 3), "ms", medians["best"] / ranked),
        BenchRow("  counting the words", round(medians["counting"] * 1000, 3), "ms", medians["counting"] / ranked),
    ]
