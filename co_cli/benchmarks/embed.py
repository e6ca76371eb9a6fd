"""What the first sync costs with embedding and indexing, beside embedding the same texts alone with a plain loop."""

from __future__ import annotations

import os
import tempfile
import time
from itertools import chain
from statistics import median

from co_cli.benchmarks.corpus import write_corpus
from co_cli.benchmarks.measuring import BenchRow
from co_cli.benchmarks.plain_model import PlainModel
from co_cli.benchmarks.sync import Bar
from co_cli.embedding.static import StaticEmbedder
from co_cli.index.grep import read_origin
from co_cli.index.meaning import embedding_text
from co_cli.knowledge_base import KnowledgeBase
from co_cli.settings import load_settings
from co_cli.sources.passages import passages_of

REPEATS = 3
GOAL = 2.5


def bench_embed(notes: int, bar: Bar | None = None) -> list[BenchRow]:
    taken: dict[str, list[float]] = {"plain": [], "ours": [], "sync": []}
    count = 0
    for round_ in range(REPEATS):
        with tempfile.TemporaryDirectory(prefix="co-bench-") as folder:
            vault, data = os.path.join(folder, "vault"), os.path.join(folder, "data")
            os.makedirs(vault)
            write_corpus(vault, notes, seed=round_)
            settings = load_settings({"vault": vault, "data_dir": data}, environ={"HOME": folder}, start=folder)
            with KnowledgeBase.open(settings=settings) as kb:
                started = time.perf_counter()
                kb.sync(bar)
                taken["sync"].append(time.perf_counter() - started)
                texts = list(chain.from_iterable(_texts(kb)))
        count = len(texts)
        plain, ours = PlainModel(), StaticEmbedder()
        started = time.perf_counter()
        for text in texts:
            plain.embed(text)
        taken["plain"].append(time.perf_counter() - started)
        started = time.perf_counter()
        ours.embed(texts, "document")
        taken["ours"].append(time.perf_counter() - started)
    if bar:
        bar.done()
    alone = median(taken["plain"])
    return [
        BenchRow(f"embedding {count:,} passages, plain loop", round(alone, 3), "s", 1.0),
        BenchRow("embedding them with co-cli", round(median(taken["ours"]), 3), "s", median(taken["ours"]) / alone),
        BenchRow(
            "first sync, words and vectors", round(median(taken["sync"]), 3), "s", median(taken["sync"]) / alone, GOAL
        ),
    ]


def _texts(kb: KnowledgeBase) -> list[list[str]]:
    """The texts that the sync embedded."""
    found: list[list[str]] = []
    for note, _ in read_origin(kb.root, (), kb.settings.knowledge_max_note_bytes):
        tags, aliases = (
            " ".join(note.tags),
            " · ".join((*note.aliases, note.description) if note.description else note.aliases),
        )
        found.append(
            [embedding_text(note.title, p.heading, p.text, tags, aliases, p.context) for p in passages_of(note)]
        )
    return found
