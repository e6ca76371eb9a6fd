"""Recency: who asks how their own affairs stand finds newer notes a little nearer. Pure.

A nudge and no filter. Only dates that notes give themselves count: when a file was copied or checked out says nothing.
What counts is how many days of the candidates are newer, not how long ago a day was: the same for a week and a decade.
"""

from __future__ import annotations

from co_cli.retrieval.fuse import Scored

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

NEWEST = 0.1
"""The share of a score that being of the newest day is, where the question asks for now; else it is a half of that. Up
to 0.2 gave as much on the one public set that asks so (docs/benchmarks.md), and less room to what a note says."""
DATED = 60
"""Candidates whose dates are looked at: what stands behind them is no answer because it is new."""
HALVED = 3
"""Newer days after which a half is left."""
AGED = 0.1
"""The share that age itself is, as the signal recency has it: it tells apart what was noted months apart."""
DAY = 86_400.0


def newer_nearer(
    ranked: Sequence[Scored],
    created: Mapping[int, float],
    share: float = NEWEST,
    fresh: Mapping[int, float] | None = None,
) -> list[Scored]:
    """`created` says when notes came to be, those that know: those of the newest day gain most.

    `fresh` says how fresh each note is by its age, 0 to 1; None leaves that out.
    """
    days = sorted({moment // DAY for moment in created.values()}, reverse=True)
    if len(days) < 2:
        return list(ranked)
    aged = AGED if fresh else 0.0
    kept = 1 - share - aged
    newer = {day: place for place, day in enumerate(days)}
    scored: list[Scored] = []
    for passage, doc, score, signals, words, meaning in ranked:
        gained = share * (HALVED / (HALVED + newer[created[doc] // DAY])) if doc in created else 0.0
        gained += aged * fresh.get(doc, 0.0) if fresh else 0.0
        parts = {name: part * kept for name, part in signals.items()}
        if gained:
            parts["recency"] = gained
        scored.append(Scored(passage, doc, score * kept + gained, parts, words, meaning))
    return sorted(scored, key=lambda candidate: (-candidate.score, candidate.passage_id))
