"""Search without a database: substrings straight from the files, the newest first among equals.

Slower than an index, but always current: it answers when search.db cannot be opened at all.
"""

from __future__ import annotations

import operator
import os
from collections.abc import Callable, Collection, Iterator, Sequence
from typing import NamedTuple

from co_cli.ground.errors import VaultError
from co_cli.ground.hits import Filters, Passage
from co_cli.ground.paths import open_regular
from co_cli.index.changes import hides_text
from co_cli.index.derivation import OF_PASSAGES, filtered_column
from co_cli.index.filter_table import Comparison, Requirement, compared_moments, requirements
from co_cli.index.indexed_notes import name_in
from co_cli.index.names import fold_name, names_of
from co_cli.index.stored import Validity
from co_cli.notes.dates import edge_for
from co_cli.notes.encoding import NotTextError
from co_cli.notes.note import Note
from co_cli.notes.properties import properties_of
from co_cli.sources.origin import Origin, adapter_of
from co_cli.sources.passages import passages_of
from co_cli.sources.walk import entries_of, path_of, scan_origin

Place = tuple[Origin, Sequence[str], int]
"""A folder, what is excluded there, and the size of its largest note."""
COMPARE = {">=": operator.ge, "<=": operator.le}


Chooser = Callable[[Note, Sequence[Passage]], Collection[int]]
"""The places of those passages of a note that may answer."""


class Needles(NamedTuple):
    """What is looked for: words as they were typed, and what must be there. Without words, all that may answer."""

    words: Sequence[str]
    choose: Chooser | None = None
    exact: bool = False
    """What may answer has a part of the query besides these words."""
    is_over: Callable[[], bool] = bool
    """Whether to stop before the next note."""


class GrepMatch(NamedTuple):
    """A note that has the text, its best passage, and how much of the query that passage has, 0 to 1."""

    origin: Origin
    note: Note
    passage: Passage
    share: float
    created: float


class Succession:
    """Which notes replaced others, from all notes as they are read: the same rules as in an engine."""

    def __init__(self) -> None:
        self._by_ref: dict[tuple[str, str], _Known] = {}
        self._called: dict[tuple[str, str], _Known] = {}
        self._takers: dict[tuple[str, str], list[_Known]] = {}

    def add(self, root: str, note: Note, created: float) -> None:
        names = frozenset((root, name) for name in names_of(note))
        known = _Known(note.ref, created, note.valid[0] or 0.0, len(self._by_ref), names)
        self._by_ref[root, note.ref] = known
        for name in names:
            self._called.setdefault(name, known)
        for name in {fold_name(target) for target in note.supersedes}:
            self._takers.setdefault((root, name), []).append(known)

    def validity(self, root: str, note: Note, now: float) -> Validity:
        """When a note is valid, once all are added."""
        old = self._by_ref[root, note.ref]
        newer = [taker for taker in self._takers_of(old) if taker.begun(now) and not self._takes_back(old, taker)]
        by = max(newer, key=lambda taker: taker.created).ref if newer else self._named(root, note, now)
        return Validity(old.created, *note.valid, by)

    def _takers_of(self, old: _Known) -> list[_Known]:
        return [taker for name in old.names for taker in self._takers.get(name, ()) if taker is not old]

    def _takes_back(self, old: _Known, newer: _Known) -> bool:
        """Whether the two supersede each other, and the one in question is the newer."""
        later = (old.created, old.number) > (newer.created, newer.number)
        return later and any(taker is old for taker in self._takers_of(newer))

    def _named(self, root: str, note: Note, now: float) -> str | None:
        """The note that it says replaced it; one that is not here may have."""
        if note.superseded_by is None:
            return None
        known = self._called.get((root, fold_name(note.superseded_by)))
        if known is None:
            return note.superseded_by
        return known.ref if known.begun(now) and known.ref != note.ref else None


class _Known(NamedTuple):
    ref: str
    created: float
    valid_from: float
    number: int
    names: frozenset[tuple[str, str]]

    def begun(self, now: float) -> bool:
        """Whether it can replace another."""
        return all(moment <= edge_for(moment, now) for moment in (self.created, self.valid_from))


