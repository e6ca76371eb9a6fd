"""search.db as seen by one vault: transactions that know the vault's id in the file that is open now.

The id is looked up in every transaction: the file may have been deleted or swapped since the last one.
"""

from __future__ import annotations

import sys
from _thread import get_ident

import apsw

from co_cli.index.connection import Database, Reading, Writing, fetch

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import TracebackType

FIND_VAULT = "select id from vaults where root = :root"
ADD_VAULT = "insert into vaults (root) values (:root)"
TO_REPORT = """
select path, skipped, problem from knowledge_files indexed by knowledge_files_to_report
where vault_id = :vault and (skipped is not null or problem is not null) order by path
"""
UNKNOWN = -1


class VaultTransaction:
    """A transaction of search.db that says which id this vault has there."""

    def __init__(self, transaction: Reading, root: str) -> None:
        self._transaction, self._root = transaction, root

    def __enter__(self) -> tuple[apsw.Connection, int]:
        connection = self._transaction.__enter__()
        try:
            return connection, self._vault_id(connection)
        except BaseException:
            self._transaction.__exit__(*sys.exc_info())
            raise

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._transaction.__exit__(kind, error, traceback)

    def _vault_id(self, connection: apsw.Connection) -> int:
        """A vault that was never written has an id that no row has; it gets its own with the first write."""
        found: int | None = connection.execute(FIND_VAULT, {"root": self._root}).get
        if found is not None:
            return found
        if not isinstance(self._transaction, Writing):
            return UNKNOWN
        connection.execute(ADD_VAULT, {"root": self._root})
        return connection.last_insert_rowid()


class VaultSnapshot(VaultTransaction):
    """One read transaction for everything that this thread reads of the vault meanwhile."""

    def __init__(self, transaction: Reading, root: str, held: dict[int, tuple[apsw.Connection, int]]) -> None:
        super().__init__(transaction, root)
        self._held = held

    def __enter__(self) -> tuple[apsw.Connection, int]:
        self._held[get_ident()] = opened = super().__enter__()
        return opened

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        del self._held[get_ident()]
        super().__exit__(kind, error, traceback)


class Inside:
    """Reading inside a snapshot: the snapshot's own transaction."""

    def __init__(self, opened: tuple[apsw.Connection, int]) -> None:
        self._opened = opened

    def __enter__(self) -> tuple[apsw.Connection, int]:
        return self._opened

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """The snapshot ends it."""


class VaultDatabase:
    """One vault in one search.db."""

    def __init__(self, database: Database, root: str) -> None:
        self.database, self.root = database, root
        self._held: dict[int, tuple[apsw.Connection, int]] = {}

    def snapshot(self) -> VaultSnapshot:
        """Whatever this thread reads until the end is of one moment, also when search.db is swapped meanwhile."""
        return VaultSnapshot(self.database.reading(), self.root, self._held)

    def reading(self) -> VaultTransaction | Inside:
        opened = self._held.get(get_ident())
        return VaultTransaction(self.database.reading(), self.root) if opened is None else Inside(opened)

    def writing(self) -> VaultTransaction:
        return VaultTransaction(self.database.writing(), self.root)

    def reported(self) -> tuple[list[tuple[str, str]], list[tuple[str, str]]]:
        """Files that are not indexed, and notes with something wrong in them, each with the reason."""
        with self.reading() as (connection, vault):
            rows = fetch(connection, TO_REPORT, {"vault": vault})
        skipped = [(path, reason) for path, reason, _ in rows if reason is not None]
        return skipped, [(path, problem) for path, _, problem in rows if problem is not None]
