"""Facets, how far conversations were read for them, and what that cost: rows of activity.db.

Facets and progress are written in one transaction, so a process that is killed repeats a batch or has finished it.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, NamedTuple

import apsw

from co_cli.activity.versions import document_id, vault_id
from co_cli.index.sqlite.connection import fetch

PROGRESS = "select line, hash, failures from conversations where document_id = :document"
SET_PROGRESS = """
insert into conversations (document_id, line, hash, failures) values (:document, :line, :hash, :failures)
on conflict (document_id) do update set line = excluded.line, hash = excluded.hash, failures = excluded.failures
"""
BEGIN = """
insert into conversations (document_id, line, hash, failures) values (:document, 0, '', 0) on conflict do nothing
"""
CAPTURED = """
select path from conversations join documents on documents.id = document_id join vaults on vaults.id = vault_id
where root = :root
"""
IS_KNOWN = """
select 1 from facets where id = :id or (document_id = :document and kind = :kind and folded = :folded) limit 1
"""
ADD = """
insert into facets (id, document_id, at, kind, text, folded, first_line, last_line, detail, state, ref)
values (:id, :document, :at, :kind, :text, :folded, :first_line, :last_line, :detail, :state, :ref)
on conflict do nothing
"""
FACETS = """
select facets.id, path, at, kind, text, folded, first_line, last_line, detail, state, ref
from facets join documents on documents.id = document_id join vaults on vaults.id = vault_id
where root = :root and (:state is null or state = :state) and (:id is null or facets.id = :id)
order by at, path, first_line, facets.id
"""
DROP_GONE = """
delete from facets where state <> 'saved' and document_id in (select id from documents where gone is not null)
"""
SET_STATE = "update facets set state = :state, ref = :ref where id = :id"
LOG = """
insert into extractions (vault_id, at, model, tokens, facets, refused, problem)
values (:vault, :at, :model, :tokens, :facets, :refused, :problem)
"""
COST = """
select ifnull(sum(tokens), 0), count(*), ifnull(sum(refused), 0), count(problem)
from extractions join vaults on vaults.id = vault_id where root = :root and at >= :since
"""
STATES = """
select state, count(*) from facets join documents on documents.id = document_id join vaults on vaults.id = vault_id
where root = :root and at >= :since group by state order by state
"""


class FacetRow(NamedTuple):
    """A facet as it is stored. Lines are those of the conversation's file."""

    id: str
    path: str
    at: float
    kind: str
    text: str
    folded: str
    first_line: int
    last_line: int
    detail: dict[str, Any]
    state: str
    ref: str | None = None


class ReadSoFar(NamedTuple):
    """How far a conversation was read: the last line of its text, a hash of everything up to it, failures since."""

    line: int = 0
    hash: str = ""
    failures: int = 0


class ExtractionCost(NamedTuple):
    """What extraction did in some time."""

    tokens: int
    batches: int
    refused: int
    """Facets that their lines do not support."""
    failed: int
    facets: dict[str, int]
    """How many, by state."""


def progress(connection: apsw.Connection, root: str, path: str) -> ReadSoFar:
    rows = fetch(connection, PROGRESS, {"document": document_id(connection, vault_id(connection, root), path)})
    return ReadSoFar._make(rows[0]) if rows else ReadSoFar()


def put(
    connection: apsw.Connection, root: str, path: str, reached: ReadSoFar, facets: Sequence[FacetRow] = ()
) -> list[FacetRow]:
    """Store facets and how far the conversation was read. Returns the facets that are new."""
    document = document_id(connection, vault_id(connection, root), path)
    added: list[FacetRow] = []
    for facet in facets:
        row = {**facet._asdict(), "document": document, "detail": json.dumps(facet.detail, ensure_ascii=False)}
        known = {name: row[name] for name in ("id", "document", "kind", "folded")}
        if not fetch(connection, IS_KNOWN, known):
            del row["path"]
            connection.execute(ADD, row)
            added.append(facet)
    connection.execute(SET_PROGRESS, {"document": document, **reached._asdict()})
    return added


def facets(connection: apsw.Connection, root: str, state: str | None = None, id: str | None = None) -> list[FacetRow]:
    """Oldest first: all, those in one state, or the one with this id."""
    rows = fetch(connection, FACETS, {"root": root, "state": state, "id": id})
    return [FacetRow._make((*row[:8], json.loads(row[8]), *row[9:])) for row in rows]


def drop_gone(connection: apsw.Connection) -> None:
    """Delete facets of conversations that are gone, except what became memories."""
    connection.pragma("secure_delete", 1)
    connection.execute(DROP_GONE)


def set_state(connection: apsw.Connection, id: str, state: str, ref: str | None = None) -> None:
    connection.execute(SET_STATE, {"id": id, "state": state, "ref": ref})


def log(connection: apsw.Connection, root: str, **row: Any) -> None:
    """Record a batch: `at`, `model`, `tokens`, `facets`, `refused` and `problem`."""
    connection.execute(LOG, {"vault": vault_id(connection, root), **row})


def cost(connection: apsw.Connection, root: str, since: float) -> ExtractionCost:
    window = {"root": root, "since": since}
    [(tokens, batches, refused, failed)] = fetch(connection, COST, window)
    return ExtractionCost(tokens, batches, refused, failed, dict(fetch(connection, STATES, window)))


def begin(connection: apsw.Connection, root: str, path: str) -> None:
    """A conversation was captured here: from now on its turns are read for facets."""
    connection.execute(BEGIN, {"document": document_id(connection, vault_id(connection, root), path)})


def captured(connection: apsw.Connection, root: str) -> set[str]:
    """The paths of conversations that were captured here, or read for facets before."""
    return {path for (path,) in fetch(connection, CAPTURED, {"root": root})}
