"""Ask a model for the last word: an optional step behind all the others, for whoever has a cross-encoder or an LLM.

A reranker is any callable that gives each text a score. It has a few seconds; if it fails, is late or answers nonsense,
the order stays as it was, and the answer says so.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from functools import partial
from math import isfinite
from typing import Protocol

from co_cli.embedding.embedders import NotAskedYet
from co_cli.retrieval.fuse import Scored

ASKED = 20
"""Notes that are shown to it, each with its best passage."""
SECONDS = 10.0
MOST_TRIES = 3
"""If what it is asked about changes meanwhile it is asked again, so often."""


class Reranker(Protocol):
    """The query, and the texts of the first candidates, into one score each: more is better, on any scale."""

    def __call__(self, query: str, texts: Sequence[str], /) -> Sequence[float]: ...


class UnhurriedReranker:
    """The same reranker for one search, which is not asked while the index is being read (see Unhurried)."""

    def __init__(self, reranker: Reranker) -> None:
        self._reranker = reranker
        self._answers: dict[tuple[str, ...], tuple[list[float], str | None]] = {}

    def __call__(self, query: str, texts: Sequence[str], /) -> Sequence[float]:
        return self._reranker(query, texts)

    def answer(self, query: str, texts: Sequence[str], seconds: float) -> tuple[list[float], str | None]:
        asked = (query, *texts)

        def ask() -> None:
            self._answers[asked] = _ask(self._reranker, query, texts, seconds)

        if asked not in self._answers:
            if len(self._answers) < MOST_TRIES:
                raise NotAskedYet(ask)
            ask()
        return self._answers[asked]


def rerank_with(
    reranker: Reranker, query: str, ranked: Sequence[Scored], texts: Sequence[str], seconds: float = SECONDS
) -> tuple[list[Scored], str | None]:
    """The first candidates, those that have a text, in the reranker's order, and the others behind them.

    Its score decides alone and is the only part, `reranker`; the others keep half of theirs. Or the order there was,
    and what was the matter.
    """
    if not texts:
        return list(ranked), None
    ask = reranker.answer if isinstance(reranker, UnhurriedReranker) else partial(_ask, reranker)
    scores, problem = ask(query, texts, seconds)
    if problem:
        return list(ranked), f"the reranker {problem}: the order is the one without it"
    low, spread = min(scores), max(scores) - min(scores) or 1.0
    first: list[Scored] = []
    for (passage, doc, _, _, words, meaning), score in zip(ranked, scores, strict=False):
        part = 0.5 + 0.5 * (score - low) / spread
        first.append(Scored(passage, doc, part, {"reranker": part}, words, meaning))
    behind = [
        Scored(passage, doc, score / 2, {name: part / 2 for name, part in signals.items()}, words, meaning)
        for passage, doc, score, signals, words, meaning in ranked[len(texts) :]
    ]
    return sorted(first, key=lambda candidate: -candidate.score) + behind, None


def _ask(reranker: Reranker, query: str, texts: Sequence[str], seconds: float) -> tuple[list[float], str | None]:
    answers: list[Sequence[float]] = []
    problems: list[BaseException] = []

    def ask() -> None:
        try:
            answers.append(reranker(query, texts))
        except BaseException as error:
            problems.append(error)

    # a daemon: what hangs must not keep the process from ending
    asking = threading.Thread(target=ask, name="co-rerank", daemon=True)
    asking.start()
    asking.join(seconds)
    if problems:
        return [], f"failed ({' '.join(str(problems[0]).split())[:200] or type(problems[0]).__name__})"
    if not answers:
        return [], f"did not answer within {seconds:g} s"
    try:
        scores = [float(score) for score in answers[0]]
    except (TypeError, ValueError):
        return [], "answered with something else than numbers"
    if len(scores) != len(texts) or not all(isfinite(score) for score in scores):
        return [], f"answered with {len(scores)} scores for {len(texts)} texts, or with one that is no number"
    return scores, None
