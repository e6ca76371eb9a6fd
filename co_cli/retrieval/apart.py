"""Apart: how near a question and a passage are beyond what all passages of a vault have in common. Pure.

The notes of one vault are all a little alike, and a question is nearest to those that are alike most of all. Where
words tell which note is meant that does no harm; where meaning is all there is, half of what they have in common is
taken off. Half, because the other half says what the vault is about, and so does a good question.
"""

from __future__ import annotations

from co_cli.retrieval.fuse import stretched

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

TAKEN_OFF = 0.5
"""The share of the mean that is taken off. A half and the whole, weighed as much as the plain cosine, do the same; the
whole alone is worse."""
LEAST = 16
"""Passages from which on their mean says something."""


def in_common(vectors: Sequence[Sequence[float]]) -> list[float] | None:
    """What is taken off: a share of the mean of these vectors. None for too few of them."""
    if len(vectors) < LEAST:
        return None
    share = TAKEN_OFF / len(vectors)
    return [total * share for total in map(sum, zip(*vectors, strict=True))]


def cosines_apart(
    cosines: Mapping[int, float], towards: Mapping[int, float], asked: float, length: float
) -> dict[int, float]:
    """Each cosine as it is when a vector is taken off both sides.

    That vector has this `length`; `asked` is the cosine between it and the question, `towards` those between it and
    the passages. So nothing but cosines is needed, which the index measures without reading a vector.
    """
    own = (1 - 2 * length * asked + length**2) ** 0.5 or 1.0
    found: dict[int, float] = {}
    for passage, cosine in cosines.items():
        if passage in towards:
            along = length * towards[passage]
            rest = (1 - 2 * along + length**2) ** 0.5 or 1.0
            found[passage] = (cosine - along - length * asked + length**2) / (own * rest)
    return found


def partly_apart(cosines: dict[int, float], apart: dict[int, float], far: float) -> dict[int, float]:
    """What meaning is worth, 0 to 1 for each passage: as far as `far` says, 0 to 1, by the cosines apart."""
    plain, others = stretched(cosines), stretched(apart)
    return {passage: (1 - far) * value + far * others.get(passage, value) for passage, value in plain.items()}
