"""An activity.db of its own, answers to record, and a clock that a test sets."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from co_cli.activity import Activity
from co_cli.activity.events import Head, Indexed
from co_cli.ground.hits import Hit, Searched, SearchResult
from co_cli.ground.settings import load_settings
from tests.folder import Vault

NOON = 1_794_744_000.0
"""2026-11-15T12:00:00Z."""
Opener = Callable[..., Activity]


def answer(
    root: Path, query: str, *slugs: str, took_ms: float = 5.0, degraded: list[str] | None = None, state: str = ""
) -> SearchResult:
    """The result of a search that found these memories."""
    hits = [
        Hit(
            ref=f"memory:{slug}",
            source="memory",
            path=str(root / "memories" / f"{slug}.md"),
            title=slug,
            snippet="",
            lines=(1, 1),
            score=round(0.9 - place / 10, 4),
            signals={"words": 0.5},
            tags=(),
            created="2026-11-15T12:00:00Z",
        )
        for place, slug in enumerate(slugs)
    ]
    found: Any = state or ("found" if hits else "absent")
    return SearchResult(query, found, degraded or [], "hybrid", Searched(3, 3, None), hits, took_ms)


def rows(activity: Activity, statement: str) -> list[Any]:
    """What activity.db says, once everything recorded so far is in it."""
    assert activity.flush(), activity.problem
    with activity.database.reading() as connection:
        return connection.execute(statement).fetchall()


def index(activity: Activity, *heads: Head, **changes: Any) -> None:
    """Record a change of the index."""
    activity.write([Indexed(activity.root, activity.clock(), heads, **changes)])
    assert not activity.dropped, activity.problem


Tell = Callable[[str], None] | None


@pytest.fixture
def open_activity(data_dir: Path, vault: Vault) -> Opener:
    """Settings as keywords, such as `query_log="off"`."""

    def opener(brief: bool = False, root: str | None = None, tell: Tell = None, **settings: str) -> Activity:
        flags = replace(load_settings({"vault": str(vault.root), "data_dir": str(data_dir)}), **settings)
        activity = Activity(flags, root or str(vault.root), brief=brief, on_set_aside=tell)
        activity.clock = lambda: NOON
        return activity

    return opener


@pytest.fixture
def activity(open_activity: Opener) -> Iterator[Activity]:
    with open_activity() as opened:
        yield opened
