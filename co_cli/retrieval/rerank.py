"""Rerank: what is known of each candidate into one score, a weighted sum whose parts are the hit's signals.

Without a network model, and without looking at the whole vault. The weights were learned on public sets, each reported
figure with the family of its own set left out (docs/benchmarks.md).
"""

from __future__ import annotations

from math import log

from co_cli.record import Record
from co_cli.retrieval.fuse import Scored

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from co_cli.retrieval.evidence import Evidence
    from co_cli.retrieval.fuse import Weights
    from co_cli.retrieval.question import Term

RERANKED = 25
"""Candidates that are looked at. 15, 25 and 40 give the same figures in `co eval`, within .002, and looking costs."""


class Shares(Record):
    """What each signal counts for. They add up to one before words and meaning are weighed."""

    words: float = 0.035
    meaning: float = 0.198
    weighed: float = 0.049
    related: float = 0.080
    sentence: float = 0.197
    near: float = 0.041
    order: float = 0.027
    title: float = 0.122
    named: float = 0.047
    context: float = 0.204


DEFAULT = Shares()
AKIN = 0.6
"""What words that are like those of the question count for where its own do not tell."""
TITLED = 0.25
"""What a title that is near by meaning counts for there."""
ONLY_ASKS = 0.2
"""What a note that ends in a question gives up of its score, and of each part, where a question is asked: it has the
words of the question as nobody else has, and the answer stands in the next one."""
USUAL_MEANING = 0.4
"""The share of meaning against words at which the shares were learned."""
FAR, NEAR = 0.45, 0.6
"""Cosines, chosen with the embedded model and used with MiniLM too: where the nearest passage is no nearer than the
first, a single word of a question is there by chance; from the second on it is there because the passage is about
it."""
BY_CHANCE_MORE = 0.3, 0.6
"""How much more of a question, and how much more that is rare, must be there before a word that is there by chance
tells."""


def how_telling(trust: float, terms: Sequence[Term], passages: int, together: int = 2, nearest: float = 1.0) -> float:
    """How far evidence by words may count, 0 to 1.

    Where the best match has little of a question, its words are there by chance, and meaning should decide. Words tell
    something when they cover a good part of the question, or when what they cover, though it be a small part of a long
    question, is rare enough to single out a passage: that takes the logarithm of how many there are.

    Two words of a question in one passage are hardly there by chance, and nor is a name. One word is (`together`, how
    many some passage has), if even the `nearest` passage is far by meaning: who answers a question in its own words
    is near as well.
    """
    carried = trust * sum(term.weight for term in terms) / log(passages + 1) if passages else 0.0
    single = together < 2 and not any(term.named for term in terms)
    far = min(1.0, max(0.0, (NEAR - nearest) / (NEAR - FAR))) if single else 0.0
    share, rare = (far * more for more in BY_CHANCE_MORE)
    return min(1.0, max(0.0, (trust - 0.3 - share) / 0.3, (carried - 1.2 - rare) / 0.8))


def rerank(
    fused: Sequence[Scored],
    evidence: dict[int, Evidence],
    weights: Weights,
    telling: float = 1.0,
    shares: Shares = DEFAULT,
    asked: bool = False,
    untold: float = 0.0,
) -> list[Scored]:
    """Best first. Candidates without evidence keep what words and meaning give them: none is dropped.

    `asked`: is it a question that is to be answered? `untold`: how far words that are akin count because those of the
    question do not tell; no more than `telling` leaves.
    """
    most = max((found.weighed for found in evidence.values()), default=0.0) or 1.0
    balance = weights.meaning + weights.words or 1.0
    for_meaning = shares.meaning * weights.meaning / balance / USUAL_MEANING
    for_words = shares.words * weights.words / balance / (1 - USUAL_MEANING)
    total = sum(shares) - shares.meaning - shares.words + for_meaning + for_words
    scored: list[Scored] = []
    for candidate in fused:
        parts = {"words": candidate.words * for_words, "meaning": candidate.meaning * for_meaning}
        found = evidence.get(candidate.passage_id)
        if found is not None:
            parts["related"] = telling * (found.related * shares.related + found.weighed / most * shares.weighed)
            parts["related"] += untold * found.akin * AKIN
            parts["sentence"] = telling * found.sentence * shares.sentence
            parts["order"] = telling * (found.near * shares.near + found.order * shares.order)
            parts["title"] = telling * found.title * shares.title + untold**2 * found.titled * TITLED
            parts["named"] = telling * found.named * shares.named
            parts["context"] = telling * found.context * shares.context
        whole = total / (1 - ONLY_ASKS) if asked and found is not None and found.asks else total
        parts = {name: part / whole for name, part in parts.items() if part or name in ("words", "meaning")}
        passage, doc, _, _, words, meaning = candidate
        scored.append(Scored(passage, doc, sum(parts.values()), parts, words, meaning))
    return sorted(scored, key=lambda candidate: (-candidate.score, candidate.passage_id))
