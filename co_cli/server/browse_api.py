"""Browse notes: folders, kinds and tags with counts, and one page of the notes that are left, each with an excerpt."""

from __future__ import annotations

import hashlib
import re
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain, groupby
from operator import attrgetter
from typing import Literal, NamedTuple
from urllib.parse import unquote

from pydantic import Field

from co_cli.activity.statistics import count_opened
from co_cli.entrance.local import LocalKnowledgeBase
from co_cli.ground.hits import Filters
from co_cli.ground.summaries import NoteLine
from co_cli.ground.values import moment_text
from co_cli.index.engine import ReadTransaction
from co_cli.index.indexed_notes import View, name_in
from co_cli.index.stored import StoredNote
from co_cli.index.tokens import fold
from co_cli.notes.markdown import LINK, PICTURE, beginning
from co_cli.notes.wikilinks import WIKILINK
from co_cli.searching.requests import Options, parse_filters
from co_cli.server.filter_models import filters_of, url_filters
from co_cli.server.rendering import ELSEWHERE, PICTURES
from co_cli.server.routes import route

Sort = Literal["changed", "created", "title", "opened"]
EXCERPT = 240
"""Characters of an excerpt."""
PASSAGES = 4
"""Of a note, in which an excerpt and a picture are looked for."""
MOST_TAGS = 200
SERIES = 3
"""Notes of one series that are next to each other make one row."""
NUMBERED = re.compile(
    r"\d+|\b(?:jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec|mon|tue|wed|thu|fri|sat|sun)[a-z]*\b", re.I
)
PINNED = "decay_protected"
"""The field of notes that never grow old: pinned ones."""


class Browse(url_filters("filters")):
    """Which notes to show. Filters are as in `co list`."""

    ref: Sequence[str] = ()
    """Only these notes."""
    source: Sequence[str] = ()
    folder: str = ""
    """A folder of the vault such as `articles/people`, or of a linked source, with all folders in it."""
    title: str = ""
    """Words that occur in the title, if only as parts of words."""
    sort: Sort = "changed"
    """The newest first, `title` from A to Z, or the most `opened` first."""
    offset: int = Field(0, ge=0, le=10_000_000)
    limit: int = Field(50, ge=0, le=500)
    counts: bool = True
    """Count folders, kinds and tags, too."""
    fold: bool = False
    """Show what agents wrote in series, such as sessions or the runs of a job, as one row."""
    opened: Sequence[str] = ()
    """Series whose notes are shown nevertheless, by their keys."""


class Series(NamedTuple):
    """Notes that differ in numbers and dates of their titles only, next to each other in the list."""

    key: str
    notes: int
    opened: bool


class NoteCard(NamedTuple):
    """A note as a list shows it."""

    ref: str
    source: str
    folder: str
    title: str
    excerpt: str
    """The beginning of its text, without Markdown; its description if it has one."""
    tags: tuple[str, ...]
    created: str
    changed: str
    picture: str | None
    """The first picture in it, as the note names it: `GET /files/{ref}` reads it."""
    pinned: bool
    missing: bool
    """Its file is gone."""
    outdated: str | None
    """Why it is not valid now."""
    series: Series | None = None
    """The first note of a series stands for all of it, unless it is opened."""


class Count(NamedTuple):
    name: str
    notes: int


class NotesPage(NamedTuple):
    """A part of the notes that pass the filters. The counts say how many would with another choice."""

    total: int
    rows: int
    """With each folded series as one."""
    notes: list[NoteCard]
    sources: list[Count]
    folders: list[Count]
    """Each with the notes of the folders in it, in the order of their names."""
    tags: list[Count]
    """The 200 most used ones of the notes that pass."""


class Shelf(NamedTuple):
    """The notes that pass, and what else there would be."""

    lines: list[NoteLine]
    in_sources: Counter[str]
    in_folders: Counter[str]


