"""Search docs_fts: all terms first, relaxed to any term when that finds too little."""

from __future__ import annotations

import math

import apsw

from co_cli.index.best_words import BM25, RANKED, best_by_words
from co_cli.index.connection import FileConnection, fetch
from co_cli.index.filters import Reach, conditions
from co_cli.index.match import WordQuery, is_stop_word
from co_cli.record import Record
from co_cli.values import Filters

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

# the order of this join matters: the planner would start from every note of the vault
WITHIN = """
select passages.id, passages.doc_id
from json_each(:ids) as wanted
cross join passages on passages.id = wanted.value cross join docs on docs.id = passages.doc_id
where {vaults}
"""
FIND_WORDS = f"""
select passages.id, passages.doc_id, {BM25} as rank
from docs_fts join passages on passages.id = docs_fts.rowid join docs on docs.id = passages.doc_id
where docs_fts match :match and {{filters}}
order by rank limit :limit
"""

FIND_LITERAL = """
select passages.id, passages.doc_id, 0.0
from passages join docs on docs.id = passages.doc_id
where {filters} and (instr(passages.body, :literal) or instr(passages.title, :literal))
order by docs.created desc limit :limit
"""

# `+` has FTS5 run through all matches; see `_cheaper`
MARK_WORDS = """
select rowid, snippet(docs_fts, 2, char(2), char(3), '…', 40)
from docs_fts where docs_fts match :match and +rowid in (select value from json_each(:ids)) and length(body) <= :longest
"""
LONGEST_MARKED = 20_000
"""Letters: what FTS5 needs for a snippet grows with the square of how often a word stands there, to minutes."""

SOUGHT = 500
MOST_OF_A_NOTE = 5
CATEGORIES = "L* N* Co Mn Mc"
MOST_COUNTED = 200
MOST_COVERED, MOST_TERMS_COVERED = 5, 16
"""Passages and words that are looked at to see how much of a question words can answer."""
HAVING = "select rowid from docs_fts where docs_fts match :match and +rowid in (select value from json_each(:ids))"
INDEXED_ROWS = "select block from docs_fts_data where id = 1"
PASSAGE_COUNT = "select sum(passages) from vaults"
DOCUMENT_COUNT = "select doc from docs_terms where term = :term"


class WordMatch(Record):
    """A passage that has the words; `rank` is bm25: negative, lower is better."""

    passage_id: int
    doc_id: int
    rank: float
    all_terms: bool


def find_words(
    connection: apsw.Connection,
    reach: Reach,
    query: WordQuery,
    text: str,
    filters: Filters,
    limit: int,
    relaxed: bool = False,
) -> list[WordMatch]:
    """Best first. What has all the terms stays ahead of what has some of them; `relaxed` looks for any at once."""
    if relaxed and not query.empty and filters == Filters():
        found = _find_unfiltered(connection, reach, query, limit)
        if found is not None:
            return found
    where, values = conditions(filters, reach)
    if query.empty:
        literal = text.encode("utf-8", "replace").decode().strip()
        if not literal:
            return []
        rows = connection.execute(FIND_LITERAL.format(filters=where), {**values, "literal": literal, "limit": limit})
        return [WordMatch(passage, doc, rank, True) for passage, doc, rank in rows]
    if relaxed:
        return _find(connection, where, values, query.any_term(), limit, False)
    found = _find(connection, where, values, query.all_terms(), limit, True)
    looser = [query.any_term()] if len(query.terms) + len(query.pairs) > 1 else []
    looser += [query.phrases_alone()] if query.phrases and query.terms else []  # the rest of a question may be chatter
    for match in looser:
        if len(found) < limit:
            have = {one.passage_id for one in found}
            others = _find(connection, where, values, match, limit + len(found), False)
            found += [one for one in others if one.passage_id not in have][: limit - len(found)]
    return found


def _find_unfiltered(connection: apsw.Connection, reach: Reach, query: WordQuery, limit: int) -> list[WordMatch] | None:
    """The best of all vaults, and which of them are within reach: a third cheaper than joining every match.

    None if other vaults hold so many of them that this does not tell.
    """
    within = WITHIN.format(vaults=reach.condition)
    for depth in (limit, 2 * limit):  # mostly the first one is enough
        ranked = _best(connection, query, depth)
        ids = f"[{','.join(str(row[0]) for row in ranked)}]"
        docs = dict(fetch(connection, within, {"ids": ids}))
        matches = [WordMatch(passage, docs[passage], rank, False) for passage, rank in ranked if passage in docs]
        found = _varied(matches, limit)
        if len(ranked) < depth or (len(found) == limit and _of_many_notes(found, limit)):
            return found
    return None


