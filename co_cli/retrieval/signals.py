"""Signals: single reasons for a score, each a pure function of what is known of a note, from 0 to 1.

`words` and `meaning` are made where candidates are fused (fuse.py), link proximity in links.py; the others are here.
What a note does not say is neutral, so that nobody loses by leaving a field out.
"""

from __future__ import annotations

from math import isfinite, log1p

from co_cli.retrieval.validity import strength

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

    from co_cli.index.standing import Standing

NAMES = ("words", "meaning", "recency", "importance", "severity", "tags", "domain", "links", "tier", "use")
"""Every signal that a profile or a query can weigh."""
NEUTRAL = 0.5
HALF_LIFE = 365.0
FLOOR = 0.1
"""What the oldest note keeps: it may still be the only one that knows."""
DAY = 86_400.0
SCALE = {
    "critical": 1.0, "blocker": 1.0, "fatal": 1.0, "severe": 0.9, "high": 0.75, "major": 0.75, "error": 0.75,
    "medium": 0.5, "moderate": 0.5, "normal": 0.5, "warning": 0.5, "low": 0.25, "minor": 0.25,
    "info": 0.1, "trivial": 0.1, "none": 0.0,
}  # fmt: skip
"""Words of severity."""
MUCH_USED = 50
"""Recalls after which more of them say nothing new."""
OPENED = 3
"""Recalls that one opening is worth: found is not read."""


def recency(
    written: float | None,
    now: float,
    half_life_days: float = HALF_LIFE,
    protected: bool = False,
    standing: Standing | None = None,
) -> float:
    """Half after a half-life, and never below the floor. `written` is None for a note that does not say when.

    A window of validity says more than an age: within one, its strength counts instead.
    """
    if standing is not None and standing.valid_until is not None:
        return strength(standing, now)
    if protected:
        return 1.0
    if written is None:
        return NEUTRAL
    return max(FLOOR, 0.5 ** (max(0.0, now - written) / DAY / half_life_days))


def importance(value: object) -> float:
    """As the note says, 0 to 1; what is beyond is cut off."""
    number = _number(value)
    return NEUTRAL if number is None else min(1.0, max(0.0, number))


def severity(value: object) -> float:
    """A word of a scale, or a number: up to 1 a share, up to 5 and up to 10 a step of a scale of so many."""
    number = _number(value)
    if number is None:
        return SCALE.get(value.strip().lower(), NEUTRAL) if isinstance(value, str) else NEUTRAL
    scale = 1.0 if number <= 1 else 5.0 if number <= 5 else 10.0
    return min(1.0, max(0.0, number / scale))


def tags(asked: Collection[str], has: Iterable[str]) -> float:
    """The share of the tags that were asked for; `ops` is there in `ops/deploy`, too."""
    mine = list(has)
    found = sum(any(tag == one or tag.startswith(f"{one}/") for tag in mine) for one in asked)
    return found / len(asked) if asked else 0.0


def tags_asked(query: str, known: Iterable[str]) -> list[str]:
    """The #tags of a query, else those of its words that some candidate has as a tag."""
    words = [word.strip(",.;:!?()'\"") for word in query.casefold().split()]
    marked = [word.lstrip("#") for word in words if word.startswith("#") and word.lstrip("#")]
    if marked:
        return list(dict.fromkeys(marked))
    whole = set(known)
    return [word for word in dict.fromkeys(words) if word in whole]


def domain(query: str, named: Iterable[str]) -> float:
    """1 if the query has every word of one of the note's domains, else 0."""
    words = {word.strip(",.;:!?()'\"#") for word in query.casefold().replace("-", " ").replace("_", " ").split()}
    mine = [one.casefold().replace("-", " ").replace("_", " ").split() for one in named]
    return float(any(one and words.issuperset(one) for one in mine))


def use(recalls: int, opens: int = 0) -> float:
    """How often it was found and opened, each time counting less than the one before."""
    return min(1.0, log1p(max(0, recalls) + OPENED * max(0, opens)) / log1p(MUCH_USED))


def _number(value: object) -> float | None:
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return None
    try:
        number = float(value)
    except ValueError:
        return None
    return number if isfinite(number) else None
