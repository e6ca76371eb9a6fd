"""Recency: who asks how things stand now finds newer notes a little nearer. Pure.

A nudge and no filter. Only dates that notes give themselves count: when a file was copied or checked out says nothing.
"""

from __future__ import annotations

from co_cli.retrieval.fuse import Scored

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

NEWEST = 0.1
"""The share of a score that being the newest candidate is. Up to 0.3 gave a little more on the one public set that asks
so (docs/benchmarks.md), and less room to what a note says."""
DATED = 60
"""Candidates whose dates are looked at: what stands behind them is no answer because it is new."""


def newer_nearer(ranked: Sequence[Scored], created: dict[int, float]) -> list[Scored]:
    """`created` says when notes came to be, those that know: the oldest of them gains nothing, the newest most."""
    oldest, newest = min(created.values(), default=0.0), max(created.values(), default=0.0)
    if newest <= oldest:
        return list(ranked)
    scored: list[Scored] = []
    for passage, doc, score, signals, words, meaning in ranked:
        gained = NEWEST * (created[doc] - oldest) / (newest - oldest) if doc in created else 0.0
        parts = {name: part * (1 - NEWEST) for name, part in signals.items()}
        if gained:
            parts["recency"] = gained
        scored.append(Scored(passage, doc, score * (1 - NEWEST) + gained, parts, words, meaning))
    return sorted(scored, key=lambda candidate: (-candidate.score, candidate.passage_id))
