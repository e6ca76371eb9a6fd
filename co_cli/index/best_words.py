"""The passages that rank best for any of some words, without ranking all that have one of them.

bm25 adds up what each word gives, and a word gives at most 2.2 times its weight, so a passage that has only the common
words of a question cannot come near the top. Ranking a match costs a microsecond and passing over it a tenth of that:
the rare words are ranked, and what the common ones add is looked up for those that it could bring to the top. The
answer is the one of ranking everything, a fifth to a tenth of its time in a large vault; where that cannot be shown, or
there is little to rank, everything is ranked.
"""

from __future__ import annotations

from math import log

import apsw

from co_cli.index.connection import fetch

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

FEW = 2_000
"""Matches that are ranked as soon as they are counted."""
MOST_GIVEN = 2.2
"""FTS5's k1 + 1: what a word gives if a passage says nothing else, in units of its weight."""
LEAST_WEIGHT = 1e-6
"""What FTS5 gives a word that more than half of the passages have."""
DEEP = 20
"""How many times as many as are wanted are looked at for what common words add."""

# the numbers weigh title, heading, body, tags, aliases, grams, context
BM25 = "bm25(docs_fts, 3.0, 2.0, 1.0, 2.0, 3.0, 1.0, 0.3)"
RANKED = f"""
select rowid, {BM25} as rank
from docs_fts where docs_fts match :match order by rank limit :limit
"""
# `+`: or FTS5 would look for each of these rows anew
RANKED_AMONG = f"""
select rowid, {BM25}
from docs_fts where docs_fts match :match and +rowid in (select value from json_each(:ids))
"""


def best_by_words(
    connection: apsw.Connection, counts: Mapping[str, int | None], total: int, limit: int
) -> list[tuple[int, float]]:
    """Passages and their rank, best first. `counts` says of each piece how many of the `total` passages have it.

    None for one of which that is not known: it is ranked.
    """
    pieces = list(counts)
    known = {piece: count for piece, count in counts.items() if count is not None}
    if sum(known.values()) > FEW:
        rare, common, added = _split(known, total, limit)
        rare += [piece for piece in pieces if piece not in known]
        found = _rank(connection, rare, common, added, limit)
        if found is None and common and len(rare) + len(common) < len(pieces):
            found = _rank(connection, rare + common, [], 0.0, limit)
        if found is not None:
            return found
    return fetch(connection, RANKED, {"match": _any(pieces), "limit": limit})


def _split(counts: Mapping[str, int], total: int, limit: int) -> tuple[list[str], list[str], float]:
    """The words to rank, the common ones to look up, and the most that these can add.

    A word that half of the passages have is neither: it adds nothing.
    """
    order = sorted(counts, key=lambda piece: counts[piece])
    telling = [piece for piece in order if 2 * counts[piece] <= total]
    having, bar = 0, 0.0  # about what the last of those wanted will have
    for piece in telling:
        having += counts[piece]
        bar = _weight(counts[piece], total)
        if having >= limit:
            break
    common: list[str] = []
    added = LEAST_WEIGHT * MOST_GIVEN * (len(order) - len(telling))
    while len(telling) > 1 and added + MOST_GIVEN * _weight(counts[telling[-1]], total) <= bar:
        common.append(telling.pop())
        added += MOST_GIVEN * _weight(counts[common[-1]], total)
    return telling, common, added


def _rank(
    connection: apsw.Connection, rare: list[str], common: list[str], added: float, limit: int
) -> list[tuple[int, float]] | None:
    """None if what common words add could bring up passages that were not looked at."""
    if not rare:
        return None
    deep = limit * DEEP if common else limit
    ranked = fetch(connection, RANKED, {"match": _any(rare), "limit": deep})
    if len(ranked) < limit or -ranked[limit - 1][1] < added:
        return None
    if not common:
        return ranked
    bar = -ranked[limit - 1][1] - added
    if len(ranked) == deep and -ranked[-1][1] >= bar:
        return None
    scores = {passage: rank for passage, rank in ranked if -rank >= bar}
    ids = f"[{','.join(map(str, scores))}]"
    for passage, rank in fetch(connection, RANKED_AMONG, {"match": _any(common), "ids": ids}):
        scores[passage] += rank
    return sorted(scores.items(), key=lambda pair: (pair[1], pair[0]))[:limit]


def _weight(count: int, total: int) -> float:
    """As FTS5 weighs a word that so many passages have."""
    return max(log((total - count + 0.5) / (count + 0.5)), LEAST_WEIGHT)


def _any(pieces: list[str]) -> str:
    return f"({' OR '.join(pieces)})"
