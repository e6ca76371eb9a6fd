"""One search as a front end asks for it: options and settings into a request, and an answer whatever search.db does.

Texts such as `7d` and names such as `handbook` are read here; one that cannot be read is an InvalidInputError with the
fix. If the index cannot be used, the files answer, and the result says why.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, cast

from co_cli.ground.errors import IndexUnavailableError, InvalidInputError
from co_cli.ground.hits import Filters, SearchResult
from co_cli.ground.values import SOURCES, kind_named
from co_cli.index.filter_table import OPTIONS, FilterOptions, parse_values
from co_cli.index.tokens import fold
from co_cli.knowledge_index import KnowledgeIndex
from co_cli.retrieval.pipeline import search
from co_cli.retrieval.profiles import profile_named
from co_cli.retrieval.query import parse
from co_cli.retrieval.request import SearchRequest
from co_cli.retrieval.rerank import Reranker
from co_cli.sources.origin import Origin
from co_cli.vault.ranking import weights_in_use
from co_cli.vault.vault import Vault

BACKENDS = ("grep", "fts5", "hybrid")
LARGEST_LIMIT = 1_000


@dataclass(frozen=True, slots=True)
class Options:
    """What a caller says about one search, as it was said."""

    limit: int = 10
    sources: Sequence[str] | str | None = None
    filters: FilterOptions = field(default_factory=FilterOptions)
    backend: str | None = None
    profile: str | None = None
    weights: Mapping[str, float] | None = None
    words: bool = True
    meaning: bool = True
    min_score: float | None = None
    prefix: bool = False
    case: bool = False
    """Words must be exactly as they were typed, upper and lower case too."""
    read: bool | None = None
    """Whether the reader reads the first candidates; None: in the profile `default`, where words are not sure."""
    judge: bool = False
    """Read also where words are sure, so that what does not answer is known: for agents."""
    reranker: Reranker | None = None


class SearchOptions(FilterOptions, total=False):
    """The filters, and the fields of `Options` except `limit`, as keyword arguments."""

    sources: Sequence[str] | str | None
    backend: str | None
    profile: str | None
    weights: Mapping[str, float] | None
    words: bool
    meaning: bool
    min_score: float | None
    prefix: bool
    case: bool
    read: bool | None
    judge: bool
    reranker: Reranker | None


def check_known(given: Mapping[str, object], known: type[FilterOptions]) -> None:
    """Refuse keyword arguments that there are not."""
    names = known.__annotations__
    for name in given:
        if name not in names:
            from difflib import get_close_matches  # only for a mistake

            close = get_close_matches(name, names, n=1)
            fix = f"did you mean {close[0]}?" if close else f"there are {', '.join(sorted(names))}"
            raise InvalidInputError(f"there is no option {name!r}: {fix}")


def options_of(limit: int, given: SearchOptions) -> Options:
    """The options that keyword arguments make. Raises InvalidInputError for one that there is not."""
    check_known(given, SearchOptions)
    filters = cast("FilterOptions", {name: value for name, value in given.items() if name in OPTIONS})
    rest: dict[str, Any] = {name: value for name, value in given.items() if name not in OPTIONS}
    return Options(limit, filters=filters, **rest)


def build_request(vault: Vault, query: str, options: Options, operators: bool = True) -> SearchRequest:
    """The request that these options and the settings make. Without `operators` all of the query is text."""
    _require_text(query)
    if not 1 <= options.limit <= LARGEST_LIMIT:
        raise InvalidInputError(f"limit must be between 1 and {LARGEST_LIMIT}, not {options.limit}")
    if options.min_score is not None and not math.isfinite(options.min_score):
        raise InvalidInputError(f"min_score must be a number such as 0.3, not {options.min_score}")
    if not options.words and not options.meaning:
        raise InvalidInputError("words and meaning are both switched off: nothing can be searched")
    backend = options.backend or vault.settings.knowledge_search_backend
    if backend not in BACKENDS:
        raise InvalidInputError(f"the backend must be one of {', '.join(BACKENDS)}, not {backend!r}")
    if not options.words and (backend != "hybrid" or vault.embedders.space is None):
        raise InvalidInputError("words are switched off, and there are no vectors to search by meaning")
    profile = profile_named(options.profile or vault.settings.knowledge_profile)
    formula = profile.name != "default" or options.weights is not None  # to be applied as it is
    read = backend == "hybrid" and (not formula if options.read is None else options.read)
    return SearchRequest(
        query=query,
        limit=options.limit,
        filters=parse_filters(vault.linked, options),
        profile=profile,
        weights=weights_in_use(vault.ranking, profile, options.weights),
        half_life=vault.settings.half_life_days,
        words=options.words,
        meaning=options.meaning,
        min_score=options.min_score,
        prefix=options.prefix,
        case=options.case,
        operators=operators,
        reader=vault.reader if read else None,
        read_always=bool(options.read) or options.judge,
        read_seconds=None if options.read else vault.settings.knowledge_reader_ms / 1000,
        reranker=options.reranker,
        backend=backend,
    )


def _require_text(query: object) -> None:
    if not isinstance(query, str):
        raise InvalidInputError(f"the query must be a text, not {query!r}")


def parse_filters(linked: Sequence[Origin], options: Options) -> Filters:
    """The filters of these options. `linked` are the sources that can be named."""
    sources = (options.sources,) if isinstance(options.sources, str) else tuple(options.sources or ())
    return parse_values(options.filters)._replace(sources=tuple(_source(source, linked) for source in sources))


def find(index: KnowledgeIndex, request: SearchRequest) -> SearchResult:
    """From the index; from the files if it cannot be used, is damaged, or could not be synced."""
    # an index that was not synced may be readable, but it does not have what changed: the files do
    reason = None if request.backend == "grep" else index.seen.unsynced
    if request.backend != "grep" and reason is None:
        try:
            result, trace = search(index.notes, request)
            tags = parse(request.query).tags
            if tags and not (result.hits and trace.prepared.attempt.query.tags):  # nothing was found with them
                result = replace(result, understood=(*result.understood, *_close_tags(index, tags)))
            replaced = index.engine.set_aside or index.seen.fresh_as_of is not None
            if not replaced or trace.prepared.view.is_synced:
                return result
            reason = IndexUnavailableError(f"{index.engine.path} is being built again: `co index sync` does it now")
        except IndexUnavailableError as error:
            reason = error
        except Exception as error:
            reason = index.damage_behind(error)
            if reason is None:
                raise
    from co_cli.retrieval.file_search import search_files  # parsers, which a search of the index does not need

    return search_files(index.places(), request, reason)


def unused_tags(asked: Sequence[str] | None, known: Sequence[str]) -> list[str]:
    """Those of the tags asked for that no note has, nor one below them: `ops` covers `ops/deploy`."""
    folded = [fold(tag) for tag in known]
    wanted = [(tag, fold(tag.lstrip("#"))) for tag in asked or ()]
    return [
        tag
        for tag, folded_tag in wanted
        if not any(has == folded_tag or has.startswith(f"{folded_tag}/") for has in folded)
    ]


def close_tags(tag: str, known: Sequence[str]) -> list[str]:
    """Tags that may have been meant, the likeliest first."""
    from rapidfuzz import fuzz, process  # 40 ms, only for a tag that no note has

    found = process.extract(fold(tag.lstrip("#")), list(known), scorer=fuzz.ratio, limit=3, score_cutoff=70)
    return [name for name, _, _ in found]


def _close_tags(index: KnowledgeIndex, asked: Sequence[str]) -> list[str]:
    unused = unused_tags(asked, list(index.notes.tags()))
    return [f"no note has the tag {tag}{spelled_like(index, [tag])}" for tag in unused]


def spelled_like(index: KnowledgeIndex, asked: Sequence[str]) -> str:
    """` (did you mean tree?)` if there are tags that are spelled like those that no note has."""
    known = list(index.notes.tags())
    close = [name for tag in unused_tags(asked, known) for name in close_tags(tag, known)]
    return f" (did you mean {', '.join(close)}?)" if close else ""


def _source(wanted: str, linked: Sequence[Origin]) -> str:
    """A source as filters have it; one that was added may be called by its name alone."""
    if wanted in SOURCES:
        return wanted
    for origin in linked:
        if wanted in (origin.label, origin.name):
            return origin.label
    if (kind := kind_named(wanted)) in SOURCES:
        return kind
    known = ", ".join((*SOURCES, *(origin.label for origin in linked)))
    raise InvalidInputError(f"a kind or source must be one of {known}, not {wanted!r}")
