"""What the parts of a transaction need: statements that every engine runs, and the few words of SQL that differ.

A statement that engines share has its parameters as `%(name)s`, and in braces the words of the dialect and parts that
its caller gives: our own text, never a value. An engine's own statements are written as its database takes them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, Protocol

from co_cli.embedding.space import Vector
from co_cli.index.derivation import Row
from co_cli.index.stored import Match, Scope, StoredOrigin, StoredSpace, WaitingPassage
from co_cli.index.word_query import WordQuery

EVERY = 1 << 62
"""As a limit: all of them."""
LAST = "\U0010ffff"
"""Sorts behind every letter."""
NOTES_OF = "select id, doc_id from passages where id {among} (%(ids)s)"

Tokens = dict[str, list[str]]
"""Those of each indexed column."""


class Dialect(NamedTuple):
    """The words of SQL that differ between engines."""

    among: str
    """Compares with a list: `id {among} (%(ids)s)`."""
    cross_join: str
    """A join in the order in which it is written, where a statement can choose that."""
    position: str
    """The function that finds a text in another one."""
    hints: bool
    """Whether a statement can choose an index."""

    def compose(self, statement: str, parts: Mapping[str, str]) -> str:
        """A statement with this dialect's words and the caller's parts."""
        return statement.format(among=self.among, cross_join=self.cross_join, **parts)

    def indexed_by(self, index: str) -> str:
        return f"indexed by {index}" if self.hints else ""


class Statements(Protocol):
    """One transaction of an engine, as shared SQL uses it."""

    known: dict[int, StoredOrigin]
    """The vaults as they were read in this transaction, and not changed since."""

    @property
    def dialect(self) -> Dialect: ...

    def fetch(self, statement: str, values: Mapping[str, Any] | None = None, **parts: str) -> list[Any]:
        """Every row; the statement says what is in it."""
        ...

    def run(self, statement: str, values: Mapping[str, Any] | None = None, **parts: str) -> None:
        """Run a statement that returns nothing."""
        ...

    def run_many(self, statement: str, rows: Sequence[Row], **parts: str) -> None:
        """Run a statement that returns nothing once for each row of parameters."""
        ...

    def add_rows(self, table: str, rows: Sequence[Row]) -> None:
        """Insert rows that have the same columns."""
        ...

    def take_ids(self, table: str, count: int) -> Sequence[int]:
        """Ids for this many new rows, in increasing order."""
        ...

    def lock(self, origin_id: int) -> None:
        """Wait until nobody else writes to this vault."""
        ...

    def stored_root(self, root: str) -> str:
        """The name under which a folder is stored."""
        ...

    def local_root(self, stored: str) -> str:
        """The folder of this machine that has this name."""
        ...


class Tables(Statements, Protocol):
    """The same with its word index and its vectors, which each engine keeps in its own way."""

    def find_words(self, scope: Scope, origin_id: int, query: WordQuery, limit: int) -> list[Match]:
        """The best passages of one vault."""
        ...

    def count_words(self, origin_id: int) -> int:
        """How many passages are in the word index."""
        ...

    def make_words(self, origin_id: int) -> None:
        """Make what a new vault needs to be searched by words."""
        ...

    def put_words(self, origin_id: int, passages: Sequence[tuple[Row, Tokens]]) -> None:
        """Index new passages: their rows, and the tokens of each column."""
        ...

    def drop_words(self, origin_id: int, passages: Sequence[int]) -> None: ...

    def has_vectors(self, space: StoredSpace) -> bool:
        """Whether the space has its table."""
        ...

    def make_vectors(self, space: StoredSpace) -> None:
        """Make the table of a new space."""
        ...

    def replace_vectors(
        self,
        origin_id: int,
        space: StoredSpace,
        passages: Sequence[int],
        vectors: Sequence[tuple[WaitingPassage, Vector]] = (),
    ) -> None:
        """Drop the vectors of passages, and store these."""
        ...

    def forget_vectors(self, origin_id: int, space: StoredSpace) -> None:
        """Drop every vector of a vault."""
        ...


def notes_of(tx: Statements, passages: Sequence[int]) -> dict[int, int]:
    """The note of each passage."""
    return dict(tx.fetch(NOTES_OF, {"ids": list(passages)}))
