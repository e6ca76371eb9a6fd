"""What happens at the doors, as values; and the spool, a small file to which a process that ends at once appends them.

A cold search must not pay for a second database: one write to a file costs a thousandth of it. Whoever next has
activity.db open folds the lines in (folding.py). They are Python literals, for the sake of a process that does not
import json; and all of this is one file because every import is a part of such a search.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Sequence

    from co_cli.values import Hit, SearchResult

SPOOL = "activity.spool"
FULL = 1 << 18
"""Bytes after which whoever appends folds it in: some 700 searches."""
MOST = 1 << 22
"""Bytes after which nothing is appended: activity.db was not to be had for a long time."""
LONGEST_TEXT = 1_000
"""Characters of a query that the log keeps."""
LONG_WORD, MANY_DIGITS = 14, 12
"""Of a query that may hold a key or a card number."""
RESULTS = 5
"""Refs and scores that the log keeps of each answer."""


class Searched(NamedTuple):
    """One search. Without a `state` it is not for the log; it counts for what it recalled all the same."""

    root: str
    at: float
    door: str
    text: str | None
    backend: str
    state: str
    hits: int
    took_ms: float
    degraded: str | None
    results: tuple[tuple[str, float], ...]
    recalled: tuple[tuple[str, str], ...]
    """The documents in it, each by the folder of its vault or origin and its path there."""


class Opened(NamedTuple):
    """A document that somebody opened."""

    root: str
    at: float
    path: str


class Cited(NamedTuple):
    """A document that an agent named in its answer."""

    root: str
    at: float
    path: str


def searched(
    found: SearchResult, shown: Sequence[Hit], roots: Sequence[str], at: float, door: str, query_log: str, use: bool
) -> Searched | None:
    """An answer as an event, with as much as the settings allow; None if they allow nothing.

    `roots` are the folder of the vault and those of the origins beside it.
    """
    recalled = tuple(place_of(hit.path, roots) for hit in shown) if use else ()
    if query_log == "off":
        return Searched(roots[0], at, door, None, "", "", 0, 0.0, None, (), recalled) if recalled else None
    words = query_log == "on"
    text = _without_secrets(found.query) if words else None
    return Searched(
        root=roots[0],
        at=at,
        door=door,
        text=text[:LONGEST_TEXT] if text is not None else None,
        backend=found.backend,
        state=found.state,
        hits=len(found.hits),
        took_ms=found.took_ms,
        degraded=("; ".join(found.degraded) if words else "something") if found.degraded else None,
        results=tuple((hit.ref, hit.score) for hit in shown[:RESULTS]) if words else (),
        recalled=recalled,
    )


def _without_secrets(query: str) -> str:
    """Somebody may look for a key by pasting it. Few queries are worth a closer look, which takes an import."""
    if not (
        any(len(word) >= LONG_WORD for word in query.split())
        or sum(letter.isdigit() for letter in query) >= MANY_DIGITS
        or any(word in query.lower() for word in ("pass", "pwd", "secret", "key", "token"))
    ):
        return query
    from co_cli.notes.secrets import redact

    return redact(query)


def place_of(file: str, roots: Sequence[str]) -> tuple[str, str]:
    """Which folder a file is of, and its path in there: what a document is known by. The vault comes first."""
    for root in roots:
        if file.startswith(root) and file[len(root) : len(root) + 1] in ("/", os.sep):
            return root, file[len(root) + 1 :].replace(os.sep, "/")
    return "", file.replace(os.sep, "/")


def append(data_dir: str, events: Sequence[Searched | Opened]) -> int:
    """Write these down for later. Returns how large the spool is then; raises OSError."""
    lines = "".join(f"{('s' if isinstance(event, Searched) else 'o', *event)!r}\n" for event in events)
    path = os.path.join(data_dir, SPOOL)
    try:
        handle = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    except FileNotFoundError:
        os.makedirs(data_dir, exist_ok=True)
        handle = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    try:
        size = os.fstat(handle).st_size
        if size > MOST:
            raise OSError("the spool is full")
        data = lines.encode("utf-8", "backslashreplace")
        os.write(handle, data)  # at once, so that the lines of two processes do not mix
        return size + len(data)
    finally:
        os.close(handle)
