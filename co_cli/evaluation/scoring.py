"""How good a ranking is: nDCG@10, recall@5, recall@10, MRR@10, and how long it took. Pure."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple


class Marks(NamedTuple):
    """What one question's ranking is worth, each 0 to 1."""

    ndcg10: float
    recall5: float
    recall10: float
    mrr10: float


class Scores(NamedTuple):
    """Means over the questions of a set, and the milliseconds that one took: the usual one, and one of the slow."""

    ndcg10: float
    recall5: float
    recall10: float
    mrr10: float
    questions: int
    median_ms: float = 0.0
    p95_ms: float = 0.0


def mark_ranking(ranked: Sequence[str], grades: dict[str, int], any_is_enough: bool = False) -> Marks:
    """One question: what was returned, best first, against what is relevant and how much.

    Recall is the share of the relevant ones; `any_is_enough` asks only whether there is one of them.
    """
    gains = [grades.get(name, 0) for name in dict.fromkeys(ranked)][:10]
    ideal = sorted(grades.values(), reverse=True)[:10]
    best = _discounted(ideal)
    relevant = 1 if any_is_enough else sum(grade > 0 for grade in grades.values())
    return Marks(
        _discounted(gains) / best if best else 0.0,
        min(1.0, sum(gain > 0 for gain in gains[:5]) / relevant) if relevant else 0.0,
        min(1.0, sum(gain > 0 for gain in gains) / relevant) if relevant else 0.0,
        next((1 / (place + 1) for place, gain in enumerate(gains) if gain > 0), 0.0),
    )


def _discounted(gains: Sequence[int]) -> float:
    return sum(gain / math.log2(place + 2) for place, gain in enumerate(gains))


def mean_scores(marks: Sequence[Marks], seconds: Sequence[float] = ()) -> Scores:
    count = len(marks)
    means = [round(sum(mark[place] for mark in marks) / count, 4) if count else 0.0 for place in range(4)]
    return Scores(
        means[0], means[1], means[2], means[3], count, _milliseconds(seconds, 0.5), _milliseconds(seconds, 0.95)
    )


def mean_of_sets(scores: Sequence[Scores]) -> Scores:
    """Each set counts alike, however many questions it has. Times of different sets have no mean worth knowing."""
    means = [round(sum(score[place] for score in scores) / len(scores), 4) for place in range(4)]
    return Scores(means[0], means[1], means[2], means[3], sum(score.questions for score in scores))


def _milliseconds(seconds: Sequence[float], share: float) -> float:
    """The time that this share of the questions stays within."""
    ordered = sorted(seconds)
    return round(ordered[math.ceil(share * len(ordered)) - 1] * 1000, 2) if ordered else 0.0
