"""What an export holds, as plain values: things to write, things to tell, and the little that JSON must be asked.

A reader yields these and knows nothing of the vault; the writer knows nothing of the format.
"""

from __future__ import annotations

import hashlib
import math
from typing import NamedTuple, cast

from co_cli.notes.moments import moment_text, read_moment
from co_cli.typed import whole
from co_cli.values import OwnSource

MILLISECONDS = 1e11
"""Seconds beyond the year 5138 are milliseconds of our time."""
LAST_MOMENT = 253_402_300_799.0


class Text(NamedTuple):
    """A note to be made from a text: a conversation, a memory, a document."""

    place: str
    """Where in the export it stands, for people: `conversations.json, item 3`."""
    id: str
    """What makes it the same thing in the next export."""
    noun: str
    title: str
    text: str
    source: OwnSource = "article"
    folder: str = ""
    """Below `articles/` or `memories/`."""
    created: str | None = None
    updated: str | None = None
    tags: tuple[str, ...] = ()
    category: str | None = None
    fields: dict[str, object] = {}  # noqa: RUF012 - nobody writes to it


class Copy(NamedTuple):
    """A Markdown file to be copied, its name and its body as they are."""

    place: str
    id: str
    path: str
    """Inside the vault."""
    data: bytes
    modified: float | None = None
    noun: str = "note"


class Own(NamedTuple):
    """A note of an export of ours: its path is what it is."""

    place: str
    path: str
    data: bytes
    modified: float | None = None
    noun: str = "note"


class Left(NamedTuple):
    """One thing that is left out on purpose, and why."""

    place: str
    noun: str
    title: str
    why: str


class Trouble(NamedTuple):
    """What could not be read."""

    place: str
    problem: str


class Remark(NamedTuple):
    """What a person should know about the export as a whole."""

    text: str


Entry = Text | Copy | Own | Left | Trouble | Remark


def as_object(value: object) -> dict[str, object]:
    """A JSON object; anything else has no members."""
    return cast("dict[str, object]", value) if isinstance(value, dict) else {}


def as_list(value: object) -> list[object]:
    return cast("list[object]", value) if isinstance(value, list) else []


def as_text(value: object) -> str:
    """A text that a file can hold: no lone surrogates, no NUL."""
    return whole(value).replace("\0", "") if isinstance(value, str) else ""


def first_text(value: dict[str, object], *keys: str) -> str:
    """The first of these members that is a text and says something."""
    return next((text for text in (as_text(value.get(key)) for key in keys) if text.strip()), "")


def moment_of(value: object) -> str | None:
    """Dates of exports: seconds or milliseconds since 1970, ISO texts, or nothing. What is no date is nothing."""
    if isinstance(value, bool):
        return None
    if isinstance(value, int | float):
        if not math.isfinite(value):
            return None
        seconds: float | None = value / 1000 if abs(value) >= MILLISECONDS else value
    else:
        seconds = read_moment(as_text(value)) if isinstance(value, str) and value.strip() else None
    if seconds is None or not 0 < seconds < LAST_MOMENT:  # 0 stands for "not known"
        return None
    return moment_text(seconds)


def first_moment(value: dict[str, object], *keys: str) -> str | None:
    return next((moment for moment in (moment_of(value.get(key)) for key in keys) if moment), None)


def text_hash(text: str) -> str:
    """Of a text as it stands in a note, whatever its line ends."""
    return bytes_hash(text.replace("\r\n", "\n").strip().encode("utf-8", "replace"))


def bytes_hash(data: bytes) -> str:
    return hashlib.blake2b(data, digest_size=8).hexdigest()


def called(value: object) -> str:
    """What kind of JSON value this is, in words."""
    match value:
        case None:
            return "null"
        case bool():
            return "a truth value"
        case int() | float():
            return "a number"
        case str():
            return "a text"
        case list():
            return "a list"
        case _:
            return "an object"
