"""Search without a database: substrings straight from the files, the newest first among equals.

Slower than an index, but always current: it answers when search.db cannot be opened at all.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from co_cli.errors import VaultError
from co_cli.index.changes import hides_text
from co_cli.index.engine import Validity
from co_cli.index.indexed_notes import name_in
from co_cli.index.names import fold_name, names_of
from co_cli.index.tokens import fold
from co_cli.notes.dates import edge_for
from co_cli.notes.note import Note, NotTextError
from co_cli.paths import open_regular
from co_cli.sources.origin import Origin, kind_of
from co_cli.sources.passages import passages_of
from co_cli.sources.walk import entries_of, path_of, scan_origin
from co_cli.values import Filters, Passage, members_of

Place = tuple[Origin, Sequence[str], int]
"""A folder, what is excluded there, and the size of its largest note."""


class Needles(NamedTuple):
    """What is looked for, as it was typed."""

    words: Sequence[str]
    quoted: Sequence[str] = ()
    refused: Sequence[str] = ()


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
        newer = [one for one in self._takers_of(old) if one.begun(now) and not self._takes_back(old, one)]
        by = max(newer, key=lambda one: one.created).ref if newer else self._named(root, note, now)
        return Validity(old.created, *note.valid, by)

    def _takers_of(self, old: _Known) -> list[_Known]:
        return [one for name in old.names for one in self._takers.get(name, ()) if one is not old]

    def _takes_back(self, old: _Known, newer: _Known) -> bool:
        """Whether the two supersede each other, and the one in question is the newer."""
        later = (old.created, old.number) > (newer.created, newer.number)
        return later and any(one is old for one in self._takers_of(newer))

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
    kind, scan = kind_of(origin), scan_origin(origin, exclude)
    left = [] if unsearched is None else unsearched
    left += scan.unread
    for folder, listing in sorted(scan.listings.items()):
        for name in entries_of(listing):
            path, reason = path_of(folder, name), kind.unread(name)
            try:
                if reason is None:
                    with open_regular(os.path.join(origin.root, path), follow=False) as stream:
                        state = os.fstat(stream.fileno())
                        if state.st_size <= kind.largest(name, limit):
                            yield kind.read(origin, path, stream.read()), state.st_mtime
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
    words = [word.casefold() for word in needles.words if word]
    phrases = [re.compile(r"[\W_]+".join(map(re.escape, text.casefold().split()))) for text in needles.quoted]
    refused = [text.casefold() for text in needles.refused]
    found: list[GrepMatch] = []
    succession = Succession()
    read, own, unsearched = set[str](), places[0][0], list[str]()
    for origin, exclude, limit in places:
        wanted = [one for one in kind_of(origin).sources if _is_wanted(one, origin, filters)]
        left: list[str] = []
        for note, mtime in _notes(origin, origin is own, exclude, limit, left) if wanted else ():
            file = f"{origin.root}/{note.path}"
            if file in read:  # a source may hold another one
                continue
            read.add(file)
            created = note.created if note.created is not None else mtime
            succession.add(origin.root, note, created)
            if note.source in wanted and admits(filters, note):
                match = _best(origin, note, created, (words, phrases, refused), filters)
                found += [match] if match else []
        unsearched += [name_in(origin, path, own) for path in left]
    return sorted(found, key=lambda match: (-match.share, -match.created)), len(read), succession, unsearched


def _best(
    origin: Origin,
    note: Note,
    created: float,
    wanted: tuple[list[str], list[re.Pattern[str]], list[str]],
    filters: Filters,
) -> GrepMatch | None:
    words, phrases, refused = wanted
    around = " ".join((note.title, note.path, *note.aliases, *note.tags, note.description)).casefold()
    if any(word in note.body.casefold() or word in around for word in refused):
        return None
    best: GrepMatch | None = None
    for passage in passages_of(note):
        if not _in_time(filters, created, passage.said):
            continue
        text = f"{passage.heading}\n{passage.text}".casefold()
        if not all(phrase.search(text) or phrase.search(around) for phrase in phrases):
            continue
        total = len(words) + len(phrases)
        share = (len(phrases) + sum(word in text or word in around for word in words)) / total if total else 0.0
        if share > (best.share if best else 0):
            best = GrepMatch(origin, note, passage, share, created if passage.said is None else passage.said)
    return best


def _is_wanted(source: str, origin: Origin, filters: Filters) -> bool:
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


def _in_time(filters: Filters, created: float, said: float | None) -> bool:
    moment = created if said is None else said
    return (filters.since is None or moment >= edge_for(moment, filters.since)) and all(
        moment <= edge_for(moment, last) for last in (filters.until, filters.as_of) if last is not None
    )


def admits(filters: Filters, note: Note) -> bool:
    """Whether a note passes the filters, except those on times. The same answer as an engine's filters give."""
    if filters.tags:
        wanted = [fold(tag.lstrip("#")) for tag in filters.tags]
        has = [any(tag == want or tag.startswith(want + "/") for tag in note.tags) for want in wanted]
        if not (any(has) if filters.any_tag else all(has)):
            return False
    path = fold(note.path)
    if not all(fold(text) in path for text in filters.paths):
        return False
    if not all(fold(text) in path.rpartition("/")[2] for text in filters.files):
        return False
    fields = filters.fields if filters.category is None else (("category", filters.category), *filters.fields)
    return all(_has_field(note.filtered_fields.get(key), fold(value)) for key, value in fields)


def _has_field(value: object, wanted: str) -> bool:
    plain = (one for one in members_of(value) if one is not None and not isinstance(one, list | dict))
    return any(fold(str(one)) == wanted for one in plain)
