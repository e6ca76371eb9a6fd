"""`co index verify`: compare the index with the files, report counts and hashes, and rebuild it if anything differs.

Every file of the vault and of the sources searched with it is read again. Only the index is ever changed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, NamedTuple

from co_cli.errors import VaultError
from co_cli.index.verify import Compared, compare

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

    @property
    def drifted(self) -> bool:
        return bool(self.compared and self.compared.differing)


class Verified(NamedTuple):
    """What came of it."""

    parts: list[Part]
    damage: str | None
    """What SQLite says is wrong with search.db."""
    repaired: bool = False
    odd: Sequence[tuple[str, str]] = ()
    """What is in the vault and is not read, each with the reason: it is in neither hash."""

    @property
    def drifted(self) -> bool:
        return bool(self.damage or any(part.drifted for part in self.parts))


def verify(kb: KnowledgeBase, progress: Progress | None = None, *, sync: bool = True, repair: bool = False) -> Verified:
    """`sync` updates the index first, so that an edit of a moment ago is no difference.

    With `repair`, the index is built again if anything differs, and everything is compared once more.
    """
    if sync:
        kb.sync(progress)
    found = _compare(kb, progress)
    if sync and found.drifted and not found.damage:
        kb.sync(progress)  # edited while it was compared?
        found = _compare(kb, progress)
    if not repair or not found.drifted:
        return found
    if found.damage:
        if kb.engine.problem():  # else it was moved aside when it was met
            kb.engine.discard(found.damage)
        kb.sync(progress)
    else:
        kb.rebuild(progress)
    return _compare(kb, progress)._replace(repaired=True)


def _compare(kb: KnowledgeBase, progress: Progress | None) -> Verified:
    damage = kb.engine.problem()
    if damage:
        return Verified([], damage)
    try:
        parts = [_part(kb, origin, progress) for origin in (kb.index.origin, *kb.index.beside)]
    except Exception as error:
        damaged = kb.index.damage_behind(error)  # in a place that SQLite does not check
        if damaged is None:
            raise
        return Verified([], str(damaged))
    return Verified(parts, None, odd=kb.index.unread_entries())


def _part(kb: KnowledgeBase, origin: Origin, progress: Progress | None) -> Part:
    index = kb.index if origin == kb.index.origin else kb.index.of(origin)
    try:
        compared = compare(index, progress, cut_by_model=kb.settings.boundaries_model is not None)
    except VaultError as error:
        return Part(origin.label, origin.path, None, str(error))
    return Part(origin.label, origin.path, compared)
