"""Answer a question from a vault: notes, skills or the past, whatever the options ask for."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from co_cli.errors import InvalidInputError
from co_cli.hits import SearchResult
from co_cli.searching.requests import Options, build_request, find
from co_cli.vault import Vault

if TYPE_CHECKING:
    from co_cli.retrieval.explain import Explanation


def search(vault: Vault, query: str, options: Options) -> SearchResult:
    """Search notes as they were at the last sync."""
    request = build_request(vault, query, options)
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
    if problem:
        found = replace(found, degraded=[*found.degraded, problem])
    if vault.sources.problem:
        problem = f"linked sources were not searched: {vault.sources.problem}"
        state = "inconclusive" if found.state == "absent" else found.state
        found = replace(found, degraded=[*found.degraded, problem], state=state)
    return replace(found, meta={**found.meta, "returned": len(found.hits)})


def explain(vault: Vault, query: str, ref: str, title: str, options: Options) -> Explanation:
    """Why a note has its rank for a query, or why it was not found."""
    from co_cli.retrieval.explain import explain_note  # a search does without it

    request = build_request(vault, query, options)
    if request.backend == "grep":
        raise InvalidInputError("grep does not rank: ask with the backend fts5 or hybrid")
    return explain_note(vault.index.notes, request, ref, title)
