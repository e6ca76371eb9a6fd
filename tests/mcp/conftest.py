"""One server per module: starting one takes a second."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.mcp.talking import LEGACY, MODERN, Place, Talk, http_server, over_http, over_stdio


@pytest.fixture
def place(tmp_path: Path) -> Place:
    """An empty vault, for a server of this test's own."""
    return Place(tmp_path)


both_transports = pytest.mark.parametrize("served", ["stdio", "http"], indirect=True, scope="module")


@pytest.fixture(scope="module")
def served(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Place, Talk]]:
    """A vault and a client of its server: the newest protocol over HTTP, or the 2025 one over stdio."""
    place = Place(tmp_path_factory.mktemp("served"))
    if getattr(request, "param", "http") == "stdio":
        with over_stdio(place, mode=LEGACY) as talk:
            yield place, talk
    else:
        with http_server(place) as (_, address), over_http(address, MODERN) as talk:
            yield place, talk
