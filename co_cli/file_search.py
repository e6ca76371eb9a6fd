"""Answer a request from the files themselves, where the index cannot or should not."""

from __future__ import annotations

import os
import time
from collections.abc import Sequence

from co_cli.errors import IndexUnavailableError
from co_cli.hits import Hit, Searched, SearchResult, State
from co_cli.index.engine import EXPIRED, WordQuery
from co_cli.index.grep import Needles, Place, grep
from co_cli.retrieval.query import parse
from co_cli.retrieval.request import SearchRequest
from co_cli.retrieval.results import expired_answer, make_snippet, shown_heading, unsearched_text
from co_cli.values import moment_text


def search_files(
    places: Sequence[Place], request: SearchRequest, why: IndexUnavailableError | None = None
) -> SearchResult:
    """Hits by the share of the words that a passage has. `why` is reported if the index should have answered."""
    started = time.perf_counter()
    query = parse(request.query)
    filters = query.narrow(request.filters)
    needles = Needles(query.spelled or (() if query.quoted else (request.query.strip(),)), query.quoted, query.refused)
    matches, count, succession, unsearched = grep(places, needles, filters)
    understood: list[str] = []
    if not filters.outdated:
        now = time.time() if filters.as_of is None else filters.as_of
        problems = [succession.validity(one.origin.root, one.note, now).problem(now) for one in matches]
        if problems[:1] == [EXPIRED] and filters.as_of is None:
            understood.append(expired_answer(matches[0].note.ref))
        matches = [one for one, problem in zip(matches, problems, strict=True) if not problem]
    hits: list[Hit] = []
    for match in matches:
        if len(hits) == request.limit or match.share < (request.min_score or 0.0):
            break
        snippet = make_snippet(match.passage.text, query.words if not query.words.empty else WordQuery())
        note, lines = match.note, (match.passage.first_line, match.passage.last_line)
        hits.append(
            Hit(
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
            )
        )
    degraded = [f"answered from the files by substring: {why}"] if why else []
    whole = {origin.label for origin, _, _ in places[1:]}
    degraded += unsearched_text([name for name in unsearched if name in whole] if hits else unsearched)
    state: State = "found" if hits else "inconclusive" if degraded else "absent"
    took = round((time.perf_counter() - started) * 1000, 1)
    searched = Searched(count, count, moment_text(time.time()))
    meta = {"profile": "grep", "weights": {"words": 1.0}, "candidates": len(matches), "took_ms": took}
    return SearchResult(
        request.query, state, degraded, "grep", searched, hits, took, understood=tuple(understood), meta=meta
    )
