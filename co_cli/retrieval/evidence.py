"""What a passage has of a question, beyond bm25 and cosine: pure counting over words and their places.

Words are compared one by one, with the embedded model: a passage about a *physician* has most of a question about a
*doctor*. Each figure is a share of the question, rare words counting more, so that it means the same in every vault.
"""

from __future__ import annotations

from co_cli.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from co_cli.index.lexicon import PassageWords, Word
    from co_cli.retrieval.question import Term

    Likeness = dict[str, tuple[tuple[int, float], ...]]
    """A word, and the terms it is like: their places in the question and how much, 1 being the same word."""

UNLIKE = 0.3
"""The cosine that two words easily have: what is above counts, stretched to 0..1."""
MOST_COMPARED = 8
"""Terms, the rarest, that are compared with other words; every term is compared with itself."""
WINDOW = 12
"""Words that a phrase spans, with what may stand between."""
AKIN = (0.4 - UNLIKE) / (1 - UNLIKE)
"""The most that one word counts for where words do not tell: what two words have that may stand for each other."""
SHORTEST_SENTENCE = 4
SATURATION, LENGTH_SHARE = 1.2, 0.75
"""bm25's k1 and b."""


class Evidence(Record):
    """What one passage has of a question. All but `weighed` are 0 to 1."""

    related: float = 0.0
    """Of each term the most similar word, wherever it stands."""
    sentence: float = 0.0
    """The same within the best sentence, the title helping."""
    near: float = 0.0
    """Terms that stand as they were typed within a few words of each other."""
    order: float = 0.0
    """Neighbours in the question that are neighbours in the passage."""
    title: float = 0.0
    """Terms that stand in the title or in a heading; 0 where the title is only how the text begins."""
    named: float = 0.0
    """Names and numbers that stand as they were typed."""
    context: float = 0.0
    """What only the context has."""
    weighed: float = 0.0
    """bm25 in which a similar word counts in part."""
    asks: float = 0.0
    """1 for a note that ends in a question itself."""
    akin: float = 0.0
    """As `related`, but the same word counts no more than one like it: it may stand there by chance."""
    titled: float = 0.0
    """How near the title is by meaning, above what unrelated ones are; only looked at where words do not tell."""


def likeness(terms: Sequence[Term], words: dict[str, Word], cosines: Sequence[float]) -> Likeness:
    """Which words are like which terms. `cosines` says which cosine a number of differing bits stands for."""
    share = [(cosine - UNLIKE) / (1 - UNLIKE) for cosine in cosines if cosine > UNLIKE]
    least = len(share)
    stems: dict[str, int] = {term.stem: place for place, term in enumerate(terms)}
    rarest = sorted((term.weight, place) for place, term in enumerate(terms) if term.code and not term.named)
    compared = [(place, terms[place].code) for _, place in rarest[-MOST_COMPARED:]]
    found: Likeness = {}
    for name, (stem, code) in words.items():
        like = [
            (place, share[differing]) for place, other in compared if (differing := (code ^ other).bit_count()) < least
        ]
        same = stems.get(stem)
        if same is not None:
            like = [(place, part) for place, part in like if place != same]
            like.append((same, 1.0))
        if like:
            found[name] = tuple(like)
    return found


def measure(terms: Sequence[Term], passages: dict[int, PassageWords], like: Likeness) -> dict[int, Evidence]:
    """The evidence in each of these passages; lengths are compared among them."""
    if not terms or not passages:
        return dict.fromkeys(passages, Evidence())
    typical = sum(len(words.title) + len(words.body) for words in passages.values()) / len(passages) or 1.0
    like = {**like, ".": ()}  # where sentences end is looked at, too
    return {passage: _evidence(terms, words, like, typical) for passage, words in passages.items()}


def _evidence(terms: Sequence[Term], words: PassageWords, like: Likeness, typical: float) -> Evidence:
    weights = [term.weight for term in terms]
    total = sum(weights) or 1.0
    titled, counts = [0.0] * len(terms), [0.0] * len(terms)
    for word in words.title:
        if word in like:
            for place, share in like[word]:
                counts[place] += share * share
                if share > titled[place]:
                    titled[place] = share
    both, exact = titled.copy(), list[tuple[int, int]]()
    sentence, started, here = 0.0, 0, dict[int, float]()
    for position, found in [(position, like[word]) for position, word in enumerate(words.body) if word in like]:
        if not found and position - started > SHORTEST_SENTENCE:
            sentence = max(sentence, _with_title(here, titled, weights)) if here else sentence
            here, started = {}, position
        for place, share in found:
            counts[place] += share * share
            if share > both[place]:
                both[place] = share
            if share > here.get(place, 0.0):
                here[place] = share
            if share == 1.0:
                exact.append((position, place))
    sentence = max(sentence, _with_title(here, titled, weights))
    around = _best(words.context, like, len(terms))
    norm = SATURATION * (1 - LENGTH_SHARE + LENGTH_SHARE * (len(words.title) + len(words.body)) / typical)
    naming = [place for place, term in enumerate(terms) if term.named]
    return Evidence(
        related=_weighted(both, weights) / total,
        sentence=sentence / total,
        near=_nearest(exact, weights) / total,
        order=_order(exact, weights),
        title=sum(weights[place] for place, share in enumerate(titled) if share == 1.0) / total
        if words.own_title
        else 0.0,
        named=sum(weights[place] for place in naming if both[place] == 1.0)
        / (sum(weights[place] for place in naming) or 1.0),
        context=_weighted([max(0.0, one - other) for one, other in zip(around, both, strict=True)], weights) / total,
        weighed=sum(
            weight * count * (SATURATION + 1) / (count + norm)
            for weight, count in zip(weights, counts, strict=True)
            if count
        ),
        asks=float(words.asks),
        akin=_weighted([min(share, AKIN) for share in both], weights) / total,
    )


def _best(words: Iterable[str], like: Likeness, count: int) -> list[float]:
    best = [0.0] * count
    for word in words:
        for place, share in like.get(word, ()):
            best[place] = max(best[place], share)
    return best


def _weighted(shares: Sequence[float], weights: Sequence[float]) -> float:
    return sum(share * weight for share, weight in zip(shares, weights, strict=True))


def _with_title(here: dict[int, float], titled: Sequence[float], weights: Sequence[float]) -> float:
    found = sum([weight * share for weight, share in zip(weights, titled, strict=True) if share])
    return found + sum([weights[place] * max(0.0, share - titled[place]) for place, share in here.items()])


def _nearest(exact: Sequence[tuple[int, int]], weights: Sequence[float]) -> float:
    """The weight of the terms in the best stretch of a few words."""
    best, start = 0.0, 0
    for end, (position, _) in enumerate(exact):
        while exact[start][0] <= position - WINDOW:
            start += 1
        best = max(best, sum([weights[place] for place in {place for _, place in exact[start : end + 1]}]))
    return best


def _order(exact: Sequence[tuple[int, int]], weights: Sequence[float]) -> float:
    """For each two neighbours of the question, how near each other they stand; in the same order is nearer."""
    places: dict[int, list[int]] = {}
    for position, place in exact:
        places.setdefault(place, []).append(position)
    total = found = 0.0
    for place in range(len(weights) - 1):
        weight = min(weights[place], weights[place + 1])
        total += weight
        first, second = places.get(place), places.get(place + 1)
        if first and second:
            apart = min(
                two - one if two > one else one - two + 0.5 for one in first[:WINDOW] for two in second[:WINDOW]
            )
            found += weight / max(1.0, apart)
    return found / total if total else 0.0
