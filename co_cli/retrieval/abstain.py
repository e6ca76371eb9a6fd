"""Abstain: how sure it is that anything here has to do with the question. Pure.

A ranking always has a first place, so a score says nothing about that. Two absolute figures do: the cosine of the
nearest passage, and the most that one passage has of the question, rare words counting more. How much each tells was
learned per space by asking questions of vaults that hold the answer and of vaults that cannot (docs/benchmarks.md).
"""

from __future__ import annotations

from math import exp, log

TYPE_CHECKING = False
if TYPE_CHECKING:
    from co_cli.embedding.space import VectorSpace
    from co_cli.retrieval.trace import Trace

ABSENT = 0.01
"""Below this nothing is there. So low because a hard paraphrase looks much like an unrelated note to a small model, and
a wrong `absent` costs more than a doubtful hit; what was found is shown either way."""
LOOKED_AT = 10
"""Hits among which the one that has most of the question is looked for."""


TYPICAL, BY_CHANCE = 250, 0.04
"""Passages of the vaults that were measured, and how much nearer the nearest unrelated one comes in a vault e times as
large. So the same cosine says more in a small vault. That it says less in a large one is left out: a wrong `absent` is
worse."""


def confidence(trace: Trace, space: VectorSpace, passages: int) -> float | None:
    """0 to 1, even odds assumed; None for a space that nobody measured. `passages`: how many were searched."""
    if space.certainty is None or not trace.cosines:
        return None
    if trace.called:
        return 1.0  # the question is what a note is called
    for_cosine, for_share, at_zero = space.certainty
    shares = [
        trace.evidence[candidate.passage_id].related
        for candidate in trace.ranked[:LOOKED_AT]
        if candidate.passage_id in trace.evidence
    ]
    share = max(shares) if shares else trace.trust
    nearest = max(trace.cosines.values()) + BY_CHANCE * max(0.0, log(TYPICAL / max(passages, 1)))
    logit = for_cosine * nearest + for_share * share + at_zero
    return 1 / (1 + exp(-logit)) if logit > -700 else 0.0
