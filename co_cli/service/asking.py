"""What a caller says about a search, into what the search needs: filters, backend, profile and weights.

Texts such as `7d`, a name such as `handbook` and a list that was given as one word are understood here; whatever cannot
be is an InvalidInputError that says what would be right.
"""

from __future__ import annotations

import time

from co_cli.errors import InvalidInputError
from co_cli.record import Record
from co_cli.retrieval.fuse import Weights
from co_cli.retrieval.profiles import profile_named, weighed
from co_cli.values import SOURCES, Filters

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from co_cli.retrieval.profiles import Profile
    from co_cli.settings import Settings
    from co_cli.sources.origin import Origin

BACKENDS = ("grep", "fts5", "hybrid")
LARGEST_LIMIT = 1_000
FAR_AWAY = 1e12
"""Seconds: 30,000 years."""


class Asked(Record):
    """One search, as it is carried out."""

    filters: Filters
    limit: int
    backend: str
    profile: Profile
    weights: Weights | None
    """None leaves it to the space."""


def read_asked(
    settings: Settings,
    learned: Weights | None,
    filters: Filters,
    limit: int,
    backend: str | None,
    profile: str | None,
    weights: Mapping[str, float] | None,
) -> Asked:
    """What a person says goes before what was learned from feedback, and that before the default of the space."""
    if not 1 <= limit <= LARGEST_LIMIT:
        raise InvalidInputError(f"limit is between 1 and {LARGEST_LIMIT}, not {limit}")
    chosen = backend or settings.knowledge_search_backend
    if chosen not in BACKENDS:
        raise InvalidInputError(f"the backend is one of {', '.join(BACKENDS)}, not {chosen!r}")
    way, balance = weighed(profile_named(profile or settings.knowledge_profile), weights)
    way = way._replace(half_life=settings.half_life_days)
    return Asked(filters, limit, chosen, way, balance or way.weights or weights_of(settings) or learned)


def read_filters(
    beside: Sequence[Origin],
    sources: Sequence[str] | None = None,
    tags: Sequence[str] | None = None,
    any_tag: bool = False,
    category: str | None = None,
    since: str | float | None = None,
    until: str | float | None = None,
    fields: Mapping[str, str] | None = None,
    as_of: str | float | None = None,
    outdated: bool = False,
) -> Filters:
    """`beside` are the origins that may be named as sources."""
    sources = (sources,) if isinstance(sources, str) else tuple(sources or ())
    return Filters(
        sources=tuple(_source(source, beside) for source in sources),
        tags=(tags,) if isinstance(tags, str) else tuple(tags or ()),
        any_tag=any_tag,
        category=category,
        since=_moment("since", since),
        until=_moment("until", until, end=True),
        fields=tuple((key, _field_text(value)) for key, value in (fields or {}).items()),
        as_of=_moment("as_of", as_of, end=True),
        outdated=outdated,
    )


def weights_of(settings: Settings) -> Weights | None:
    """As somebody set them; None if nobody did, and the defaults of the vectors in use apply."""
    meaning, words = "knowledge_hybrid_vector_weight", "knowledge_hybrid_text_weight"
    if settings.origins[meaning] == settings.origins[words] == "default":
        return None
    return Weights(settings.knowledge_hybrid_vector_weight, settings.knowledge_hybrid_text_weight)


def _source(wanted: str, beside: Sequence[Origin]) -> str:
    """A source as filters have it; what was added may be called by its name alone."""
    if wanted in SOURCES:
        return wanted
    for origin in beside:
        if wanted in (origin.label, origin.name):
            return origin.label
    known = ", ".join((*SOURCES, *(origin.label for origin in beside)))
    raise InvalidInputError(f"a source is one of {known}, not {wanted!r}")


def _field_text(value: object) -> str:
    """As frontmatter would write it."""
    return str(value).lower() if isinstance(value, bool) else str(value)


def _moment(name: str, value: object, end: bool = False) -> float | None:
    """`until 2026-03-01` includes that day."""
    if value is None or (isinstance(value, int | float) and abs(value) < FAR_AWAY):
        return None if value is None else float(value)
    from co_cli.notes.moments import read_moment
    from co_cli.retrieval.periods import read_when

    moment = read_when(value, time.time(), end=end) if isinstance(value, str) else read_moment(value)
    if moment is None:
        raise InvalidInputError(f"{name} is a date such as 2026-03-01, `last week` or `7d`, not {value!r}")
    return moment
