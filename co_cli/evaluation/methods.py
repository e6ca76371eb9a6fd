"""Names of ways to answer: `co` is the product as the settings have it, `co:NAME` one of its backends or profiles,
and every other name a baseline.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import NamedTuple

from co_cli.errors import InvalidInputError
from co_cli.evaluation.baselines import BASELINES, WITH_VECTORS, Desk, Ranking
from co_cli.notes.refs import without_lines
from co_cli.retrieval.profiles import PROFILES
from co_cli.service.asking import BACKENDS

PRODUCT = "co"
LIMIT = 10
"""Hits asked for, as a person would."""


LookedAt = Sequence[tuple[str, Sequence[float]]]
"""Refs of passages that were looked at closely, and what each signal says of them."""


class Answer(NamedTuple):
    """What a method returned, how long it took, and what was missing, in words."""

    ranking: Ranking
    seconds: float
    degraded: str = ""
    looked_at: LookedAt = ()
    """What there was to choose from, if the method tells."""


class Method(NamedTuple):
    """A way to answer a question. For an experiment, make one of your own."""

    name: str
    answer: Callable[[Desk, str], Answer]
    needs_vectors: bool = False


def method(name: str) -> Method:
    """By its name. Raises InvalidInputError with the names there are."""
    if name in BASELINES:
        return Method(name, _baseline(name), name in WITH_VECTORS)
    if name == PRODUCT:
        return Method(name, _product({}))
    kind, _, choice = name.partition(":")
    if kind == PRODUCT and choice in BACKENDS:
        return Method(name, _product({"backend": choice}))
    if kind == PRODUCT and choice in PROFILES:
        return Method(name, _product({"profile": choice}))
    raise InvalidInputError(f"there is no method {name!r}; there are {', '.join(method_names())}")


def method_names() -> list[str]:
    return [PRODUCT, *(f"{PRODUCT}:{choice}" for choice in (*BACKENDS, *PROFILES)), *BASELINES]


def default_methods() -> list[Method]:
    """The product and every baseline."""
    return [method(name) for name in (PRODUCT, *BASELINES)]


def answerable(methods: Sequence[Method], desk: Desk) -> list[Method]:
    """Those that this vault can be asked with: some need vectors, and settings may want words alone."""
    return [method for method in methods if desk.provider is not None or not method.needs_vectors]


def _product(options: dict[str, str]) -> Callable[[Desk, str], Answer]:
    def answer(desk: Desk, text: str) -> Answer:
        started = time.perf_counter()
        # what no longer holds too: a question may be about that, and figures must not change with the calendar
        found = desk.kb.search(text, limit=LIMIT, outdated=True, **options)  # pyright: ignore[reportArgumentType]
        seconds = time.perf_counter() - started
        ranking = [(without_lines(hit.ref), hit.score) for hit in found.hits]
        return Answer(ranking, seconds, "; ".join(found.degraded))

    return answer


def _baseline(name: str) -> Callable[[Desk, str], Answer]:
    def answer(desk: Desk, text: str) -> Answer:
        desk.begin()
        started = time.perf_counter()
        with desk.index.snapshot():
            ranking = BASELINES[name](desk, text, LIMIT)
        return Answer(ranking, time.perf_counter() - started + desk.owed)

    return answer
