"""Does a search.db hold what the files say? Every row of every table, against an index that is made now.

In a form in which two indexes of the same files are equal: no ids, no times of syncing.
"""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from typing import Any

import apsw
import numpy as np

from co_cli.index.sqlite.connection import Database, fetch
from co_cli.index.sqlite.vectors import vectors_table
from co_cli.index.sqlite.words import words_table
from co_cli.knowledge_base import KnowledgeBase

DOCS = """
select path, source, ref, title, description, hash, fingerprint, mtime, created, tags, aliases, category, fields,
    frontmatter, links, missing, valid_from, valid_until, superseded_by
from docs where vault_id = :vault order by path
"""
PASSAGES = """
select docs.path, first_line, last_line, heading, body, context
from passages join docs on docs.id = passages.doc_id where vault_id = :vault order by docs.path, first_line
"""
NAMES = """
select docs.path, names.name, names.kind from names join docs on docs.id = names.doc_id
where names.vault_id = :vault order by docs.path, names.name
"""
FILES = "select path, hash, skipped, problem from knowledge_files where vault_id = :vault order by path"
COUNTED = "select notes, passages from vaults where id = :vault"
WAITING = "select count(*) from waiting where vault_id = :vault"
PLACES = """
select passages.id, docs.path, first_line from passages join docs on docs.id = passages.doc_id
where vault_id = :vault order by docs.path, first_line
"""
VECTORS = "select rowid, part, embedding from {table}"
VOCABULARY = "create virtual table temp.vocabulary using fts5vocab('main', '{table}', 'instance')"
WORDS = "select doc, term, col, offset from temp.vocabulary"
CHECK_WORDS = "insert into {table} ({table}) values ('integrity-check')"
LEFT_BEHIND = (
    "select count(*) from passages where doc_id not in (select id from docs)",
    "select count(*) from names where doc_id not in (select id from docs)",
    "select count(*) from links where doc_id not in (select id from docs)",
    "select count(*) from supersessions where doc_id not in (select id from docs)",
    "select count(*) from waiting where passage_id not in (select id from passages)",
)
TABLES = {"docs": DOCS, "passages": PASSAGES, "names": NAMES, "files": FILES, "counted": COUNTED, "waiting": WAITING}
NEAR = 1e-4
"""Vectors of two ways to compute them differ in their last digits."""


def unsound(database: Database) -> str | None:
    """What SQLite and FTS5 say is wrong with the file, if anything."""
    try:
        with database.writing() as connection:
            found = [str(row[0]) for row in connection.execute("pragma integrity_check(3)") if row[0] != "ok"]
            if found:
                return "; ".join(found)
            for (vault,) in fetch(connection, "select id from vaults"):
                if connection.table_exists("main", words_table(vault)):
                    connection.execute(CHECK_WORDS.format(table=words_table(vault)))
            left = [statement for statement in LEFT_BEHIND if connection.execute(statement).get]
            return f"rows without an owner: {left[0]}" if left else None
    except Exception as error:
        return f"{type(error).__name__}: {error}"


def differences(vaults: Sequence[KnowledgeBase]) -> list[str]:
    """Where the search.db of these vaults differs from one that is made of their files now. They share the file.

    An index that lost its tail may find most notes gone at once, and keeps them as missing: they are forgotten first.
    """
    for kb in vaults:
        kb.index.drop_missing()
    found = unsound(vaults[0].engine.database)
    if found:
        return [f"search.db is unsound: {found}"]
    with tempfile.TemporaryDirectory(prefix="co-soak-", ignore_cleanup_errors=True) as folder:
        fresh = [KnowledgeBase(kb.settings._replace(data_dir=folder)) for kb in vaults]
        try:
            for kb in fresh:
                kb.index.on_change = None  # no history of a vault that nobody has
                kb.sync()
            return _compare(_contents(vaults), _contents(fresh))
        finally:
            for kb in fresh:
                kb.close()


def _contents(vaults: Sequence[KnowledgeBase]) -> dict[str, Any]:
    held: dict[str, Any] = {}
    with vaults[0].engine.database.writing() as connection:
        for kb in vaults:
            found = connection.execute(
                "select id, space_id from vaults where root = :root", {"root": kb.root}
            ).fetchone()
            vault, space = (-1, None) if found is None else (int(str(found[0])), found[1])
            for table, statement in TABLES.items():
                held[f"{table} of {kb.root}"] = fetch(connection, statement, {"vault": vault})
            places = {row[0]: row[1:] for row in fetch(connection, PLACES, {"vault": vault})}
            held[f"words of {kb.root}"] = _words(connection, vault, places)
            held[f"vectors of {kb.root}"] = _vectors(connection, vault, space, places)
    return held


def _words(connection: apsw.Connection, vault: int, places: dict[int, Any]) -> list[Any]:
    """Every word with its path, line, column and place."""
    if not connection.table_exists("main", words_table(vault)):
        return []
    connection.execute(VOCABULARY.format(table=words_table(vault)))
    rows = fetch(connection, WORDS)
    connection.execute("drop table temp.vocabulary")
    return sorted((*places.get(doc, (str(doc), 0)), *rest) for doc, *rest in rows)


def _vectors(connection: apsw.Connection, vault: int, space: Any, places: dict[int, Any]) -> dict[tuple[Any, ...], Any]:
    """By path and line; one that no passage has is under its own number."""
    if space is None:
        return {}
    provider = connection.execute("select provider from spaces where id = :space", {"space": space}).get
    numbers, wide = (np.int8, np.int16) if provider == "static" else (np.float32, np.float32)
    rows = fetch(connection, VECTORS.format(table=vectors_table(int(space))))
    mine = [(row, part, blob) for row, part, blob in rows if part.startswith(f"{vault}/")]
    return {
        (*places.get(row, (row,)), part.partition("/")[2]): np.frombuffer(blob, numbers).astype(wide)
        for row, part, blob in mine
    }


def _compare(held: dict[str, Any], fresh: dict[str, Any]) -> list[str]:
    found: list[str] = []
    for table, wanted in fresh.items():
        have = held[table]
        if table.startswith("vectors"):
            found += [f"{table}: {key} is only on one side" for key in sorted(have.keys() ^ wanted.keys(), key=str)[:3]]
            for key in have.keys() & wanted.keys():
                near = 1 if have[key].dtype == np.int16 else NEAR  # what lies between two whole numbers goes either way
                if not np.allclose(have[key], wanted[key], rtol=0, atol=near):
                    found.append(f"{table}: {key} has another vector")
        elif have != wanted:
            extra = [row for row in have if row not in wanted][:2]
            lacking = [row for row in wanted if row not in have][:2]
            found.append(f"{table}: only in the index {extra}, only in the files {lacking}"[:400])
    return found
