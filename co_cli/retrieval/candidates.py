"""Candidates: which passages are ranked at all. Words, meaning and names each propose some; every one is then given
all scores. Pure: what was proposed comes in as plain values, and what is still to be asked for goes out.
"""

from __future__ import annotations

from co_cli.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from co_cli.index.names import Called
    from co_cli.index.vectors import Neighbour
    from co_cli.index.words import WordMatch

BY_WORDS, BY_MEANING = 100, 50
"""Passages that words and meaning propose for a hybrid search. 40 to 100 neighbours give the same figures in `co eval`,
and choosing 100 costs vec0 half as much again as choosing 50."""
OVERFETCH = 5
"""Passages looked at for each hit wanted: several of them may be of one note."""


class Candidates(Record):
    """Who proposed what. A passage may be proposed several times, and is ranked once."""

    matches: list[WordMatch]
    """By words, best first."""
    near: list[int]
    """By meaning, nearest first."""
    called: list[Called]
    """By what they are called."""
    cosines: dict[int, float]
    docs: dict[int, int]
    """Which note each passage is of."""

    @property
    def unmeasured(self) -> list[int]:
        """Those whose cosine is not known: words or a name proposed them, and meaning did not."""
        return [passage for passage in self.docs if passage not in self.cosines]

    @property
    def unplaced(self) -> list[int]:
        """Those whose note is not known: only meaning proposed them."""
        return [passage for passage in self.cosines if passage not in self.docs]


def how_many(limit: int) -> tuple[int, int]:
    """How many passages words and meaning are asked for, when so many hits are wanted."""
    return max(BY_WORDS, limit * OVERFETCH), max(BY_MEANING, limit * OVERFETCH)


def propose(
    matches: Sequence[WordMatch],
    near: Sequence[Neighbour],
    called: Sequence[Called] = (),
    every_term: bool = False,
) -> Candidates:
    """All proposals together. With `every_term`, words propose only what has all of them."""
    kept = [match for match in matches if match.all_terms or not every_term]
    docs = {match.passage_id: match.doc_id for match in kept}
    proposed = set(docs.values())
    # a note that words proposed as well is there with the passages that have them
    docs.update({one.passage_id: one.doc_id for one in called if one.doc_id not in proposed})
    cosines = {neighbour.passage_id: neighbour.cosine for neighbour in near}
    return Candidates(kept, [neighbour.passage_id for neighbour in near], list(called), cosines, docs)
