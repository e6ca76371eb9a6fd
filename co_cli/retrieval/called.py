"""Called: a note that is called exactly what was asked for comes first, and says so. Pure."""

from __future__ import annotations

from co_cli.retrieval.fuse import Scored

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from co_cli.index.names import Called

EXACT = 0.5
"""The share of a score that a name is, where some note has it: as much as everything else together, so that nothing
else can outrank it."""


def name_first(ranked: Sequence[Scored], called: Sequence[Called], propose: bool = True) -> list[Scored]:
    """Those that are called so first, best first among themselves; the others keep their order.

    `propose` adds notes that were not ranked. Without it a name lifts only what was found: who asks for a phrase wants
    that phrase to stand there.
    """
    theirs = {one.doc_id for one in called}
    there = {candidate.doc_id for candidate in ranked}
    added = [Scored(one.passage_id, one.doc_id, 0.0, {}) for one in called if propose and one.doc_id not in there]
    if not theirs & there and not added:
        return list(ranked)
    scored: list[Scored] = []
    for passage, doc, score, signals, words, meaning in (*ranked, *added):
        parts = {name: part * (1 - EXACT) for name, part in signals.items()}
        exact = EXACT if doc in theirs else 0.0
        if exact:
            parts["exact"] = exact
        scored.append(Scored(passage, doc, score * (1 - EXACT) + exact, parts, words, meaning))
    return sorted(scored, key=lambda candidate: (candidate.doc_id not in theirs, -candidate.score))
