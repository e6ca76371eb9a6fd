"""Does a search.db hold what the files say? Every row of every table, against an index that is made now.

In a form in which two indexes of the same files are equal: no ids, no times of syncing.
"""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from typing import Any

import apsw
import numpy as np

from co_cli.index.connection import Database, fetch
from co_cli.index.damage import CHECK_WORDS
from co_cli.index.vectors import open_space, table_of
from co_cli.knowledge_base import KnowledgeBase

DOCS = """
select path, source, ref, title, description, hash, fingerprint, mtime, created, tags, category, frontmatter, links,
    passages, missing, valid_from, valid_until, superseded_by
from docs where vault_id = :vault order by path
"""
PASSAGES = """
select docs.path, first_line, last_line, passages.title, heading, body, passages.tags, aliases, grams, context
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
TERMS = "select term, doc, cnt from docs_terms order by term"
LEXICON = "select word, stem, code from lexicon"
LEFT_BEHIND = (
    "select count(*) from passages where doc_id not in (select id from docs)",
    "select count(*) from names where doc_id not in (select id from docs)",
    "select count(*) from links where doc_id not in (select id from docs)",
    "select count(*) from supersessions where doc_id not in (select id from docs)",
    "select count(*) from waiting where passage_id not in (select id from passages)",
)
TABLES = {"docs": DOCS, "passages": PASSAGES, "names": NAMES, "files": FILES, "counted": COUNTED, "waiting": WAITING}
ROUNDED = 16
"""Bits of a word's code of 1,024."""
NEAR = 1e-4
"""Vectors of two ways to compute them differ in their last digits."""


def unsound(database: Database) -> str | None:
    """What SQLite and FTS5 say is wrong with the file, if anything."""
    try:
        with database.writing() as connection:
            found = [str(row[0]) for row in connection.execute("pragma integrity_check(3)") if row[0] != "ok"]
            if found:
                return "; ".join(found)
            connection.execute(CHECK_WORDS)
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
    found = unsound(vaults[0].database)
    if found:
        return [f"search.db is unsound: {found}"]
    with tempfile.TemporaryDirectory(prefix="co-soak-", ignore_cleanup_errors=True) as folder:
        fresh = [KnowledgeBase(kb.settings._replace(data_dir=folder)) for kb in vaults]
        try:
            for kb in fresh:
                kb.index.told = None  # no history of a vault that nobody has
                kb.sync()
            return _compare(_contents(vaults), _contents(fresh))
        finally:
            for kb in fresh:
                kb.close()


def _contents(vaults: Sequence[KnowledgeBase]) -> dict[str, Any]:
    held: dict[str, Any] = {}
    with vaults[0].database.reading() as connection:
        for kb in vaults:
            found = connection.execute(
                "select id, space_id from vaults where root = :root", {"root": kb.root}
            ).fetchone()
            vault, space = (-1, None) if found is None else (int(str(found[0])), found[1])
            for table, statement in TABLES.items():
                held[f"{table} of {kb.root}"] = fetch(connection, statement, {"vault": vault})
            held[f"vectors of {kb.root}"] = _vectors(connection, vault, None if space is None else int(str(space)))
        held["terms"] = fetch(connection, TERMS)
        held["lexicon"] = {row[0]: row[1:] for row in fetch(connection, LEXICON)}
    return held


def _vectors(connection: apsw.Connection, vault: int, space: int | None) -> dict[tuple[Any, ...], Any]:
    """By path and line; one that no passage has is under its own number."""
    if space is None:
        return {}
    places = {row[0]: row[1:] for row in fetch(connection, PLACES, {"vault": vault})}
    stored = open_space(connection, space)
    numbers, wide = (np.int8, np.int16) if stored and stored.packed else (np.float32, np.float32)
    rows = fetch(connection, VECTORS.format(table=table_of(space)))
    mine = [(row, part, blob) for row, part, blob in rows if part.startswith(f"{vault}/")]
    return {
        (*places.get(row, (row,)), part.partition("/")[2]): np.frombuffer(blob, numbers).astype(wide)
        for row, part, blob in mine
    }


def _alike(one: Any, other: Any) -> bool:
    """The same stem, and the same code but for what rounding does to it."""
    if one is None or one[0] != other[0] or len(one[1]) != len(other[1]):
        return False
    return (int.from_bytes(one[1], "big") ^ int.from_bytes(other[1], "big")).bit_count() <= ROUNDED


def _compare(held: dict[str, Any], fresh: dict[str, Any]) -> list[str]:
    found: list[str] = []
    for table, wanted in fresh.items():
        have = held[table]
        if table == "lexicon":  # a word that no note has any more stays until the next rebuild
            lacking = [word for word, facts in wanted.items() if not _alike(have.get(word), facts)]
            if lacking:
                found.append(f"lexicon lacks {lacking[:3]}")
        elif table.startswith("vectors"):
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
