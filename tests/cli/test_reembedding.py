"""`co index reembed`, and what `co index status` says about vectors."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from co_cli.embedding.static import SPACE as STATIC
from tests.command import Co
from tests.embedding.meaning.servers import TurnedOllama
from tests.folder import Vault


@pytest.fixture
def notes(vault: Vault) -> Vault:
    vault.write("memories/oak.md", "Oaks live for centuries.")
    vault.write("memories/elm.md", "The elm stands in the park.")
    return vault


@pytest.fixture
def ollama(monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> Iterator[TurnedOllama]:
    """A server that the environment chooses."""
    server = TurnedOllama()
    for name, value in (("PROVIDER", "ollama"), ("MODEL", request.node.name), ("HOST", server.url)):
        monkeypatch.setenv(f"CO_KNOWLEDGE_EMBEDDING_{name}", value)
    yield server
    server.close()


def test_a_refusing_server_exits_with_3_and_old_vectors_keep_answering(
    co: Co, notes: Vault, ollama: TurnedOllama
) -> None:
    ollama.faults = ["404"]

    ran = co("index", "reembed")

    assert ran.code == 3
    assert f"searches use {STATIC.key}, building ollama:" in ran.out
    assert "waiting: 2 passages (`co index sync`)" in ran.out
    assert "stopped: " in ran.out
    assert "ollama pull" in ran.out
    assert "Traceback" not in ran.err
    assert co("search", "oaks", "--no-sync", "--json").json["degraded"] == []


def test_without_a_provider_or_without_notes_there_is_nothing_to_embed(
    co: Co, vault: Vault, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert co("index", "reembed").code == 0
    vault.write("memories/oak.md", "Oaks live for centuries.")
    monkeypatch.setenv("CO_KNOWLEDGE_EMBEDDING_PROVIDER", "none")

    ran = co("index", "reembed")

    assert (ran.code, ran.out) == (0, "Nothing to embed: the embedding provider is `none`.\n")
    assert "vectors none: search by words only\n" in co("index", "status").out
