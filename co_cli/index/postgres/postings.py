"""Word search: packed postings by term, scored here with the bm25 of FTS5, so that both engines give the same order.

A posting is 8 bytes: the passage, what the term counts there outside and inside of the context, and the passage's
length in tokens. Postings of 1,024 passages are one row: with a row for each posting, the index was three times as
large and a query took eight times as long; term arrays under a GIN index with `sparsevec` took twice as long.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from functools import partial
from struct import Struct
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from co_cli.index.derivation import WEIGHTS
from co_cli.index.engine import DEEPER, Match, Needle, Scope, Term, WordQuery, spread
from co_cli.index.postgres.conditions import Connection, conditions, fetch, is_narrow
from co_cli.index.postgres.vector_tables import VectorTables

if TYPE_CHECKING:
    from numpy.typing import NDArray

POSTING = Struct("<IBBH")
PACKED = np.dtype([("passage", "<u4"), ("own", "u1"), ("context", "u1"), ("length", "<u2")])
BLOCK = 10
"""Passages whose numbers differ only in the last so many bits share their rows."""
LONGEST_TERM = 250
"""A longer token, such as a key, is indexed by its beginning: a B-tree refuses more than 2,700 bytes."""
OWN = {name: int(weight) for name, weight in WEIGHTS.items() if name != "context"}
K1, B = 1.2, 0.75
"""FTS5's constants of bm25."""
FIRST_CHECKED = 1_000
"""Passages that are checked for a filter at once; then twice as many, and so on."""
LAST = "\U0010ffff"
"""Sorts behind every letter."""

ADD = """
insert into postings (vault_id, term, block, packed)
select %(vault)s, * from unnest(%(terms)b::text[], %(blocks)b::integer[], %(packed)b::bytea[])
on conflict (vault_id, term, block) do update set packed = postings.packed || excluded.packed
"""
OF_PASSAGES = "select id, tokens, context_tokens, length from passages where id = any(%(ids)s)"
HELD = """
select postings.term, postings.block, postings.packed
from unnest(%(terms)s::text[], %(blocks)s::integer[]) as wanted (term, block)
join postings on postings.vault_id = %(vault)s and postings.term = wanted.term and postings.block = wanted.block
"""
REPLACE = """
update postings set packed = kept.packed
from unnest(%(terms)b::text[], %(blocks)b::integer[], %(packed)b::bytea[]) as kept (term, block, packed)
where postings.vault_id = %(vault)s and postings.term = kept.term and postings.block = kept.block
"""
DROP = """
delete from postings using unnest(%(terms)s::text[], %(blocks)s::integer[]) as gone (term, block)
where postings.vault_id = %(vault)s and postings.term = gone.term and postings.block = gone.block
"""
COUNT_TOKENS = """
update vaults set tokens = tokens + %(tokens)s, postings = postings + %(postings)s where id = %(vault)s
"""
FIND = """
select vaults.passages, vaults.tokens, postings.term, postings.packed
from vaults left join postings on postings.vault_id = vaults.id and postings.term = any(%(terms)s)
where vaults.id = %(vault)s
"""
STARTING = "select packed from postings where vault_id = %(vault)s and term >= %(start)s and term < %(end)s"
TOKENS = "select id, tokens from passages where id = any(%(ids)s)"
HAVING = f"{TOKENS} and strpos(tokens, %(text)s) > 0"
NOTES_OF = "select id, doc_id from passages where id = any(%(ids)s)"
NOTES_WITHIN = """
select passages.id, passages.doc_id from passages join docs on docs.id = passages.doc_id
where passages.id = any(%(ids)s) and {filters}
"""
CONVERSATIONS = "select id from docs where source = 'conversation' and id = any(%(ids)s)"
COUNTS = """
select term, sum(octet_length(packed)) / 8 from postings where vault_id = any(%(vaults)s) and {which} group by term
"""


class Found(NamedTuple):
    """Passages with a term, a phrase or a prefix: what it counts in each of them, and their lengths."""

    ids: NDArray[np.int64]
    counts: NDArray[np.float64]
    lengths: NDArray[np.float64]


