"""Answer a question from a vault: notes, skills or the past, whatever the options ask for."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, cast

from co_cli.ground.errors import InvalidInputError
from co_cli.ground.hits import UNMATCHED, SearchResult
from co_cli.index.filter_table import OPTIONS, FilterOptions
from co_cli.index.indexed_notes import FEW
from co_cli.searching.newer_notes import mark_older
from co_cli.searching.requests import Options, build_request, find, parse_filters, spelled_like
from co_cli.vault.vault import Vault, embed_few, makes_vectors, waiting_vectors, waits_for_vectors

if TYPE_CHECKING:
    from co_cli.retrieval.explain import Explanation


def search(vault: Vault, query: str, options: Options) -> SearchResult:
    """Search notes as they were at the last sync."""
    request = build_request(vault, query, options)
    if vault.opening.short_lived and request.wants_meaning:  # others make vectors in the background
        embed_few(vault)
    problem: str | None = None
    found: SearchResult | None = None
    if "skill" in request.filters.sources:
        from co_cli.searching.skill_search import search_with_skills  # parsers, which other searches do without

        found, _ = search_with_skills(vault, request)
    elif request.filters.as_of is not None:
        from co_cli.searching.as_of import search_as_of  # starts git, which other searches do without

        found, problem = search_as_of(vault, request)
    if found is None:
        found = find(vault.index, request)
    if not found.hits and found.backend != "grep" and request.filters.as_of is None:
        unmatched = _unmatched(vault, options)
        found = replace(found, understood=(*found.understood, unmatched)) if unmatched else found
    if problem:
        found = replace(found, degraded=[*found.degraded, problem])
    problems = [f"linked sources were not searched: {vault.sources.problem}"] if vault.sources.problem else []
    problems += [] if request.filters.as_of is not None else _missing_vectors(vault, found)
    if problems:
        state = "inconclusive" if found.state == "absent" else found.state
        found = replace(found, degraded=[*found.degraded, *problems], state=state)
    return replace(found, hits=mark_older(vault, found.hits), meta={**found.meta, "returned": len(found.hits)})


def _missing_vectors(vault: Vault, found: SearchResult) -> list[str]:
    """That other vectors than the chosen ones answered, because those of many passages are still to be made."""
    chosen = vault.embedders.space
    by_vectors = found.meta.get("trust") is not None
    if chosen is None or not by_vectors or not waits_for_vectors(vault, FEW) or vault.embedders.outage.problem():
        return []
    waiting = waiting_vectors(vault)
    if not waiting.passages:  # it is a space of other settings that waits
        return []
    command = "" if makes_vectors(vault.settings) else "; `co index sync` makes them now"
    return [f"search by meaning is still being prepared: {waiting} left{command}"]


def _unmatched(vault: Vault, options: Options) -> str:
    """Which filter no note passes, if there is one."""
    sources = (options.sources,) if isinstance(options.sources, str) else tuple(options.sources or ())
    given: dict[str, Any] = {name: value for name, value in options.filters.items() if value}
    given |= {"sources": sources} if len(sources) == 1 else {}  # recall always asks for the same several kinds

    def matches(some: dict[str, Any]) -> bool:
        filters = {name: value for name, value in some.items() if name != "sources"}
        asked = Options(sources=some.get("sources"), filters=cast("FilterOptions", filters))
        return bool(vault.index.notes.docs(parse_filters(vault.linked, asked), 1))

    words = {name: OPTIONS[name].word if name in OPTIONS else "source" for name in given}
    for name, value in given.items():
        if value is not True and not matches({name: value}):
            single = isinstance(value, str) or not hasattr(value, "__iter__")
            texts: list[str] = [str(value)] if single else list(map(str, value))
            close = spelled_like(vault.index, texts) if name == "tags" else ""
            return f"{UNMATCHED} the filter {words[name]}: {', '.join(texts)}{close}"
    if len(given) > 1 and not matches(given):
        return f"{UNMATCHED} all of these filters together: {', '.join(words.values())}"
    return ""


def explain(vault: Vault, query: str, ref: str, title: str, options: Options) -> Explanation:
    """Why a note has its rank for a query, or why it was not found."""
    from co_cli.retrieval.explain import explain_note  # a search does without it

    request = build_request(vault, query, options)
    if request.backend == "grep":
        raise InvalidInputError("grep does not rank: ask with the backend fts5 or hybrid")
    return explain_note(vault.index.notes, request, ref, title)
