"""Sources, and small conversions that all layers share: text, moments and JSON."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from datetime import datetime, timedelta
from typing import Any, Literal, cast

Source = Literal["memory", "article", "conversation", "entity", "resource", "folder", "obsidian", "skill", "checkpoint"]
OwnSource = Literal["memory", "article", "conversation", "entity", "resource"]
OWN_SOURCES: tuple[OwnSource, ...] = ("memory", "article", "conversation", "entity", "resource")
"""The kinds of notes in a vault."""
SOURCES: tuple[Source, ...] = (*OWN_SOURCES, "folder", "obsidian", "skill")
"""And what is read in place, next to the vault."""
EPOCH = datetime(1970, 1, 1)
DAY = 86_400.0
"""Seconds."""
_HIDDEN = (
    "\x00-\x08\x0b-\x1f\x7f-\x9f\xad\u034f\u061c\u115f\u1160\u180b-\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u2069"
    "\u3164\ufeff\uffa0\ufff9-\ufffb\U0001d173-\U0001d17a\U000e0000-\U000e00ff\U000e01f0-\U000e0fff"
)
_SELECTORS, _JOINERS = "\ufe00-\ufe0f\U000e0100-\U000e01ef", "\u200c\u200d"
INVISIBLE_SIGNS = _HIDDEN + _SELECTORS + _JOINERS
"""What INVISIBLE begins with, for a character class: one is found faster than the whole pattern is tried everywhere."""
INVISIBLE = (
    f"[{_HIDDEN}]"
    f'|(?<=[\\x00-"$-)+-/:-\\x7f{_HIDDEN}{_JOINERS}{_SELECTORS}])[{_SELECTORS}]+'
    f"|(?<=[\\x00-\\x7f{_HIDDEN}{_JOINERS}])[{_JOINERS}]+|[{_JOINERS}]+(?=[\\x00-\\x7f{_HIDDEN}])"
)
"""Matches control characters, direction marks, zero-width spaces, fillers and tag characters: a person cannot see them,
but a terminal obeys them, a model reads them, and they hide a secret. Variation selectors and joiners match only where
they hide something: after a letter, next to ASCII, or in a row. Emoji and some scripts need the others."""


def kind_named(said: str) -> str:
    """A kind as callers may say it: `note` is a memory."""
    return "memory" if said == "note" else said


def fields_of(value: Any) -> dict[str, Any]:
    """The fields of a dataclass with their values, which are not copied."""
    return {field.name: getattr(value, field.name) for field in fields(value)}


def plain(value: Any) -> Any:
    """A value as JSON has it: dataclasses and NamedTuples are objects."""
    if hasattr(value, "_asdict"):
        value = value._asdict()
    elif is_dataclass(value):
        value = fields_of(value)
    if isinstance(value, Mapping):
        return {key: plain(member) for key, member in value.items()}  # pyright: ignore[reportUnknownVariableType]
    if isinstance(value, (list, tuple)):
        return [plain(member) for member in value]  # pyright: ignore[reportUnknownVariableType]
    return value


def members_of(value: object) -> list[object]:
    """The members of a list; anything else is a list of one."""
    return cast("list[object]", value) if isinstance(value, list) else [value]


def moment_text(seconds: float) -> str:
    """A moment as text, such as `2026-03-01T09:30:00Z`."""
    return f"{(EPOCH + timedelta(seconds=seconds // 1)).isoformat()}Z"  # on Windows time.gmtime knows nothing before it


def about(seconds: float) -> str:
    """How long something takes, such as `about 3 min`."""
    if seconds < 90:
        return f"about {max(1.0, seconds):.0f} s"
    return f"about {seconds / 60:.0f} min" if seconds < 5_400 else f"about {seconds / 3_600:,.0f} h"


def to_utf8(text: str) -> str:
    """Text that a file and SQLite can hold. Lone surrogates become the UTF-8 character they came from, or `?`."""
    if text.isascii():
        return text
    try:
        return text.encode("utf-8", "surrogateescape").decode("utf-8", "replace")
    except UnicodeEncodeError:
        return text.encode("utf-8", "replace").decode()


def content_hash(data: bytes) -> str:
    import hashlib  # loads OpenSSL, which takes 4 ms

    return hashlib.blake2b(data, digest_size=16).hexdigest()
