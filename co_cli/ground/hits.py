"""What a search is asked and what it answers."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple

Backend = Literal["grep", "fts5", "hybrid"]
State = Literal["found", "absent", "inconclusive"]
LOWEST_SHOWN = 0.005
NEAREST = 3
"""Hits of an `absent` result that are shown although they share no word with the query."""
UNMATCHED = "no note passes"
"""How `understood` begins to say which filter left nothing to search."""


class Passage(NamedTuple):
    """The unit that is searched: a memory or a section of an article, with its lines."""

    text: str
    first_line: int
    last_line: int
    heading: str = ""
    """Its headings, outermost first: `Deploys > Rolling back`."""
    around: str = ""
    """Text around it that is searched with it: the nearest words, the header of a table."""
    said: float | None = None
    """When it was said, in a conversation; None: when its note was created."""


class Filters(NamedTuple):
    """Which notes a search covers. Empty means all; times are seconds since 1970."""

    sources: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()
    any_tag: bool = False
    """True: one of the tags is enough; False: all of them."""
    category: str | None = None
    since: float | None = None
    until: float | None = None
    fields: tuple[tuple[str, str], ...] = ()
    """Any other frontmatter key and the value it must have (or contain, if it is a list)."""
    as_of: float | None = None
    """Only notes that existed and were valid at this moment; None: now."""
    outdated: bool = False
    """Include notes that are no longer, or not yet, valid."""
    roots: tuple[str, ...] = ()
    """Only origins with these folders."""
    speakers: tuple[str, ...] = ()
    """Required `provenance`, in lower case; a note without one is the user's."""
    paths: tuple[str, ...] = ()
    """Texts that must occur in the path."""
    files: tuple[str, ...] = ()
    """Texts that must occur in the file name."""
    others: tuple[tuple[str, Any], ...] = ()
    """Values of filters that nothing but their entries in index/filter_table.py reads."""


@dataclass(frozen=True, slots=True)
class Hit:
    """A passage that was found, with its score, the signals behind it, and the ref that opens it."""

    ref: str
    source: str
    path: str
    title: str
    snippet: str
    lines: tuple[int, int]
    score: float
    signals: dict[str, float]
    tags: tuple[str, ...]
    created: str
    marks: tuple[tuple[int, int], ...] = ()
    """Where the matched words are in the snippet."""
    heading: str = ""
    missing: bool = False
    """Its file is gone."""
    category: str | None = None
    weak: bool = False
    """Merely near what answers: agents do not get it."""
    properties: tuple[str, ...] = ()
    """Fields of the frontmatter, such as `director: Ridley Scott`, with words of the query that are not in the text."""
    newer: str | None = None
    """The ref of a newer hit that gives the same thing another value."""
    part_of: tuple[str, ...] = ()
    """Words of it that have a part of the query. Such hits are there only if nothing else was found."""


@dataclass(frozen=True, slots=True)
class Searched:
    """How much was searched, and how fresh it was."""

    notes: int
    passages: int
    fresh_as_of: str | None


@dataclass(frozen=True, slots=True)
class SearchResult:
    """The result of a search: found, absent (everything was searched), or inconclusive (something was missing).

    An absent answer may have hits: the nearest there are, though nothing says that they have to do with the question.
    """

    query: str
    state: State
    degraded: list[str]
    backend: str
    searched: Searched
    hits: list[Hit]
    took_ms: float
    confidence: float | None = None
    """How sure it is that something here has to do with the question, 0 to 1; None if that was not asked, as by words
    alone or in a space that nobody measured."""
    understood: tuple[str, ...] = ()
    """Parts of the query that were understood as filters, such as dates, and an expired note that would answer."""
    suggestions: tuple[str, ...] = ()
    """Words of the vault that are spelled like those of a query that found nothing."""
    meta: dict[str, Any] = field(default_factory=dict[str, Any])
    """How it was ranked: profile, weights, how many candidates, trust in words, milliseconds."""


def is_filtered_out(found: SearchResult) -> bool:
    """Whether no note passes the filters: then it does not count as an unanswered question."""
    return not found.hits and any(text.startswith(UNMATCHED) for text in found.understood)


def worth_showing(found: SearchResult) -> list[Hit]:
    """The hits to show, those that are merely near last: none that scores 0.00, and of an `absent` result only the
    nearest ones and those with a word of the query."""
    hits = [hit for hit in found.hits if hit.score >= LOWEST_SHOWN or not hit.signals]
    if found.state == "found":
        return sorted(hits, key=lambda hit: hit.weak)
    return [hit for place, hit in enumerate(hits) if place < NEAREST or hit.signals.get("words") or not hit.signals]


def older_remark(newer: str | None) -> str:
    """What an older note says about the newer one that contradicts it; empty if there is none."""
    return f"older: see {newer}" if newer else ""


class UseCount(NamedTuple):
    """How often a note was found and opened, and how often somebody rated it good or bad."""

    recalls: int = 0
    opens: int = 0
    good: int = 0
    bad: int = 0
    used: float | None = None
    """When it was last opened or the first hit of a search."""

    @property
    def rating(self) -> float:
        """From -1 to 1; 0 if nobody rated it. One rating alone is worth a half."""
        return (self.good - self.bad) / (self.good + self.bad + 1)
