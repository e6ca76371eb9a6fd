"""Vaults opened with one embedder or another, and a server on loopback whose vectors are of a space of their own."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Protocol

import pytest

from co_cli.knowledge_base import KnowledgeBase
from co_cli.settings import load_settings
from tests.embedding.loopback import Loopback
from tests.meaning.inside import Inside
from tests.meaning.servers import TurnedOllama
from tests.vault import Vault


class Open(Protocol):
    """`open_kb(provider="ollama", host=server.url)` opens the vault with these settings."""

    def __call__(
        self,
        provider: str = "static",
        model: str | None = None,
        host: str | None = None,
        root: Path | None = None,
        **settings: object,
    ) -> KnowledgeBase: ...


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
        chosen = {
            "knowledge_embedding_provider": provider,
            "knowledge_embedding_model": model,
            "knowledge_embedding_host": host,
            **settings,
        }
        places = {"vault": str(root or vault.root), "data_dir": str(data_dir)}
        opened.append(KnowledgeBase.open(settings=load_settings({**places, **chosen})))
        return opened[-1]

    yield open_it
    for kb in opened:
        kb.close()


@pytest.fixture
def ollama() -> Iterator[TurnedOllama]:
    pytest.importorskip("ollama", reason="the genuine ollama client is not installed: pip install ollama")
    server = TurnedOllama()
    yield server
    server.close()


@pytest.fixture
def dead_url() -> str:
    """An address on loopback where nobody listens any more."""
    server = Loopback()
    server.close()
    return server.url


@pytest.fixture
def model(request: pytest.FixtureRequest) -> str:
    """A model's name of this test's own: what a process remembers of another test's server is of another space."""
    return "".join(letter if letter.isalnum() else "-" for letter in request.node.name)


@pytest.fixture
def inside(data_dir: Path) -> Inside:
    return Inside(data_dir)
