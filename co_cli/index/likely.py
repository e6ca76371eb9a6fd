"""Passages that may say the same as a text: those that share its rare words.

Ranking every passage that has one of the words takes longer than all the rest of a save. Rare words have short lists,
and who says nearly the same has most of them; so the lists alone are weighed against each other.
"""

from __future__ import annotations

import math

import apsw

from co_cli.index.connection import fetch
from co_cli.index.words import telling_words
from co_cli.record import Record

MOST_WORDS = 200
RARE = (100, 1_000)
"""A word that fewer passages have is rare; the second number counts if the first leaves none."""
LOOKED_AT = 40
"""Passages that are opened at a time, and how many times: the best ones may be of other vaults."""
ROUNDS = 25

HAVING = "select rowid from docs_fts where docs_fts match :match limit :limit"
TOTAL = "select sum(passages) from vaults"
# the order of this join matters: the planner would start from every note of the vault
OPEN = """
select passages.id, docs.path, passages.body
from json_each(:ids) as wanted
cross join passages on passages.id = wanted.value cross join docs on docs.id = passages.doc_id
where docs.vault_id = :vault and docs.source = :source
"""


class Likely(Record):
    """A passage that may say the same."""

    path: str
    body: str


def find_likely(connection: apsw.Connection, vault_id: int, source: str, text: str, limit: int) -> list[Likely] | None:
    """Those that share most of what is rare in the text, and among equals those of its length.

    None if nothing in it is rare enough to tell.
    """
    words = telling_words(connection, text, MOST_WORDS)
    lists: list[list[int]] = []
    for rare in RARE:
        found = (_having(connection, word, rare) for word in words)
        lists = [passages for passages in found if 0 < len(passages) < rare]
        if lists:
            break
    else:
        return None
    total = int(connection.execute(TOTAL).get or 0) + 1
    weights: dict[int, float] = {}
    for passages in lists:
        weight = math.log(total / len(passages))
        for passage in passages:
            weights[passage] = weights.get(passage, 0.0) + weight
    best = sorted(weights, key=lambda passage: -weights[passage])
    opened: list[tuple[int, str, str]] = []
    for start in range(0, min(len(best), LOOKED_AT * ROUNDS), LOOKED_AT):
        if len(opened) >= limit and weights[best[start]] < weights[opened[limit - 1][0]]:
            break
        ids = f"[{','.join(map(str, best[start : start + LOOKED_AT]))}]"
        opened += fetch(connection, OPEN, {"ids": ids, "vault": vault_id, "source": source})
    opened.sort(key=lambda row: (-weights[row[0]], abs(len(row[2]) - len(text))))
    return [Likely(path, body) for _, path, body in opened[:limit]]


def _having(connection: apsw.Connection, word: str, limit: int) -> list[int]:
    quoted = '"' + word.replace('"', '""') + '"'
    return [row[0] for row in fetch(connection, HAVING, {"match": quoted, "limit": limit})]
