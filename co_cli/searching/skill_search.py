"""Search the skills that agents are offered, alone or together with notes."""

from __future__ import annotations

import re
from dataclasses import replace

from co_cli.ground.hits import Searched, SearchResult
from co_cli.knowledge_index import IndexSetup
from co_cli.retrieval.request import SearchRequest
from co_cli.searching.requests import LARGEST_LIMIT, Options, build_request, find
from co_cli.vault.skills import Skill, Skills
from co_cli.vault.vault import Vault

WIDER, ALIKE = 4, 0.6
"""How many times the limit is searched, and the share of words from which two descriptions count as the same."""


def search_skills(vault: Vault, query: str, limit: int = 3) -> tuple[list[tuple[Skill, float]], SearchResult]:
    """Skills for a task with their scores, best first, and the search result. The reader would order them worse."""
    options = Options(limit=min(limit * WIDER, LARGEST_LIMIT), sources=("skill",), read=False)
    result, offered = search_with_skills(vault, build_request(vault, query, options, operators=False))
    found = [(offered[hit.path], hit.score) for hit in result.hits if hit.score > 0]
    return _varied(found)[:limit], replace(result, hits=result.hits[:limit])


def search_with_skills(vault: Vault, request: SearchRequest) -> tuple[SearchResult, dict[str, Skill]]:
    """A search of several sources, among them skills that are offered; and those skills by their file."""
    skills = Skills(vault).all()
    offered = {skill.file: skill for skill in skills if skill.state == "offered"}
    alone = all(source == "skill" for source in request.filters.sources)
    origins = list(dict.fromkeys(skill.origin for skill in skills))
    if alone and not origins:
        return SearchResult(request.query, "absent", [], request.backend, Searched(0, 0, None), [], 0.0), offered
    if alone:
        index = vault.index.of(origins[0]).within(IndexSetup(origins[1:]))
    else:
        index = vault.index.within(replace(vault.index.setup, linked=[*origins, *vault.linked]))
    # skills that are not offered are found, too, and left out
    limit = min(request.limit + len(skills) - len(offered), LARGEST_LIMIT)
    result = find(index, replace(request, limit=limit))
    hits = [hit for hit in result.hits if hit.source != "skill" or hit.path in offered]
    return replace(result, hits=hits[: request.limit]), offered


def _varied(found: list[tuple[Skill, float]]) -> list[tuple[Skill, float]]:
    """Skills that say nearly the same as a better one go last: one job for forty products is one answer."""
    words = [set(re.findall(r"\w+", skill.description.casefold())) for skill, _ in found]
    last = [any(len(mine & other) >= ALIKE * len(mine | other) for other in words[:n]) for n, mine in enumerate(words)]
    return [skill for _, skill in sorted(zip(last, found, strict=True), key=lambda pair: pair[0])]