def read_origin(
    origin: Origin, exclude: Sequence[str], limit: int, unsearched: list[str] | None = None
) -> Iterator[tuple[Note, float]]:
    """Every note of an origin with its modification time. Files with text that cannot be read go to `unsearched`."""
    adapter, scan = adapter_of(origin), scan_origin(origin, exclude)
    left = [] if unsearched is None else unsearched
    left += scan.unread
    for folder, listing in sorted(scan.listings.items()):
        for name in entries_of(listing):
            path, reason = path_of(folder, name), adapter.unread(name)
            try:
                if reason is None:
                    with open_regular(os.path.join(origin.root, path), follow=False) as stream:
                        state = os.fstat(stream.fileno())
                        if state.st_size <= adapter.largest(name, limit):
                            yield adapter.read(origin, path, stream.read()), state.st_mtime
                        else:
                            reason = "too large"
            except (OSError, NotTextError) as error:
                reason = str(error)
            left += [path] if hides_text(reason) else []


def grep(
    places: Sequence[Place], needles: Needles, filters: Filters
) -> tuple[list[GrepMatch], int, Succession, list[str]]:
    """Matching notes, best first, how many notes were read, which of all notes replaced others, and unread files.

    Places are origins, each with the patterns to exclude and the size of the largest note.
    """
    required = requirements(filters)
    of_notes = [requirement for requirement in required if requirement.column not in OF_PASSAGES]
    others = [requirement for requirement in required if requirement.column in OF_PASSAGES]
    of_passages = _OfPassages(others, compared_moments(filters))
    found: list[GrepMatch] = []
    succession = Succession()
    read, own, unsearched = set[str](), places[0][0], list[str]()
    for origin, exclude, limit in places:
        wanted = [source for source in adapter_of(origin).sources if _is_wanted(source, origin, filters)]
        left: list[str] = []
        for note, mtime in _notes(origin, origin is own, exclude, limit, left) if wanted else ():
            file = f"{origin.root}/{note.path}"
            if file in read:  # a source may hold another one
                continue
            if needles.is_over():
                break
            read.add(file)
            created = note.created if note.created is not None else mtime
            succession.add(origin.root, note, created)
            if note.source in wanted and meets(note, of_notes, ()):
                match = _best(origin, note, created, needles, of_passages)
                found += [match] if match else []
        unsearched += [name_in(origin, path, own) for path in left]
    return sorted(found, key=lambda match: (-match.share, -match.created)), len(read), succession, unsearched


def _best(
    origin: Origin,
    note: Note,
    created: float,
    needles: Needles,
    filters: _OfPassages,
) -> GrepMatch | None:
    words = [word.casefold() for word in needles.words if word]
    properties = properties_of(note.metadata).values()
    around = " ".join((note.title, note.path, *note.aliases, *note.tags, note.description, *properties)).casefold()
    best: GrepMatch | None = None
    passages = passages_of(note)
    chosen = range(len(passages)) if needles.choose is None else needles.choose(note, passages)
    for passage in (passages[place] for place in chosen):
        said = created if passage.said is None else passage.said
        if not filters.passes(note, passage, said):
            continue
        text = f"{passage.heading}\n{passage.text}".casefold()
        has = [word in text or word in around for word in words] + [True] * (needles.exact or not words)
        share = sum(has) / len(has)
        if share > (best.share if best else 0):
            best = GrepMatch(origin, note, passage, share, said)
    return best


class _OfPassages(NamedTuple):
    """What filters require of each passage."""

    required: Sequence[Requirement]
    moments: Sequence[tuple[str, Comparison, float]]

    def passes(self, note: Note, passage: Passage, said: float) -> bool:
        in_time = all(COMPARE[comparison](said, edge_for(said, moment)) for _, comparison, moment in self.moments)
        return in_time and meets(note, self.required, [passage])


def _is_wanted(source: str, origin: Origin, filters: Filters) -> bool:
    if filters.roots and origin.root not in filters.roots:
        return False
    return not filters.sources or source in filters.sources or origin.label in filters.sources


def _notes(
    origin: Origin, is_vault: bool, exclude: Sequence[str], limit: int, unsearched: list[str]
) -> Iterator[tuple[Note, float]]:
    try:
        yield from read_origin(origin, exclude, limit, unsearched)
    except VaultError:
        if is_vault:
            raise
        unsearched.append("")  # it may be on a drive that is not mounted


def meets(note: Note, required: Sequence[Requirement], passages: Sequence[Passage] | None = None) -> bool:
    """Whether a note, or these passages of it, pass the filters, except those on times: as an engine compares them."""
    own = passages_of(note) if passages is None else passages
    return all(
        any(map(filtered_column(note, column, own).__contains__, texts)) != absent for column, texts, absent in required
    )
