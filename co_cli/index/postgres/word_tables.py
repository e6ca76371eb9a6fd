"""Word search: candidates by a GIN index on the terms of each passage, scored with the bm25 of FTS5 as a `sparsevec`.

The stored weights of a passage have the mean length of the day on which it was written.
"""

from __future__ import annotations

import struct
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from itertools import accumulate
from math import log
from typing import Any

import numpy as np
from numpy.typing import NDArray

from co_cli.index.derivation import WEIGHTS, Row
from co_cli.index.postgres.postgres_statements import PostgresStatements
from co_cli.index.stored import Match, Scope
from co_cli.index.tables.filters import conditions, is_narrow
from co_cli.index.tables.spaces import origin_by_id
from co_cli.index.tables.statements import LAST, Tokens
from co_cli.index.word_query import Term, WordQuery

LONGEST_TERM = 250
"""A longer token, such as a key, is indexed by its beginning: a B-tree refuses more than 2,700 bytes."""
K1, B = 1.2, 0.75
"""FTS5's constants of bm25."""
DIMENSIONS = 1_000_000_000
MOST_SCORED = 5_000
"""Terms that more passages have, together with rarer ones of the query, find none: they only count."""
MOST_WITH_PREFIX = 200
INTEGERS = {"passage_id": "int8", "doc_id": "int8", "vault_id": "int4", "length": "int4"}
WORDS = {**INTEGERS, "scale": "float4", "terms": "bytea", "weights": "bytea", "tokens": "text"}
"""Columns, and how they are sent: arrays and vectors as they are in binary."""

ADD_TERMS = """
insert into terms (vault_id, term, passages)
select %(vault)s, * from unnest(string_to_array(%(terms)s, ' '), string_to_array(%(counts)s, ' ')::integer[])
on conflict (vault_id, term) do update set passages = terms.passages + excluded.passages returning term, id
"""
COUNT_TOKENS = "update vaults set tokens = tokens + %(tokens)s where id = %(vault)s returning tokens, passages"
DROP = (
    """
    update terms set passages = terms.passages - gone.count
    from (select unnest(terms) as id, count(*) from words where passage_id = any(%(ids)s) group by 1) as gone
    where terms.id = gone.id
    """,
    "delete from terms where passages = 0 and id in (select unnest(terms) from words where passage_id = any(%(ids)s))",
    """
    update vaults set tokens = tokens - (select coalesce(sum(length), 0) from words where passage_id = any(%(ids)s))
    where id = %(vault)s
    """,
    "delete from words where passage_id = any(%(ids)s)",
)
KNOWN = "select term, id, passages from terms where vault_id = %(vault)s and term = any(%(terms)s)"
STARTING = f"""
select passages, id from terms where vault_id = %(vault)s and term >= %(start)s and term < %(end)s
order by passages desc, term limit {MOST_WITH_PREFIX}
"""
# the best by their stored weights are scored again, one term after another, with the mean length of today
FIND = f"""
with asked as materialized (
    select term::sparsevec, rarity from unnest(%(terms)s::text[], %(rarities)s::float8[]) as one (term, rarity)
)
select words.passage_id, words.doc_id, sum(rarity * {K1 + 1} * had * words.scale / (had * words.scale + (1 - had)
    * ({K1 * (1 - B)} + {K1 * B} * words.length * vaults.passages / greatest(vaults.tokens, 1)))) as score
from (
    select found.passage_id from find_words(%(vault)s, %(any_of)s, %(query)s, {{rough}}) as found {{joined}}
    order by found.score desc, found.passage_id limit %(rough)s
) as best, words, vaults, asked, lateral (select -(words.weights <#> asked.term) as had) as one
where words.passage_id = best.passage_id and vaults.id = %(vault)s and had > 0
group by words.passage_id, words.doc_id order by score desc, words.passage_id limit %(most)s
"""
JOINED = {
    "docs.": "join docs on docs.id = found.doc_id ",
    "passages.": "join passages on passages.id = found.passage_id ",
    "words.": "join words on words.passage_id = found.passage_id ",
}
TOKENS = "select passage_id, tokens from words where passage_id = any(%(ids)s)"
COUNTS = "select term, sum(passages) from terms where vault_id = any(%(vaults)s) and {which} group by term"


