"""An embedder that is down, slow or sends nonsense costs meaning, but no answer, no note, and no time of writers."""

from __future__ import annotations

import logging
import socket
import time
from collections.abc import Sequence
from contextlib import closing

import apsw
import pytest

from co_cli.embedding.remote_embedders import SECONDS
from co_cli.embedding.space import EmbedKind, Vector
from co_cli.embedding.static import StaticEmbedder
from co_cli.entrance.knowledge_base import KnowledgeBase
from co_cli.ground.errors import EmbeddingError
from co_cli.ground.hits import SearchResult
from tests.embedding.loopback import OpenAIServer
from tests.embedding.meaning.conftest import Open
from tests.embedding.meaning.inside import Inside
from tests.embedding.meaning.servers import TurnedOllama
from tests.folder import Vault

OAK = "Oaks live for centuries."


def settled(open_kb: Open, vault: Vault, ollama: TurnedOllama, model: str) -> KnowledgeBase:
    """A vault of one note that answers with the server's vectors."""
    vault.write("memories/oak.md", OAK)
    kb = open_kb("ollama", model, ollama.url)
    kb.sync()
    assert kb.status().space == f"ollama:{model}:256:1"
    assert kb.search("oaks").degraded == []
    return kb


def answered_by_words(found: SearchResult) -> None:
    assert [hit.ref for hit in found.hits] == ["memory:oak"]
    assert found.state == "found"
    [problem] = found.degraded
    assert problem.startswith("answered by words: ")
    assert found.backend == "fts5"
    assert "meaning" not in found.hits[0].signals


