"""Rerank: a model that reads question and passage together scores the first candidates.

The reader of this package is one such model (`read`), any callable another (`rerank`). If it cannot be used, fails, is
late or answers nonsense, the order stays as it was, and the result says so.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from math import isfinite
from types import MappingProxyType
from typing import TYPE_CHECKING, NamedTuple, Protocol

from co_cli.errors import KnowledgeError
from co_cli.retrieval.score import Scored, best_first

if TYPE_CHECKING:
    from co_cli.embedding.reader import CrossEncoder

READ = 20
"""Notes that are read, each with its best passage."""
READ_SECONDS = 0.4
"""What the reader may take by default."""
SECONDS = 10.0
"""What any other model may take."""


class Reranker(Protocol):
    """The query and the texts of the first candidates into one score each: more is better, on any scale."""

    def __call__(self, query: str, texts: Sequence[str], /) -> Sequence[float]: ...


class Reading(NamedTuple):
    """What a model made of the candidates: their new order, and the reader's scores of the passages that it read."""

    ranked: list[Scored]
    scores: Mapping[int, float] = MappingProxyType({})
    problem: str | None = None


def read(
    reader: CrossEncoder,
    query: str,
    ranked: Sequence[Scored],
    texts: Sequence[str],
    weight: float,
    seconds: float | None,
) -> Reading:
    """Add the signal `reader` to the first candidates, which have these texts. Those that time allows are read.

    The lowest score adds nothing, so that candidates which were not read stay where they are, behind those that were.
    """
    try:
        found = reader.scores(query, texts, seconds)
    except KnowledgeError as error:
        return Reading(list(ranked), problem=f"results are in the order without the reader: {error}")
    scores = [score for score in found[: found.index(None) if None in found else None] if score is not None]
    low = min(scores, default=0.0)
    added = [one.plus("reader", weight * (score - low)) for one, score in zip(ranked, scores, strict=False)]
    read_scores = {one.passage: score for one, score in zip(ranked, scores, strict=False)}
    return Reading(best_first([*added, *ranked[len(scores) :]]), read_scores)


def rerank(reranker: Reranker, query: str, ranked: Sequence[Scored], texts: Sequence[str], weight: float) -> Reading:
    """Add the signal `reader` to the first candidates, with any model's scores spread from 0 to 1 and weighed."""
    scores, problem = _ask(reranker, query, texts)
    if problem:
        return Reading(list(ranked), problem=f"the reranker {problem}: results are in the order without it")
    low, spread = min(scores), max(scores) - min(scores) or 1.0
    added = [one.plus("reader", weight * (score - low) / spread) for one, score in zip(ranked, scores, strict=False)]
    return Reading(best_first([*added, *ranked[len(texts) :]]))


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
        return [], f"answered with {len(scores)} scores for {len(texts)} texts, or with one that is not a number"
    return scores, None
