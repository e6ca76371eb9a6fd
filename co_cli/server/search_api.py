"""Search for the page: as you type and after a pause, why a note was found, and ratings."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from pydantic import BaseModel, ConfigDict

from co_cli.activity.judgements import Judgement
from co_cli.entrance.local import LocalKnowledgeBase
from co_cli.ground.hits import SearchResult
from co_cli.ground.values import OWN_SOURCES
from co_cli.notes.markdown import plain_snippet
from co_cli.retrieval.explain import Explanation
from co_cli.searching.requests import Options
from co_cli.server.filter_models import filters_of, url_filters, with_filters
from co_cli.server.routes import model_of, route
from co_cli.upkeep import feedback

LONE_LETTER = r"(?<=\s)[a-zA-Z]$"
"""The first letter of another word: too many words begin with it, and finding them all takes longest."""


class Search(url_filters("filters", "time")):
    """What to look for. Filters are as in `co search`."""

    q: str
    limit: int = 10
    source: Sequence[str] = ()
    typing: bool = False
    """The query is being typed: its last word may be unfinished, no model reads the hits, and nothing is logged."""
    track: bool = True
    """Log it, and count its hits as recalled."""

    def options(self) -> dict[str, Any]:
        return {"limit": self.limit, "sources": self.source, **filters_of(self)}


class FullSearch(with_filters(model_of(Options, "reranker", "filters"))):
    """A search with every option of `LocalKnowledgeBase.search`."""

    q: str
    track: bool = True
    """Log it, and count its hits as recalled."""


class TagsOf(BaseModel):
    source: str | None = None


class Why(Search):
    """A note that was found, or was not."""

    ref: str


class Rating(BaseModel):
    """Whether a note was what you were looking for."""

    model_config = ConfigDict(extra="forbid")

    ref: str
    good: bool
    q: str | None = None
    """What you asked; by default the last question that it answered."""


class Choices(NamedTuple):
    """What can be chosen as a filter."""

    sources: list[str]
    tags: dict[str, int]
    """Each with its number of notes, the most used first."""


@route("GET", "/search")
def search(kb: LocalKnowledgeBase, asked: Search) -> SearchResult:
    """Search notes by words and meaning. Snippets are plain text, not Markdown."""
    if asked.typing:
        known = re.sub(LONE_LETTER, "", asked.q)
        return _as_text(replace(kb.search(known, **asked.options(), prefix=True, read=False), query=asked.q))
    return _as_text(kb.search(asked.q, track=asked.track, **asked.options()))


@route("POST", "/search", role="read")
def search_fully(kb: LocalKnowledgeBase, asked: FullSearch) -> SearchResult:
    """Search with every option that Python has."""
    return kb.search(asked.q, **asked.model_dump(exclude={"q"}))


@route("GET", "/tags")
def count_tags(kb: LocalKnowledgeBase, asked: TagsOf) -> dict[str, int]:
    """Count the notes of each tag, of everything or of one source, the most used first."""
    return kb.tags(asked.source)


@route("GET", "/why")
def explain(kb: LocalKnowledgeBase, asked: Why) -> Explanation:
    """Explain why a search found a note, or why not."""
    return kb.why(asked.q, asked.ref, **asked.options())


@route("GET", "/filters")
def list_filters(kb: LocalKnowledgeBase) -> Choices:
    """List the sources and tags that a search can be limited to."""
    return Choices([*OWN_SOURCES, *(origin.label for origin in kb.index.linked)], kb.tags())


@route("POST", "/ratings")
def rate(kb: LocalKnowledgeBase, asked: Rating) -> Judgement:
    """Rate a note as the answer to a question."""
    return feedback.judge(kb.vault, asked.ref, asked.good, asked.q)


def _as_text(result: SearchResult) -> SearchResult:
    shown = [(hit, plain_snippet(hit.snippet, hit.marks)) for hit in result.hits]
    return replace(result, hits=[replace(hit, snippet=text, marks=marks) for hit, (text, marks) in shown])
