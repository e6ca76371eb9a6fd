"""A search that waits for somebody slow reads nothing meanwhile, so nobody who writes has to wait for it."""

from __future__ import annotations

from collections.abc import Sequence

import apsw
import pytest

from co_cli import KnowledgeBase
from tests.meaning.conftest import Open
from tests.meaning.servers import TurnedOllama
from tests.vault import Vault

WRITE = "update vaults set id = id"


@pytest.fixture
def by_ollama(open_kb: Open, vault: Vault, ollama: TurnedOllama, model: str) -> KnowledgeBase:
    vault.write("memories/oak.md", "Oaks live for centuries.")
    vault.write("memories/fee.md", "The mooring fee is due in spring.")
    kb = open_kb("ollama", model, ollama.url)
    kb.sync()
    return kb


class Writer:
    """Writes and empties the write-ahead log at once, which SQLite refuses while somebody has a snapshot open."""

    def __init__(self, kb: KnowledgeBase) -> None:
        self._path = kb.engine.path
        self.refused: list[bool] = []

    def write(self) -> None:
        connection = apsw.Connection(self._path)
        try:
            connection.execute(WRITE)
            connection.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_TRUNCATE)
            self.refused.append(False)
        except apsw.BusyError:
            self.refused.append(True)
        finally:
            connection.close()


def test_the_log_is_emptied_while_a_question_is_being_embedded(by_ollama: KnowledgeBase, ollama: TurnedOllama) -> None:
    writer = Writer(by_ollama)
    ollama.meanwhile = writer.write
    asked = len(ollama.requests)

    found = by_ollama.search("how old do trees become")

    assert writer.refused == [False]
    assert found.degraded == []
    assert "meaning" in found.hits[0].signals
    assert len(ollama.requests) == asked + 1, "a question is embedded once"


def test_the_log_is_emptied_while_somebody_asks_why(by_ollama: KnowledgeBase, ollama: TurnedOllama) -> None:
    writer = Writer(by_ollama)
    ollama.meanwhile = writer.write

    told = by_ollama.why("how old do trees become", "memory:oak")

    assert writer.refused == [False]
    assert told.rank == 1


def test_the_log_is_emptied_while_a_reranker_thinks(kb: KnowledgeBase, vault: Vault) -> None:
    vault.write("memories/oak.md", "Oaks live for centuries.")
    vault.write("memories/elm.md", "Oaks and elms live in the park.")
    kb.sync()
    writer = Writer(kb)

    def shortest(query: str, texts: Sequence[str]) -> list[float]:
        writer.write()
        return [-float(len(text)) for text in texts]

    found = kb.search("oaks live", reranker=shortest)

    assert writer.refused == [False]
    assert found.degraded == []
    assert [hit.ref for hit in found.hits] == ["memory:oak", "memory:elm"]
