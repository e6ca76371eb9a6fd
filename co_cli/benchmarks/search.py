"""What one search costs in a process that stays: the whole pipeline beside a simple hybrid, and each step alone."""

from __future__ import annotations

import time
from collections.abc import Callable

from co_cli.benchmarks.measuring import BenchRow, interleaved
from co_cli.benchmarks.sync import Bar
from co_cli.benchmarks.vaults import bench_vault, questions
from co_cli.embedding.word_codes import cosine_table
from co_cli.index.match import read_query
from co_cli.knowledge_base import KnowledgeBase
from co_cli.retrieval.alike import like_the_best
from co_cli.retrieval.candidates import BY_MEANING, BY_WORDS
from co_cli.retrieval.evidence import likeness, measure
from co_cli.retrieval.fuse import Weights
from co_cli.retrieval.profiles import DEFAULT_PROFILE, Profile
from co_cli.retrieval.question import understand
from co_cli.retrieval.rerank import RERANKED, rerank
from co_cli.service.searching import search_index
from co_cli.values import Filters

QUERIES = 40
GOAL = 2.5
SIMPLE = Profile("simple", names=False, trust=False, crowd=False, noise=False, rerank=False, recency=False)
"""Any word, bm25 over the best, cosine min-max: the plainest hybrid that is any good."""


def bench_search(notes: int, bar: Bar | None = None) -> list[BenchRow]:
    with bench_vault(notes, bar) as vault, vault.open() as kb:
        return _rows(kb)


def _rows(kb: KnowledgeBase) -> list[BenchRow]:
    queries = questions(QUERIES)
    for query in queries:
        _ask(kb, query, DEFAULT_PROFILE)  # a process that stays has its vectors and words in memory
    turn = iter(queries * 10)
    medians = interleaved(
        {
            "simple": lambda: _ask(kb, next(turn), SIMPLE),
            "whole": lambda: _ask(kb, next(turn), DEFAULT_PROFILE),
        },
        QUERIES,
        clock=time.process_time,
    )
    simple, whole = medians["simple"], medians["whole"]
    passages = kb.index.counts().passages
    rows = [
        BenchRow(f"simple hybrid, {passages:,} passages (CPU)", round(simple * 1000, 3), "ms", 1.0),
        BenchRow("the whole pipeline", round(whole * 1000, 3), "ms", whole / simple, GOAL),
    ]
    steps: dict[str, list[float]] = {}
    for query in queries:
        for name, step in _steps(kb, query).items():
            steps.setdefault(name, []).append(interleaved({"step": step}, 1, clock=time.process_time)["step"])
    for name, seconds in steps.items():
        middle = sorted(seconds)[len(seconds) // 2]
        rows.append(BenchRow(f"  {name}", round(middle * 1000, 3), "ms", middle / simple))
    return rows


def _ask(kb: KnowledgeBase, query: str, profile: Profile) -> object:
    with kb.index.snapshot():
        return search_index(kb.index, kb.embedders, query, Filters(), 10, None, profile)


def _steps(kb: KnowledgeBase, query: str) -> dict[str, Callable[[], object]]:
    """Each step with what it would get, so that it can be timed alone."""
    index, words = kb.index, read_query(query)
    with index.snapshot():
        trace = search_index(index, kb.embedders, query, Filters(), 10, None).trace
    active = index.spaces().active
    embedder = kb.embedders.of(active.space) if active else None
    vector = embedder.embed([query], "query")[0] if embedder else None
    if trace is None or active is None or embedder is None or vector is None:
        return {}
    ids = [candidate.passage_id for candidate in trace.fused[:RERANKED]]
    passages, known = index.words_of(ids)
    like = likeness(trace.terms, known, cosine_table())
    weights = Weights(active.space.vector_weight, 1 - active.space.vector_weight)
    return {
        "embed the question": lambda: embedder.embed([query], "query"),
        "candidates by words": lambda: index.search(words, None, BY_WORDS, relaxed=True),
        "candidates by meaning": lambda: index.nearest(active, vector, None, BY_MEANING),
        "candidates by name": lambda: index.called(query),
        "trust in words": lambda: index.coverage(words, trace.matches),
        "understand the question": lambda: understand(query, words.words, index.facts(words.words)),
        "read the candidates": lambda: index.words_of(ids),
        "compare words": lambda: likeness(trace.terms, known, cosine_table()),
        "measure the evidence": lambda: measure(trace.terms, passages, like),
        "rerank": lambda: rerank(trace.fused, trace.evidence, weights, trace.telling),
        "likeness to the best": lambda: like_the_best(trace.ranked, index.vectors(active, ids), 1.0),
        "snippets": lambda: (index.marked(words, ids[:10]), index.passages(ids[:10])),
    }
