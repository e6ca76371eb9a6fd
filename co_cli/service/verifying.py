"""`co verify`: compare the index with the files completely, show it by counts and hashes, and repair what differs.

Every file of the vault and of each origin beside it is read and taken apart again; every row, every word and every
vector is laid beside what comes out. Only what is derived is repaired.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, NamedTuple

from co_cli.errors import VaultError
from co_cli.index.comparing import Compared, Difference, compare
from co_cli.index.connection import inode_of
from co_cli.index.damage import damage_behind, retire, unsound
from co_cli.index.integrity import damaged_words, mend_vectors, mend_words, vector_state

if TYPE_CHECKING:
    from co_cli.knowledge_base import KnowledgeBase
    from co_cli.sources.origin import Origin

Progress = Callable[[int, int], None]


class Part(NamedTuple):
    """One origin."""

    label: str
    path: str
    compared: Compared | None
    """None: it is not there now, and nothing was compared."""
    problem: str = ""
    """Why not."""
    lacking: int = 0
    """Passages without the vector that they should have, and vectors where none should be."""

    @property
    def drifted(self) -> bool:
        return bool(self.lacking or (self.compared and self.compared.differing))


class Verified(NamedTuple):
    """What came of it."""

    parts: list[Part]
    damage: str | None
    """What SQLite says is wrong with search.db."""
    words: str | None
    """What FTS5 says does not fit between words and passages."""
    repaired: bool = False
    odd: Sequence[tuple[str, str]] = ()
    """What lies in the vault and is not read, each with the reason: it is in neither hash."""

    @property
    def drifted(self) -> bool:
        return bool(self.damage or self.words or any(part.drifted for part in self.parts))


def verify(kb: KnowledgeBase, progress: Progress | None = None, *, sync: bool = True, repair: bool = False) -> Verified:
    """`sync` brings the index up to the files first, so that an edit of a moment ago is no drift.

    With `repair`, what differs is made anew from the files and everything is compared once more.
    """
    if sync:
        kb.sync(progress)
    found = _compare(kb, progress)
    if sync and _only_files(found):
        kb.sync(progress)  # edited while it was compared?
        found = _compare(kb, progress)
    if not repair or not found.drifted:
        return found
    _repair(kb, found, progress)
    return _compare(kb, progress)._replace(repaired=True)


def _compare(kb: KnowledgeBase, progress: Progress | None) -> Verified:
    damage = unsound(kb.database, words=False)
    if damage:
        return Verified([], damage, None)
    try:
        words = damaged_words(kb.database)
        parts = [_part(kb, origin, progress) for origin in (kb.index.origin, *kb.index.beside)]
    except Exception as error:
        damaged = damage_behind(kb.database, error)  # in a place that SQLite does not look at
        if damaged is None:
            raise
        return Verified([], str(damaged), None)
    return Verified(parts, None, words, odd=kb.index.unread_entries())


def _part(kb: KnowledgeBase, origin: Origin, progress: Progress | None) -> Part:
    index = kb.index if origin == kb.index.origin else kb.index.of(origin)
    try:
        compared = compare(index, kb.embedders, progress, by_model=kb.settings.boundaries_model is not None)
    except VaultError as error:
        return Part(origin.label, origin.path, None, str(error))
    vectors = vector_state(index.rows)
    return Part(origin.label, origin.path, compared, lacking=len(vectors.missing) + len(vectors.misplaced))


def _only_files(found: Verified) -> bool:
    """Is it files alone that differ? Somebody may have saved one meanwhile."""
    return found.drifted and not (found.damage or found.words or any(part.lacking for part in found.parts))


def _repair(kb: KnowledgeBase, found: Verified, progress: Progress | None) -> None:
    import apsw

    if found.damage:
        if unsound(kb.database, words=False):  # else it was set aside when it was met
            retire(kb.database, inode_of(kb.database.path), apsw.CorruptError(found.damage))
        kb.sync(progress)
        return
    differing: list[Difference] = [one for part in found.parts if part.compared for one in part.compared.differing]
    if differing or (found.words and not (mend_words(kb.database) and damaged_words(kb.database) is None)):
        kb.rebuild(progress)
    for part, origin in zip(found.parts, (kb.index.origin, *kb.index.beside), strict=True):
        if part.compared:
            index = kb.index.of(origin)
            mend_vectors(index.rows)
            index.embed(progress)
