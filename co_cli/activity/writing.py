"""Events into rows of activity.db, a batch a transaction, which the caller holds."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from functools import partial
from typing import NamedTuple

import apsw

from co_cli.activity.events import Cited, Opened, Searched
from co_cli.activity.feedback import conclude
from co_cli.activity.query_log import count_opens, count_recalls, log_searches
from co_cli.activity.versions import Head, Upserted, put_everything, put_heads
from co_cli.values import to_utf8


class Indexed(NamedTuple):
    """What a sync or a save did to the index."""

    root: str
    at: float
    heads: Sequence[Head]
    moved: Sequence[tuple[str, str]] = ()
    removed: Sequence[str] = ()
    saved: bool = False
    """We wrote these notes ourselves."""
    everything: Callable[[], Sequence[Head]] | None = None
    """Every head of the vault, for the first time that we hear of it."""


Event = Searched | Opened | Cited | Indexed


def write_events(connection: apsw.Connection, events: Sequence[Event]) -> list[Upserted]:
    """What became of the documents that were told of."""
    searches = [storable(event) for event in events if isinstance(event, Searched)]
    log_searches(connection, searches)
    count_recalls(connection, searches)
    opened = [(to_utf8(e.root), to_utf8(e.path), e.at) for e in events if isinstance(e, Opened)]
    count_opens(connection, opened)
    conclude(connection, opened, "opened")
    conclude(connection, [(to_utf8(e.root), to_utf8(e.path), e.at) for e in events if isinstance(e, Cited)], "cited")
    told: list[Upserted] = []
    for event in events:
        if isinstance(event, Indexed):
            told += put_heads(
                connection,
                event.root,
                event.heads,
                event.at,
                moved=event.moved,
                removed=event.removed,
                saved=event.saved,
                there=partial(still_there, event.root),
            )
    for event in events:  # last: what these events tell of is told better by them
        if isinstance(event, Indexed) and event.everything is not None:
            put_everything(connection, event.root, event.everything, event.at)
    return told


def still_there(root: str, path: str) -> bool:
    return os.path.lexists(os.path.join(root, path))


def storable(search: Searched) -> Searched:
    """Without lone surrogates, which SQLite cannot hold."""
    return search._replace(
        root=to_utf8(search.root),
        text=None if search.text is None else to_utf8(search.text),
        degraded=None if search.degraded is None else to_utf8(search.degraded),
        results=tuple((to_utf8(ref), score) for ref, score in search.results),
        recalled=tuple((to_utf8(root), to_utf8(path)) for root, path in search.recalled),
    )
