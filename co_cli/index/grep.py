"""Search without a database: substrings straight from the files, the newest first among equals.

Slow beside an index and never wrong about what is there: it answers when search.db cannot be opened at all.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from co_cli.errors import VaultError
from co_cli.index.filters import fold, reach_of
from co_cli.index.match import is_stop_word, read_query
from co_cli.index.succession import Succession
from co_cli.notes.note import Note, NotTextError
from co_cli.regular import open_regular
from co_cli.sources.origin import Origin, kind_of, origin_of
from co_cli.sources.passages import passages_of
from co_cli.sources.walking import entries_of, path_of, scan_origin
from co_cli.values import Filters, Passage


class GrepMatch(NamedTuple):
    """A note that holds the text, its best passage, and how much of the query that passage has, 0 to 1."""

    origin: Origin
    note: Note
    passage: Passage
    share: float
    created: float


def read_origin(root: str | Origin, exclude: Sequence[str], limit: int) -> Iterator[tuple[Note, float]]:
    """Every note of a vault, or of another origin, with its mtime; files that cannot be read are left out."""
    origin = origin_of(root)
    kind = kind_of(origin)
    for folder, listing in sorted(scan_origin(origin, exclude).listings.items()):
        for name in entries_of(listing):
            if kind.unread(name):
                continue
            path = path_of(folder, name)
            try:
                with open_regular(os.path.join(origin.root, path), follow=False) as stream:
                    state = os.fstat(stream.fileno())
                    if state.st_size <= kind.largest(name, limit):
                        yield kind.read(origin, path, stream.read()), state.st_mtime
            except (OSError, NotTextError):
                continue  # `co sync` and `co doctor` report these; here they only have nothing to say


def grep(
    origins: Sequence[Origin], query: str, filters: Filters, exclude: Sequence[str], limit: int
) -> tuple[list[GrepMatch], int, Succession]:
    """Matching notes, best first, how many notes were looked through, and which of all notes take others' places."""
    parsed = read_query(query)
    needles = [word.casefold() for word in parsed.words] or [query.strip().casefold()]
    needles = [needle for needle in needles if not is_stop_word(needle)] or needles
    phrases = [re.compile(r"[\W_]+".join(map(re.escape, map(str.casefold, words)))) for words in parsed.quoted]
    refused = [word for piece in parsed.excluded for word in read_query(piece.removeprefix("grams : ")).words]
    found: list[GrepMatch] = []
    count = 0
    reach = reach_of(list(enumerate(origins)), filters.sources)
    succession = Succession()
    for place, note, mtime in _notes([(place, origins[place]) for place in reach.vaults if place >= 0], exclude, limit):
        count += 1
        created = note.created if note.created is not None else mtime
        succession.add(origins[place].root, note, created)
        if (place, note.source) not in reach.parts or not admits(filters, note, created):
            continue
        around = " ".join((note.title, *note.aliases, *note.tags, note.description)).casefold()
        if any(word.casefold() in note.body.casefold() or word.casefold() in around for word in refused):
            continue
        best: GrepMatch | None = None
        for passage in passages_of(note):
            text = f"{passage.heading}\n{passage.text}".casefold()
            if not all(phrase.search(text) or phrase.search(around) for phrase in phrases):
                continue
            share = sum(needle in text or needle in around for needle in needles if needle) / len(needles)
            if share > (best.share if best else 0):
                best = GrepMatch(origins[place], note, passage, share, created)
        if best:
            found.append(best)
    return sorted(found, key=lambda match: (-match.share, -match.created)), count, succession


def _notes(
    origins: Sequence[tuple[int, Origin]], exclude: Sequence[str], limit: int
) -> Iterator[tuple[int, Note, float]]:
    for place, origin in origins:
        try:
            for note, mtime in read_origin(origin, exclude, limit):
                yield place, note, mtime
        except VaultError:
            if place == 0:
                raise  # the vault itself; any other may be on a drive that is not mounted


def admits(filters: Filters, note: Note, created: float) -> bool:
    """The same answer as the SQL of `filters.conditions`, for a note in hand that is of a wanted source.

    But for `roots` and `speakers`, which only what comes unasked is narrowed by: it comes from the index or not at all.
    """
    if filters.tags:
        wanted = [fold(tag.lstrip("#")) for tag in filters.tags]
        has = [any(tag == want or tag.startswith(want + "/") for tag in note.tags) for want in wanted]
        if not (any(has) if filters.any_tag else all(has)):
            return False
    if filters.category is not None and fold(note.category or "") != fold(filters.category):
        return False
    if filters.since is not None and created < filters.since:
        return False
    if filters.until is not None and created > filters.until:
        return False
    if filters.as_of is not None and created > filters.as_of:
        return False
    return all(_has_field(note.metadata.get(key), fold(value)) for key, value in filters.fields)


def _has_field(value: object, wanted: str) -> bool:
    if isinstance(value, list):
        items: list[object] = value  # pyright: ignore[reportUnknownVariableType]
        return any(_is(item, wanted) for item in items)
    return _is(value, wanted)


def _is(value: object, wanted: str) -> bool:
    return value is not None and not isinstance(value, list | dict) and fold(str(value)) == wanted
