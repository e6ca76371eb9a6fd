"""Mix: further signals into a ranking by words and meaning, each with its weight; and fusion by rank. Pure.

A score is the weighted mean of the signals, and its parts are what each of them brought.
"""

from __future__ import annotations

from co_cli.retrieval.fuse import Scored

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from co_cli.index.words import WordMatch
    from co_cli.retrieval.fuse import Weights
    from co_cli.retrieval.profiles import Mix

RANK = 60
"""The k of reciprocal rank fusion."""


def mixed(ranked: Sequence[Scored], mix: Mix, values: Mapping[str, Mapping[int, float]]) -> list[Scored]:
    """Best first. `values` has each signal's value for each note, 0 to 1; a note that is not there has 0."""
    total = mix.ranking + sum(weight for _, weight in mix.others)
    if total <= 0:
        return list(ranked)
    scored: list[Scored] = []
    for candidate in ranked:
        parts = {name: part * mix.ranking / total for name, part in candidate.signals.items()}
        for name, weight in mix.others:
            gained = weight / total * values.get(name, {}).get(candidate.doc_id, 0.0)
            parts[name] = parts.get(name, 0.0) + gained
        scored.append(candidate._replace(score=sum(parts.values()), signals=parts))
    return sorted(scored, key=lambda candidate: (-candidate.score, candidate.passage_id))


def by_rank(
    matches: Sequence[WordMatch], near: Sequence[int], docs: Mapping[int, int], weights: Weights, k: int = RANK
) -> list[Scored]:
    """Reciprocal rank fusion: the place in each list counts and nothing else. First in both lists is 1."""
    first, second = (
        {passage: (k + 1) / (k + place) for place, passage in enumerate(order, 1)}
        for order in ([match.passage_id for match in matches], near)
    )
    total = weights.words + weights.meaning or 1.0
    scored: list[Scored] = []
    for passage, doc in docs.items():
        words, meaning = first.get(passage, 0.0), second.get(passage, 0.0)
        parts = {"words": weights.words / total * words, "meaning": weights.meaning / total * meaning}
        scored.append(Scored(passage, doc, sum(parts.values()), parts, words, meaning))
    return sorted(scored, key=lambda candidate: (-candidate.score, candidate.passage_id))
