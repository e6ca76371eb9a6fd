"""Does search.db hold what the files say? Checks that read everything, for `co doctor`."""

from __future__ import annotations

import os

import apsw

from co_cli.index.connection import Database
from co_cli.index.knowledge_index import KnowledgeIndex
from co_cli.notes.store import content_hash

# with rank 1 FTS5 compares its index with the content table; without, drift passes unseen
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
