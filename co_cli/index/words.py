"""Search docs_fts: all terms first, relaxed to any term when that finds too little."""

from __future__ import annotations

import math
from typing import NamedTuple

import apsw

from co_cli.index.filters import conditions
from co_cli.index.match import WordQuery
from co_cli.values import Filters

# title, heading, body, tags, aliases, grams
FIND_WORDS = """
select passages.id, passages.doc_id, bm25(docs_fts, 3.0, 2.0, 1.0, 2.0, 3.0, 1.0) as rank
from docs_fts join passages on passages.id = docs_fts.rowid join docs on docs.id = passages.doc_id
where docs_fts match :match and {filters}
order by rank limit :limit
"""

FIND_LITERAL = """
select passages.id, passages.doc_id, 0.0
from passages join docs on docs.id = passages.doc_id
where {filters} and (instr(passages.body, :literal) or instr(passages.title, :literal))
order by docs.created desc limit :limit
"""

MARK_WORDS = """
select rowid, snippet(docs_fts, 2, char(2), char(3), '…', 40)
from docs_fts where docs_fts match :match and rowid in (select value from json_each(:ids))
"""

CATEGORIES = "L* N* Co Mn Mc"
MOST_COUNTED = 200
PASSAGE_COUNT = "select sum(passages) from vaults"
DOCUMENT_COUNT = "select doc from docs_terms where term = :term"


class WordMatch(NamedTuple):
    """A passage that has the words; `rank` is bm25: negative, lower is better."""

    passage_id: int
    doc_id: int
    rank: float
    all_terms: bool


def find_words(
    connection: apsw.Connection,
    vault_id: int,
    query: WordQuery,
    text: str,
    filters: Filters,
    limit: int,
    relaxed: bool = False,
) -> list[WordMatch]:
    """Best first. What has all the terms stays ahead of what has some of them; `relaxed` looks for any at once."""
    where, values = conditions(filters, vault_id)
    if query.empty:
        literal = text.encode("utf-8", "replace").decode().strip()
        if not literal:
            return []
        rows = connection.execute(FIND_LITERAL.format(filters=where), {**values, "literal": literal, "limit": limit})
        return [WordMatch(passage, doc, rank, True) for passage, doc, rank in rows]
    if relaxed:
        return _find(connection, where, values, query.any_term(), limit, False)
    found = _find(connection, where, values, query.all_terms(), limit, True)
    if len(found) < limit and len(query.terms) + len(query.pairs) > 1:
        have = {match.passage_id for match in found}
        relaxed = _find(connection, where, values, query.any_term(), limit + len(found), False)
        found += [match for match in relaxed if match.passage_id not in have][: limit - len(found)]
    return found


def mark_words(connection: apsw.Connection, query: WordQuery, passage_ids: list[int]) -> dict[int, str]:
    """Snippets of these passages, the matched words between the characters 2 and 3."""
    if query.empty or not passage_ids:
        return {}
    ids = "[" + ",".join(map(str, passage_ids)) + "]"
    return dict(connection.execute(MARK_WORDS, {"match": query.any_term(), "ids": ids}))


def rarest_words(connection: apsw.Connection, text: str, limit: int) -> list[str]:
    """The words of a text that occur in the fewest passages, but in some."""
    tokenizer = _tokenizer(connection)
    raw = text.encode("utf-8", "replace")
    counts: dict[str, int] = {}
    for start, end, *tokens in tokenizer(raw, apsw.FTS5_TOKENIZE_DOCUMENT, None):
        word = raw[start:end].decode("utf-8", "replace")
        if word not in counts and len(counts) < MOST_COUNTED:
            counts[word] = connection.execute(DOCUMENT_COUNT, {"term": tokens[0]}).get or 0
    return sorted((word for word, count in counts.items() if count), key=lambda word: counts[word])[:limit]


def full_strength(connection: apsw.Connection, query: WordQuery) -> float:
    """The bm25 of a typical passage that has every wanted word once: the sum of their inverse frequencies.

    A word that no passage has counts most, as it should: whatever is found, it is not what was asked for.
    """
    tokenizer = _tokenizer(connection)
    total = connection.execute(PASSAGE_COUNT).get or 0
    strength = 0.0
    for word in query.words[:MOST_COUNTED]:
        tokens = [token for _, _, token, *_ in tokenizer(word.encode("utf-8", "replace"), apsw.FTS5_TOKENIZE_QUERY, None)]
        counts = [connection.execute(DOCUMENT_COUNT, {"term": token}).get or 0 for token in tokens]
        found = min(counts, default=0)
        strength += max(math.log((total - found + 0.5) / (found + 0.5)), 1e-6)  # as FTS5's bm25 has it
    return strength


def _tokenizer(connection: apsw.Connection) -> apsw.FTS5Tokenizer:
    return connection.fts5_tokenizer("porter", ["unicode61", "remove_diacritics", "2", "categories", CATEGORIES])


def _find(
    connection: apsw.Connection, where: str, values: dict[str, apsw.SQLiteValue], match: str, limit: int, every: bool
) -> list[WordMatch]:
    rows = connection.execute(FIND_WORDS.format(filters=where), {**values, "match": match, "limit": limit})
    return [WordMatch(passage, doc, rank, every) for passage, doc, rank in rows]