class PostingReader(VectorTables):
    """The part of a read transaction that searches by words."""

    def words(self, scope: Scope, query: WordQuery, limit: int) -> list[Match]:
        found: list[Match] = []
        for vault in scope.vaults if not query.empty else ():
            narrow = is_narrow(scope, self.vault_by_id(vault))
            ids, scores = self._ranked(vault, query, None if narrow else limit * DEEPER)
            found += spread(partial(self._within, vault, scope, ids, scores), limit, self.conversations)
        return sorted(found, key=lambda one: (-one.score, one.passage))[:limit]

    def conversations(self, notes: Sequence[int]) -> set[int]:
        return {note for (note,) in fetch(self.connection, CONVERSATIONS, {"ids": list(notes)})}

    def term_counts(
        self, vaults: Iterable[int], terms: Iterable[Term] | None = None, start: str = ""
    ) -> tuple[int, dict[Term, int]]:
        wanted = None if terms is None else list(terms)
        bound: dict[str, Any] = {"vaults": list(vaults), "start": start, "end": start + LAST}
        which = "term >= %(start)s and term < %(end)s"
        if wanted is not None:
            bound["terms"], which = [_cut(term) for term in wanted], "term = any(%(terms)s)"
        counts = {term: int(count) for term, count in fetch(self.connection, COUNTS.format(which=which), bound)}
        total = sum(one.passages for one in self.every_vault().values() if one.id in bound["vaults"])
        return total, counts if wanted is None else {term: counts.get(_cut(term), 0) for term in wanted}

    def terms_in(self, passages: Sequence[int], terms: Iterable[Term]) -> dict[int, set[Term]]:
        wanted, found = list(terms), dict[int, set[Term]]()
        rows = dict(fetch(self.connection, TOKENS, {"ids": list(passages)}))
        for passage in passages:
            had = set(rows.get(passage, "").split())
            found[passage] = {term for term in wanted if _cut(term) in had}
        return found

    def _ranked(self, vault: int, query: WordQuery, most: int | None) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        """Every passage that matches, or the best of them, with its score, best first."""
        whole = not (query.phrases or query.excluded)  # these are about the passage itself, not about its neighbours
        needles = (*query.phrases, *query.excluded, *((term,) for term in (*query.terms, *query.hints)))
        packed: dict[Term, list[bytes]] = {_cut(term): [] for needle in needles for term in needle}
        rows = fetch(self.connection, FIND, {"vault": vault, "terms": list(packed)}, binary=True)
        passages, tokens = rows[0][:2]
        for *_, term, part in rows:
            packed.setdefault(term, []).append(part or b"")  # one row without a term, if there is none
        postings = {term: _unpacked(parts, whole) for term, parts in packed.items()}
        phrases = [self._phrase(needle, postings) for needle in query.phrases]
        # FTS5 counts the first phrase twice, as `phrase AND (phrase OR ...)` has it twice
        parts = [*phrases, *phrases[:1], *(postings[_cut(term)] for term in (*query.terms, *query.hints))]
        parts += [self._prefix(vault, start, whole) for start in query.prefixes]
        ids = np.concatenate([part.ids for part in parts])
        if not len(ids):
            return ids, np.empty(0)
        first = int(ids.min())
        scores: Any = np.bincount(ids - first, np.concatenate([_bm25(part, passages, tokens) for part in parts]))
        matching = np.zeros(len(scores), bool)
        matching[ids - first] = True
        for phrase in phrases:
            having = np.zeros(len(scores), bool)
            having[phrase.ids - first] = True
            matching &= having
        for needle in query.excluded:
            gone = self._phrase(needle, postings).ids - first
            matching[gone[(gone >= 0) & (gone < len(scores))]] = False
        places = np.flatnonzero(matching)
        if most is not None and len(places) > most:  # sorting all would take longer than scoring them
            places = places[scores[places] >= np.partition(scores[places], -most)[-most]]
        places = places[np.argsort(-scores[places], kind="stable")]
        return places + first, scores[places]

    def _prefix(self, vault: int, start: str, whole: bool) -> Found:
        bound = {"vault": vault, "start": start, "end": start + LAST}
        every = _unpacked([part for (part,) in fetch(self.connection, STARTING, bound, binary=True)], whole)
        ids, places, inverse = np.unique(every.ids, return_index=True, return_inverse=True)
        counts: Any = np.bincount(inverse, every.counts, len(ids))
        return Found(ids, counts, every.lengths[places])

    def _phrase(self, needle: Needle, postings: dict[Term, Found]) -> Found:
        """Passages in which these tokens follow each other."""
        terms = [_cut(term) for term in needle]
        first = postings[terms[0]]
        if len(terms) == 1:
            return first
        ids = first.ids
        for term in terms[1:]:
            ids = np.intersect1d(ids, postings[term].ids)
        text = f" {' '.join(terms)} "
        again = re.compile(f"(?={re.escape(text)})")  # a match may begin with the blank that ends another
        counts = {
            passage: sum(weight * len(again.findall(line)) for line, weight in weighed(tokens))
            for passage, tokens in fetch(self.connection, HAVING, {"ids": ids.tolist(), "text": text})
        }
        ids = np.array(sorted(counts), np.int64)
        kept = np.isin(first.ids, ids)
        order = np.argsort(first.ids[kept])
        return Found(ids, np.array([counts[one] for one in ids.tolist()], float), first.lengths[kept][order])

    def _within(
        self, vault: int, scope: Scope, ids: NDArray[np.int64], scores: NDArray[np.float64], limit: int
    ) -> list[Match]:
        """The first of these that pass the filters."""
        statement, values, size = NOTES_OF, dict[str, Any](), limit
        if is_narrow(scope, self.vault_by_id(vault)):
            where, values = conditions(scope, vault)
            statement, size = NOTES_WITHIN.format(filters=where), max(limit, FIRST_CHECKED)
        found, start = list[Match](), 0
        while start < len(ids) and len(found) < limit:
            some = ids[start : start + size].tolist()
            notes = dict(fetch(self.connection, statement, {**values, "ids": some}))
            pairs = zip(some, scores[start : start + size].tolist(), strict=True)
            found += [Match(passage, notes[passage], score) for passage, score in pairs if passage in notes]
            start, size = start + size, size * 2
        return found[:limit]


