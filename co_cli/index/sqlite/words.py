"""Word search: one FTS5 table for each vault, filled with tokens, ranked by bm25."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import partial
from typing import Any

import apsw

from co_cli.index.derivation import WEIGHTS
from co_cli.index.engine import Match, Needle, Scope, Term, WordQuery, spread
from co_cli.index.sqlite.connection import fetch
from co_cli.index.sqlite.filters import conditions, ids_text, is_narrow, notes_of

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
CONVERSATIONS = "select id from docs where source = 'conversation' and id in (select value from json_each(:ids))"
COUNT = "select count(*) from {table} where {table} match :match"
HAVING = "select rowid from {table} where {table} match :match and rowid in (select value from json_each(:ids))"
VAULTS_OF = """
select passages.id, docs.vault_id from passages join docs on docs.id = passages.doc_id
where passages.id in (select value from json_each(:ids))
"""
VOCABULARY = "create virtual table temp.vocabulary using fts5vocab (main, {table}, row)"
FIND_TERMS = "select term, doc from temp.vocabulary where term >= :start and term < :end"
LAST = "\U0010ffff"
"""Sorts behind every letter."""
MERGE = "insert into {table} ({table}) values ('optimize')"


def words_table(vault: int) -> str:
    return "docs_fts" if vault == 1 else f"docs_fts_{vault:d}"


class WordReader:
    """The part of a read transaction that searches by words."""

    connection: apsw.Connection

    def words(self, scope: Scope, query: WordQuery, limit: int) -> list[Match]:
        if query.empty:
            return []
        match = match_text(query)
        found: list[Match] = []
        for vault in scope.vaults:
            rows = partial(self._rows, vault, scope, match)
            found += spread(rows, limit, self.conversations)
        return sorted(found, key=lambda one: (-one.score, one.passage))[:limit]

    def conversations(self, notes: Sequence[int]) -> set[int]:
        return {note for (note,) in fetch(self.connection, CONVERSATIONS, {"ids": ids_text(notes)})}

    def term_counts(
        self, vaults: Iterable[int], terms: Iterable[Term] | None = None, start: str = ""
    ) -> tuple[int, dict[Term, int]]:
        total, counts = 0, dict.fromkeys(terms or (), 0)
        for vault in vaults:
            total += int(self.connection.execute("select passages from vaults where id = ?", (vault,)).get or 0)
            if terms is None:
                for term, passages in self._vocabulary(vault, start):
                    counts[term] = counts.get(term, 0) + passages
                continue
            count = COUNT.format(table=words_table(vault))
            for term in counts:
                counts[term] += int(self.connection.execute(count, {"match": quoted((term,))}).get or 0)
        return total, counts

    def terms_in(self, passages: Sequence[int], terms: Iterable[Term]) -> dict[int, set[Term]]:
        found: dict[int, set[Term]] = {passage: set() for passage in passages}
        by_vault: dict[int, list[int]] = {}
        for passage, vault in fetch(self.connection, VAULTS_OF, {"ids": ids_text(passages)}):
            by_vault.setdefault(vault, []).append(passage)
        for vault, members in by_vault.items():
            having, ids = HAVING.format(table=words_table(vault)), ids_text(members)
            for term in terms:
                match = f"- context : {quoted((term,))}"
                for (passage,) in fetch(self.connection, having, {"match": match, "ids": ids}):
                    found[passage].add(term)
        return found

    def _vocabulary(self, vault: int, start: str) -> list[tuple[Term, int]]:
        self.connection.execute("drop table if exists temp.vocabulary")
        self.connection.execute(VOCABULARY.format(table=words_table(vault)))
        found = fetch(self.connection, FIND_TERMS, {"start": start, "end": start + LAST})
        self.connection.execute("drop table temp.vocabulary")
        return found

    def _rows(self, vault: int, scope: Scope, match: str, limit: int) -> list[Match]:
        table = words_table(vault)
        if is_narrow(self.connection, scope, vault):
            where, values = conditions(scope, vault)
            bound: dict[str, Any] = {**values, "match": match, "limit": limit}
            rows = fetch(self.connection, FIND_WITHIN.format(table=table, filters=where), bound)
        else:
            rows = fetch(self.connection, FIND.format(table=table), {"match": match, "limit": limit})
        notes = notes_of(self.connection, [passage for passage, _ in rows])
        return [Match(passage, notes[passage], score) for passage, score in rows if passage in notes]


def match_text(query: WordQuery) -> str:
    """A safe MATCH expression: every token is quoted."""
    phrases = [quoted(phrase) for phrase in query.phrases]
    wanted = [quoted((term,)) for term in (*query.terms, *query.hints)]
    wanted += [f"{quoted((start,))}*" for start in query.prefixes]
    if phrases:  # phrases must be there; the other words only count
        expression = " AND ".join([*phrases, f"({' OR '.join([phrases[0], *wanted])})"])
    else:
        expression = f"({' OR '.join(wanted)})"
    if query.excluded:
        expression = f"({expression}) NOT ({' OR '.join(map(quoted, query.excluded))})"
    # phrases and exclusions are about the passage itself, not about its neighbours
    return f"- context : ({expression})" if phrases or query.excluded else expression


def quoted(needle: Needle) -> str:
    return '"' + " ".join(needle).replace('"', '""') + '"'
