"""Does search.db hold what the files say? Checks that read everything, for `co doctor`."""

from __future__ import annotations

import os
from typing import NamedTuple

import apsw

from co_cli.index.cache import look_up, text_hash
from co_cli.index.connection import Database
from co_cli.index.knowledge_index import KnowledgeIndex
from co_cli.index.meaning import FORGET_WAITING, LET_ALL_WAIT, embedding_text
from co_cli.index.spaces import space_state
from co_cli.index.vault_database import VaultDatabase
from co_cli.index.vectors import drop_space, part_of, spaces_of, table_of
from co_cli.notes.store import content_hash
from co_cli.values import SOURCES

# with rank 1 FTS5 compares its index with the content table; without, drift passes unseen
PASSAGES = "select passages.id from passages join docs on docs.id = passages.doc_id where docs.vault_id = :vault"
WAITS = "select space_id, passage_id from waiting where vault_id = :vault"
ROWIDS = "select rowid from {table} where part = :part"
TEXT_OF = "select title, heading, body, tags, aliases from passages where id = :id"
CHECK_WORDS = "insert into docs_fts (docs_fts, rank) values ('integrity-check', 1)"


def damaged_words(database: Database) -> str | None:
    """What FTS5 says is wrong with the word index, if anything."""
    with database.writing() as connection:
        try:
            connection.execute(CHECK_WORDS)
        except (apsw.SQLError, apsw.CorruptError) as error:
            return str(error)
    return None


def drift(index: KnowledgeIndex, root: str) -> list[str]:
    """Notes whose row has another content than their file has now, and files changed since they were synced."""
    differing: list[str] = []
    for path, known in index.hashes().items():
        try:
            with open(os.path.join(root, path), "rb") as stream:
                if content_hash(stream.read()) != known:
                    differing.append(path)
        except OSError:
            differing.append(path)
    return differing


class VectorState(NamedTuple):
    """What is wrong with a vault's vectors: passages without one, and vectors that nobody asks for."""

    missing: list[int]
    misplaced: int
    """In a space that the vault neither has nor builds, or of passages that are gone."""


def vector_state(database: VaultDatabase) -> VectorState:
    with database.reading() as (connection, vault):
        state = space_state(connection, vault)
        passages = {int(str(row[0])) for row in connection.execute(PASSAGES, {"vault": vault})}
        waits = {(int(str(space)), int(str(row))) for space, row in connection.execute(WAITS, {"vault": vault})}
        own = {space.id for space in (state.active, state.building) if space}
        missing: list[int] = []
        misplaced = 0
        for (space_id,) in connection.execute("select id from spaces").fetchall():
            number = int(str(space_id))
            if not connection.table_exists("main", table_of(number)):
                continue
            found: set[int] = set()
            for source in SOURCES:
                rows = connection.execute(ROWIDS.format(table=table_of(number)), {"part": part_of(vault, source)})
                found |= {int(str(row[0])) for row in rows}
            if number not in own:
                misplaced += len(found)
                continue
            misplaced += len(found - passages)
            if state.active and number == state.active.id:
                lacking = [passage for passage in passages - found if (number, passage) not in waits]
                missing = [passage for passage in lacking if not _known_as_empty(connection, number, passage)]
    return VectorState(missing, misplaced)


def mend_vectors(database: VaultDatabase) -> None:
    """Drop every vector of the vault and let all its passages wait for new ones, which the cache has."""
    with database.writing() as (connection, vault):
        for (space_id,) in connection.execute("select id from spaces").fetchall():
            number = int(str(space_id))
            if connection.table_exists("main", table_of(number)):
                drop_space(connection, vault, number)
        for number in spaces_of(connection, vault):
            connection.execute(FORGET_WAITING, {"vault": vault, "space": number})
            connection.execute(LET_ALL_WAIT, {"vault": vault, "space": number})


def _known_as_empty(connection: apsw.Connection, space_id: int, passage: int) -> bool:
    """Some texts have no meaning in a space, and so no vector; the cache knows them."""
    row = connection.execute(TEXT_OF, {"id": passage}).fetchone()
    if row is None:
        return True
    cached = look_up(connection, space_id, [text_hash(embedding_text(*map(str, row)))])
    return bool(cached) and cached[0].vector is None
