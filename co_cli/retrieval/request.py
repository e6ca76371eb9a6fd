"""What is asked for, and the ways to read what was typed: as narrowly as it may be meant, then more widely."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from co_cli.ground.deadline import QueryDeadline, make_deadline
from co_cli.ground.hits import Filters
from co_cli.index.names import fold_name
from co_cli.notes.dates import asks_only_for_period, describe, find_period
from co_cli.retrieval.profiles import DEFAULT, Profile
from co_cli.retrieval.query import Query, parse
from co_cli.retrieval.rerank import Reranker

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
    case: bool = False
    """Words, phrases and regular expressions must have the same case."""
    operators: bool = True
    """False: all of the query is text."""
    reader: CrossEncoder | None = None
    read_always: bool = False
    """Whether the reader also reads where it is sure without it."""
    read_seconds: float | None = None
    """What reading may take; None: as long as it takes."""
    reranker: Reranker | None = None
    """Any other model, instead of the reader."""
    backend: str = "hybrid"
    deadline: QueryDeadline = field(default_factory=make_deadline, compare=False)

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
    parts: tuple[str, ...] = ()
    """Words of notes that are searched for because the query has a part of each."""


def attempts(request: SearchRequest, dates: bool = True) -> Iterator[Attempt]:
    """The narrowest reading first; the others are for when that finds nothing. Without `dates`, those are text."""
    query, filters, understood = _parse(request, request.query), request.filters, list[str]()
    understood += query.remarks
    period = None
    if dates and filters.since is None and filters.until is None:
        period, rest = find_period(request.query, time.time() if filters.as_of is None else filters.as_of)
        if period is not None:
            filters = filters._replace(since=period.since, until=period.until and period.until - 0.001)
            query = _parse(request, rest)
            understood.append(f"{describe(period)}: only notes of that time were searched")
    narrowed = query.narrow(filters)
    if narrowed != filters:
        understood.append(f"only notes {_operators(query)} were searched")
    narrows = narrowed != request.filters or query.is_exact
    only_narrows = not query.text.strip() or (query.words.empty and narrows)
    nothing_asked = narrowed == Filters() and query.plain
    listing = only_narrows or (period is not None and asks_only_for_period(query.text, period.language))
    day = fold_name(period.day) if period else ""
    yield Attempt(query, narrowed, tuple(understood), listing and not nothing_asked, day)
    if query.quotes_in_passing:
        plain = _parse(request, query.text, operators=False)
        yield Attempt(plain, narrowed, (*understood, "no note has the quoted words as they are"))
    if query.is_choice_of_words and not query.narrowing:
        plain = _parse(request, request.query, operators=False)
        remark = "no note has the words on either side of OR: searched for any of them"
        yield Attempt(plain, filters, (*understood, remark))
    if query.wanted:
        values = (text for node in query.wanted for text in (node.name, node.text) if text)
        refused = tuple(node for node in query.narrowing if node.kind == "not")
        wide = _parse(request, f"{query.text} {' '.join(values)}", operators=False)
        wide = replace(wide, condition=query.condition, narrowing=refused)
        remark = f"nothing was found {_operators(query)}: all notes were searched"
        yield Attempt(wide, wide.narrow(request.filters), (*query.remarks, remark))
    elif period is not None:
        query = _parse(request, request.query)
        remark = f"{describe(period)}: nothing was found, all notes were searched"
        yield Attempt(query, request.filters, (*query.remarks, remark))


def _parse(request: SearchRequest, text: str, operators: bool = True) -> Query:
    query = parse(text, request.prefix, request.case, operators and request.operators)
    return replace(query, condition=query.condition and query.condition._replace(deadline=request.deadline))


def _operators(query: Query) -> str:
    """What narrows a query, as it was typed."""
    parts = (("with", query.wanted), ("without", query.unwanted))
    return " and ".join(f"{word} {' and '.join(map(str, nodes))}" for word, nodes in parts if nodes)
