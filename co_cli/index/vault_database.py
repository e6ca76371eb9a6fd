"""search.db as seen by one vault: transactions that know the vault's id in the file that is open now.

The id is looked up in every transaction: the file may have been deleted or swapped since the last one.
"""

from __future__ import annotations

import sys
from _thread import get_ident

import apsw

from co_cli.index.connection import Database, Reading, Writing, fetch
from co_cli.index.filters import UNKNOWN

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import TracebackType

    from co_cli.sources.origin import Origin

FIND_VAULT = "select id from vaults where root = :root and kind = :kind and name = :name and only = :only"
ADD_VAULT = "insert into vaults (root, kind, name, only) values (:root, :kind, :name, :only)"
TO_REPORT = """
select path, skipped, problem from knowledge_files indexed by knowledge_files_to_report
where vault_id = :vault and (skipped is not null or problem is not null) order by path
"""


class VaultTransaction:
    """A transaction of search.db that says which id this vault has there."""

    def __init__(self, transaction: Reading, origin: Origin) -> None:
        self._transaction, self._origin = transaction, origin

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
        found = find_vault(connection, self._origin)
        if found != UNKNOWN or not isinstance(self._transaction, Writing):
            return found
        connection.execute(ADD_VAULT, self._origin._asdict())
        return connection.last_insert_rowid()


def find_vault(connection: apsw.Connection, origin: Origin) -> int:
    """The id of a vault or another origin in this search.db."""
    found: int | None = connection.execute(FIND_VAULT, origin._asdict()).get
    return UNKNOWN if found is None else found


class VaultSnapshot(VaultTransaction):
    """One read transaction for everything that this thread reads of the vault meanwhile."""

    def __init__(self, transaction: Reading, origin: Origin, held: dict[int, tuple[apsw.Connection, int]]) -> None:
        super().__init__(transaction, origin)
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
    """One vault, or another origin, in one search.db."""

    def __init__(self, database: Database, origin: Origin) -> None:
        self.database, self.origin = database, origin
        self._held: dict[int, tuple[apsw.Connection, int]] = {}

    def snapshot(self) -> VaultSnapshot | Inside:
        """Whatever this thread reads until the end is of one moment, also when search.db is swapped meanwhile."""
        opened = self._held.get(get_ident())
        if opened is not None:
            return Inside(opened)
        return VaultSnapshot(self.database.reading(), self.origin, self._held)

    def reading(self) -> VaultTransaction | Inside:
        opened = self._held.get(get_ident())
        return VaultTransaction(self.database.reading(), self.origin) if opened is None else Inside(opened)

    def writing(self) -> VaultTransaction:
        return VaultTransaction(self.database.writing(), self.origin)

    def reported(self) -> tuple[list[tuple[str, str]], list[tuple[str, str]]]:
        """Files that are not indexed, and notes with something wrong in them, each with the reason."""
        with self.reading() as (connection, vault):
            rows = fetch(connection, TO_REPORT, {"vault": vault})
        skipped = [(path, reason) for path, reason, _ in rows if reason is not None]
        return skipped, [(path, problem) for path, _, problem in rows if problem is not None]
