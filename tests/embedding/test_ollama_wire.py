"""The genuine ollama client against a loopback server that speaks /api/embed, and what happens when it misbehaves."""

from __future__ import annotations

import time
from collections.abc import Callable

import pytest

from co_cli.embedding.ollama import BATCH_TEXTS, OllamaEmbedder
from co_cli.errors import EmbedderUnreachableError, EmbeddingError, ModelMissingError, WrongDimensionsError

from .loopback import OllamaServer

pytest.importorskip("ollama", reason="the genuine ollama client is not installed: pip install ollama")

Embedder = Callable[..., OllamaEmbedder]


@pytest.fixture
def pauses() -> list[float]:
    """The seconds that were waited, without waiting them."""
    return []


@pytest.fixture
def embedder(ollama_server: OllamaServer, pauses: list[float]) -> Embedder:
    def open_embedder(model: str | None = None, **settings: object) -> OllamaEmbedder:
        arguments = {"host": ollama_server.url, "sleep": pauses.append, **settings}
        return OllamaEmbedder(model, **arguments)  # pyright: ignore[reportArgumentType]

    return open_embedder


def test_a_question_is_nearest_to_the_note_that_means_the_same(
    embedder: Embedder, cosine: Callable[..., float]
) -> None:
    ollama = embedder()

    [question] = ollama.embed(["how do we calm an angry customer"], "query")
    apology, backup = ollama.embed(
        ["Support\nDe-escalation starts with an apology to the client.", "Ops\nThe database backup runs at night."],
        "document",
    )

    assert ollama.space.key == "ollama:embeddinggemma:256:1"
    assert cosine(question, question) == pytest.approx(1.0, abs=1e-5)
    assert cosine(question, apology) > cosine(question, backup)


def test_embeddinggemma_sees_its_own_prompts(embedder: Embedder, ollama_server: OllamaServer) -> None:
    ollama = embedder()

    ollama.embed(["blue pool"], "query")
    ollama.embed(["Deploys\nRolling back\nBlue first.", "just one line", "\nno title {text}"], "document")

    assert [request["input"] for request in ollama_server.requests] == [
        ["task: search result | query: blue pool"],
        [
            "title: Deploys | text: Rolling back\nBlue first.",
            "title: none | text: just one line",
            "title: none | text: \nno title {text}",
        ],
    ]
    assert ollama_server.requests[0]["model"] == "embeddinggemma"
    assert ollama_server.requests[0]["dimensions"] == 256


def test_a_model_we_do_not_know_gets_the_text_as_it_is(embedder: Embedder, ollama_server: OllamaServer) -> None:
    embedder("somebody/else:latest").embed(["Deploys\nBlue first."], "document")

    assert ollama_server.requests[0]["input"] == ["Deploys\nBlue first."]


def test_a_server_that_ignores_dimensions_is_cut_and_brought_to_unit_length(
    embedder: Embedder, ollama_server: OllamaServer, cosine: Callable[..., float]
) -> None:
    ollama_server.vectors = lambda texts, dimensions: [[0.5] * 768 for _ in texts]  # pyright: ignore[reportAttributeAccessIssue]

    [vector] = embedder().embed(["blue"], "document")

    assert vector is not None
    assert len(vector) == 4 * 256
    assert cosine(vector, vector) == pytest.approx(1.0, abs=1e-5)


def test_many_texts_travel_in_batches_and_come_back_in_order(
    embedder: Embedder, ollama_server: OllamaServer, cosine: Callable[..., float]
) -> None:
    texts = [f"note number {number} about {'deploys' if number % 2 else 'customers'}" for number in range(70)]
    ollama = embedder()

    vectors = ollama.embed(texts, "document")

    assert [len(request["input"]) for request in ollama_server.requests] == [
        BATCH_TEXTS,
        BATCH_TEXTS,
        70 - 2 * BATCH_TEXTS,
    ]
    [alone] = ollama.embed([texts[69]], "document")
    assert cosine(vectors[69], alone) == pytest.approx(1.0, abs=1e-5)


def test_a_blank_text_has_no_vector_and_is_not_sent(embedder: Embedder, ollama_server: OllamaServer) -> None:
    vectors = embedder().embed(["blue", "  \n", "green"], "document")

    assert [vector is None for vector in vectors] == [False, True, False]
    assert len(ollama_server.requests[0]["input"]) == 2
    assert embedder().embed([""], "query") == [None]
    assert len(ollama_server.requests) == 1