def test_nonsense_and_late_answers_are_answered_by_words(
    open_kb: Open, vault: Vault, ollama: TurnedOllama, model: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    kb = settled(open_kb, vault, ollama, model)
    faults = {
        "404": "ollama pull",
        "500": "HTTP 500",
        "nan": "not finite",
        "truncated": "broke off",
        "cut": "broke off",
    }
    for fault, said in {**faults, "slow": "did not answer within 0.5 s"}.items():
        ollama.faults = [fault]
        with monkeypatch.context() as hasty:
            hasty.setitem(SECONDS, "query", 0.5 if fault == "slow" else 60.0)
            found = kb.search("oaks")

        answered_by_words(found)
        assert said in found.degraded[0]
        assert kb.search("oaks").degraded == []


def test_a_question_that_finds_nothing_by_words_is_inconclusive_without_its_embedder(
    open_kb: Open, vault: Vault, ollama: TurnedOllama, model: str
) -> None:
    kb = settled(open_kb, vault, ollama, model)
    ollama.faults = ["404"]

    assert kb.search("longevity").state == "inconclusive"


def test_a_note_saved_without_an_embedder_waits_and_is_embedded_by_the_next_sync_that_can(
    open_kb: Open, vault: Vault, ollama: TurnedOllama, model: str, inside: Inside, caplog: pytest.LogCaptureFixture
) -> None:
    kb = settled(open_kb, vault, ollama, model)
    ollama.faults = ["404", "404"]

    with caplog.at_level(logging.WARNING, "co_cli"):
        first = kb.remember("The elm stands in the park.")
        second = kb.remember("The yew grows in the churchyard.")

    assert (first.outcome, second.outcome) == ("created", "created")
    assert kb.status().unembedded == 2
    assert [hit.ref for hit in kb.search("churchyard", backend="fts5").hits] == [second.ref]
    assert len([record for record in caplog.records if "notes wait" in record.message]) == 1

    ollama.faults = []
    kb.sync()

    assert (kb.status().unembedded, inside.waiting) == (0, 0)
    assert len(inside.vectors("docs_vec_2")) == 3
    assert "meaning" in kb.search("churchyard").hits[0].signals


def test_a_save_does_not_wait_for_a_server_that_hangs(
    open_kb: Open, vault: Vault, ollama: TurnedOllama, model: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("co_cli.knowledge_index.SAVE_SECONDS", 0.5)
    kb = settled(open_kb, vault, ollama, model)
    ollama.faults = ["slow"] * 3

    started = time.monotonic()
    saved = kb.remember("The elm stands in the park.")

    assert time.monotonic() - started < 20
    assert saved.outcome == "created"
    assert kb.status().unembedded == 1
    assert [hit.ref for hit in kb.search("elm", backend="fts5").hits] == [saved.ref]


def test_an_unreachable_ollama_costs_one_wait_for_all_processes_and_is_reported(
    open_kb: Open, vault: Vault, ollama: TurnedOllama, model: str
) -> None:
    vault.write("memories/oak.md", OAK)
    ollama.close()
    open_kb("ollama", model, ollama.url).sync(seconds=2.0)

    with socket.create_server(("127.0.0.1", int(ollama.url.rpartition(":")[2]))) as listener:
        later = open_kb("ollama", f"{model}-2", ollama.url)  # a space that this process has not tried yet
        later.sync(seconds=2.0)
        found = later.search("oaks")
        listener.setblocking(False)
        with pytest.raises(BlockingIOError):  # nobody asked it again
            listener.accept()

    assert [hit.ref for hit in found.hits] == ["memory:oak"]
    [problem] = found.degraded
    assert f"Ollama is not running at {ollama.url}" in problem
    assert "`co index sync`" in problem


class Unusable(StaticEmbedder):
    """The embedded model, when its file is damaged."""

    def embed(self, texts: Sequence[str], kind: EmbedKind, seconds: float | None = None) -> list[Vector | None]:
        raise EmbeddingError("its file cannot be used")


def test_the_first_note_of_a_vault_is_saved_and_found_though_the_model_is_damaged(
    kb: KnowledgeBase, vault: Vault, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("co_cli.embedding.static.shared_embedder", Unusable)

    assert kb.remember("Oaks live long.").outcome == "created"

    found = kb.search("oaks")
    assert [hit.ref for hit in found.hits] == ["memory:oaks-live-long"]
    assert any("its file cannot be used" in told for told in found.degraded)


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


@pytest.mark.parametrize("synced", [False, True])
def test_doctor_names_an_embedding_server_that_is_dead_and_what_search_uses_instead(
    open_kb: Open, vault: Vault, ollama: TurnedOllama, model: str, synced: bool
) -> None:
    vault.write("memories/oak.md", OAK)
    open_kb().sync()
    kb = open_kb("ollama", model, ollama.url)
    (alive,) = [finding for finding in kb.doctor() if finding.check == "vectors"]
    assert (alive.level, alive.fix) == ("warning", "co index sync")

    ollama.close()
    if synced:
        kb.sync(seconds=2.0)
    (dead,) = [finding for finding in kb.doctor() if finding.check == "vectors"]

    assert (dead.level, dead.fix) == ("warning", "run `ollama serve`, or set OLLAMA_HOST")
    assert dead.text.startswith(
        f"Ollama is not running at {ollama.url}; until then search uses the older vectors of static"
    )


def test_doctor_asks_a_server_again_that_could_not_be_reached_a_moment_ago(
    open_kb: Open, vault: Vault, ollama: TurnedOllama, model: str
) -> None:
    kb = settled(open_kb, vault, ollama, model)
    kb.embedders.outage.note("Ollama is not running: run `ollama serve`")

    (finding,) = [finding for finding in kb.doctor() if finding.check == "vectors"]

    assert (finding.level, finding.text) == ("ok", f"vectors: ollama:{model}:256:1")


def test_doctor_names_the_address_of_another_provider_that_is_dead(
    open_kb: Open, vault: Vault, ollama: TurnedOllama, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "none")
    ollama.close()
    vault.write("memories/oak.md", OAK)
    kb = open_kb("openai", None, ollama.url)

    (finding,) = [finding for finding in kb.doctor() if finding.check == "vectors"]

    assert finding.text.startswith(f"openai's text-embedding-3-small at {ollama.url} cannot be reached")


@pytest.mark.medium
def test_a_dead_ollama_does_not_switch_off_the_vectors_of_openai(
    open_kb: Open, vault: Vault, ollama: TurnedOllama, model: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    vault.write("memories/oak.md", OAK)
    ollama.close()
    with closing(OpenAIServer()) as openai:
        monkeypatch.setenv("OPENAI_API_KEY", "sk-openai")
        monkeypatch.setenv("OPENAI_BASE_URL", openai.url)
        open_kb("openai").sync()

        later = open_kb("ollama", model, ollama.url)
        later.sync(seconds=60)  # finds out that the server is down, and notes it
        found = later.search("how long do oaks live")
        saved = later.remember("The elm stands in the park.")

        assert found.hits[0].signals["meaning"] > 0
        [problem] = found.degraded
        assert problem.startswith("answered with the vectors of openai: Ollama is not running at")
        assert later.search("elm").hits[0].ref == saved.ref
        assert later.search("elm").hits[0].signals["meaning"] > 0, "new notes get OpenAI's vectors, too"
        [problem] = later.search("elm").degraded
        assert "Ollama is not running at" in problem, "OpenAI's answers do not clear what is noted about Ollama"
