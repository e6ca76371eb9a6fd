"""Word search: one FTS5 table for each vault, filled with tokens, ranked by bm25."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from co_cli.index.derivation import WEIGHTS, Row, stored_json
from co_cli.index.sqlite.sqlite_statements import SqliteStatements
from co_cli.index.stored import Match, Scope
from co_cli.index.tables.filters import conditions, is_narrow
from co_cli.index.tables.spaces import origin_by_id
from co_cli.index.tables.statements import LAST, Statements, Tokens, notes_of
from co_cli.index.word_query import Needle, Term, WordQuery

WEIGHED = ", ".join(map(str, WEIGHTS.values()))
CREATE = f"""
create virtual table {{table}} using fts5 (
    {", ".join(WEIGHTS)}, content = '', contentless_delete = 1, tokenize = 'ascii'
)
"""
PUT = f"insert into {{table}} (rowid, {', '.join(WEIGHTS)}) values (:id, {', '.join(':' + name for name in WEIGHTS)})"
DROP = "delete from {table} where rowid in (select value from json_each(:ids))"
# `rank match` makes `order by rank` use our weights; without it FTS5 would sort by its own
FIND = f"""
select rowid, -rank from {{table}} where {{table}} match :match and rank match 'bm25({WEIGHED})'
order by rank limit :limit
"""
FIND_WITHIN = f"""
select {{table}}.rowid, -bm25({{table}}, {WEIGHED}) as score
from {{table}} join passages on passages.id = {{table}}.rowid join docs on docs.id = passages.doc_id
where {{table}} match :match and {{filters}} order by score desc limit :limit
"""
# one statement for all terms of a question
COUNT = """
select terms.key, (select count(*) from {table} where {table} match terms.value) from json_each(:terms) as terms
"""
HAVING = """
select terms.key, {table}.rowid from json_each(:terms) as terms cross join {table}
where {table} match terms.value and {table}.rowid in (select value from json_each(:ids))
"""
ORIGINS_OF = "select id, vault_id from passages where id in (select value from json_each(:ids))"
VOCABULARY = "create virtual table temp.vocabulary using fts5vocab (main, {table}, row)"
FIND_TERMS = "select term, doc from temp.vocabulary where term >= :start and term < :end"
MERGE = "insert into {table} ({table}) values ('optimize')"


def words_table(origin_id: int) -> str:
    return "docs_fts" if origin_id == 1 else f"docs_fts_{origin_id:d}"


class SqliteWords(SqliteStatements):
    """The word index of one transaction."""

    def find_words(self, scope: Scope, origin_id: int, query: WordQuery, limit: int) -> list[Match]:
        table, bound = words_table(origin_id), dict[str, Any]({"match": match_text(query), "limit": limit})
        if is_narrow(scope, origin_by_id(self, origin_id)):
            where, values = conditions(self.dialect, scope, origin_id)
            rows = self.fetch(FIND_WITHIN, {**values, **bound}, table=table, filters=where)
        else:
            rows = self.fetch(FIND, bound, table=table)
        notes = notes_of(self, [passage for passage, _ in rows])
        return [Match(passage, notes[passage], score) for passage, score in rows if passage in notes]

    def count_words(self, origin_id: int) -> int:
        return self.fetch(f"select count(*) from {words_table(origin_id)}")[0][0]

    def term_counts(
        self, origin_ids: Iterable[int], terms: Iterable[Term] | None = None, start: str = ""
    ) -> tuple[int, dict[Term, int]]:
        total, counts = 0, dict.fromkeys(terms or (), 0)
        for origin_id in origin_ids:
            total += origin_by_id(self, origin_id).passages
            if terms is None:
                for term, passages in _vocabulary(self, origin_id, start):
                    counts[term] = counts.get(term, 0) + passages
                continue
            asked = dict(enumerate(counts))
            bound = {"terms": stored_json([quoted((term,)) for term in asked.values()])}
            for number, passages in self.fetch(COUNT, bound, table=words_table(origin_id)) if asked else ():
                counts[asked[number]] += passages
        return total, counts

    def terms_in(self, passages: Sequence[int], terms: Iterable[Term]) -> dict[int, set[Term]]:
        found: dict[int, set[Term]] = {passage: set() for passage in passages}
        by_origin: dict[int, list[int]] = {}
        for passage, origin_id in self.fetch(ORIGINS_OF, {"ids": list(passages)}):
            by_origin.setdefault(origin_id, []).append(passage)
        asked = dict(enumerate(terms))
        wanted = stored_json([f"- context : {quoted((term,))}" for term in asked.values()])
        for origin_id, members in by_origin.items() if asked else ():
            for number, passage in self.fetch(HAVING, {"terms": wanted, "ids": members}, table=words_table(origin_id)):
                found[passage].add(asked[number])
        return found

    def make_words(self, origin_id: int) -> None:
        self.fetch(CREATE, table=words_table(origin_id))

    def put_words(self, origin_id: int, passages: Sequence[tuple[Row, Tokens]]) -> None:
        rows = [{**{name: " ".join(had) for name, had in tokens.items()}, "id": row["id"]} for row, tokens in passages]
        self.run_many(PUT, rows, table=words_table(origin_id))

    def drop_words(self, origin_id: int, passages: Sequence[int]) -> None:
        self.fetch(DROP, {"ids": list(passages)}, table=words_table(origin_id))


def _vocabulary(tx: Statements, origin_id: int, start: str) -> list[tuple[Term, int]]:
    tx.fetch("drop table if exists temp.vocabulary")
    tx.fetch(VOCABULARY, table=words_table(origin_id))
    found = tx.fetch(FIND_TERMS, {"start": start, "end": start + LAST})
    tx.fetch("drop table temp.vocabulary")
    return found


def match_text(query: WordQuery) -> str:
    """A safe MATCH expression: every token is quoted."""
    phrases = [quoted(phrase) for phrase in query.phrases]
    wanted = [quoted((term,)) for term in query.counting]
    wanted += [f"{quoted((start,))}*" for start in query.prefixes]
    if phrases:  # phrases must be there; the other words only count
        expression = " AND ".join([*phrases, f"({' OR '.join([phrases[0], *wanted])})"])
    else:
        expression = f"({' OR '.join(wanted)})"
    # phrases are about the passage itself, not about its neighbours
    return f"- context : ({expression})" if phrases else expression


def quoted(needle: Needle) -> str:
    return '"' + " ".join(needle).replace('"', '""') + '"'
