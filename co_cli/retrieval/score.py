"""Score: 0.7 · cosine + 0.3 · trust · words, for each candidate. Pure.

The cosine is raw, and 0 where it is negative. Of a passage without a vector, because the model does not know its
language or has not embedded it yet, words count with the weight of both. Words are bm25 / best bm25, less where a
passage has fewer of the question's words than another: a title that repeats one word does not outweigh a passage with
two. Trust keeps chance words from outweighing meaning: words count in full when some passage has nearly all of the
question, or more of its words together than chance would bring in so many passages. Weights are those of the profile,
the settings or the caller.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from math import sqrt

from co_cli.index.stored import Match
from co_cli.retrieval.candidates import Candidates

FORMULA_VERSION = 5
"""Raise it when scores change: weights that were learned for another formula are not used."""
FEW_WORDS = 3
"""A match with more of so many words counts more, whatever its bm25. Of more words, the share of the question counts,
or without vectors whether it has all of them."""
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

    def times(self, share: float) -> Scored:
        return Scored(self.passage, self.note, {name: part * share for name, part in self.signals.items()})


Formula = Callable[[Candidates, Mapping[str, float]], list[Scored]]


def with_share(weights: Mapping[str, float], name: str, weight: float) -> dict[str, float]:
    """One more signal, of this weight beside 1 for all others, and the same total as before."""
    share = 1 / (1 + weight)
    return {**{other: given * share for other, given in weights.items()}, name: sum(weights.values()) * weight * share}


def trust(candidates: Candidates) -> float:
    """How far words count, 0 to 1."""
    return min(1.0, max(candidates.best_coverage**2, candidates.surprise))


def hybrid(candidates: Candidates, weights: Mapping[str, float]) -> list[Scored]:
    """The formula above; without vectors, words decide alone, and there is nothing to trust them against."""
    best = max((match.score for match in candidates.matches), default=0.0)
    alone = not candidates.cosines or not weights.get("meaning")
    trusted = 1.0 if alone else trust(candidates)
    covered = None if alone else candidates.best_coverage  # once: it looks at every match
    words: dict[int, float] = {}
    for match in candidates.matches:
        value = match.score / best if best > 0 else 1.0
        words[match.passage] = trusted * _more_words_first(candidates, match, value, covered)
    return _weighted(candidates, weights, words, {**words, **candidates.cosines})


def _more_words_first(candidates: Candidates, match: Match, value: float, best_coverage: float | None) -> float:
    """What a match is worth, 0 to 1, with the number or share of the question's words in its passage.

    Without a best coverage to compare with, words decide alone.
    """
    asked, having = len(candidates.idf), len(candidates.having.get(match.passage, ()))
    if asked <= FEW_WORDS:
        return (max(having - 1, 0) + value) / max(asked, 1)
    if best_coverage is None:
        return (int(having == asked) + value) / 2
    return sqrt(candidates.coverage(match.passage) / (best_coverage or 1.0)) * value


def rank_fusion(candidates: Candidates, weights: Mapping[str, float]) -> list[Scored]:
    """Reciprocal rank fusion: only the places in the two lists count. First in both is 1."""
    first = RANK_CONSTANT + 1
    words = {match.passage: first / (RANK_CONSTANT + place) for place, match in enumerate(candidates.matches, 1)}
    meaning = {neighbour.passage: first / (RANK_CONSTANT + place) for place, neighbour in enumerate(candidates.near, 1)}
    return _weighted(candidates, weights, words, meaning)


def best_first(scored: list[Scored]) -> list[Scored]:
    return sorted(scored, key=lambda candidate: (-candidate.score, candidate.passage))


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
