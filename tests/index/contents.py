"""What an index holds, in a form in which two indexes of the same files are equal: no ids, no times of syncing."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from co_cli.index.connection import Database
from co_cli.index.knowledge_index import KnowledgeIndex
from tests.vault import Vault

DOCS = """
select path, source, ref, title, description, hash, fingerprint, mtime, created, tags, category, frontmatter, links
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
REAL_NAMES = "select count(*) from names where vault_id = :vault"
FILES = "select path, hash, skipped, problem from knowledge_files where vault_id = :vault order by path"
TERMS = "select term, doc, cnt from docs_terms order by term"
COUNTS = "select notes, passages from vaults where id = :vault"
REAL_COUNTS = """
select (select count(*) from docs where vault_id = :vault),
    (select count(*) from passages join docs on docs.id = passages.doc_id where vault_id = :vault)
"""
CHECK = "insert into docs_fts (docs_fts, rank) values ('integrity-check', 1)"


def contents(database: Database, root: Path) -> dict[str, Any]:
    """Every table of one vault; fails by itself if the word index does not fit the passages or the counts are off."""
    with database.writing() as connection:
        connection.execute(CHECK)
        vault = {"vault": connection.execute("select id from vaults where root = :root", {"root": str(root)}).get}
        assert connection.execute(COUNTS, vault).fetchall() in (connection.execute(REAL_COUNTS, vault).fetchall(), [])
        names = connection.execute(NAMES, vault).fetchall()
        assert connection.execute(REAL_NAMES, vault).get == len(names)
        return {
            "names": names,
            "docs": connection.execute(DOCS, vault).fetchall(),
            "passages": connection.execute(PASSAGES, vault).fetchall(),
            "files": connection.execute(FILES, vault).fetchall(),
            "terms": connection.execute(TERMS).fetchall(),
        }


def contents_from_scratch(vault: Vault, folder: Path) -> dict[str, Any]:
    """The same of an index that is made now, in a folder of its own."""
    database = Database(str(folder / "search.db"))
    try:
        KnowledgeIndex(database, str(vault.root)).sync()
        return contents(database, vault.root)
    finally:
        database.close()
