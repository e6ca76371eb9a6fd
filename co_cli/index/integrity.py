"""Does search.db hold what the files say? Checks that read everything, for `co doctor`."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import NamedTuple

import apsw

from co_cli.embedding.static import shared_embedder
from co_cli.index.cache import look_up, text_hash
from co_cli.index.connection import Database, fetch
from co_cli.index.damage import CHECK_WORDS
from co_cli.index.knowledge_index import KnowledgeIndex
from co_cli.index.meaning import embedding_text
from co_cli.index.vault_database import VaultDatabase
from co_cli.index.vectors import DROP, WAIT, ids_text, open_space, part_of, spaces_of, table_of, touch_vectors
from co_cli.notes.store import content_hash
from co_cli.regular import open_regular
from co_cli.values import SOURCES

PASSAGES = """
select passages.id, docs.source from passages join docs on docs.id = passages.doc_id where docs.vault_id = :vault
"""
WAITS = "select space_id, passage_id from waiting where vault_id = :vault"
ROWIDS = "select rowid from {table} where part = :part"
TEXT_OF = "select title, heading, body, tags, aliases, context from passages where id = :id"
LARGEST = 100_000_000
REAL_COUNTS = """
select (select count(*) from passages), (select coalesce(sum(passages), 0) from vaults),
    (select coalesce(sum(passages), 0) from docs)
"""
REBUILD_WORDS = "insert into docs_fts (docs_fts) values ('rebuild')"
EXPECTED = """
select passages.id from json_each(:ids) as wanted
cross join passages on passages.id = wanted.value cross join docs on docs.id = passages.doc_id
cross join vaults on vaults.id = docs.vault_id
where vaults.space_id = :space and not exists (
    select 1 from waiting where vault_id = vaults.id and space_id = :space and passage_id = passages.id
)
"""


def damaged_words(database: Database) -> str | None:
    """What FTS5 says is wrong with the word index, if anything."""
    with database.writing() as connection:
        try:
            connection.execute(CHECK_WORDS)
        except (apsw.SQLError, apsw.CorruptError) as error:
            return str(error)
    return None


def mend_words(database: Database) -> bool:
    """Make the word index anew from the passages. False if it is the passages that are not all there."""
    with database.writing() as connection:
        counts = connection.execute(REAL_COUNTS).get
        if len(set(counts)) == 1:
            connection.execute(REBUILD_WORDS)
        return len(set(counts)) == 1


def drift(index: KnowledgeIndex, root: str, missing: Sequence[str] = ()) -> list[str]:
    """Notes whose row has another content than their file has now, and files changed since they were synced.

    `missing` are those whose file is known to be gone.
    """
    known = index.hashes()
    return [path for path in known if path not in missing and differs(root, path, known[path])]


def differs(root: str, path: str, known: str | None) -> bool:
    """Has the file another content than what it was indexed with, or none that can be read?"""
    found = hash_of_file(os.path.join(root, path))
    return found is None or found != known


def hash_of_file(path: str) -> str | None:
    """Of its content; None if it cannot be read. One that grew beyond all bounds has that of its beginning."""
    try:
        with open_regular(path, follow=False) as stream:
            return content_hash(stream.read(LARGEST + 1))
    except OSError:
        return None


class VectorState(NamedTuple):
    """What is wrong with a vault's vectors, each as the space and the passage."""

    missing: list[tuple[int, int]]
    """Passages that neither have a vector nor wait for one."""
    misplaced: list[tuple[int, int]]
    """Vectors in a space that the vault neither has nor builds, under another source, or of passages that are gone."""


def vector_state(database: VaultDatabase) -> VectorState:
    missing: list[tuple[int, int]] = []
    misplaced: list[tuple[int, int]] = []
    with database.reading() as (connection, vault):
        passages = dict(fetch(connection, PASSAGES, {"vault": vault}))
        waits = set(fetch(connection, WAITS, {"vault": vault}))
        own = spaces_of(connection, vault)
        for space in _spaces(connection):
            right: set[int] = set()
            for source in SOURCES:
                rows = fetch(connection, ROWIDS.format(table=table_of(space)), {"part": part_of(vault, source)})
                found = {row[0] for row in rows}
                placed = {row for row in found if space in own and passages.get(row) == source}
                misplaced += [(space, row) for row in sorted(found - placed)]
                right |= placed
            if space in own:
                lacking = [row for row in passages if row not in right and (space, row) not in waits]
                missing += [(space, row) for row in lacking if not _known_as_empty(connection, space, row)]
    return VectorState(missing, misplaced)


def any_lost(connection: apsw.Connection, space_id: int, passage_ids: Sequence[int]) -> bool:
    """Does one of these, which have no vector in this space, neither wait for one nor do without?"""
    rows = fetch(connection, EXPECTED, {"ids": ids_text(passage_ids), "space": space_id})
    return any(not _known_as_empty(connection, space_id, passage) for (passage,) in rows)


def mend_vectors(database: VaultDatabase) -> None:
    """Drop what is misplaced and let wait what is missing; the cache has most of it."""
    found = vector_state(database)
    with database.writing() as (connection, vault):
        for space, row in found.misplaced:
            connection.execute(DROP.format(table=table_of(space)), {"id": row})
        for space, row in found.missing:
            connection.execute(WAIT, {"vault": vault, "space": space, "id": row})
        touch_vectors(connection, vault)


def _spaces(connection: apsw.Connection) -> list[int]:
    """Those that have a table."""
    spaces = [row[0] for row in fetch(connection, "select id from spaces")]
    return [space for space in spaces if connection.table_exists("main", table_of(space))]


def _known_as_empty(connection: apsw.Connection, space_id: int, passage: int) -> bool:
    """Some texts have no meaning in a space, and so no vector: the cache knows them, or the embedded model says so."""
    row = connection.execute(TEXT_OF, {"id": passage}).fetchone()
    if row is None:
        return True
    text = embedding_text(*map(str, row))
    space = open_space(connection, space_id)
    if space is not None and not space.cached:
        return shared_embedder().embed([text], "document") == [None]
    cached = look_up(connection, space_id, [text_hash(text)])
    return bool(cached) and cached[0].vector is None
