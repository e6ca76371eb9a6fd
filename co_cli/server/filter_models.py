"""The table of filters as fields of requests: in a URL as on the command line, in a JSON body as in Python."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast, get_type_hints

from pydantic import BaseModel, create_model

from co_cli.index.filter_table import OPTIONS, FilterOptions, Form, Group, options_in

IN_URL: dict[Form, tuple[Any, Any]] = {
    "texts": (Sequence[str], ()),
    "text": (str | None, None),
    "switch": (bool, False),
    "start": (str | None, None),
    "end": (str | None, None),
    "pairs": (Sequence[str], ()),
}
"""Type and default. Pairs are texts such as `key=value`."""


def url_filters(*groups: Group) -> type[BaseModel]:
    """A model with the filters of these groups, for requests whose values are in the URL."""
    fields: dict[str, Any] = {
        option.word: IN_URL[option.form] for group in groups for option in options_in(group).values()
    }
    return create_model("UrlFilters", **fields)


def with_filters(model: type[BaseModel]) -> type[BaseModel]:
    """The model with every filter as another field, as Python says it."""
    fields: dict[str, Any] = {
        name: (hint, False if OPTIONS[name].form == "switch" else None)
        for name, hint in get_type_hints(FilterOptions).items()
    }
    return create_model(model.__name__, __base__=model, **fields)


def filters_of(asked: BaseModel) -> FilterOptions:
    """The filters in a URL. An empty text, as a form sends it, filters nothing."""
    given = {
        name: getattr(asked, option.word) for name, option in OPTIONS.items() if option.word in type(asked).model_fields
    }
    said = {name: value for name, value in given.items() if value}
    for name in said:
        if OPTIONS[name].form == "pairs":
            said[name] = {key: value for key, _, value in (text.partition("=") for text in said[name])}
    return cast("FilterOptions", said)
