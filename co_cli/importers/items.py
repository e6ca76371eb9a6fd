"""The values between those who read exports and the importer: items, receipts, and tolerant access to JSON values.

Whoever reads an export turns it into these and knows nothing about the vault; the importer knows nothing about formats.
"""

from __future__ import annotations

import math
from typing import Literal, NamedTuple, cast

from co_cli.ground.values import OwnSource, moment_text, to_utf8
from co_cli.notes.dates import read_moment
from co_cli.notes.similarity import body_hash

ImportOutcome = Literal["created", "updated", "unchanged", "skipped", "forgotten", "failed"]
DATES = {
    "created": ("created_at", "create_time", "created", "created_timestamp", "timestamp"),
    "updated": ("updated_at", "update_time", "updated", "modified"),
}
MILLISECONDS = 1e11  # a larger number is milliseconds: as seconds it would be after the year 5138
YEAR_10000 = 253_402_300_800


class Item(NamedTuple):
    """A note to make: a conversation, a memory or a document, or with a `path` a copy of a Markdown file."""

    place: str
    """Where it is in the export, for people: `conversations.json, item 3`."""
    id: str  # identifies the same thing in the next export
    noun: str
    text: str
    """Of a file everything, with bytes that are not UTF-8 as surrogates."""
    title: str = ""  # by default the first sentence
    source: OwnSource = "article"
    folder: str = ""  # below `articles/` or `memories/`
    tags: tuple[str, ...] = ()
    category: str | None = None
    fields: dict[str, object] = {}  # noqa: RUF012 - never written to
    path: str = ""
    """Of a copy, its path in the vault: names, because links use them, and text stay as they are."""
    modified: float | None = None


class ImportReceipt(NamedTuple):
    """What happened, or would happen, to one thing."""

    origin: str
    noun: str
    outcome: ImportOutcome
    title: str = ""
    ref: str | None = None
    path: str | None = None
    detail: str = ""
    masked: int = 0  # secrets that are masked in the note
    disowned: bool = False
    """The file claims what only the person may say, such as that it is their own words, and is not trusted."""


Entry = Item | ImportReceipt  # a receipt for what is left out on purpose or cannot read


def skipped(place: str, noun: str, title: str, why: str) -> ImportReceipt:
    return ImportReceipt(place, noun, "skipped", title, detail=why)


def failed(place: str, problem: str) -> ImportReceipt:
    return ImportReceipt(to_utf8(place), "file", "failed", detail=problem)


def as_object(value: object) -> dict[str, object]:
    """A JSON object; anything else becomes an empty one."""
    return cast("dict[str, object]", value) if isinstance(value, dict) else {}


def as_list(value: object) -> list[object]:
    return cast("list[object]", value) if isinstance(value, list) else []


def as_text(value: object) -> str:
    """A text that a file can hold: no lone surrogates, no NUL."""
    return to_utf8(value).replace("\0", "") if isinstance(value, str) else ""


def first_text(value: dict[str, object], *keys: str) -> str:
    """The first of these members that is a text and not blank, without the white space around it."""
    return next(filter(None, (as_text(value.get(key)).strip() for key in keys)), "")


def id_of(value: dict[str, object], text: str) -> str:
    """The id that the service gave it, else one made from its text."""
    return first_text(value, "conversation_id", "uuid", "id") or f"text:{body_hash(text)}"


def dates_of(value: dict[str, object]) -> dict[str, object]:
    """The fields `created` and `updated`; None if unknown."""
    return {
        field: next(filter(None, (moment_of(value.get(key)) for key in keys)), None) for field, keys in DATES.items()
    }


def moment_of(value: object) -> str | None:
    """A date from an export: seconds or milliseconds since 1970, or ISO text. None for anything else, and for 0."""
    seconds = read_moment(as_text(value)) if isinstance(value, str) and value.strip() else None
    if isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value):
        seconds = value / 1000 if value >= MILLISECONDS else value
    return moment_text(seconds) if seconds is not None and 0 < seconds < YEAR_10000 else None
