"""Learn what each signal of the closer look should count for, from questions whose answers are known.

`retrieval/learning.py` moves one number, carefully, by the few judgements of one person. This learns all the shares of
`retrieval/rerank.py` from whole sets, for those who measure: which shares make the right passages the likeliest to be
chosen, if each of those that were looked at is chosen by e to the power of its score. That has one best answer, so
nothing depends on where it starts.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from co_cli.errors import InvalidInputError
from co_cli.evaluation.methods import LookedAt
from co_cli.retrieval.rerank import RERANKED, USUAL_MEANING, Shares, rerank

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from co_cli.retrieval.fuse import Scored, Weights
    from co_cli.retrieval.trace import Trace

    Floats = NDArray[np.float32]

STEPS = 200
PACE = 0.15
"""How far a step goes at first; less towards the end."""
PULL = 1e-3
"""What large weights cost: it decides where the questions say nothing."""
UNSEEN = 1e-6
"""A signal that varies less than that was not there to be learned."""
SIGNALS: tuple[str, ...] = Shares._fields


class Lessons(NamedTuple):
    """Questions of a set whose answer was looked at: what each signal says of the passages, which are right, and which
    places are used.
    """

    values: Floats
    right: Floats
    used: Floats


def values_of(trace: Trace, asked: bool) -> dict[int, list[float]]:
    """Of each passage that was looked at closely, what each share is multiplied with. By `rerank` itself: what a score
    gains when one share is doubled, and the others are nothing.
    """
    looked_at = [candidate for candidate in trace.fused[:RERANKED] if candidate.passage_id in trace.evidence]
    found: dict[int, list[float]] = {candidate.passage_id: [] for candidate in looked_at}
    for signal in SIGNALS:
        once, twice = (_sums(looked_at, trace, asked, signal, share) for share in (1.0, 2.0))
        for passage, values in found.items():
            values.append(twice[passage] - once[passage])
    return found


def _sums(looked_at: Sequence[Scored], trace: Trace, asked: bool, signal: str, share: float) -> dict[int, float]:
    """The scores with this share alone, before they are divided by what the shares add up to."""
    alone = Shares(**{name: share if name == signal else 0.0 for name in SIGNALS})
    total = share * _scale(signal, trace.weights)
    scored = rerank(looked_at, trace.evidence, trace.weights, trace.telling, alone, asked)
    return {one.passage_id: one.score * total for one in scored}


def _scale(signal: str, weights: Weights) -> float:
    """Words and meaning count as the space weighs them."""
    balance = weights.meaning + weights.words or 1.0
    if signal == "meaning":
        return weights.meaning / balance / USUAL_MEANING
    return weights.words / balance / (1 - USUAL_MEANING) if signal == "words" else 1.0


def lessons(questions: Sequence[tuple[LookedAt, Mapping[str, int]]]) -> Lessons:
    """What was looked at for each question of a set, and the grades of what is right."""
    taught = [(looked_at, [grades.get(ref, 0) for ref, _ in looked_at]) for looked_at, grades in questions]
    taught = [(looked_at, right) for looked_at, right in taught if any(right)]
    shape = (len(taught), RERANKED)
    found = Lessons(
        np.zeros((*shape, len(SIGNALS)), np.float32), np.zeros(shape, np.float32), np.zeros(shape, np.float32)
    )
    for row, (looked_at, right) in enumerate(taught):
        count = len(looked_at)
        found.values[row, :count] = [values for _, values in looked_at]
        found.right[row, :count] = np.array(right, np.float32) / sum(right)
        found.used[row, :count] = 1.0
    return found


def learn_shares(taught: Mapping[str, Lessons], families: Mapping[str, str]) -> Shares:
    """By set; each family of sets counts alike, and so do the sets of one. No share is below nothing."""
    sets = {name: one for name, one in taught.items() if len(one.values)}
    if not sets:
        raise InvalidInputError(
            "nothing can be learned: of no question was a right note looked at closely, as the backend hybrid with the "
            "profile default does"
        )
    counts = {family: sum(families[name] == family for name in sets) for family in families.values()}
    share = {name: 1 / counts[families[name]] for name in sets}
    spread = np.sqrt(np.mean([_spread(one) for one in sets.values()], axis=0))
    seen = spread > UNSEEN
    spread = np.where(seen, spread, 1.0)
    weights, mean, square = (np.zeros(len(SIGNALS)) for _ in range(3))
    for step in range(1, STEPS + 1):  # Adam, with the weights held at zero or above
        slope = PULL * weights
        for name, one in sets.items():
            slope += share[name] * _slope(one, weights / spread) / spread
        mean, square = 0.9 * mean + 0.1 * slope, 0.99 * square + 0.01 * slope**2
        pace = PACE if step < 0.6 * STEPS else PACE / 5
        steady = (mean / (1 - 0.9**step)) / (np.sqrt(square / (1 - 0.99**step)) + 1e-9)
        weights = np.where(seen, np.maximum(weights - pace * steady, 0.0), 0.0)
    learned = weights / spread
    total = float(learned.sum())
    values: list[float] = (learned / total if total else np.full(len(SIGNALS), 1 / len(SIGNALS))).tolist()
    return Shares(**dict(zip(SIGNALS, values, strict=True)))


def _spread(one: Lessons) -> NDArray[np.float64]:
    """How much each signal varies among the candidates of a question."""
    used = one.used[..., None]
    middle = (one.values * used).sum(axis=1, keepdims=True) / used.sum(axis=1, keepdims=True)
    return np.asarray((((one.values - middle) ** 2) * used).sum(axis=(0, 1)) / one.used.sum(), np.float64)


def _slope(one: Lessons, weights: NDArray[np.float64]) -> NDArray[np.float64]:
    """Where the right ones become less likely, in the mean over the questions."""
    scores = np.where(one.used > 0, one.values @ weights.astype(np.float32), -np.inf)
    chosen = np.exp(scores - scores.max(axis=1, keepdims=True))
    chosen /= chosen.sum(axis=1, keepdims=True)
    return np.einsum("qn,qnf->f", chosen - one.right, one.values).astype(np.float64) / len(one.values)
