"""A server for a whole module, over each transport: starting one costs a second."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.mcp_server.talking import LEGACY, MODERN, Place, Talk, http_server, over_http, over_stdio

LOGGED = 230
"""Articles that are in a served vault from the start, one a day of 2025."""


@pytest.fixture
def place(tmp_path: Path) -> Place:
    """An empty vault, for a server of this test's own."""
    return Place(tmp_path)


@pytest.fixture(scope="module", params=["stdio", "http"])
def served(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Place, Talk]]:
    """A vault and a client of its server: today's protocol over stdio, the newest over HTTP."""
    place = Place(tmp_path_factory.mktemp("served"))
    for number in range(LOGGED):
        day = f"2025-{1 + number // 28:02}-{1 + number % 28:02}"
        text = f"---\ntitle: Log {number}\ncreated: {day}\n---\nDay {number}."
        place.vault.write(f"articles/log/{number:03}.md", text)
    if request.param == "stdio":
        with over_stdio(place, mode=LEGACY) as talk:
            yield place, talk
    else:
        with http_server(place) as (_, address), over_http(address, MODERN) as talk:
            yield place, talk
