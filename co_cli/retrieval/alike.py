"""Alike: where a long question describes what it is about, what is like the best candidates gains a little. Pure.

A long question has many words that say little each, and the notes that answer it are about one thing: the vectors of
the first three say what that is better than the question's own. A short question asks for one thing, and there what
resembles a wrong first hit would gain as well; so nothing is looked at below six terms, and everything counts from
twelve on.
"""

from __future__ import annotations

from _operator import mul, sub  # the module around it is slow to import

from co_cli.retrieval.fuse import Scored
from co_cli.retrieval.question import SHORT

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

LOOKED_AT = 25
"""Candidates that are compared."""
BEST = 3
"""Notes, the first ones, with which they are compared."""
SHARE = 0.35
"""What likeness may add, beside a score of 1."""
LONG = 12
"""Terms of a question from which likeness counts in full."""


def how_far(terms: int, telling: float) -> float:
    """How far likeness counts, 0 to 1, for a question of so many terms whose words tell so much."""
    return telling * min(1.0, max(0.0, (terms - SHORT) / (LONG - SHORT)))


def like_the_best(ranked: Sequence[Scored], vectors: Mapping[int, Sequence[float]], far: float) -> list[Scored]:
    """Best first, with the part `alike`. `vectors` are those of the first candidates, as far as they have one.

    What all of them have in common tells nothing, so their mean is taken off. The most alike counts 1, the least 0.
    """
    compared = [candidate for candidate in ranked[:LOOKED_AT] if candidate.passage_id in vectors]
    if len(compared) <= BEST or far <= 0:
        return list(ranked)
    likeness = _likeness(compared, [vectors[candidate.passage_id] for candidate in compared])
    low, high = min(likeness), max(likeness)
    spread = (high - low) or 1.0
    alike = {one.passage_id: (value - low) / spread for one, value in zip(compared, likeness, strict=True)}
    share = SHARE * far
    scored: list[Scored] = []
    for candidate in ranked:
        parts = {name: part / (1 + share) for name, part in candidate.signals.items()}
        gained = alike.get(candidate.passage_id, 0.0) * share / (1 + share)
        if gained:
            parts["alike"] = gained
        passage, doc, _, _, words, meaning = candidate
        scored.append(Scored(passage, doc, sum(parts.values()), parts, words, meaning))
    return sorted(scored, key=lambda candidate: (-candidate.score, candidate.passage_id))


def _likeness(compared: Sequence[Scored], vectors: Sequence[Sequence[float]]) -> list[float]:
    """How near each is to the first notes, the first of which count most."""
    count = len(vectors)
    mean = [total / count for total in map(sum, zip(*vectors, strict=True))]
    apart = [list(map(sub, vector, mean)) for vector in vectors]
    lengths = [sum(map(mul, one, one)) ** 0.5 or 1.0 for one in apart]
    best: dict[int, tuple[float, list[float]]] = {}
    for candidate, one, length in zip(compared, apart, lengths, strict=True):
        best.setdefault(candidate.doc_id, (candidate.score**2 / length, one))
        if len(best) == BEST:
            break
    towards = [0.0] * len(mean)
    for weight, one in best.values():
        towards = [value + weight * other for value, other in zip(towards, one, strict=True)]
    return [sum(map(mul, towards, one)) / length for one, length in zip(apart, lengths, strict=True)]
