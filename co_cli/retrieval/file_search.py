"""Answer a request from the files themselves, where the index cannot or should not."""

from __future__ import annotations

import os
import time
from collections.abc import Collection, Sequence
from functools import partial
from typing import NamedTuple

from co_cli.ground.deadline import QueryDeadline
from co_cli.ground.errors import IndexUnavailableError
from co_cli.ground.hits import Filters, Hit, Passage, Searched, SearchResult, State
from co_cli.ground.values import moment_text
from co_cli.index.derivation import searched_fields, spoken_path
from co_cli.index.filter_table import requirements
from co_cli.index.grep import GrepMatch, Needles, Place, grep, meets
from co_cli.index.stored import EXPIRED
from co_cli.notes.note import Note
from co_cli.notes.properties import properties_text
from co_cli.retrieval.grammar import Node
from co_cli.retrieval.matching import Condition, NoteText, PassageText, TooSlowError, has_compared, not_compared
from co_cli.retrieval.query import Query, filters_for
from co_cli.retrieval.request import Attempt, SearchRequest, attempts
from co_cli.retrieval.results import (
    expired_answer,
    find_properties,
    make_snippet,
    show_properties,
    shown_heading,
    unsearched_text,
)


class FileMatches(NamedTuple):
    """What one attempt found in the files."""

    matches: Sequence[GrepMatch]
    notes: int
    """How many were read."""
    unsearched: Sequence[str]
    understood: Sequence[str]
    compared: int | None
    """How many of them, if not all were."""
    query: Query


def search_files(
    places: Sequence[Place], request: SearchRequest, why: IndexUnavailableError | None = None
) -> SearchResult:
    """Hits by the share of the words that a passage has. `why` is reported if the index should have answered."""
    started = time.perf_counter()
    found: FileMatches | None = None
    for attempt in attempts(request, dates=False):
        tried = _search(places, request, attempt)
        found = tried if found is None or tried.matches else found
        if found.matches:
            break
    assert found is not None
    enough = [match for match in found.matches if match.share >= (request.min_score or 0.0)]
    hits = [_hit(match, found.query) for match in enough[: request.limit]]
    degraded = [f"answered from the files by substring: {why}"] if why else []
    degraded += [] if found.compared is None else [not_compared(found.compared)]
    whole = {origin.label for origin, _, _ in places[1:]}
    degraded += unsearched_text([name for name in found.unsearched if name in whole] if hits else found.unsearched)
    is_cut = found.compared is not None and not request.deadline.left
    state: State = "inconclusive" if is_cut or (degraded and not hits) else "found" if hits else "absent"
    took = round((time.perf_counter() - started) * 1000, 1)
    searched = Searched(found.notes, found.notes, moment_text(time.time()))
    meta = {"profile": "grep", "weights": {"words": 1.0}, "candidates": len(found.matches), "took_ms": took}
    return SearchResult(
        request.query, state, degraded, "grep", searched, hits, took, understood=tuple(found.understood), meta=meta
    )


def _search(places: Sequence[Place], request: SearchRequest, attempt: Attempt) -> FileMatches:
    query, filters, outcomes = attempt.query, attempt.filters, list[bool]()
    words = query.spelled
    if not words and query.plain and filters == Filters():  # nothing but punctuation
        words = (request.query.strip(),)
    choose = partial(_chosen, query.condition._replace(substrings=True), outcomes) if query.condition else None
    if words == ("",):
        choose = _nothing
    is_over = partial(_is_over, request.deadline, choose is not None)
    needles = Needles(words, choose, query.is_exact, is_over)
    matches, count, succession, unsearched = grep(places, needles, filters)
    compared = None if all(outcomes) and not is_over() else sum(outcomes) if choose else count
    understood = list(attempt.understood)
    if not filters.outdated:
        now = time.time() if filters.as_of is None else filters.as_of
        problems = [succession.validity(match.origin.root, match.note, now).problem(now) for match in matches]
        if problems[:1] == [EXPIRED] and filters.as_of is None:
            understood.append(expired_answer(matches[0].note.ref))
        matches = [match for match, problem in zip(matches, problems, strict=True) if not problem]
    return FileMatches(matches, count, unsearched, understood, compared, query)


def _is_over(deadline: QueryDeadline, compares: bool) -> bool:
    """Whether no more files are read. With words alone it takes as long as it takes, unless others wait."""
    return deadline.cancelled or ((compares or deadline.shared) and not deadline.left)


def _nothing(note: Note, passages: Sequence[Passage]) -> Collection[int]:
    return ()


def _chosen(condition: Condition, outcomes: list[bool], note: Note, passages: Sequence[Passage]) -> Collection[int]:
    """The places of passages that meet a condition: as a whole note, or each turn of a conversation. `outcomes` gets
    whether the note could be compared in time."""
    about = (note.title, note.also_known_as, *note.tags, spoken_path(note.path), *searched_fields(note.metadata))
    texts = [
        PassageText(place, passage.heading, passage.text, passage.first_line, passage.last_line)
        for place, passage in enumerate(passages)
    ]
    found: list[int] = []
    try:
        for turn in [[text] for text in texts] if note.source == "conversation" else [texts]:
            text = NoteText(about, turn, partial(_meets, note))
            found += condition.passages(text) if condition.matches(text) else []
        outcomes.append(True)
    except TooSlowError:
        outcomes.append(False)
    return found


def _meets(note: Note, leaf: Node) -> bool:
    return (
        has_compared(note.metadata, leaf) if leaf.kind == "compared" else meets(note, requirements(filters_for(leaf)))
    )


def _hit(match: GrepMatch, query: Query) -> Hit:
    note, lines = match.note, (match.passage.first_line, match.passage.last_line)
    properties = find_properties(properties_text(note.metadata), f"{note.title}\n{match.passage.text}", query.words)
    snippet = show_properties(properties, make_snippet(match.passage.text, query.words, query.condition))
    return Hit(
        ref=note.ref if note.source == "memory" else f"{note.ref}#L{lines[0]}-{lines[1]}",
        source=note.source,
        path=os.path.join(match.origin.root, *note.path.split("/")),
        title=note.title,
        snippet=snippet.text,
        lines=lines,
        score=round(match.share, 4),
        signals={"words": round(match.share, 4)},
        tags=note.tags,
        created=moment_text(match.created),
        marks=snippet.marks,
        heading=shown_heading(match.passage.heading, note.title, note.source, note.path),
        category=note.category,
        properties=tuple(f"{key}: {value.text}" for key, value in properties.items()),
    )
