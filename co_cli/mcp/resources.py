"""Notes as resources: refs into addresses and back, listings in pages, names to complete. Knows nothing of MCP.

`memory:slug` is `co://memory/slug`, `article:guides/deploy` is `co://article/guides/deploy`, and a note that lies
outside both folders, `article:/inbox/x`, is `co://article//inbox/x`. What a URI cannot hold is percent-encoded.
"""

from __future__ import annotations

import base64
import binascii
import json
from typing import NamedTuple
from urllib.parse import quote, unquote

from co_cli.errors import InvalidInputError, UnknownRefError
from co_cli.knowledge_base import KnowledgeBase
from co_cli.notes.excerpt import excerpt
from co_cli.notes.moments import read_moment
from co_cli.notes.note import Note, decode
from co_cli.notes.refs import lines_of
from co_cli.service.freshness import Freshener
from co_cli.tools.fencing import one_line
from co_cli.values import OWN_SOURCES, NoteSummary

SCHEME = "co://"
PAGE = 100
PATIENCE = 2.0
"""Seconds that a listing waits for changed files to be indexed."""
MOST_VALUES = 100
"""Of a completion; the protocol allows no more."""
RECENT = 500
"""Notes whose tags and titles are offered as topics."""


class Page(NamedTuple):
    """A part of the listing, and the cursor that opens the next one."""

    notes: list[NoteSummary]
    cursor: str | None


class Opened(NamedTuple):
    """A note that was asked for by its address, and the text of its file."""

    uri: str
    note: Note
    text: str


def uri_of(ref: str) -> str:
    source, _, name = ref.partition(":")
    return f"{SCHEME}{source}/{quote(name, safe='/')}"


def ref_of(uri: str) -> str | None:
    """The ref that an address stands for, or None if it is none of ours."""
    bare, mark, lines = uri.strip().partition("#")
    source, _, name = bare.removeprefix(SCHEME).partition("/")
    if not bare.startswith(SCHEME) or source not in OWN_SOURCES or not name:
        return None
    return f"{source}:{unquote(name)}{mark}{lines}"


def open_resource(kb: KnowledgeBase, freshener: Freshener, uri: str) -> Opened:
    """The file behind an address as text; only its lines if the address ends in `#L10-24`."""
    ref = ref_of(uri)
    if ref is None:
        raise UnknownRefError(uri, [])
    try:
        note = kb.note(ref)
    except UnknownRefError:
        freshener.ensure(PATIENCE)  # it may be new, and else the closest ones are suggested
        note = kb.note(ref)
    if lines_of(ref):
        return Opened(uri, note, "\n".join(excerpt(ref, note)))
    return Opened(uri, note, decode(kb.store.read(note.path))[0])


def list_page(kb: KnowledgeBase, freshener: Freshener, cursor: str | None, size: int = PAGE) -> Page:
    """Notes, newest first. A note that is saved meanwhile moves no page: each one goes on behind the last one's end."""
    freshener.ensure(PATIENCE)
    if not cursor:
        return _page(kb.notes(limit=size + 1), size)
    created, ref = _read_cursor(cursor)
    moment, limit = read_moment(created), 2 * size + 1
    if moment is None:
        raise _odd_cursor(cursor)
    while True:
        notes = kb.notes(until=moment + 1, limit=limit)  # a moment is told to the second, so look one further
        rest = _behind(notes, created, ref, all_seen=len(notes) < limit)
        if rest is not None and (len(rest) > size or len(notes) < limit):
            return _page(rest, size)
        limit *= 4  # a whole import may share one moment


def _behind(notes: list[NoteSummary], created: str, ref: str, all_seen: bool) -> list[NoteSummary] | None:
    """What follows a note; if it was forgotten meanwhile, everything from its moment on. None: look further."""
    for place, note in enumerate(notes):
        if note.ref == ref:
            return notes[place + 1 :]
    if all_seen or notes[-1].created < created:
        return [note for note in notes if note.created <= created]
    return None


def _page(notes: list[NoteSummary], size: int) -> Page:
    shown = notes[:size]
    return Page(shown, _cursor(shown[-1]) if len(notes) > size else None)


def _cursor(note: NoteSummary) -> str:
    return base64.urlsafe_b64encode(json.dumps([note.created, note.ref]).encode()).decode()


def _read_cursor(cursor: str) -> tuple[str, str]:
    try:
        created, ref = json.loads(base64.urlsafe_b64decode(cursor.encode()))
    except (ValueError, TypeError, binascii.Error):
        raise _odd_cursor(cursor) from None
    return str(created), str(ref)


def _odd_cursor(cursor: str) -> InvalidInputError:
    return InvalidInputError(f"the cursor {cursor[:40]!r} is none of ours: begin again without one")


def describe(note: NoteSummary) -> str:
    """One line about a note, for a list to choose from."""
    tags = " ".join(f"#{tag}" for tag in note.tags)
    parts = (note.description, note.category or "", tags, note.created[:10])
    return " · ".join(part for part in parts if part)


# -- what a person is typing -------------------------------------------------------------------------------------------


def complete_name(kb: KnowledgeBase, source: str, typed: str) -> list[str]:
    """Names of notes for the last part of an address; not those that hide something, or pose as something else."""
    names = [ref.partition(":")[2] for ref in kb.index.titles() if ref.startswith(f"{source}:")]
    return _matching(sorted(name for name in names if one_line(name) == name), typed)


def complete_topic(kb: KnowledgeBase, typed: str) -> list[str]:
    """Tags and titles of the newest notes."""
    notes = kb.notes(limit=RECENT)
    tags = sorted({one_line(tag) for note in notes for tag in note.tags})
    return _matching([*tags, *(one_line(note.title) for note in notes)], typed)


def _matching(values: list[str], typed: str) -> list[str]:
    """Those that begin with what was typed, then those that contain it; each once."""
    wanted = typed.strip().casefold()
    begins = [value for value in values if value.casefold().startswith(wanted)]
    contains = [value for value in values if wanted in value.casefold()]
    return [value for value in dict.fromkeys((*begins, *contains)) if value]
