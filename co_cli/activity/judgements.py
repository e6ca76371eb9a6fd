"""Ratings of answers as rows of activity.db, and the weights learned from them as a small file for searches.

A note is rated once for each question; the last rating counts, and what is inferred from use never replaces what
somebody said. Learned weights have their own file, because a cold search must not open activity.db.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import apsw

from co_cli.activity.events import Cited, Opened
from co_cli.activity.query_log import fold, last_question
from co_cli.activity.versions import document_id, vault_id
from co_cli.ground.values import OWN_SOURCES
from co_cli.index.sqlite.connection import fetch
from co_cli.notes.files import change_json, read_json
from co_cli.notes.refs import path_of, ref_of, source_ref, without_lines

LEARNED, MOST = "learned.json", 20_000
"""The file of learned weights, and how many ratings a vault keeps: the oldest are dropped first."""
SHORTLY = 1_800.0
"""Seconds after a search in which an opened or cited note counts as its answer."""

PUT = """
insert into judgements (vault_id, document_id, folded, query, good, how, at, ref)
values (:vault, :document, :folded, :query, :good, :how, :at, :ref)
on conflict (vault_id, document_id, folded) do update set
    query = excluded.query, good = excluded.good, how = excluded.how, at = excluded.at, ref = excluded.ref
where excluded.how = 'said' or judgements.how <> 'said'
"""
DROP_OLDEST = """
delete from judgements where id in (
    select id from judgements where vault_id = :vault order by at desc, id desc limit -1 offset :most
)
"""
ALL = "select ref, query, good, how from judgements where vault_id = :vault order by at, id"
CLEAR = "delete from judgements where vault_id = :vault"


class Judgement(NamedTuple):
    """A rating of one note as the answer to a question."""

    ref: str
    query: str | None
    """None: about the note alone, or the log leaves texts out."""
    good: bool
    how: str = "said"
    """said, heard, opened or cited"""


def put(connection: apsw.Connection, root: str, place: tuple[str, str], judgement: Judgement, at: float) -> None:
    """`root` is the vault that was searched, `place` the folder and path of the note."""
    vault, document = vault_id(connection, root), document_id(connection, vault_id(connection, place[0]), place[1])
    row = {**judgement._asdict(), "good": int(judgement.good), "folded": fold(judgement.query or "")}
    connection.execute(PUT, {**row, "vault": vault, "document": document, "at": at})
    connection.execute(DROP_OLDEST, {"vault": vault, "most": MOST})


def read(connection: apsw.Connection, root: str) -> list[Judgement]:
    """Oldest first."""
    return [Judgement._make(row) for row in fetch(connection, ALL, {"vault": vault_id(connection, root)})]


def clear(connection: apsw.Connection, root: str) -> int:
    """Delete them and overwrite their words in the file. Returns how many there were."""
    connection.pragma("secure_delete", 1)
    connection.execute(CLEAR, {"vault": vault_id(connection, root)})
    return connection.changes()


def infer_judgements(connection: apsw.Connection, events: Sequence[Opened | Cited]) -> None:
    """A note that was opened or cited shortly after a search found it counts as its answer."""
    for event in events:
        how, paths = "opened", [event.path] if isinstance(event, Opened) else []
        if isinstance(event, Cited):
            how, paths = "cited", [path_of(without_lines(ref)) for ref in event.refs]
        for path in dict.fromkeys(filter(None, paths)):
            refs = [ref_of(path, source) for source in OWN_SOURCES]
            query = last_question(connection, event.root, refs, event.at, SHORTLY)
            if query is not None:
                put(connection, event.root, (event.root, path), Judgement(source_ref(path), query, True, how), event.at)


def read_learned(data_dir: str) -> dict[str, Any]:
    """What was learned, by the folder of its vault."""
    return read_json(os.path.join(data_dir, LEARNED))


def change_learned(data_dir: str, change: Callable[[dict[str, Any]], object]) -> None:
    change_json(os.path.join(data_dir, LEARNED), change)
