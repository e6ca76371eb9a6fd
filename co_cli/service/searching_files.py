"""One search without the index: every file is read, and its passages are looked through for the words themselves.

For the backend `grep`, and for the day when search.db cannot be used.
"""

from __future__ import annotations

import time
from collections.abc import Sequence

from co_cli.errors import IndexUnavailableError
from co_cli.index.grep import grep
from co_cli.index.match import read_query
from co_cli.retrieval.snippets import around
from co_cli.retrieval.validity import strength
from co_cli.service.searching import Finding, absolute, ref_with_lines
from co_cli.sources.origin import Origin
from co_cli.values import Filters, Hit, Searched, moment_text


def search_files(
    origins: Sequence[Origin],
    query: str,
    filters: Filters,
    limit: int,
    exclude: tuple[str, ...],
    largest: int,
    why: IndexUnavailableError | None,
) -> Finding:
    """Hits by the share of the words that a passage has. `why` is told if the index should have answered."""
    words = read_query(query).words or (query.strip(),)
    matches, count, succession = grep(origins, query, filters, exclude, largest)
    if not filters.outdated:
        now = time.time() if filters.as_of is None else filters.as_of
        standing = succession.standing
        matches = [match for match in matches if strength(standing(match.origin.root, match.note, now), now)]
    hits: list[Hit] = []
    for match in matches[:limit]:
        snippet = around(match.passage.text, words)
        note, lines = match.note, (match.passage.first_line, match.passage.last_line)
        hits.append(
            Hit(
                ref=ref_with_lines(note.ref, note.source, lines),
                source=note.source,
                path=absolute(match.origin.root, note.path),
                title=note.title,
                snippet=snippet.text,
                lines=lines,
                score=round(match.share, 4),
                signals={"words": round(match.share, 4)},
                tags=note.tags,
                created=moment_text(match.created),
                marks=snippet.marks,
                heading=match.passage.heading,
            )
        )
    degraded = [f"answered from the files by substring: {why}"] if why else []
    return Finding("grep", hits, Searched(count, count, moment_text(time.time())), degraded)