class PostgresWords(PostgresStatements):
    """The word index of one transaction."""

    def term_counts(
        self, origin_ids: Iterable[int], terms: Iterable[Term] | None = None, start: str = ""
    ) -> tuple[int, dict[Term, int]]:
        wanted = None if terms is None else list(terms)
        bound: dict[str, Any] = {"vaults": list(origin_ids), "start": start, "end": start + LAST}
        which = "term >= %(start)s and term < %(end)s"
        if wanted is not None:
            bound["terms"], which = [_cut(term) for term in wanted], "term = any(%(terms)s)"
        counts = {term: int(count) for term, count in self.fetch(COUNTS, bound, which=which)}
        total = sum(origin_by_id(self, origin_id).passages for origin_id in bound["vaults"])
        return total, counts if wanted is None else {term: counts.get(_cut(term), 0) for term in wanted}

    def count_words(self, origin_id: int) -> int:
        return self.fetch("select count(*) from words where vault_id = %(vault)s", {"vault": origin_id})[0][0]

    def terms_in(self, passages: Sequence[int], terms: Iterable[Term]) -> dict[int, set[Term]]:
        wanted, found = [(term, _cut(term)) for term in terms], dict[int, set[Term]]()
        rows = dict(self.fetch(TOKENS, {"ids": list(passages)}))
        for passage in passages:
            had = set(rows.get(passage, "").split())
            found[passage] = {term for term, stored in wanted if stored in had}
        return found

    def find_words(self, scope: Scope, origin_id: int, query: WordQuery, limit: int) -> list[Match]:
        state, counting = origin_by_id(self, origin_id), [_cut(term) for term in query.counting]
        phrased = [_cut(term) for phrase in query.phrases for term in phrase]
        rows = self.fetch(KNOWN, {"vault": origin_id, "terms": [*counting, *phrased]})
        known = {term: (having, number) for term, number, having in rows}
        if not known.keys() >= {*phrased}:
            return []
        terms = [known[term] for term in (*counting, *phrased) if term in known]
        asked = [(number, _rarity(state.passages, having)) for having, number in terms]
        for start in query.prefixes:
            starting = self.fetch(STARTING, {"vault": origin_id, "start": start, "end": start + LAST})
            rarity = _rarity(state.passages, min(state.passages, sum(having for having, _ in starting)))
            asked, terms = asked + [(number, rarity) for _, number in starting], terms + starting
        conditioned = _on_tokens(query)
        if is_narrow(scope, state):
            where, values = conditions(self.dialect, scope, origin_id)
            conditioned[where] = values
        bound: dict[str, Any] = {"vault": origin_id, "query": _sparse(asked), "most": limit, "rough": 2 * limit}
        bound |= {"terms": [_sparse([(number, 1)]) for number, _ in asked], "rarities": [rarity for _, rarity in asked]}
        for more in conditioned.values():
            bound |= more
        filters = " and ".join(conditioned)
        joined = "".join(text for table, text in JOINED.items() if table in filters)
        joined += f" where {filters}" if filters else ""
        parts = {"rough": "null" if filters else "%(rough)s", "joined": joined}
        found, few = list[Any](), [min(known[term] for term in phrased)] if phrased else _rarest(terms)
        for finding in (few, terms) if filters and not phrased and len(few) < len(terms) else (few,):
            found = self.fetch(FIND, {**bound, "any_of": [number for _, number in finding]}, **parts) if finding else []
            if len(found) >= limit:
                break  # else the filters leave too few of those with rare terms
        return [Match(*row) for row in found]

    def make_words(self, origin_id: int) -> None:
        """The tables of words are those of every vault."""

    def put_words(self, origin_id: int, passages: Sequence[tuple[Row, Tokens]]) -> None:
        if not passages:
            return
        cut = [{name: _shortened(column) for name, column in tokens.items()} for _, tokens in passages]
        counted = [_counted(columns) for columns in cut]
        lengths = [sum(map(len, columns.values())) for columns in cut]
        ((tokens, before),) = self.fetch(COUNT_TOKENS, {"vault": origin_id, "tokens": sum(lengths)})
        mean = max(tokens, 1) / (before + len(passages))
        having = sorted(Counter(term for counts in counted for term in counts).items())
        bound = {"terms": " ".join(term for term, _ in having), "counts": " ".join(str(count) for _, count in having)}
        numbers: dict[str, int] = dict(self.fetch(ADD_TERMS, {**bound, "vault": origin_id}))
        scales = K1 * (1 - B + B * np.array(lengths) / mean)
        packed = zip(scales.tolist(), *_packed(counted, numbers, scales), map(_lines, cut), strict=True)
        ids = (
            (row["id"], row["doc_id"], origin_id, length) for (row, _), length in zip(passages, lengths, strict=True)
        )
        self.put_binary("words", WORDS, [(*keys, *rest) for keys, rest in zip(ids, packed, strict=True)])

    def drop_words(self, origin_id: int, passages: Sequence[int]) -> None:
        for statement in DROP:
            self.run(statement, {"vault": origin_id, "ids": list(passages)})


