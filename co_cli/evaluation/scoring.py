"""How good a ranking is: nDCG@10, recall@5, recall@10, MRR@10. Pure."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple


class Scores(NamedTuple):
    """Means over the questions of a set."""

    ndcg10: float
    recall5: float
    recall10: float
    mrr10: float
    questions: int


def score_ranking(ranked: Sequence[str], grades: dict[str, int]) -> tuple[float, float, float, float]:
    """One question: what was returned, best first, against what is relevant and how much."""
    gains = [grades.get(name, 0) for name in ranked[:10]]
    ideal = sorted(grades.values(), reverse=True)[:10]
    best = sum(gain / math.log2(place + 2) for place, gain in enumerate(ideal))
    relevant = sum(grade > 0 for grade in grades.values())
    return (
        sum(gain / math.log2(place + 2) for place, gain in enumerate(gains)) / best if best else 0.0,
        sum(gain > 0 for gain in gains[:5]) / relevant if relevant else 0.0,
        sum(gain > 0 for gain in gains) / relevant if relevant else 0.0,
        next((1 / (place + 1) for place, gain in enumerate(gains) if gain > 0), 0.0),
    )


def mean_scores(rows: Sequence[tuple[float, float, float, float]]) -> Scores:
    count = len(rows)
    means = [round(sum(row[place] for row in rows) / count, 4) if count else 0.0 for place in range(4)]
    return Scores(means[0], means[1], means[2], means[3], count)
