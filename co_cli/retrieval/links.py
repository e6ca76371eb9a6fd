"""Link proximity: how near a note is to the best hits over links. Pure.

A walk that starts at the best hits, follows links either way, and returns with some chance at each step. What counts is
what arrives over links: a note is not near to itself.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

RESTART = 0.15
HOPS = 2
BEST = 5
"""Notes, the best, at which the walk starts."""


def proximity(
    seeds: Mapping[int, float], links: Iterable[tuple[int, int]], hops: int = HOPS, restart: float = RESTART
) -> dict[int, float]:
    """How much of a walk from the seeds arrives at each note, the most being 1. Notes without links are left out.

    `seeds` are the best notes and their scores, `links` pairs of notes of which one links to the other.
    """
    beside: dict[int, set[int]] = {}
    for one, other in links:
        if one != other:
            beside.setdefault(one, set()).add(other)
            beside.setdefault(other, set()).add(one)
    total = sum(seeds.values())
    if not beside or total <= 0:
        return {}
    here = {note: score / total for note, score in seeds.items()}
    arrived: dict[int, float] = {}
    for _ in range(hops):
        there: dict[int, float] = {}
        for note, mass in here.items():
            for other in beside.get(note, ()):
                there[other] = there.get(other, 0.0) + (1 - restart) * mass / len(beside[note])
        for note, mass in there.items():
            arrived[note] = arrived.get(note, 0.0) + mass
        here = there
    most = max(arrived.values(), default=0.0)
    return {note: mass / most for note, mass in arrived.items()} if most else {}
