"""Which notes took others' places, from all notes as they are read: what `standing.py` asks of search.db.

The same rules, and one contract test over both. A note is superseded from the moment on at which the newer one is
there and holds; of two that supersede each other, the newer one holds.
"""

from __future__ import annotations

from typing import NamedTuple

from co_cli.index.names import fold_name
from co_cli.index.rows import names_of
from co_cli.index.standing import Standing
from co_cli.notes.note import Note


class _Known(NamedTuple):
    ref: str
    created: float
    since: float
    """From when on it can take another's place."""
    number: int
    names: frozenset[tuple[str, str]]


class Succession:
    """Notes of several origins: a note takes the place of others of its own origin only."""

    def __init__(self) -> None:
        self._by_ref: dict[tuple[str, str], _Known] = {}
        self._called: dict[tuple[str, str], _Known] = {}
        self._takers: dict[tuple[str, str], list[_Known]] = {}

    def add(self, root: str, note: Note, created: float) -> None:
        """One more note that was read."""
        names = frozenset((root, name) for name in names_of(note))
        since = max(created, note.valid[0] or 0.0)
        known = self._by_ref[root, note.ref] = _Known(note.ref, created, since, len(self._by_ref), names)
        for name in names:
            self._called.setdefault(name, known)
        for name in {fold_name(target) for target in note.supersedes}:
            self._takers.setdefault((root, name), []).append(known)

    def standing(self, root: str, note: Note, now: float) -> Standing:
        """When a note holds, once all are added."""
        old = self._by_ref[root, note.ref]
        newer = [one for one in self._takers_of(old) if one.since <= now and not self._takes_back(old, one)]
        by = max(newer, key=lambda one: one.created).ref if newer else self._named(root, note, now)
        return Standing(old.created, *note.valid, by)

    def _takers_of(self, old: _Known) -> list[_Known]:
        return [one for name in old.names for one in self._takers.get(name, ()) if one is not old]

    def _takes_back(self, old: _Known, newer: _Known) -> bool:
        """Whether the two supersede each other, and the one in question is the newer."""
        later = (old.created, old.number) > (newer.created, newer.number)
        return later and any(one is old for one in self._takers_of(newer))

    def _named(self, root: str, note: Note, now: float) -> str | None:
        """The note that it says took its place; one that is not here may have."""
        if note.superseded_by is None:
            return None
        known = self._called.get((root, fold_name(note.superseded_by)))
        if known is None:
            return note.superseded_by
        return known.ref if known.since <= now and known.ref != note.ref else None
