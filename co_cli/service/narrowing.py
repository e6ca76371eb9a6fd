"""Filters that leave nothing: which tag nobody uses, and what it is called instead.

A model or a person who guesses a tag must not take "nothing has that tag" for "nothing is known about it".
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from difflib import get_close_matches

from co_cli.index.filters import fold

MOST_SUGGESTED = 3
CLOSE = 0.5
"""`deployment` is as near to `deploy` as this asks, `nope` to `note` is too."""


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
