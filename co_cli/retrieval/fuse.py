"""Fuse: what words and meaning propose into one score for each candidate. Pure."""

from __future__ import annotations

from math import log

from co_cli.index.words import WordMatch
from co_cli.record import Record

DOUBT = 1.5
"""How fast trust in words falls with what the best match lacks: between 1 and 2, by the mean over public sets."""

BY_CHANCE = 0.5
"""What words keep of their score where they do not tell: they are there by chance, but a name may be among them."""

CROWD = 0.05
"""What a note of n passages has to give up of its meaning: this times ln n. The best of n draws grows like that."""


class Scored(Record):
    """A candidate with its score and the parts that add up to it."""

    passage_id: int
    doc_id: int
    score: float
    signals: dict[str, float]
    words: float = 0.0
    """bm25 over the best bm25, as far as words are trusted: 0 to 1."""
    meaning: float = 0.0
    """The cosine beside those of the other candidates: 0 to 1."""


def score_words(matches: list[WordMatch]) -> list[Scored]:
    """bm25 over the best bm25 of this query. Matches arrive with all-terms ahead of any-term, and stay so."""
    best = min((match.rank for match in matches), default=0.0)
    scored: list[Scored] = []
    ceiling = 1.0
    for match in matches:
        words = match.rank / best if best < 0 else 1.0
        # a passage with some of the terms never outranks one that has them all, however rare those terms are
        words = min(words, ceiling)
        if match.all_terms:
            ceiling = min(ceiling, words)
        scored.append(Scored(match.passage_id, match.doc_id, words, {"words": words}, words))
    return scored


class Weights(Record):
    """How much meaning and words count. They need not add up to one; a score is their weighted mean."""

    meaning: float
    words: float


def fuse(
    words: list[WordMatch],
    covered: float,
    cosines: dict[int, float],
    docs: dict[int, int],
    weights: Weights,
    noise: float = -1.0,
    sizes: dict[int, int] | None = None,
    telling: float = 0.0,
    blind: float = 0.0,
    meanings: dict[int, float] | None = None,
) -> list[Scored]:
    """Words and meaning of every candidate into one score each, best first.

    Words: bm25 over the best bm25 of this query, trusted as far as the best ones have what was asked for (`covered`,
    0 to 1): one shared word of five must not outweigh meaning. Meaning: the exact
    cosine, min-max over the candidates. `docs` says which note each passage is of. A candidate without a vector scores
    by its words alone; one without words is dropped when its cosine is no better than `noise`. `sizes` says how many
    passages a note has: the more, the nearer its nearest is by chance alone, and that much is taken off, unless words
    tell (`telling`, 0 to 1) that it is not by chance. `blind`, 0 to 1, is how far meaning has to decide because words
    do not tell, and `meanings` may say what it is worth, in place of the cosines.
    """
    best = min((match.rank for match in words), default=0.0)
    trust = covered**DOUBT * (1 - blind * (1 - BY_CHANCE))
    by_words = {match.passage_id: trust * match.rank / best if best < 0 else 1.0 for match in words}
    meanings = stretched(cosines) if meanings is None else meanings
    total = (weights.meaning + weights.words) or 1.0
    crowd = CROWD * (1 - telling)
    scored: list[Scored] = []
    for passage, doc in docs.items():
        if passage not in by_words and cosines.get(passage, -1.0) < noise:
            continue
        word = by_words.get(passage, 0.0)
        meaning = max(0.0, meanings.get(passage, 0.0) - crowd * log((sizes or {}).get(doc, 1)))
        parts = {"words": weights.words * word / total, "meaning": weights.meaning * meaning / total}
        scored.append(Scored(passage, doc, parts["words"] + parts["meaning"], parts, word, meaning))
    return sorted(scored, key=lambda candidate: (-candidate.score, candidate.passage_id))


def stretched(cosines: dict[int, float]) -> dict[int, float]:
    """The nearest is 1 and the furthest 0; where all are as near, each is 1."""
    low, high = min(cosines.values(), default=0.0), max(cosines.values(), default=0.0)
    spread = high - low
    return {passage: (cosine - low) / spread if spread else 1.0 for passage, cosine in cosines.items()}