def _best(connection: apsw.Connection, query: WordQuery, limit: int) -> list[tuple[int, float]]:
    """The passages that rank best for any of the words, of all vaults."""
    if query.phrases or query.excluded or query.pairs:
        return fetch(connection, RANKED, {"match": query.any_term(), "limit": limit})
    total = connection.execute(PASSAGE_COUNT).get or 0
    return best_by_words(connection, piece_counts(connection, query), total, limit)


def piece_counts(connection: apsw.Connection, query: WordQuery) -> dict[str, int | None]:
    """How many passages have each wanted piece; None where that is not the count of one word."""
    counts: dict[str, int | None] = {}
    for piece, word in query.wanted:
        tokens = _tokens(connection, word)
        counts[piece] = passages_with(connection, tokens[0]) if len(tokens) == 1 else None
    return counts


def mark_words(connection: apsw.Connection, query: WordQuery, passage_ids: list[int]) -> dict[int, str]:
    """Snippets of these passages, the matched words between the characters 2 and 3."""
    if query.empty or not passage_ids:
        return {}
    ids = "[" + ",".join(map(str, passage_ids)) + "]"
    counts = piece_counts(connection, query)
    marking = _cheaper(MARK_WORDS, sum(count or 0 for count in counts.values()), len(passage_ids) * len(counts))
    return dict(connection.execute(marking, {"match": query.any_term(), "ids": ids, "longest": LONGEST_MARKED}))


def indexed_passages(connection: apsw.Connection) -> int:
    """How many passages the word index says that it has: the first number of its own record, a varint of SQLite's."""
    rows = 0
    for byte in bytes(connection.execute(INDEXED_ROWS).get or b""):
        rows = rows << 7 | byte & 0x7F
        if byte < 0x80:
            break
    return rows


def lacks_words(connection: apsw.Connection) -> bool:
    """Does the word index have fewer or more passages than were written? Two look-ups, so that a search can ask."""
    return indexed_passages(connection) != (connection.execute(PASSAGE_COUNT).get or 0)


def rarest_words(connection: apsw.Connection, text: str, limit: int) -> list[str]:
    """The words of a text that occur in the fewest passages, but in some. Stop words are not even counted."""
    counts: dict[str, int] = {}
    for word, token in telling_words(connection, text, MOST_COUNTED).items():
        counts[word] = passages_with(connection, token)
    return sorted((word for word, count in counts.items() if count), key=lambda word: counts[word])[:limit]


def telling_words(connection: apsw.Connection, text: str, limit: int) -> dict[str, str]:
    """The first words of a text that are no stop words, each with its token."""
    raw = text.encode("utf-8", "replace")
    words: dict[str, str] = {}
    found: Any = _tokenizer(connection)(raw, apsw.FTS5_TOKENIZE_DOCUMENT, None)
    for start, end, token, *_ in found:
        word = raw[start:end].decode("utf-8", "replace")
        if word not in words and not is_stop_word(word):
            words[word] = token
            if len(words) == limit:
                break
    return words


def coverage(
    connection: apsw.Connection, query: WordQuery, matches: list[WordMatch], own: bool = False
) -> tuple[float, int]:
    """How much of what was asked for the best matches have, 0 to 1, and how many words of it one of them has at most.

    Rare words count more, missing ones most. `own` leaves out what only stands around them.

    Either by bm25, beside that of a typical passage with every word once, or by the words themselves, which a long
    passage has as well as a short one.
    """
    rare = {piece: rarity(connection, word) for piece, word in query.wanted}
    typical = sum(max(math.log(odds), 1e-6) for odds in rare.values())  # as FTS5's bm25 has it
    weights = {piece: math.log(1 + odds) for piece, odds in rare.items()}  # above zero in a vault of two notes too
    if not matches or not weights:
        return 1.0, 0
    best = matches[:MOST_COVERED]
    ids = f"[{','.join(str(match.passage_id) for match in best)}]"
    having: dict[int, tuple[float, int]] = dict.fromkeys((match.passage_id for match in best), (0.0, 0))
    counts = piece_counts(connection, query)
    for piece, weight in list(weights.items())[:MOST_TERMS_COVERED]:
        match = f"- context : ({piece})" if own else piece
        having_it = _cheaper(HAVING, counts[piece] or 0, len(best))
        for (passage,) in fetch(connection, having_it, {"match": match, "ids": ids}):
            so_far, words = having[passage]
            having[passage] = so_far + weight, words + 1
    most = max(weight for weight, _ in having.values())
    return min(1.0, max(-best[0].rank / typical, most / sum(weights.values()))), max(
        words for _, words in having.values()
    )


