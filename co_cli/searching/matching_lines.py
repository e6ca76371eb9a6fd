"""A search into the lines that match, file by file, as programs such as ripgrep find them."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate

from co_cli.ground.deadline import make_deadline
from co_cli.ground.errors import KnowledgeError
from co_cli.ground.hits import Hit, Searched, SearchResult, State
from co_cli.index.tokens import spans, tokens
from co_cli.notes.encoding import decode
from co_cli.notes.files import read_bytes
from co_cli.notes.language import guess_language
from co_cli.notes.note import read_note
from co_cli.notes.refs import ENDINGS, without_lines
from co_cli.retrieval.query import Query, parse
from co_cli.searching.answers import search
from co_cli.searching.requests import LARGEST_LIMIT, Options
from co_cli.vault.lookup import Lookup
from co_cli.vault.vault import Vault

Span = tuple[int, int]


@dataclass(frozen=True, slots=True)
class MatchingLine:
    """A line of a file that matches, or is near one that does."""

    number: int
    text: str
    marks: tuple[Span, ...] = ()
    """Where in it the matches are; none in a line around them."""


@dataclass(frozen=True, slots=True)
class MatchingFile:
    """A note with lines that match."""

    ref: str
    title: str
    path: str
    lines: tuple[MatchingLine, ...]


@dataclass(frozen=True, slots=True)
class MatchingLines:
    """Every line that matches, the best note first."""

    query: str
    state: State
    degraded: list[str]
    searched: Searched
    files: list[MatchingFile]
    understood: tuple[str, ...] = ()


def find_lines(vault: Vault, query: str, options: Options, around: int = 0) -> tuple[MatchingLines, SearchResult]:
    """The lines with words of a query, with this many before and after each; and the search that found them."""
    found = search(vault, query, replace(options, meaning=False, read=False))
    asked, substrings = parse(query, options.prefix, options.case), found.backend == "grep"
    deadline = make_deadline()
    asked = replace(asked, condition=asked.condition and asked.condition._replace(deadline=deadline))
    by_path: dict[str, list[Hit]] = {}
    for hit in found.hits if found.state == "found" or asked.is_exact else ():
        by_path.setdefault(hit.path, []).append(hit)
    lookup, files, degraded = Lookup(vault), list[MatchingFile](), list(found.degraded)
    for path, hits in by_path.items():
        try:
            text, first, language = _text_of(lookup, hits[0])
        except (KnowledgeError, OSError) as error:  # it was removed since it was indexed
            degraded.append(f"{path} could not be read: {error}")
            continue
        inside = [hit.lines for hit in hits] if hits[0].source == "conversation" else []
        matches = _of_lines(text, asked, _matches(text, asked.in_languages([language]), hits, substrings, language))
        lines = _lines(text, first, matches, inside, around)
        if lines:
            files.append(MatchingFile(without_lines(hits[0].ref), hits[0].title, path, lines))
    if asked.condition and not deadline.left:
        degraded.append("looking for the lines of the notes takes too long: some are missing")
    if len(found.hits) == LARGEST_LIMIT:
        degraded.append(f"there may be more than these {LARGEST_LIMIT:,} results: filters narrow the search")
    is_cut = found.state == "inconclusive" or (asked.condition and not deadline.left)
    state = "found" if files and not is_cut else "inconclusive" if degraded else "absent"
    return MatchingLines(query, state, degraded, found.searched, files, found.understood), found


def _text_of(lookup: Lookup, hit: Hit) -> tuple[str, int, str]:
    """The text of a file, Markdown as it is, or the text that a document has; its first line's number, its language."""
    if hit.path.lower().endswith(ENDINGS):
        data = read_bytes(hit.path)
        note = read_note(hit.path, data)
        return decode(data)[0].replace("\r\n", "\n"), 1, note.language or guess_language(note.body)
    _, note = lookup.open(without_lines(hit.ref))
    return note.body, note.body_line, guess_language(note.body)


def _matches(text: str, asked: Query, hits: Sequence[Hit], substrings: bool, language: str) -> list[Span]:
    """Where a text has what is asked for, in order: exact quotes, words whatever their ending, or parts of words."""
    found = asked.condition.spans(text) if asked.condition else []
    if substrings or any(hit.part_of for hit in hits):
        parts = "|".join(re.escape(word) for word in asked.spelled)
        return sorted([*found, *(place.span() for place in re.finditer(parts, text, re.IGNORECASE) if place[0])])
    if asked.condition is not None and asked.condition.case:
        return sorted(found)
    # what is marked in a snippet is a word of the query, or one that was searched for instead
    marked = " ".join(hit.snippet[first:last] for hit in hits for first, last in hit.marks)
    exact = {*tokens(asked.condition.quoted, language)} if asked.condition else set[str]()
    typed = {asked.words.stem(term, language) for term in asked.words.terms}
    wanted = {*typed, *(tokens(marked, language) if not asked.condition else ())} - exact
    prefixes = asked.words.prefixes
    words = [
        (start, end) for start, end, token in spans(text, language) if token in wanted or token.startswith(prefixes)
    ]
    return sorted([*found, *words])


def _of_lines(text: str, asked: Query, matches: list[Span]) -> list[Span]:
    """Only the matches in lines that a `line:` or `task:` asks for; all of such a line if there are none in it."""
    lines = text.split("\n")
    chosen = asked.condition.lines(lines) if asked.condition else None
    if chosen is None:
        return matches
    starts = _starts(lines)
    found: list[Span] = []
    for place in sorted(chosen):
        start, end = starts[place], starts[place] + len(lines[place])
        found += [span for span in matches if start <= span[0] < end] or [(start, end)]
    return found


def _starts(lines: Sequence[str]) -> list[int]:
    """The place of each line in its text."""
    return [0, *accumulate(len(line) + 1 for line in lines)][:-1]


def _lines(
    text: str, first: int, matches: Sequence[Span], inside: Sequence[Span], around: int
) -> tuple[MatchingLine, ...]:
    """The lines with matches and those around them. `inside`: only these lines, if there are any."""
    lines = text.split("\n")
    starts = _starts(lines)
    marks: dict[int, list[Span]] = {}
    for start, end in matches:  # one that goes over the end of a line is in each of its lines
        for place in range(bisect_right(starts, start) - 1, bisect_right(starts, max(start, end - 1))):
            if not inside or any(lowest <= place + first <= highest for lowest, highest in inside):
                own = (max(start - starts[place], 0), min(end - starts[place], len(lines[place])))
                if own[0] < own[1]:
                    marks.setdefault(place, []).append(own)
    last = len(lines) - 1 - (lines[-1] == "")
    shown = {near for place in marks for near in range(max(place - around, 0), min(place + around, last) + 1)}
    return tuple(MatchingLine(place + first, lines[place], _joined(marks.get(place, ()))) for place in sorted(shown))


def _joined(marks: Iterable[Span]) -> tuple[Span, ...]:
    """Marks that overlap become one."""
    found: list[Span] = []
    for first, last in sorted(marks):
        if found and first < found[-1][1]:
            found[-1] = found[-1][0], max(last, found[-1][1])
        else:
            found.append((first, last))
    return tuple(found)
