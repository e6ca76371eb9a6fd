"""The table of filters: what a caller may say, and how front ends, SQL and a search of the files understand it.

A new filter is one entry of `FilterOptions`. The command line, the HTTP API and the tools of agents read their names
and types here; engines and grep ask `requirements` and `compared_moments`, so that they agree.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Literal, NamedTuple, TypedDict, get_type_hints

from co_cli.ground.errors import InvalidInputError
from co_cli.ground.hits import Filters
from co_cli.index.derivation import NOTHING, FilteredColumn, field_text, quoted, unlinked
from co_cli.index.tokens import fold
from co_cli.notes.dates import read_moment, read_when
from co_cli.notes.language import read_language, unknown_language

FAR_AWAY = 6e10
"""Seconds: 1,900 years."""

Form = Literal["texts", "text", "switch", "start", "end", "pairs"]
"""What a value looks like; each front end has its own type for it. `start` and `end` are moments: a day that is an end
is included. `pairs` are keys and values."""
Group = Literal["filters", "time"]
"""Listings take only those of the first group."""
Comparison = Literal[">=", "<="]


class Requirement(NamedTuple):
    """One of these texts must occur in a column of the note or its passages, or none of them."""

    column: FilteredColumn
    texts: tuple[str, ...]
    absent: bool = False


Requires = Callable[[Any, Filters], Iterable[Requirement]]


@dataclass(frozen=True, slots=True)
class Filter:
    """One entry of the table."""

    form: Form
    flags: tuple[str, ...] = ()
    """Of the command line, the long one last; URLs use its name, too. None: only our own code says it."""
    help: str = ""
    requires: Requires | None = None
    """What a value requires of a note. All must be met."""
    compares: Comparison | None = None
    """How the moment at which a passage was said, or else its note created, compares with the value."""
    group: Group = "filters"
    for_agents: bool = False
    """Tools have an argument for it, which costs tokens in every request."""
    hint: str = ""
    """For agents: what it looks like."""
    guessed: bool = False
    """An agent may guess a value that no note has: if it finds nothing, the tool searches again without it."""

    @property
    def word(self) -> str:
        """Its name on the command line and in URLs: `any_tag` for `--any-tag`."""
        return self.flags[-1].lstrip("-").replace("-", "_")


def _has_tags(tags: Sequence[str], filters: Filters) -> Iterator[Requirement]:
    # lists are stored as JSON, which is not taken apart: `"ops"` and `"ops/` are how it writes a tag and those below it
    written = [quoted(fold(tag.lstrip("#"))) for tag in tags]
    each = [(text, f"{text[:-1]}/") for text in written]
    every = [tuple(text for pair in each for text in pair)] if filters.any_tag else each
    return (Requirement("tags", texts) for texts in every)


def _has_fields(pairs: Iterable[tuple[str, str]], filters: Filters) -> Iterator[Requirement]:
    for key, value in pairs:
        texts = [unlinked(value), *([NOTHING] if fold(value) == "null" else [])]
        yield Requirement("fields", tuple(quoted(field_text(key, text)) for text in texts))


def _has_keys(keys: Iterable[str], filters: Filters) -> Iterator[Requirement]:
    return (Requirement("fields", (quoted(field_text(key, ""))[:-1],)) for key in keys)


def _has_category(category: str, filters: Filters) -> Iterator[Requirement]:
    return _has_fields([("category", category)], filters)


def _said_by_one_of(speakers: Iterable[str], filters: Filters) -> Iterator[Requirement]:
    yield Requirement("fields", tuple(quoted(field_text("", speaker)) for speaker in speakers))


def _in_path(texts: Iterable[str], filters: Filters) -> Iterator[Requirement]:
    return (Requirement("path_key", (fold(text),)) for text in texts)


def _in_file_name(texts: Iterable[str], filters: Filters) -> Iterator[Requirement]:
    return (Requirement("file_key", (fold(text),)) for text in texts)


def _in_languages(languages: Iterable[str], filters: Filters) -> Iterator[Requirement]:
    yield Requirement("language", tuple(languages))


def _without(required: Requires) -> Requires:
    def requires(values: Any, filters: Filters) -> Iterator[Requirement]:
        every = filters._replace(any_tag=False)
        return (requirement._replace(absent=True) for requirement in required(values, every))

    return requires


class FilterOptions(TypedDict, total=False):
    """The filters of every search and listing, as Python says them. The annotation of each is its entry."""

    tags: Annotated[
        Sequence[str] | str | None,
        Filter(
            "texts",
            ("-t", "--tag"),
            "has this tag (repeatable: all of them)",
            requires=_has_tags,
            for_agents=True,
            guessed=True,
        ),
    ]
    any_tag: Annotated[bool, Filter("switch", ("--any-tag",), "one of the tags is enough")]
    category: Annotated[
        str | None,
        Filter(
            "text",
            ("--category",),
            "has this category: preference, fact, decision, ...",
            requires=_has_category,
            for_agents=True,
            guessed=True,
        ),
    ]
    since: Annotated[
        str | float | None,
        Filter(
            "start",
            ("--since",),
            "created since: 2026-03-01, last week, 7d, 3w",
            compares=">=",
            for_agents=True,
            hint="2026-03-01 or 7d",
        ),
    ]
    until: Annotated[
        str | float | None,
        Filter("end", ("--until",), "created until, that day included", compares="<=", for_agents=True),
    ]
    fields: Annotated[
        Mapping[str, str] | None,
        Filter("pairs", ("--where",), "any other frontmatter key (repeatable)", requires=_has_fields),
    ]
    languages: Annotated[
        Sequence[str] | str | None,
        Filter(
            "texts",
            ("--lang",),
            "is in this language: de, en, zh, ... (repeatable: one of them)",
            requires=_in_languages,
        ),
    ]
    as_of: Annotated[
        str | float | None,
        Filter(
            "end",
            ("--as-of",),
            "search the notes that existed and were valid then: 2026-03-01, 3w",
            compares="<=",
            group="time",
        ),
    ]
    outdated: Annotated[
        bool,
        Filter("switch", ("--outdated",), "include notes that were superseded or have expired", group="time"),
    ]


OPTIONS: dict[str, Filter] = {
    name: hint.__metadata__[0] for name, hint in get_type_hints(FilterOptions, include_extras=True).items()
}
"""What callers may say."""
FILTERS = OPTIONS | {
    "speakers": Filter("texts", requires=_said_by_one_of),
    "paths": Filter("texts", requires=_in_path),
    "files": Filter("texts", requires=_in_file_name),
    "keys": Filter("texts", requires=_has_keys),
    "without_tags": Filter("texts", requires=_without(_has_tags)),
    "without_paths": Filter("texts", requires=_without(_in_path)),
    "without_files": Filter("texts", requires=_without(_in_file_name)),
    "without_languages": Filter("texts", requires=_without(_in_languages)),
    "without_fields": Filter("texts", requires=_without(_has_fields)),
    "without_keys": Filter("texts", requires=_without(_has_keys)),
}
"""And what a query, or our own code, may."""


def options_in(group: Group) -> dict[str, Filter]:
    return {name: option for name, option in OPTIONS.items() if option.group == group}


def parse_values(said: FilterOptions) -> Filters:
    """The filters that a caller said. Raises InvalidInputError with the fix."""
    values = {name: PARSERS[OPTIONS[name].form](name, value) for name, value in said.items() if value is not None}
    others = tuple(sorted((name, value) for name, value in values.items() if name not in Filters._fields and value))
    return Filters(others=others, **{name: value for name, value in values.items() if name in Filters._fields})


def requirements(filters: Filters) -> list[Requirement]:
    """What these filters require of a note. All must be met."""
    return [
        requirement
        for name, entry in FILTERS.items()
        if entry.requires and (value := _value_of(filters, name)) not in (None, (), False)
        for requirement in entry.requires(value, filters)
    ]


def compared_moments(filters: Filters) -> list[tuple[str, Comparison, float]]:
    """The moments with which passages are compared, each with the name of its filter."""
    return [
        (name, entry.compares, value)
        for name, entry in FILTERS.items()
        if entry.compares and (value := _value_of(filters, name)) is not None
    ]


def _value_of(filters: Filters, name: str) -> Any:
    return getattr(filters, name) if name in Filters._fields else dict(filters.others).get(name)


def _parse_texts(name: str, value: Sequence[str] | str) -> tuple[str, ...]:
    texts = (value,) if isinstance(value, str) else tuple(value)
    return tuple(map(_language, texts)) if name == "languages" else texts


def _language(text: str) -> str:
    code = read_language(text)
    if not code:
        raise InvalidInputError(unknown_language(text))
    return code


def _parse_text(name: str, value: str) -> str:
    return value


def _parse_switch(name: str, value: bool) -> bool:
    return value


def _parse_pairs(name: str, value: Mapping[str, object]) -> tuple[tuple[str, str], ...]:
    """Values as frontmatter would write them."""
    return tuple(
        (key, str(wanted).lower() if isinstance(wanted, bool) else str(wanted)) for key, wanted in value.items()
    )


def _parse_start(name: str, value: object) -> float:
    return _moment(name, value, end=False)


def _parse_end(name: str, value: object) -> float:
    return _moment(name, value, end=True)


def _moment(name: str, value: object, end: bool) -> float:
    """`until 2026-03-01` includes that day."""
    if isinstance(value, int | float) and abs(value) < FAR_AWAY:
        return float(value)
    moment = read_when(value, time.time(), end=end) if isinstance(value, str) else read_moment(value)
    if moment is None:
        raise InvalidInputError(f"{name} must be a date like 2026-03-01, yesterday, last week or 7d, not {value!r}")
    return moment


PARSERS: dict[Form, Callable[[str, Any], Any]] = {
    "texts": _parse_texts,
    "text": _parse_text,
    "switch": _parse_switch,
    "start": _parse_start,
    "end": _parse_end,
    "pairs": _parse_pairs,
}