def _cheaper(statement: str, matches: int, sought: int) -> str:
    """Run through all matches, or have FTS5 look for each row anew, whichever takes less.

    `sought` is how many words are looked for in how many rows: one costs as much as running through 500 matches.
    """
    return statement.replace("+rowid", "rowid") if matches > SOUGHT * sought else statement


def rarity(connection: apsw.Connection, word: str) -> float:
    """How many passages lack a word, for each that has it; of several tokens, the rarest counts."""
    counts = [passages_with(connection, token) for token in _tokens(connection, word)]
    having, total = min(counts, default=0), connection.execute(PASSAGE_COUNT).get or 0
    return (max(total - having, 0) + 0.5) / (having + 0.5)


def passages_with(connection: apsw.Connection, token: str) -> int:
    """How many passages have a token. FTS5 counts them anew each time, so it is asked once in a transaction."""
    counted = connection.counted if isinstance(connection, FileConnection) else None
    counted = {} if counted is None else counted
    if token not in counted:
        counted[token] = connection.execute(DOCUMENT_COUNT, {"term": token}).get or 0
    return counted[token]


def _tokens(connection: apsw.Connection, word: str) -> list[str]:
    found: Any = _tokenizer(connection)(word.encode("utf-8", "replace"), apsw.FTS5_TOKENIZE_QUERY, None)
    return [token for _, _, token, *_ in found]


def _tokenizer(connection: apsw.Connection) -> apsw.FTS5Tokenizer:
    return connection.fts5_tokenizer("porter", ["unicode61", "remove_diacritics", "2", "categories", CATEGORIES])


def _find(
    connection: apsw.Connection, where: str, values: dict[str, apsw.SQLiteValue], match: str, limit: int, every: bool
) -> list[WordMatch]:
    """At most so many passages, of so many notes that a long one does not crowd out the others."""
    depth = limit
    while True:
        bound = {**values, "match": match, "limit": depth}
        rows = connection.execute(FIND_WORDS.format(filters=where), bound).fetchall()
        found = _varied([WordMatch(*row, every) for row in rows], limit)  # type: ignore[arg-type]
        if _of_many_notes(found, limit) or len(rows) < depth:
            return found
        depth *= 10


def _of_many_notes(matches: list[WordMatch], limit: int) -> bool:
    return len({match.doc_id for match in matches}) * MOST_OF_A_NOTE >= limit


def _varied(matches: list[WordMatch], limit: int) -> list[WordMatch]:
    """The best of them; if these are all of a few notes, only a few of each."""
    if _of_many_notes(matches[:limit], limit):
        return matches[:limit]
    taken: dict[int, int] = {}
    found: list[WordMatch] = []
    for match in matches:
        taken[match.doc_id] = taken.get(match.doc_id, 0) + 1
        if taken[match.doc_id] <= MOST_OF_A_NOTE:
            found.append(match)
    return found[:limit]


class SharedWords(Record):
    """What some passages have of a query. Phrases stand in quotes."""

    has: list[str]
    lacks: list[str]
    refused: list[str]
    """Words that the query excludes, and that they have."""


def shared_words(connection: apsw.Connection, query: WordQuery, ids: str) -> SharedWords:
    """Which of the wanted words and phrases these passages have, which they lack, and what they should not have."""

    def there(piece: str) -> bool:
        return bool(fetch(connection, HAVING, {"match": piece, "ids": ids}))

    phrases = [(piece, f'"{" ".join(words)}"') for piece, words in zip(query.phrases, query.quoted, strict=False)]
    wanted = [(word, there(piece)) for piece, word in (*phrases, *query.wanted)]
    refused = [piece.strip('"') for piece in query.excluded if there(piece)]
    return SharedWords(
        [word for word, found in wanted if found], [word for word, found in wanted if not found], refused
    )