def token_columns(columns: dict[str, list[str]]) -> tuple[str, str, int]:
    """The tokens of a passage as they are stored, and how many they are."""
    lines = [f" {' '.join(map(_cut, columns[name]))} " for name in OWN]
    return "\n".join(lines), " ".join(map(_cut, columns["context"])), sum(map(len, columns.values()))


def add_postings(connection: Connection, vault: int, passages: Sequence[tuple[int, str, str, int]]) -> None:
    """Index passages: their ids and what `token_columns` says."""
    blocks: dict[int, defaultdict[str, bytes]] = {}
    for passage, tokens, context, length in passages:
        rows = blocks.setdefault(passage >> BLOCK, defaultdict(bytes))
        own = Counter([token for line, weight in weighed(tokens) for token in line.split() * weight])
        around = Counter(context.split())
        for term, count in own.items():
            rows[term] += _posting(passage, count, around.pop(term, 0), length)
        for term, count in around.items():
            rows[term] += _posting(passage, 0, count, length)
    found = [(term, block, packed) for block, rows in blocks.items() for term, packed in sorted(rows.items())]
    if found:
        terms, numbers, packed = map(list, zip(*found, strict=True))
        fetch(connection, ADD, {"vault": vault, "terms": terms, "blocks": numbers, "packed": packed})
    _count(connection, vault, 1, passages, sum(len(packed) for _, _, packed in found) // POSTING.size)


def drop_postings(connection: Connection, vault: int, ids: Sequence[int]) -> None:
    """Take passages out of the index, before their rows are deleted."""
    passages = fetch(connection, OF_PASSAGES, {"ids": list(ids)})
    wanted = {(term, one >> BLOCK) for one, tokens, context, _ in passages for term in f"{tokens} {context}".split()}
    asked = {"vault": vault, "terms": [term for term, _ in wanted], "blocks": [block for _, block in wanted]}
    kept, empty, dropped = list[tuple[str, int, bytes]](), list[tuple[str, int]](), 0
    for term, block, packed in fetch(connection, HELD, asked, binary=True):
        postings = np.frombuffer(packed, PACKED)
        rest = postings[~np.isin(postings["passage"], ids)]
        dropped += len(postings) - len(rest)
        if len(rest):
            kept.append((term, block, rest.tobytes()))
        else:
            empty.append((term, block))
    for statement, rows in ((REPLACE, kept), (DROP, empty)):
        if rows:
            columns = dict(zip(("terms", "blocks", "packed"), map(list, zip(*rows, strict=True)), strict=False))
            fetch(connection, statement, {"vault": vault, **columns})
    _count(connection, vault, -1, passages, dropped)


def _count(connection: Connection, vault: int, sign: int, passages: Sequence[Sequence[Any]], postings: int) -> None:
    tokens = sum(one[3] for one in passages)
    fetch(connection, COUNT_TOKENS, {"vault": vault, "tokens": sign * tokens, "postings": sign * postings})


def weighed(tokens: str) -> Iterable[tuple[str, int]]:
    """The tokens of each column, and what they count."""
    return zip(tokens.split("\n"), OWN.values(), strict=True)


def _posting(passage: int, own: int, context: int, length: int) -> bytes:
    if own > 255 or context > 255 or length > 0xFFFF:
        own, context, length = min(own, 255), min(context, 255), min(length, 0xFFFF)
    return POSTING.pack(passage, own, context, length)


def _cut(term: str) -> str:
    return term[:LONGEST_TERM]


def _unpacked(parts: Sequence[bytes], whole: bool) -> Found:
    """Without the context unless `whole`."""
    postings = np.frombuffer(b"".join(parts), PACKED)
    if not whole:
        postings = postings[postings["own"] > 0]
    counts = postings["own"] + (WEIGHTS["context"] * postings["context"] if whole else 0.0)
    return Found(postings["passage"].astype(np.int64), counts, postings["length"].astype(float))


def _bm25(found: Found, passages: int, tokens: int) -> NDArray[np.float64]:
    having = len(found.ids)
    rarity = max(np.log((passages - having + 0.5) / (having + 0.5)), 1e-6)
    length = 1 - B + B * found.lengths * passages / max(tokens, 1)
    return rarity * found.counts * (K1 + 1) / (found.counts + K1 * length)
