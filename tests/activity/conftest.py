"""An activity.db of its own, answers to tell it of, and a clock that a test turns."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from co_cli.activity import Activity
from co_cli.values import Hit, Searched, SearchResult
from tests.vault import Vault

NOON = 1_794_744_000.0
"""2026-11-15T12:00:00Z."""


class Clock:
    def __init__(self) -> None:
        self.now = NOON

    def __call__(self) -> float:
        return self.now


def answer(
    root: Path, query: str, *slugs: str, took_ms: float = 5.0, degraded: list[str] | None = None, state: str = ""
) -> SearchResult:
    """What a search says that found these memories."""
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
    told: Any = state or ("found" if hits else "absent")
    return SearchResult(query, told, degraded or [], "hybrid", Searched(3, 3, None), hits, took_ms)


def rows(activity: Activity, statement: str) -> list[Any]:
    """What activity.db says, once everything told so far is in it."""
    assert activity.flush()
    with activity.database.reading() as connection:
        return connection.execute(statement).fetchall()


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def activity(data_dir: Path, vault: Vault, clock: Clock) -> Iterator[Activity]:
    with Activity(str(data_dir), str(vault.root), clock=clock) as opened:
        yield opened
