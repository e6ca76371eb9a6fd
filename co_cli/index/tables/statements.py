"""SQL that is the same for every engine, run inside one transaction.

Parameters are written `:name`. `among (:names)` compares with a list, `among blobs (:names)` with one of bytes; each
engine replaces these by its own words for them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from co_cli.index.derivation import Row

EVERY = 1 << 62
"""As a limit: all of them."""
LAST = "\U0010ffff"
"""Sorts behind every letter."""
NOTES_OF = "select id, doc_id from passages where id among (:ids)"


class Statements:
    """One transaction of an engine. Methods without a body here differ between engines."""

    def fetch(self, statement: str, values: Mapping[str, Any] | None = None) -> list[Any]:
        """Every row; the statement says what is in it."""
        raise NotImplementedError

    def run_many(self, statement: str, rows: Sequence[Row]) -> None:
        """Run a statement that returns nothing once for each row of parameters."""
        raise NotImplementedError

    def add_rows(self, table: str, rows: Sequence[Row]) -> None:
        """Insert rows that have the same columns."""
        raise NotImplementedError

    def take_ids(self, table: str, count: int) -> Sequence[int]:
        """Ids for this many new rows, in increasing order."""
        raise NotImplementedError

    def lock(self, vault: int) -> None:
        """Wait until nobody else writes to this vault."""

    def notes_of(self, passages: Sequence[int]) -> dict[int, int]:
        """The note of each passage."""
        return dict(self.fetch(NOTES_OF, {"ids": list(passages)}))
