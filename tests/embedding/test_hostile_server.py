"""An embedding server that wants to do harm, or is broken, costs a bounded time and memory; search goes on by words."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from co_cli.embedding.ollama import OllamaEmbedder
from co_cli.embedding.remote import RemoteEmbedder
from co_cli.errors import EmbedderUnreachableError, EmbeddingError, WrongDimensionsError
from co_cli.knowledge_base import KnowledgeBase
from co_cli.settings import load_settings
from tests.vault import Vault

from .loopback import Loopback, OllamaServer, OpenAIServer

pytest.importorskip("ollama", reason="the genuine ollama client is not installed: pip install ollama")
pytest.importorskip("openai", reason='openai is not installed: pip install "pydantic-ai-slim[openai]"')

Ask = Callable[[float], object]
FAULTS: dict[str, type[EmbeddingError]] = {
    "endless": EmbeddingError,
    "packed": EmbeddingError,
    "drips": EmbedderUnreachableError,
    "drips its head": EmbedderUnreachableError,
    "wrong dimensions": WrongDimensionsError,
    "nan": EmbeddingError,
    "infinity": EmbeddingError,
    "zeros": WrongDimensionsError,
    "one vector too few": EmbeddingError,
    "truncated": EmbeddingError,
    "cut": EmbeddingError,
}


@pytest.fixture(params=["ollama", "openai"])
def asking(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[Loopback, Ask]]:
    """A server, and a query to it through the genuine client that gives up after so many seconds."""
    monkeypatch.setattr("co_cli.embedding.bounded.MOST_BYTES", 2_000_000)
    server: Loopback = OllamaServer() if request.param == "ollama" else OpenAIServer()
    opened: dict[float, OllamaEmbedder | RemoteEmbedder] = {}

    def ask(seconds: float) -> object:
        if seconds not in opened:
            key = {"OPENAI_API_KEY": "k"}
            opened[seconds] = (
                OllamaEmbedder(host=server.url, query_seconds=seconds)
                if request.param == "ollama"
                else RemoteEmbedder("openai", host=server.url, dimensions=256, query_seconds=seconds, environment=key)
            )
        return opened[seconds].embed(["oaks"], "query")

    ask(30.0)  # importing a client takes its time
    yield server, ask
    for embedder in opened.values():
        embedder.close()
    server.close()


@pytest.mark.parametrize("fault", FAULTS)
def test_it_is_refused_within_its_time_and_size(asking: tuple[Loopback, Ask], fault: str) -> None:
    server, ask = asking
    server.faults = [fault]
    started = time.monotonic()

    with pytest.raises(FAULTS[fault]) as raised:
        ask(1.0 if fault.startswith("drips") else 30.0)

    assert time.monotonic() - started < 60
    if fault in ("endless", "packed"):
        assert "gave an answer that is no vectors" in str(raised.value)
        assert server.written < 20_000_000
    assert "\n" not in str(raised.value)
    assert ask(30.0)  # and the next answer is taken


@pytest.mark.parametrize("fault", ["endless", "packed", "infinity", "zeros"])
def test_a_search_goes_on_by_words_and_says_why(
    vault: Vault, data_dir: Path, fault: str, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> None:
    monkeypatch.setattr("co_cli.embedding.bounded.MOST_BYTES", 2_000_000)
    server = OllamaServer()
    request.addfinalizer(server.close)
    monkeypatch.setenv("CO_KNOWLEDGE_EMBEDDING_PROVIDER", "ollama")
    monkeypatch.setenv("CO_KNOWLEDGE_EMBEDDING_HOST", server.url)
    vault.write("memories/oak.md", "Oaks live long.")
    settings = load_settings({"vault": os.fspath(vault.root), "data_dir": os.fspath(data_dir)})
    with KnowledgeBase.open(settings=settings) as kb:
        kb.sync()
        server.faults = [fault]
        found = kb.search("oaks")

    assert [hit.ref for hit in found.hits] == ["memory:oak"]
    assert any("Ollama" in reason for reason in found.degraded)