def test_the_host_comes_from_the_environment_when_nobody_says(
    ollama_server: OllamaServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OLLAMA_HOST", ollama_server.url)

    assert OllamaEmbedder().embed(["blue"], "query") != [None]


def test_a_server_that_is_not_running_is_told_with_how_to_start_it(dead_url: str, pauses: list[float]) -> None:
    ollama = OllamaEmbedder(host=dead_url, sleep=pauses.append)

    with pytest.raises(EmbedderUnreachableError, match=r"not running at .*`ollama serve`"):
        ollama.embed(["blue"], "document")
    assert pauses == [0.5, 2.0]


def test_a_model_that_was_not_pulled_is_told_with_the_pull_command(
    embedder: Embedder, ollama_server: OllamaServer, pauses: list[float]
) -> None:
    ollama_server.faults = ["404"]

    with pytest.raises(ModelMissingError, match="`ollama pull embeddinggemma`"):
        embedder().embed(["blue"], "document")
    assert pauses == []


def test_too_few_dimensions_are_refused(embedder: Embedder, ollama_server: OllamaServer) -> None:
    ollama_server.faults = ["wrong dimensions"]

    with pytest.raises(WrongDimensionsError, match="100 dimensions where 256 are needed"):
        embedder().embed(["blue"], "document")


@pytest.mark.parametrize(("fault", "words"), [("nan", "NaN or infinity"), ("zeros", "zeros instead of a vector")])
def test_numbers_that_are_no_vector_are_refused(
    embedder: Embedder, ollama_server: OllamaServer, fault: str, words: str
) -> None:
    ollama_server.faults = [fault]

    with pytest.raises(WrongDimensionsError, match=words):
        embedder().embed(["blue", "green"], "document")


def test_a_missing_vector_is_refused_rather_than_shifted(embedder: Embedder, ollama_server: OllamaServer) -> None:
    ollama_server.faults = ["one vector too few"]

    with pytest.raises(EmbeddingError, match="2 vectors for 3 texts"):
        embedder().embed(["blue", "green", "red"], "document")


@pytest.mark.parametrize("fault", ["500", "503", "429", "truncated", "cut"])
def test_documents_are_tried_again_when_the_trouble_may_pass(
    embedder: Embedder, ollama_server: OllamaServer, pauses: list[float], fault: str
) -> None:
    ollama_server.faults = [fault, fault]

    assert embedder().embed(["blue"], "document") != [None]
    assert pauses == [0.5, 2.0]


@pytest.mark.parametrize(
    ("fault", "words"),
    [("500", "HTTP 500"), ("truncated", "broke off its answer"), ("cut", "broke off its answer")],
)
def test_trouble_that_does_not_pass_is_told_after_three_tries(
    embedder: Embedder, ollama_server: OllamaServer, fault: str, words: str
) -> None:
    ollama_server.faults = [fault] * 10

    with pytest.raises(EmbeddingError, match=words):
        embedder().embed(["blue"], "document")
    assert len(ollama_server.requests) == 3


@pytest.mark.parametrize("fault", ["500", "truncated", "cut"])
def test_a_query_is_never_tried_twice(
    embedder: Embedder, ollama_server: OllamaServer, pauses: list[float], fault: str
) -> None:
    ollama_server.faults = [fault]

    with pytest.raises(EmbeddingError):
        embedder().embed(["blue"], "query")
    assert len(ollama_server.requests) == 1
    assert pauses == []


def test_a_query_gives_up_quickly_on_a_slow_server(embedder: Embedder, ollama_server: OllamaServer) -> None:
    ollama_server.faults = ["slow"]
    started = time.monotonic()

    with pytest.raises(EmbedderUnreachableError, match=r"did not answer within 0\.2 s"):
        embedder(query_seconds=0.2).embed(["blue"], "query")
    assert time.monotonic() - started < 20


def test_slow_documents_are_tried_again(embedder: Embedder, ollama_server: OllamaServer, pauses: list[float]) -> None:
    ollama_server.faults = ["slow"]

    assert embedder(document_seconds=0.5).embed(["blue"], "document") != [None]
    assert pauses[:1] == [0.5]


def test_a_server_that_dies_between_batches_gives_no_half_answer(
    embedder: Embedder, ollama_server: OllamaServer
) -> None:
    ollama_server.faults = [None, "dies"]

    with pytest.raises(EmbedderUnreachableError, match="ollama serve"):
        embedder().embed([f"note {number}" for number in range(70)], "document")


def test_a_request_that_the_server_finds_wrong_is_not_repeated(embedder: Embedder, ollama_server: OllamaServer) -> None:
    ollama_server.faults = ["400"]

    with pytest.raises(EmbeddingError, match="HTTP 400"):
        embedder().embed(["blue"], "document")
    assert len(ollama_server.requests) == 1
