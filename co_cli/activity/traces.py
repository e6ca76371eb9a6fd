"""What activity.db and its copies have about a note: deleted, and overwritten in the file."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Collection

import apsw

from co_cli.activity.database import explained
from co_cli.activity.versions import vault_id
from co_cli.index.sqlite.connection import fetch
from co_cli.index.sqlite.database_files import BUSY_MS

Tells = Callable[[str], bool]
"""Whether a text is about the note."""

EARLIER_PATHS = """
select distinct before from versions join documents on documents.id = document_id
where vault_id = :vault and path = :path and before is not null
"""
DOCUMENTS = "select id from documents where vault_id = :vault and path = :path"
OF_DOCUMENT = tuple(
    f"delete from {table} where document_id = :id"
    for table in ("versions", "uses", "judgements", "conversations", "facets")
)
DROP_DOCUMENT = "delete from documents where id = :id"
WITH_WORDS = (
    "delete from searches where has_words(concat_ws(' ', text, degraded, results))",
    "delete from turns where has_words(concat_ws(' ', prompt, given, injected, cited))",
    "delete from judgements where has_words(concat_ws(' ', query, ref))",
    "delete from facets where has_words(concat_ws(' ', text, detail, ref))",
)
WITH_NAMES = (
    "delete from searches where vault_id = :vault and has_name(results)",
    "delete from turns where vault_id = :vault and has_name(concat_ws(' ', injected, cited))",
    "delete from facets where document_id in (select id from documents where vault_id = :vault) and has_name(ref)",
)
"""In another vault, the same ref names another note."""


def earlier_paths(connection: apsw.Connection, root: str, path: str) -> list[str]:
    """The paths that a document had before it was moved."""
    place = {"vault": vault_id(connection, root), "path": path}
    return [before for (before,) in fetch(connection, EARLIER_PATHS, place)]


def erase_traces(file: str, root: str, paths: Collection[str], has_name: Tells, has_words: Tells) -> int:
    """Delete what an activity.db has about the documents at these paths of a vault, and rows with their names or words.

    Returns how many rows that were. Raises ActivityUnavailableError, also if another program uses the file.
    """
    with explained(file), contextlib.closing(apsw.Connection(file, flags=apsw.SQLITE_OPEN_READWRITE)) as connection:
        connection.set_busy_timeout(BUSY_MS)
        connection.create_scalar_function("has_words", lambda *texts: has_words(str(texts[0])), 1)
        connection.create_scalar_function("has_name", lambda *texts: has_name(str(texts[0])), 1)
        connection.execute("begin immediate")
        vault, before = vault_id(connection, root), connection.total_changes()
        for path in paths:
            for (document,) in fetch(connection, DOCUMENTS, {"vault": vault, "path": path}):
                for statement in (*OF_DOCUMENT, DROP_DOCUMENT):
                    connection.execute(statement, {"id": document})
        for statement in WITH_WORDS:
            connection.execute(statement)
        for statement in WITH_NAMES:
            connection.execute(statement, {"vault": vault})
        deleted = connection.total_changes() - before
        connection.execute("commit")
        connection.execute("vacuum")
        connection.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_TRUNCATE)
    return deleted