@route("GET", "/browse")
def browse(kb: LocalKnowledgeBase, asked: Browse) -> NotesPage:
    """Browse notes: one page of those that pass the filters, with counts of folders, kinds and tags."""
    options = Options(sources=asked.source or None, filters=filters_of(asked))
    filters = parse_filters(kb.vault.linked, options)
    with kb.engine.reading() as snapshot:
        view, names = kb.index.notes.view(snapshot, filters._replace(sources=())), _names(kb, snapshot)
        shelf = _sort_out(kb, snapshot, asked, view, filters, names)
        _sort(kb, snapshot, asked.sort, shelf.lines)
        found = _folded(snapshot, asked, shelf.lines, names)
        shown = found[asked.offset : asked.offset + asked.limit]
        cards = _cards(snapshot, view, [line for line, _ in shown], names)
        cards = [card._replace(series=series) for card, (_, series) in zip(cards, shown, strict=True)]
    if not asked.counts:
        return NotesPage(len(shelf.lines), len(found), cards, [], [], [])
    tags = Counter(chain.from_iterable([line.tags for line in shelf.lines]))
    return NotesPage(
        len(shelf.lines),
        len(found),
        cards,
        [Count(*pair) for pair in shelf.in_sources.most_common()],
        [Count(*pair) for pair in sorted(_with_parents(shelf.in_folders).items(), key=lambda pair: fold(pair[0]))],
        [Count(*pair) for pair in tags.most_common(MOST_TAGS)],
    )


def _sort_out(
    kb: LocalKnowledgeBase,
    snapshot: ReadTransaction,
    asked: Browse,
    view: View,
    filters: Filters,
    names: Mapping[int, str],
) -> Shelf:
    """Which notes pass; and how many there are of each kind and in each folder, were these two not chosen."""
    lines = snapshot.outline(view.scope)
    if asked.ref:
        wanted = {*_ids(snapshot, view, asked.ref)}
        lines = [line for line in lines if line.id in wanted]
    if words := fold(asked.title).split():
        lines = [line for line in lines if all(word in title for title in [fold(line.title)] for word in words)]
    of_sources, in_folder = lines, lines
    if filters.sources:
        wanted = {*kb.index.notes.view(snapshot, filters).scope.parts}
        of_sources = [line for line in lines if (line.origin_id, line.source) in wanted]
    if inside := asked.folder.strip("/"):
        in_folder = [line for line in lines if f"{_folder(line, names)}/".startswith(f"{inside}/")]
    both = {line.id for line in in_folder} if inside and filters.sources else None
    found = in_folder if inside else of_sources
    found = [line for line in of_sources if line.id in both] if both is not None else [*found]
    if not asked.counts:
        return Shelf(found, Counter(), Counter())
    return Shelf(
        found, Counter([line.source for line in in_folder]), Counter([_folder(line, names) for line in of_sources])
    )


def _ids(snapshot: ReadTransaction, view: View, refs: Sequence[str]) -> Iterator[int]:
    for vault in view.scope.origins:
        prefix = view.prefixes.get(vault, "")
        here = [ref.removeprefix(prefix) for ref in refs if ref.startswith(prefix)]
        yield from (note.id for note in snapshot.find_notes(vault, "ref", here))


def _folder(line: NoteLine, names: Mapping[int, str]) -> str:
    return names[line.origin_id] + line.path.rpartition("/")[0]


def _names(kb: LocalKnowledgeBase, snapshot: ReadTransaction) -> dict[int, str]:
    """What stands before the folders of each linked source; nothing before the vault's own."""
    own = kb.index.origin
    stored = ((origin, snapshot.origin(origin)) for origin in (own, *kb.index.linked))
    return {vault.id: name_in(origin, "-", own)[:-1] for origin, vault in stored if vault}


def _with_parents(folders: Mapping[str, int]) -> dict[str, int]:
    found: Counter[str] = Counter()
    for folder, notes in folders.items():
        parts = folder.rstrip("/").split("/") if folder else []
        for depth in range(1, len(parts) + 1):
            found["/".join(parts[:depth])] += notes
    return found


