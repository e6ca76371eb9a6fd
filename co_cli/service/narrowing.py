"""Filters that leave nothing: which tag nobody uses, and what it is called instead.

A model or a person who guesses a tag must not take "nothing has that tag" for "nothing is known about it".
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from difflib import get_close_matches

from co_cli.errors import KnowledgeError
from co_cli.index.filters import fold
from co_cli.values import Filters

TAG_IN_QUERY = re.compile(r"""("[^"]*+"?+)|(?<![^\s(])(?i:tag):#?([^\s"',;:()]{1,100}+)(?![^\s"',;:()])""")
"""A tag that is named outside of quotes, at the beginning of a word."""
MOST_SUGGESTED = 3
CLOSE = 0.5
"""`deployment` is as near to `deploy` as this asks, `nope` to `note` is too."""


def tags_in(query: str) -> tuple[list[str], str]:
    """The tags that a query names as `tag:NAME`, and the rest of it, which may be nothing but their names."""
    tags = [found[2].rstrip(".!?/") for found in TAG_IN_QUERY.finditer(query) if found[2]]
    tags = list(dict.fromkeys(filter(None, tags)))
    rest = TAG_IN_QUERY.sub(lambda found: found[1] or " ", query)
    return tags, rest if re.search(r"\w", rest) else re.sub(r"[/_-]", " ", " ".join(tags))


def within_tags(query: str, filters: Filters) -> tuple[list[str], str, Filters] | None:
    """The tags that a query names, with what is searched for within them; None if it names none to narrow by."""
    tags, rest = tags_in(query)
    if not tags or (filters.any_tag and filters.tags):  # one of those is enough: these would be one more of them
        return None
    return tags, rest, filters._replace(tags=(*filters.tags, *tags))


def missed(tags: Sequence[str], known: Callable[[], list[str]]) -> str:
    """Why a search within tags found nothing, in words, with what may have been meant."""
    try:
        there = known()
    except KnowledgeError:  # without an index nobody knows
        return "but nothing was found so"
    unused = unused_tags(tags, there)
    if not unused:
        return "but nothing was found so"
    close = alike(unused[0], there)
    return f"but no note has the tag {unused[0]}" + (f" (did you mean {', '.join(close)}?)" if close else "")


def unused_tags(asked: Iterable[str] | None, known: Iterable[str]) -> list[str]:
    """Those of the tags asked for that no note has, nor one below them: `ops` covers `ops/deploy`."""
    folded = [fold(tag) for tag in known]
    return [tag for tag in asked or () if not any(_covers(fold(tag.lstrip("#")), one) for one in folded)]


def alike(tag: str, known: Sequence[str]) -> list[str]:
    """Tags that may have been meant, the likeliest first."""
    folded = {fold(one): one for one in known}
    close = get_close_matches(fold(tag.lstrip("#")), folded, n=MOST_SUGGESTED, cutoff=CLOSE)
    return [folded[one] for one in close]


def _covers(asked: str, tag: str) -> bool:
    return tag == asked or tag.startswith(f"{asked}/")
