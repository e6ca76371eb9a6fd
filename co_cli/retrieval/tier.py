"""Tier: whose vault a note is of counts a little, and the same note in two of them appears once. Pure."""

from __future__ import annotations

from co_cli.retrieval.fuse import Scored

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from co_cli.index.reader import TierRow

SHARE = 0.1
"""The share of a score that the tier is: it decides between notes that answer about as well, and no more."""


def nearer_first(
    ranked: Sequence[Scored], tiers: Mapping[int, TierRow], values: Mapping[str, float], own: str
) -> list[Scored]:
    """Each note of a vault gains by its tier; what is of no vault gains as much as the least of them.

    A note that stands in several vaults, under the same ref or with the same words, is kept from the highest tier.
    """
    least = min(values.values(), default=0.0)
    worth = {doc: values.get(row.tier or own, least) for doc, row in tiers.items()}
    best: dict[str, float] = {}
    for doc, row in tiers.items():
        for key in _keys(row):
            best[key] = max(best.get(key, 0.0), worth[doc])
    scored: list[Scored] = []
    for candidate in ranked:
        row = tiers.get(candidate.doc_id)
        mine = worth.get(candidate.doc_id, least)
        if row is not None and any(best[key] > mine for key in _keys(row)):
            continue  # the same note, of a higher tier
        parts = {name: part * (1 - SHARE) for name, part in candidate.signals.items()}
        parts["tier"] = parts.get("tier", 0.0) + SHARE * mine
        scored.append(candidate._replace(score=candidate.score * (1 - SHARE) + SHARE * mine, signals=parts))
    return sorted(scored, key=lambda candidate: -candidate.score)


def _keys(row: TierRow) -> list[str]:
    return [key for key in (row.ref, row.fingerprint) if key]
