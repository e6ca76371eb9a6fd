from __future__ import annotations

import struct
from collections.abc import Callable

import pytest

from .loopback import Loopback


@pytest.fixture(autouse=True)
def no_settings_from_outside(monkeypatch: pytest.MonkeyPatch) -> None:
    for variable in ("OLLAMA_HOST", "OLLAMA_API_KEY", "OPENAI_API_KEY", "OPENAI_BASE_URL", "HTTP_PROXY", "ALL_PROXY"):
        monkeypatch.delenv(variable, raising=False)
        monkeypatch.delenv(variable.lower(), raising=False)


@pytest.fixture
def dead_url() -> str:
    """An address on loopback where nobody listens any more."""
    server = Loopback()
    server.close()
    return server.url


@pytest.fixture(scope="session")
def cosine() -> Callable[[bytes | None, bytes | None], float]:
    def of(one: bytes | None, other: bytes | None) -> float:
        assert one is not None
        assert other is not None
        assert len(one) == len(other)
        layout = f"<{len(one) // 4}f"
        return sum(a * b for a, b in zip(struct.unpack(layout, one), struct.unpack(layout, other), strict=True))

    return of
