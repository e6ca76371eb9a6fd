"""What happened, as values, and the spool: a small file to which searches and opened notes are appended.

A search must not pay for a second database; appending a line costs a thousandth of one. Whoever writes to activity.db
next reads the lines into it. This module is imported by every search, so it imports nearly nothing.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Sequence
from typing import Any, NamedTuple, cast

from co_cli.ground.hits import SearchResult, worth_showing
from co_cli.ground.values import OWN_SOURCES, to_utf8
from co_cli.notes.files import make_folders, open_private
from co_cli.notes.secret_rules import NAME_KEYWORDS
from co_cli.notes.secrets import redact

SPOOL = "activity.spool"
FULL = 1 << 18
"""Bytes at which the process that appends writes the spool to activity.db: about 700 searches."""
MOST = 1 << 22
"""Bytes at which nothing more is appended: activity.db has been unavailable for a long time."""
LONGEST_TEXT = 1_000
"""Characters of a query that the log keeps."""
LONG_WORD, SHORT_WORD, MANY_DIGITS = 14, 8, 12
"""A text with a long word, a short one that is not only letters, or many digits may hold a key or a card number."""
RESULTS = 5
"""Refs and scores that the log keeps of each answer."""
REFS = re.compile(rf"(?<![\w:])(?:(?:user|project|team):)?(?:{'|'.join(OWN_SOURCES)}):[^\s\]\[()<>{{}},;\"'`|*]+")
MOST_CITED = 20


class SearchEvent(NamedTuple):
    """One search. Without a `state` it is not logged, and only its recalls are counted."""

    root: str
    at: float
    front_end: str
    text: str | None
    backend: str
    state: str
    hits: int
    took_ms: float
    degraded: str | None
    results: tuple[tuple[str, float], ...]
    recalled: tuple[tuple[str, str], ...]
    """The documents in the answer, each as the folder of its vault or source and its path there."""


class Opened(NamedTuple):
    """A document that somebody opened."""

    root: str
    at: float
    path: str


class Cited(NamedTuple):
    """Notes that an agent's answer names."""

    root: str
    at: float
    refs: tuple[str, ...]


class AgentTurn(NamedTuple):
    """A turn of an agent: its prompt and the notes that were added to it, or those that its answer cites."""

    root: str
    at: float
    front_end: str
    conversation: str | None
    run: str | None
    notes: int = 0
    tokens: int = 0
    injected: tuple[tuple[str, str, int], ...] | None = None
    """The ref, the reason and the tokens of each note; None if the log leaves texts out."""
    cited: tuple[str, ...] = ()
    prompt: str | None = None
    given: str | None = None
    """What the person asked, and exactly what was added to it; None if the log leaves texts out."""
    late: float | None = None
    """After how many seconds nobody waited any longer for notes; None if they came in time."""


class Head(NamedTuple):
    """A document as the index has it now."""

    path: str
    hash: str
    title: str
    size: int | None = None


class Indexed(NamedTuple):
    """What a sync or a save did to the index."""

    root: str
    at: float
    heads: Sequence[Head]
    moved: Sequence[tuple[str, str]] = ()
    removed: Sequence[str] = ()
    saved_by: str | None = None
    """The front end that wrote these notes; None if their files were changed by somebody else."""


Spooled = SearchEvent | Opened | Cited | AgentTurn
Event = Spooled | Indexed
SPOOLED: dict[str, type[Spooled]] = {"s": SearchEvent, "o": Opened, "c": Cited, "t": AgentTurn}
"""How a line of the spool begins."""


def search_event(
    found: SearchResult, roots: Sequence[str], skills: Sequence[str], query_log: str, count_use: bool
) -> SearchEvent | None:
    """An answer as an event, with as much as the settings allow; None if they allow nothing.

    `roots` are the folders of the vault and of its sources, `skills` those with skills, which may be inside of them.
    The recorder fills in the time and the front end.
    """
    shown = worth_showing(found)
    places = (place_of(hit.path, skills if hit.source == "skill" else roots) for hit in shown)
    recalled = tuple(places) if count_use else ()
    if query_log == "off":
        return SearchEvent(roots[0], 0.0, "", None, "", "", 0, 0.0, None, (), recalled) if recalled else None
    with_text = query_log == "on"
    return SearchEvent(
        root=roots[0],
        at=0.0,
        front_end="",
        text=to_utf8(masked(found.query))[:LONGEST_TEXT] if with_text else None,
        backend=found.backend,
        state=found.state,
        hits=len(found.hits),
        took_ms=found.took_ms,
        degraded=(to_utf8("; ".join(found.degraded)) if with_text else "something") if found.degraded else None,
        results=tuple((to_utf8(hit.ref), hit.score) for hit in shown[:RESULTS]) if with_text else (),
        recalled=recalled,
    )


def masked(text: str) -> str:
    """A query or a title with secrets masked: people search for a key by pasting it. Only suspicious ones cost time."""
    if not (
        any(len(word) >= LONG_WORD or (len(word) >= SHORT_WORD and not word.isalpha()) for word in text.split())
        or sum(letter.isdigit() for letter in text) >= MANY_DIGITS
        or any(word in text.lower() for word in (*NAME_KEYWORDS, "seed", "mnemonic", "phrase", "otp", "2fa", "wallet"))
    ):
        return text
    return redact(text)


def place_of(file: str, roots: Sequence[str]) -> tuple[str, str]:
    """The folder that a file is in and its path there: what a document is identified by."""
    for root in roots:
        if file.startswith(root) and file[len(root) : len(root) + 1] in ("/", os.sep):
            return to_utf8(root), to_utf8(file[len(root) + 1 :].replace(os.sep, "/"))
    return "", to_utf8(file.replace(os.sep, "/"))


def find_refs(text: str) -> tuple[str, ...]:
    """The notes that a text names."""
    return tuple(dict.fromkeys(found.rstrip(".:!?") for found in REFS.findall(text)))[:MOST_CITED]


def append(data_dir: str, event: Spooled) -> int:
    """Add an event to the spool and return its size. Raises OSError."""
    kind = next(kind for kind, made in SPOOLED.items() if isinstance(event, made))
    make_folders(data_dir, private=True)
    handle = open_private(os.path.join(data_dir, SPOOL), os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    try:
        size = os.fstat(handle).st_size
        if size > MOST:
            raise OSError("the spool is full")
        data = f"{json.dumps((kind, *event))}\n".encode()
        os.write(handle, data)  # one write, so that lines of two processes do not mix
        return size + len(data)
    finally:
        os.close(handle)


def read_spool(data_dir: str) -> list[Spooled]:
    """The events that activity.db does not have yet. Nothing is written or locked."""
    try:
        with open(os.path.join(data_dir, SPOOL), "rb") as stream:
            return read_lines(stream.read())
    except OSError:
        return []


def read_lines(data: bytes) -> list[Spooled]:
    """The events of a spool, without lines that a full disk has cut off or another version has written."""
    return [event for line in data.split(b"\n") if line and (event := _read_line(line)) is not None]


def _read_line(line: bytes) -> Spooled | None:
    try:
        kind, *values = json.loads(line)
        return SPOOLED[kind](*map(_frozen, values))
    except (ValueError, TypeError, LookupError, RecursionError):
        return None


def _frozen(value: object) -> Any:
    """Lists as tuples, as events have them."""
    return tuple(map(_frozen, cast("list[object]", value))) if isinstance(value, list) else value
