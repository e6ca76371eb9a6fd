"""Rerank: a model that reads question and passage together scores the first candidates. Optional.

A reranker is any callable. If it fails, is late or answers nonsense, the order stays as it was, and the result says so.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from math import isfinite
from typing import Protocol

from co_cli.retrieval.score import Scored, best_first

READ = 20
"""Notes that are read, each with its best passage."""
SECONDS = 10.0


class Reranker(Protocol):
    """The query and the texts of the first candidates into one score each: more is better, on any scale."""

    def __call__(self, query: str, texts: Sequence[str], /) -> Sequence[float]: ...


def rerank(
    reranker: Reranker, query: str, ranked: Sequence[Scored], texts: Sequence[str], weight: float
) -> tuple[list[Scored], str | None]:
    """Add the signal `reader` to the first candidates, which have these texts; or say what was wrong.

    Its scores are spread from 0 to 1 and weighed. What was not read keeps its score.
    """
    scores, problem = _ask(reranker, query, texts)
    if problem:
        return list(ranked), f"the reranker {problem}: results are in the order without it"
    low, spread = min(scores), max(scores) - min(scores) or 1.0
    read = [one.plus("reader", weight * (score - low) / spread) for one, score in zip(ranked, scores, strict=False)]
    return best_first([*read, *ranked[len(texts) :]]), None


def _ask(reranker: Reranker, query: str, texts: Sequence[str]) -> tuple[list[float], str | None]:
    answers: list[list[float]] = []
    problems: list[BaseException] = []

    def ask() -> None:
        try:
            answers.append([float(score) for score in reranker(query, texts)])
        except BaseException as error:
            problems.append(error)

    # a daemon: what hangs must not keep the process from ending
    asking = threading.Thread(target=ask, name="co-rerank", daemon=True)
    asking.start()
    asking.join(SECONDS)
    if problems:
        return [], f"failed ({' '.join(str(problems[0]).split())[:200] or type(problems[0]).__name__})"
    if not answers:
        return [], f"did not answer within {SECONDS:g} s"
    scores = answers[0]
    if len(scores) != len(texts) or not all(isfinite(score) for score in scores):
        return [], f"answered with {len(scores)} scores for {len(texts)} texts, or with one that is no number"
    return scores, None
