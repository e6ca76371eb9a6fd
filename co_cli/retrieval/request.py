"""What is asked for, and the ways to read what was typed: as narrowly as it may be meant, then more widely."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from co_cli.hits import Filters
from co_cli.index.names import fold_name
from co_cli.notes.dates import asks_only_for_period, describe, find_period
from co_cli.retrieval.profiles import DEFAULT, Profile
from co_cli.retrieval.query import Query, parse
from co_cli.retrieval.rerank import READ_SECONDS, Reranker

if TYPE_CHECKING:
    from co_cli.embedding.reader import CrossEncoder


@dataclass(frozen=True, slots=True)
class SearchRequest:
    """Everything that one search needs to know."""

    query: str
    limit: int = 10
    filters: Filters = field(default_factory=Filters)
    profile: Profile = DEFAULT
    weights: Mapping[str, float] = field(default_factory=lambda: dict(DEFAULT.weights))
    """The weights that count, from the profile, the settings and the caller."""
    half_life: float = 365.0
    words: bool = True
    meaning: bool = True
    """Each side can be switched off."""
    min_score: float | None = None
    prefix: bool = False
    reader: CrossEncoder | None = None
    read_seconds: float | None = READ_SECONDS
    """What reading may take; None: as long as it takes."""
    reranker: Reranker | None = None
    """Any other model, instead of the reader."""
    backend: str = "hybrid"

    @property
    def wants_meaning(self) -> bool:
        return self.backend == "hybrid" and self.meaning and self.weights.get("meaning", 0.0) > 0


@dataclass(frozen=True, slots=True)
class Attempt:
    """One way to read what was typed."""

    query: Query
    filters: Filters
    understood: tuple[str, ...] = ()
    listing: bool = False
    """Nothing but filters is asked for: list what passes them."""
    day: str = ""
    """The day that is asked for: its daily note is listed first."""


def attempts(request: SearchRequest) -> Iterator[Attempt]:
    """The narrowest reading first; the others are for when that finds nothing."""
    query, filters, understood = parse(request.query, request.prefix), request.filters, list[str]()
    period = None
    if filters.since is None and filters.until is None:
        period, rest = find_period(request.query, time.time() if filters.as_of is None else filters.as_of)
        if period is not None:
            filters = filters._replace(since=period.since, until=period.until and period.until - 0.001)
            query = parse(rest, request.prefix)
            understood.append(f"{describe(period)}: only notes of that time were searched")
    narrowed = query.narrow(filters)
    if narrowed != filters:
        understood.append(f"only notes with {_operators(query)} were searched")
    only_narrows = not query.text.strip() or (query.words.empty and narrowed != request.filters)
    listing = only_narrows or (period is not None and asks_only_for_period(query.text))
    day = fold_name(period.day) if period else ""
    yield Attempt(query, narrowed, tuple(understood), listing and narrowed != Filters(), day)
    if query.quotes_in_passing:
        plain = parse(query.text.replace('"', " "), request.prefix)
        yield Attempt(plain, narrowed, (*understood, "no note has the quoted words as they are"))
    if narrowed != filters:
        wide = parse(f"{query.text} {' '.join((*query.tags, *query.paths, *query.files))}", request.prefix)
        yield Attempt(wide, request.filters, (f"nothing was found with {_operators(query)}: all notes were searched",))
    elif period is not None:
        query = parse(request.query, request.prefix)
        yield Attempt(query, request.filters, (f"{describe(period)}: nothing was found, all notes were searched",))


def _operators(query: Query) -> str:
    named = (("tag", query.tags), ("path", query.paths), ("file", query.files))
    return " and ".join(f"{operator}:{value}" for operator, values in named for value in values)
