"""The genuine clients of Ollama and OpenAI against servers on loopback, which answer well, fail or attack."""

from __future__ import annotations

import asyncio
import importlib.util
import threading
import time
from collections.abc import Callable, Iterator
from typing import NamedTuple

import pytest

from co_cli.embedding.remote import BATCH_TEXTS, MAX_TEXT, PAUSES, RemoteEmbedder, remote_space
from co_cli.embedding.space import EmbedKind
from co_cli.errors import (
    EmbedderUnreachableError,
    EmbeddingError,
    ModelMissingError,
    SettingsError,
    WrongDimensionsError,
)

from .loopback import Loopback, OllamaServer, OpenAIServer

SECRET = "sk-secret-4711"


class Remote(NamedTuple):
    """A server, an embedder that uses it, and the seconds that the embedder would have waited."""

    server: Loopback
    embedder: RemoteEmbedder
    waits: list[float]

    def within(self, seconds: float) -> RemoteEmbedder:
        limits: dict[EmbedKind, float] = {"query": seconds, "document": seconds}
        return RemoteEmbedder(self.embedder.space, self.server.url, seconds=limits, sleep=self.waits.append)


@pytest.fixture(params=["ollama", "openai"])
def remote(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[Remote]:
    monkeypatch.setenv("OPENAI_API_KEY", SECRET)
    monkeypatch.setenv("OLLAMA_API_KEY", SECRET)
    server = OllamaServer() if request.param == "ollama" else OpenAIServer()
    waits: list[float] = []
    yield Remote(server, RemoteEmbedder(remote_space(request.param), server.url, sleep=waits.append), waits)
    server.close()


@pytest.fixture
def ollama() -> Iterator[OllamaServer]:
    server = OllamaServer()
    yield server
    server.close()


def test_a_question_is_nearest_to_the_note_that_means_the_same(remote: Remote, cosine: Callable[..., float]) -> None:
    [question] = remote.embedder.embed(["how do we calm an angry customer"], "query")
    apology, backup = remote.embedder.embed(
        ["Support\nDe-escalation starts with an apology to the client.", "Ops\nThe database backup runs at night."],
        "document",
    )

    assert [request["dimensions"] for request in remote.server.requests] == [256, 256]
    assert cosine(question, question) == pytest.approx(1.0, abs=1e-5)
    assert cosine(question, apology) > cosine(question, backup)


def test_a_server_that_ignores_dimensions_is_cut_to_unit_vectors(remote: Remote, cosine: Callable[..., float]) -> None:
    remote.server.vectors = lambda texts, dimensions: [[0.5] * 768 for _ in texts]  # pyright: ignore[reportAttributeAccessIssue]

    [vector] = remote.embedder.embed(["blue"], "document")

    assert vector is not None
    assert len(vector) == 4 * 256
    assert cosine(vector, vector) == pytest.approx(1.0, abs=1e-5)


def test_many_texts_are_sent_in_batches_and_come_back_in_order(remote: Remote, cosine: Callable[..., float]) -> None:
    texts = [f"note number {number} about {'deploys' if number % 2 else 'customers'}" for number in range(70)]

    vectors = remote.embedder.embed(texts, "document")

    assert [len(request["input"]) for request in remote.server.requests] == [BATCH_TEXTS, BATCH_TEXTS, 6]
    [alone] = remote.embedder.embed([texts[69]], "document")
    assert cosine(vectors[69], alone) == pytest.approx(1.0, abs=1e-5)


def test_long_texts_are_cut_and_sent_in_smaller_batches(remote: Remote) -> None:
    remote.embedder.embed(["word " * 5_000] * 10, "document")

    assert [len(request["input"]) for request in remote.server.requests] == [7, 3]
    assert len(remote.server.requests[0]["input"][0]) < MAX_TEXT + 100


def test_a_blank_text_has_no_vector_and_is_not_sent(remote: Remote) -> None:
    vectors = remote.embedder.embed(["blue", "  \n", "green"], "document")

    assert [vector is None for vector in vectors] == [False, True, False]
    assert len(remote.server.requests[0]["input"]) == 2
    assert remote.embedder.embed([""], "query") == [None]
    assert len(remote.server.requests) == 1


def test_it_can_be_called_where_an_event_loop_is_running(remote: Remote) -> None:
    async def embed() -> list[bytes | None]:
        return remote.embedder.embed(["blue"], "query")

    assert asyncio.run(embed()) != [None]
    assert asyncio.run(embed()) != [None]


def test_several_threads_share_one_embedder(remote: Remote) -> None:
    found: list[list[bytes | None]] = []
    threads = [
        threading.Thread(target=lambda: found.append(remote.embedder.embed(["blue"], "document"))) for _ in range(4)
    ]

    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert len(found) == 4
    assert all(vectors == found[0] for vectors in found)


@pytest.mark.parametrize("fault", ["500", "503", "429", "truncated", "cut"])
def test_documents_are_tried_again_and_a_query_is_not(remote: Remote, fault: str) -> None:
    remote.server.faults = [fault]
    with pytest.raises(EmbedderUnreachableError):
        remote.embedder.embed(["blue"], "query")
    assert len(remote.server.requests) == 1
    assert remote.waits == []

    remote.server.faults = [fault] * 2
    assert remote.embedder.embed(["blue"], "document") != [None]
    assert remote.waits == [*PAUSES[:2]]


def test_a_problem_that_does_not_pass_is_reported_after_the_last_try(remote: Remote) -> None:
    remote.server.faults = ["500"] * 10

    with pytest.raises(EmbedderUnreachableError, match="HTTP 500"):
        remote.embedder.embed(["blue"], "document")
    assert len(remote.server.requests) == 1 + len(PAUSES)


@pytest.mark.parametrize("remote", ["openai"], indirect=True)
def test_documents_wait_as_long_as_the_provider_asks_but_not_for_an_hour(remote: Remote) -> None:
    remote.server.faults = ["429 7"]
    assert remote.embedder.embed(["blue"], "document") != [None]
    assert remote.waits == [7.0]

    remote.server.faults = ["429 3600"]
    with pytest.raises(EmbedderUnreachableError, match="try again in 3600 s"):
        remote.embedder.embed(["blue"], "document")
    assert remote.waits == [7.0]


def test_a_server_that_dies_between_batches_gives_no_half_answer(remote: Remote) -> None:
    remote.server.faults = [None, "dies"]

    with pytest.raises(EmbedderUnreachableError):
        remote.embedder.embed([f"note {number}" for number in range(70)], "document")


@pytest.mark.parametrize(
    ("fault", "error", "said"),
    [
        ("404", ModelMissingError, "`ollama pull embeddinggemma`|CO_KNOWLEDGE_EMBEDDING_MODEL"),
        ("400", EmbeddingError, "HTTP 400"),
        ("wrong dimensions", WrongDimensionsError, "100 dimensions where 256 are needed"),
        ("nan", WrongDimensionsError, "NaN or infinity"),
        ("infinity", WrongDimensionsError, "NaN or infinity"),
        ("zeros", WrongDimensionsError, "zeros instead of a vector"),
        ("one vector too few", EmbeddingError, "1 vectors for 2 texts"),
        ("endless", EmbeddingError, "the answer from 127.0.0.1 was refused"),
        ("packed", EmbeddingError, "the answer from 127.0.0.1 was refused"),
    ],
)
def test_a_wrong_answer_is_refused_at_once_on_one_line(
    remote: Remote, fault: str, error: type[EmbeddingError], said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("co_cli.embedding.remote.MAX_ANSWER_BYTES", 2_000_000)
    remote.server.faults = [fault]

    with pytest.raises(error, match=said) as raised:
        remote.embedder.embed(["blue", "green"], "document")

    assert "\n" not in str(raised.value)
    assert len(remote.server.requests) == 1
    assert remote.server.written < 20_000_000
    assert remote.embedder.embed(["blue"], "document") != [None]


def test_words_instead_of_numbers_are_refused(remote: Remote) -> None:
    remote.server.faults = ["words"]

    with pytest.raises(EmbeddingError, match="sent"):
        remote.embedder.embed(["blue"], "query")


@pytest.mark.parametrize("fault", ["slow", "drips", "drips its head"])
def test_a_slow_server_is_left_when_the_time_is_over(remote: Remote, fault: str) -> None:
    remote.embedder.embed(["the clients are imported"], "query")
    remote.server.faults = [fault]
    started = time.monotonic()

    with pytest.raises(EmbedderUnreachableError, match=r"did not answer within 0\.5 s"):
        remote.within(0.5).embed(["blue"], "query")
    assert time.monotonic() - started < 20


@pytest.mark.parametrize("fault", ["400", "401", "403", "500"])
def test_a_key_is_never_in_a_message_though_the_server_repeats_it(remote: Remote, fault: str) -> None:
    remote.server.faults = [fault]

    with pytest.raises(EmbeddingError) as raised:
        remote.embedder.embed(["blue"], "query")

    assert remote.server.keys == [SECRET]
    assert SECRET not in str(raised.value)
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize(("provider", "said"), [("ollama", "`ollama serve`"), ("openai", "cannot be reached")])
def test_a_server_that_is_not_running_is_reported_without_the_password_of_its_address(
    provider: str, said: str, dead_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", SECRET)
    address = dead_url.replace("//", f"//me:{SECRET}@")

    with pytest.raises(EmbedderUnreachableError, match=said) as raised:
        RemoteEmbedder(remote_space(provider), address).embed(["blue"], "query")
    assert SECRET not in str(raised.value)


def test_embeddinggemma_gets_its_prompts(ollama: OllamaServer) -> None:
    embedder = RemoteEmbedder(remote_space("ollama", "somebody/embeddinggemma:300m"), ollama.url)

    embedder.embed(["blue pool"], "query")
    embedder.embed(["Deploys\nRolling back\nBlue first.", "just one line", "\nno title {text}"], "document")

    assert [request["input"] for request in ollama.requests] == [
        ["task: search result | query: blue pool"],
        [
            "title: Deploys | text: Rolling back\nBlue first.",
            "title: none | text: just one line",
            "title: none | text: \nno title {text}",
        ],
    ]


def test_an_unknown_ollama_model_gets_the_text_as_it_is(ollama: OllamaServer) -> None:
    RemoteEmbedder(remote_space("ollama", "somebody/else"), ollama.url).embed(["Deploys\nBlue first."], "document")

    assert ollama.requests[0]["input"] == ["Deploys\nBlue first."]


def test_ollamas_address_comes_from_the_environment(ollama: OllamaServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OLLAMA_HOST", ollama.url)

    assert RemoteEmbedder(remote_space("ollama")).embed(["blue"], "query") != [None]


@pytest.mark.parametrize(
    ("provider", "model", "said"),
    [
        ("openai", None, "not set up: .*OPENAI_API_KEY"),
        ("voyageai", None, r'not set up: .*pip install "pydantic-ai-slim\[voyageai\]"'),
        ("opnai", "text-embedding-3-small", "opnai is not set up: Unknown provider"),
    ],
)
def test_what_a_provider_lacks_is_reported_by_the_first_call(provider: str, model: str | None, said: str) -> None:
    if provider == "voyageai" and importlib.util.find_spec("voyageai"):
        pytest.skip("the package of this provider is installed")
    embedder = RemoteEmbedder(remote_space(provider, model))

    with pytest.raises(EmbeddingError, match=said):
        embedder.embed(["blue"], "query")


def test_a_provider_that_has_one_address_refuses_another() -> None:
    embedder = RemoteEmbedder(remote_space("openrouter", "some/model"), "http://127.0.0.1:1/v1")

    with pytest.raises(SettingsError, match="cannot be given an address"):
        embedder.embed(["blue"], "query")
