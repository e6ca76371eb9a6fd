"""Score: 0.7 · cosine + 0.3 · trust · bm25 / best bm25, for each candidate. Pure.

The cosine is raw, and 0 where it is negative. Trust keeps one chance word from outweighing meaning: words count in full
when some passage has nearly all of the question, or several of its words together. Weights are those of the profile,
the settings or the caller.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from co_cli.retrieval.candidates import Candidates

FORMULA_VERSION = 2
"""Raise it when scores change: weights that were learned for another formula are not used."""
RANK_CONSTANT = 60
"""The k of reciprocal rank fusion."""


@dataclass(frozen=True, slots=True)
class Scored:
    """A candidate with its score and the parts that add up to it."""

    passage: int
    note: int
    signals: Mapping[str, float]
    score: float = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "score", sum(self.signals.values()))

    def plus(self, name: str, part: float) -> Scored:
        return Scored(self.passage, self.note, {**self.signals, name: part}) if part else self


Formula = Callable[[Candidates, Mapping[str, float]], list[Scored]]


def trust(candidates: Candidates) -> float:
    """How far words count, 0 to 1."""
    return min(1.0, max(candidates.best_coverage**2, (candidates.together - 1) / 3))


def hybrid(candidates: Candidates, weights: Mapping[str, float]) -> list[Scored]:
    """The formula above."""
    best = max((match.score for match in candidates.matches), default=0.0)
    # without vectors words decide alone, and there is nothing to trust them against
    trusted = trust(candidates) if candidates.cosines and weights.get("meaning") else 1.0
    words = {match.passage: trusted * match.score / best if best > 0 else 1.0 for match in candidates.matches}
    return _weighted(candidates, weights, words, candidates.cosines)


def rank_fusion(candidates: Candidates, weights: Mapping[str, float]) -> list[Scored]:
    """Reciprocal rank fusion: only the places in the two lists count. First in both is 1."""
    first = RANK_CONSTANT + 1
    words = {one.passage: first / (RANK_CONSTANT + place) for place, one in enumerate(candidates.matches, 1)}
    meaning = {one.passage: first / (RANK_CONSTANT + place) for place, one in enumerate(candidates.near, 1)}
    return _weighted(candidates, weights, words, meaning)


def best_first(scored: list[Scored]) -> list[Scored]:
    return sorted(scored, key=lambda one: (-one.score, one.passage))


def _weighted(
    candidates: Candidates, weights: Mapping[str, float], words: Mapping[int, float], meaning: Mapping[int, float]
) -> list[Scored]:
    scored: list[Scored] = []
    for passage, note in candidates.notes.items():
        parts: dict[str, float] = {}
        if candidates.cosines:
            parts["meaning"] = weights.get("meaning", 0.0) * max(0.0, meaning.get(passage, 0.0))
        parts["words"] = weights.get("words", 0.0) * words.get(passage, 0.0)
        scored.append(Scored(passage, note, parts))
    return scored