def _sort(kb: LocalKnowledgeBase, snapshot: ReadTransaction, sort: Sort, lines: list[NoteLine]) -> None:
    lines.sort(key=attrgetter("path"))
    if sort == "title":
        lines.sort(key=lambda line: fold(line.title))
        return
    lines.sort(key=attrgetter("created" if sort == "created" else "changed"), reverse=True)
    if sort == "opened":
        stored = ((origin, snapshot.origin(origin)) for origin in (kb.index.origin, *kb.index.linked))
        roots = {vault.id: origin.root for origin, vault in stored if vault}
        with kb.activity.written().reading() as connection:
            opens = count_opened(connection, [*roots.values()])
        lines.sort(key=lambda line: opens.get((roots[line.origin_id], line.path), 0), reverse=True)


def _folded(
    snapshot: ReadTransaction, asked: Browse, lines: Sequence[NoteLine], names: Mapping[int, str]
) -> list[tuple[NoteLine, Series | None]]:
    """The lines; if asked, the first of each series that an agent wrote stands for the others."""
    if not asked.fold:
        return [(line, None) for line in lines]
    runs = [(key, [*run]) for key, run in groupby(lines, lambda line: _series_key(line, names))]
    first = [run[0].id for key, run in runs if key and len(run) >= SERIES and run[0].source != "conversation"]
    by_agents = {note.id for note in snapshot.find_notes(None, "id", first) if _by_agent(note)} if first else set[int]()
    found: list[tuple[NoteLine, Series | None]] = []
    for key, run in runs:
        if not key or len(run) < SERIES or (run[0].source != "conversation" and run[0].id not in by_agents):
            found += [(line, None) for line in run]
            continue
        head = (run[0], Series(key, len(run), key in asked.opened))
        found += [head, *((line, None) for line in run[1:])] if key in asked.opened else [head]
    return found


def _series_key(line: NoteLine, names: Mapping[int, str]) -> str:
    """Empty for a note that cannot be in a series: its title has neither a number nor a date."""
    pattern = "" if line.source == "conversation" else NUMBERED.sub("#", line.title)
    if line.source != "conversation" and "#" not in pattern:
        return ""
    folder = f"{_folder(line, names)}/{pattern}"
    return f"{line.source}-{hashlib.blake2b(folder.encode(), digest_size=6).hexdigest()}"


def _by_agent(note: StoredNote) -> bool:
    return note.frontmatter.get("provenance") == "agent"


def _cards(
    snapshot: ReadTransaction, view: View, lines: Sequence[NoteLine], names: Mapping[int, str]
) -> list[NoteCard]:
    if not lines:
        return []
    ids, now = [line.id for line in lines], time.time()
    notes = {note.id: note for note in snapshot.find_notes(None, "id", ids)}
    texts, validities = snapshot.beginnings(ids, PASSAGES), snapshot.validities(ids, now)
    return [
        _card(view, notes[line.id], line, _folder(line, names), texts.get(line.id, []))._replace(
            outdated=validities[line.id].problem(now) if line.id in validities else None
        )
        for line in lines
    ]


def _card(view: View, note: StoredNote, line: NoteLine, folder: str, texts: Sequence[str]) -> NoteCard:
    body = "\n\n".join(texts)
    return NoteCard(
        ref=view.prefixes.get(note.origin_id, "") + note.ref,
        source=note.source,
        folder=folder.rstrip("/"),
        title=note.title,
        excerpt=note.description or beginning(body, EXCERPT),
        tags=note.tags,
        created=moment_text(note.created),
        changed=moment_text(line.changed),
        picture=_first_picture(body),
        pinned=note.frontmatter.get(PINNED) is True,
        missing=note.missing is not None or note.origin_id in view.away,
        outdated=None,
    )


def _first_picture(body: str) -> str | None:
    """The name of the first picture that is a file, as the note writes it."""
    for found in re.finditer(PICTURE, body):
        wiki, link = WIKILINK.search(found[0]), re.search(LINK, found[0])
        name = wiki[1].strip() if wiki else unquote(link[1]) if link else ""
        if name.lower().endswith(tuple(PICTURES)) and not ELSEWHERE.match(name):
            return name
    return None
