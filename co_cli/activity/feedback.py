"""Judgements of answers, and the weights that were learned from them, as rows of activity.db.

A note is judged once for each question; whoever says it again takes the place of what was said before. What was only
concluded from use never takes the place of what somebody said. Written inside the caller's transaction.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import NamedTuple

import apsw

from co_cli.activity.query_log import fold
from co_cli.activity.versions import document_id, vault_id
from co_cli.index.sqlite.connection import fetch
from co_cli.notes.refs import ref_of, without_lines

MOST = 5_000
"""Judgements that a vault keeps; the oldest go first."""
SHORTLY = 1_800.0
"""Seconds after a search in which an opened or cited note is taken for its answer."""
LATEST = 500
"""Rows of the log among which that search is looked for."""

PUT = """
insert into judgements (vault_id, document_id, folded, query, good, how, at, ref, space, meaning, words, candidates)
values (:vault, :document, :folded, :query, :good, :how, :at, :ref, :space, :meaning, :words, :candidates)
on conflict (vault_id, document_id, folded) do update set query = excluded.query, good = excluded.good,
    how = excluded.how, at = excluded.at, ref = excluded.ref, space = excluded.space, meaning = excluded.meaning,
    words = excluded.words, candidates = excluded.candidates
where excluded.how = 'said' or (judgements.how <> 'said' and judgements.candidates is null)
"""
FILL = """
update judgements set space = :space, meaning = :meaning, words = :words, candidates = :candidates where id = :id
"""
BOUND = """
delete from judgements where id in (
    select id from judgements where vault_id = :vault order by at desc, id desc limit -1 offset :most
)
"""
ALL = """
select id, folded, query, good, how, at, ref, space, meaning, words, candidates from judgements
where vault_id = :vault order by at, id
"""
OF_DOCUMENT = "select sum(good), sum(1 - good) from judgements where document_id = :document and how = 'said'"
CLEAR = "delete from judgements where vault_id = :vault"
LATELY = """
select at, text, results from queries join questions on questions.id = question_id
where queries.id > (select max(id) from queries) - :latest and queries.vault_id = :vault
    and at between :since and :until and results is not null
order by queries.id desc
"""
PUT_TUNING = """
insert into tunings (vault_id, at, what, space, meaning, words, judgements, before, after)
values (:vault, :at, :what, :space, :meaning, :words, :judgements, :before, :after)
"""
TUNINGS = """
select at, what, space, meaning, words, judgements, before, after from tunings
where vault_id = :vault order by id desc limit :limit
"""


class Judged(NamedTuple):
    """One row: what was said of a note."""

    id: int
    folded: str
    query: str | None
    good: bool
    how: str
    at: float
    ref: str
    space: str | None
    meaning: float | None
    words: float | None
    candidates: list[tuple[str, dict[str, float]]] | None
    """Each note that was shown, best first, with the parts of its score."""


class Tuning(NamedTuple):
    """A time that weights were learned, refused or taken back."""

    at: float
    what: str
    space: str
    meaning: float
    words: float
    judgements: float
    before: float | None
    after: float | None


class Ranked(NamedTuple):
    """Candidates as they were ranked, whose vectors did it and with which weights."""

    space: str
    meaning: float
    words: float
    candidates: list[tuple[str, dict[str, float]]]


def put_judgement(
    connection: apsw.Connection,
    root: str,
    place: tuple[str, str],
    ref: str,
    good: bool,
    how: str,
    at: float,
    query: str | None = None,
    folded: str = "",
    ranked: Ranked | None = None,
) -> None:
    """`root` is the vault that was asked, `place` the folder and path of what was judged."""
    vault = vault_id(connection, root)[0]
    values = {
        "vault": vault,
        "document": document_id(connection, vault_id(connection, place[0])[0], place[1]),
        "folded": folded,
        "query": query,
        "good": int(good),
        "how": how,
        "at": at,
        "ref": ref,
        **_columns(ranked),
    }
    connection.execute(PUT, values)
    connection.execute(BOUND, {"vault": vault, "most": MOST})


def fill(connection: apsw.Connection, number: int, ranked: Ranked) -> None:
    """Give a judgement the candidates that it was about."""
    connection.execute(FILL, {"id": number, **_columns(ranked)})


def judgements(connection: apsw.Connection, root: str) -> list[Judged]:
    """Oldest first."""
    rows = fetch(connection, ALL, {"vault": vault_id(connection, root)[0]})
    return [Judged._make((*row[:3], bool(row[3]), *row[4:10], _candidates(row[10]))) for row in rows]


def said_of(connection: apsw.Connection, document: int) -> tuple[int, int]:
    """How often a document was called good, and bad."""
    row = fetch(connection, OF_DOCUMENT, {"document": document})[0]
    return int(row[0] or 0), int(row[1] or 0)


def clear_judgements(connection: apsw.Connection, root: str) -> int:
    connection.execute(CLEAR, {"vault": vault_id(connection, root)[0]})
    return connection.changes()


def asked_lately(
    connection: apsw.Connection, root: str, refs: Sequence[str], until: float, seconds: float | None = None
) -> str | None:
    """The last logged search whose answer had one of these refs; None if there is none."""
    since = 0.0 if seconds is None else until - seconds
    values = {"vault": vault_id(connection, root)[0], "since": since, "until": until, "latest": LATEST}
    for _, text, results in fetch(connection, LATELY, values):
        shown: list[tuple[str, float]] = json.loads(results or "[]")
        if any(without_lines(ref) in refs for ref, _ in shown):
            return str(text)
    return None


def conclude(connection: apsw.Connection, used: Sequence[tuple[str, str, float]], how: str) -> None:
    """Notes of a vault that were opened or cited, each with its folder, path and time: were they answers?"""
    for root, path, at in used:
        refs = [ref_of(path, source) for source in ("memory", "article")]
        query = asked_lately(connection, root, refs, at, SHORTLY)
        if query is not None:
            source = "memory" if path.startswith("memories/") else "article"
            put_judgement(connection, root, (root, path), ref_of(path, source), True, how, at, query, fold(query))


def put_tuning(connection: apsw.Connection, root: str, tuning: Tuning) -> None:
    connection.execute(PUT_TUNING, {"vault": vault_id(connection, root)[0], **tuning._asdict()})


def tunings(connection: apsw.Connection, root: str, limit: int = 10) -> list[Tuning]:
    """Newest first."""
    rows = fetch(connection, TUNINGS, {"vault": vault_id(connection, root)[0], "limit": limit})
    return [Tuning._make(row) for row in rows]


def _columns(ranked: Ranked | None) -> dict[str, apsw.SQLiteValue]:
    if ranked is None:
        return dict.fromkeys(("space", "meaning", "words", "candidates"))
    shown = json.dumps(ranked.candidates, ensure_ascii=False, separators=(",", ":"))
    return {"space": ranked.space, "meaning": ranked.meaning, "words": ranked.words, "candidates": shown}


def _candidates(text: str | None) -> list[tuple[str, dict[str, float]]] | None:
    return None if text is None else [(str(ref), dict(parts)) for ref, parts in json.loads(text)]
