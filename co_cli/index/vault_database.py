"""search.db as seen by one vault: transactions that know the vault's id in the file that is open now.

The id is looked up in every transaction: the file may have been deleted or swapped since the last one.
"""

from __future__ import annotations

import contextlib
from collections.abc import Generator

import apsw

from co_cli.index.connection import Database, fetch

FIND_VAULT = "select id from vaults where root = :root"
ADD_VAULT = "insert into vaults (root) values (:root)"
TO_REPORT = """
select path, skipped, problem from knowledge_files indexed by knowledge_files_to_report
where vault_id = :vault and (skipped is not null or problem is not null) order by path
"""
UNKNOWN = -1


class VaultDatabase:
    """One vault in one search.db."""

    def __init__(self, database: Database, root: str) -> None:
        self.database, self.root = database, root

    @contextlib.contextmanager
    def reading(self) -> Generator[tuple[apsw.Connection, int]]:
        """A vault that was never written has an id that no row has."""
        with self.database.reading() as connection:
            found = connection.execute(FIND_VAULT, {"root": self.root}).get
            yield connection, UNKNOWN if found is None else found

    @contextlib.contextmanager
    def writing(self) -> Generator[tuple[apsw.Connection, int]]:
        with self.database.writing() as connection:
            found = connection.execute(FIND_VAULT, {"root": self.root}).get
            if found is None:
                connection.execute(ADD_VAULT, {"root": self.root})
                found = connection.last_insert_rowid()
            yield connection, found

    def reported(self) -> tuple[list[tuple[str, str]], list[tuple[str, str]]]:
        """Files that are not indexed, and notes with something wrong in them, each with the reason."""
        with self.reading() as (connection, vault):
            rows = fetch(connection, TO_REPORT, {"vault": vault})
        skipped = [(path, reason) for path, reason, _ in rows if reason is not None]
        return skipped, [(path, problem) for path, _, problem in rows if problem is not None]
