"""Validity: what holds at a moment answers, what fades answers less, and what no longer holds is left out. Pure.

A window holds at full strength for its first three quarters and fades to nothing over the last.
"""

from __future__ import annotations

from co_cli.record import Record
from co_cli.retrieval.fuse import Scored

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from co_cli.index.standing import Standing

FULL = 0.75
"""The share of a window during which a note is as strong as one without an end."""


class Left(Record):
    """A note that was left out, and why."""

    doc_id: int
    reason: str


def strength(standing: Standing, now: float) -> float:
    """How strongly a note holds at a moment, 0 to 1. A window without a beginning begins with the note."""
    _, first, last, superseded_by = standing
    if superseded_by is not None or (first is not None and now < first) or (last is not None and now >= last):
        return 0.0
    start = standing.created if first is None else first
    if last is None or last <= start or now < start:
        return 1.0
    passed = (now - start) / (last - start)
    return 1.0 if passed <= FULL else (1.0 - passed) / (1.0 - FULL)


def holding(
    ranked: Sequence[Scored],
    standings: Mapping[int, Standing],
    now: float,
    outdated: bool = False,
    fading: bool = True,
) -> tuple[list[Scored], list[Left]]:
    """What holds, each as strong as it is; and what does not. `outdated` leaves out nothing and weakens nothing.

    Without `fading` what holds at all holds in full: who asks about a time that is over means all of that time.
    """
    if outdated or not standings:
        return list(ranked), []
    kept: list[Scored] = []
    left: dict[int, Left] = {}
    for candidate in ranked:
        standing = standings.get(candidate.doc_id)
        strong = 1.0 if standing is None else strength(standing, now)
        if standing is not None and strong == 0.0:
            left.setdefault(candidate.doc_id, Left(candidate.doc_id, why_not(standing, now)))
        elif strong < 1.0 and fading:
            parts = {name: part * strong for name, part in candidate.signals.items()}
            kept.append(candidate._replace(score=candidate.score * strong, signals=parts))
        else:
            kept.append(candidate)
    return sorted(kept, key=lambda candidate: -candidate.score), list(left.values())


def why_not(standing: Standing, now: float) -> str:
    """In words, for somebody who misses the note."""
    if standing.superseded_by is not None:
        return f"superseded by {standing.superseded_by}"
    if standing.valid_from is not None and now < standing.valid_from:
        return "not valid yet"
    return "no longer valid"