def _on_tokens(query: WordQuery) -> dict[str, dict[str, Any]]:
    """Conditions on the tokens of a passage itself, without its context, with their parameters."""
    found: dict[str, dict[str, Any]] = {}
    for needle in query.phrases:
        name = f"text_{len(found)}"
        found[f"strpos(words.tokens, %({name})s) > 0"] = {name: f" {' '.join(map(_cut, needle))} "}
    return found


def _rarest(terms: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    """The terms by which passages are found."""
    terms = sorted(terms)
    totals = accumulate(having for having, _ in terms)
    return [term for term, total in zip(terms, totals, strict=True) if total <= MOST_SCORED] or terms[:1]


def _rarity(passages: int, having: int) -> float:
    return max(log((passages - having + 0.5) / (having + 0.5)), 1e-6)


def _sparse(asked: Sequence[tuple[int, float]]) -> str:
    weights: dict[int, float] = defaultdict(float)
    for number, rarity in asked:
        weights[number] += rarity
    return f"{{{','.join(f'{number}:{weights[number]}' for number in sorted(weights))}}}/{DIMENSIONS}"


def _counted(columns: Tokens) -> dict[str, float]:
    """What each term counts in a passage."""
    found: dict[str, float] = defaultdict(float)
    for name, column in columns.items():
        weight = WEIGHTS[name]
        for term in column:
            found[term] += weight
    return found


def _lines(columns: Tokens) -> str:
    return "\n".join(f" {' '.join(columns[name])} " for name in WEIGHTS if name != "context")


def _packed(
    counted: Sequence[dict[str, float]], numbers: dict[str, int], scales: NDArray[np.floating[Any]]
) -> tuple[list[bytes], list[bytes]]:
    """The terms of each passage as an array and their weights as a sparsevec, both in binary."""
    sizes = [len(counts) for counts in counted]
    passage = np.repeat(np.arange(len(counted)), sizes)
    terms = np.fromiter((numbers[term] for counts in counted for term in counts), np.int64, sum(sizes))
    values = np.fromiter((count for counts in counted for count in counts.values()), float, sum(sizes))
    order = np.lexsort((terms, passage))
    terms, values = terms[order], values[order]
    members = np.full((len(terms), 2), 4, ">i4")  # each with its size
    members[:, 1] = terms
    places, weights = (terms - 1).astype(">i4"), (values / (values + scales[passage])).astype(">f4")
    arrays, vectors = list[bytes](), list[bytes]()
    for end, size in zip(accumulate(sizes), sizes, strict=True):
        own = slice(end - size, end)
        arrays.append(struct.pack(">iiiii", 1, 0, 23, size, 1) + members[own].tobytes())
        vectors.append(struct.pack(">iii", DIMENSIONS, size, 0) + places[own].tobytes() + weights[own].tobytes())
    return arrays, vectors


def _shortened(column: list[Term]) -> list[Term]:
    return list(map(_cut, column)) if max(map(len, column), default=0) > LONGEST_TERM else column


def _cut(term: str) -> str:
    return term[:LONGEST_TERM]
