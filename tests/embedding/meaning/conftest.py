"""Vaults opened with one embedder or another, and a server on loopback whose vectors are of a space of their own."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from co_cli.entrance.knowledge_base import KnowledgeBase
from co_cli.ground.settings import load_settings
from tests.embedding.meaning.inside import Inside
from tests.embedding.meaning.servers import TurnedOllama
from tests.folder import Vault

Open = Callable[..., KnowledgeBase]
"""`open_kb("ollama", model, server.url)` opens the vault with this provider, model and host, and other settings."""


@pytest.fixture
def open_kb(vault: Vault, data_dir: Path) -> Iterator[Open]:
    opened: list[KnowledgeBase] = []

    def open_it(
        provider: str = "static",
        model: str | None = None,
        host: str | None = None,
        root: Path | None = None,
        **settings: object,
    ) -> KnowledgeBase:
        names = ("vault", "data_dir", "provider", "model", "host")
        values = (str(root or vault.root), str(data_dir), provider, model, host)
        keys = [name if name in names[:2] else f"knowledge_embedding_{name}" for name in names]
        chosen = {**dict(zip(keys, values, strict=True)), **settings}
        opened.append(KnowledgeBase.open(settings=load_settings(chosen)))
        return opened[-1]

    yield open_it
    for kb in opened:
        kb.close()


@pytest.fixture
def ollama() -> Iterator[TurnedOllama]:
    server = TurnedOllama()
    yield server
    server.close()


@pytest.fixture
def model(request: pytest.FixtureRequest) -> str:
    """A model's name of this test's own: what a process remembers of another test's server is of another space."""
    return "".join(letter if letter.isalnum() else "-" for letter in request.node.name)


@pytest.fixture
def inside(data_dir: Path) -> Inside:
    return Inside(data_dir)
