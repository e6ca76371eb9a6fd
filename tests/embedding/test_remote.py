"""The genuine clients of Ollama and OpenAI against servers on loopback, which answer well, fail or attack."""

from __future__ import annotations

import asyncio
import builtins
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from typing import Any, NamedTuple

import pytest

from co_cli.embedding.remote_embedders import BATCH_TEXTS, MAX_TEXT, PAUSES, RemoteEmbedder, remote_space
from co_cli.embedding.space import EmbedKind
from co_cli.ground.errors import EmbeddingError, SettingsError

from .loopback import GeminiServer, Loopback, OllamaServer, OpenAIServer, VoyageServer

SECRET = "sk-secret-4711"


class Remote(NamedTuple):
    """A server, an embedder that uses it, and the seconds that the embedder would have slept."""

    server: Loopback
    embedder: RemoteEmbedder
    waits: list[float]


@pytest.fixture(params=["ollama", "openai"])
def remote(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[Remote]:
    monkeypatch.setenv("OPENAI_API_KEY", SECRET)
    monkeypatch.setenv("OLLAMA_API_KEY", SECRET)
    server = OllamaServer() if request.param == "ollama" else OpenAIServer()
    waits: list[float] = []
    monkeypatch.setattr("time.sleep", waits.append)
    monkeypatch.setattr("co_cli.embedding.remote_embedders.CONNECT_SECONDS", 30.0)  # a busy machine takes over a second
    yield Remote(server, RemoteEmbedder(remote_space(request.param), server.url), waits)
    server.close()


@pytest.fixture
def ollama() -> Iterator[OllamaServer]:
    server = OllamaServer()
    yield server
    server.close()


def test_many_texts_are_sent_in_batches_and_come_back_in_order(remote: Remote, cosine: Callable[..., float]) -> None:
    texts = [f"note number {number} about {'deploys' if number % 2 else 'customers'}" for number in range(70)]
    texts[1], texts[2] = " \n", "word " * 5_000

    vectors = remote.embedder.embed(texts, "document")

    assert [len(request["input"]) for request in remote.server.requests] == [BATCH_TEXTS, BATCH_TEXTS, 5]
    assert len(remote.server.requests[0]["input"][1]) < MAX_TEXT + 100
    assert [place for place, vector in enumerate(vectors) if vector is None] == [1], "a blank text is not sent"
    [alone] = remote.embedder.embed([texts[69]], "document")
    assert cosine(vectors[69], alone) == pytest.approx(1.0, abs=1e-5)


def test_it_can_be_called_from_several_threads_and_where_an_event_loop_is_running(remote: Remote) -> None:
    async def embed() -> list[bytes | None]:
        return remote.embedder.embed(["blue"], "query")

    first = asyncio.run(embed())
    with ThreadPoolExecutor(4) as threads:
        found = list(threads.map(lambda _: remote.embedder.embed(["blue"], "query"), range(4)))

    assert first != [None]
    assert found == [first] * 4


def test_documents_are_tried_again_and_a_query_is_not(remote: Remote) -> None:
    for fault in ("500", "429", "truncated", "cut"):
        remote.server.requests.clear()
        remote.waits.clear()
        remote.server.faults = [fault]
        with pytest.raises(EmbeddingError):
            remote.embedder.embed(["blue"], "query")
        assert (len(remote.server.requests), remote.waits) == (1, []), fault

        remote.server.faults = [fault] * 2
        assert remote.embedder.embed(["blue"], "document") != [None]
        assert remote.waits == [*PAUSES], fault

        remote.server.faults = [fault] * 10
        with pytest.raises(EmbeddingError):
            remote.embedder.embed(["blue"], "document")
        assert len(remote.server.requests) == 1 + 3 + 3, fault


@pytest.mark.parametrize("remote", ["openai"], indirect=True)
def test_documents_wait_as_long_as_the_provider_asks_but_not_for_an_hour(remote: Remote) -> None:
    remote.server.faults = ["429 7"]
    assert remote.embedder.embed(["blue"], "document") != [None]
    assert remote.waits == [7.0]

    remote.server.faults = ["429 3600"]
    with pytest.raises(EmbeddingError, match="try again in 3600 s"):
        remote.embedder.embed(["blue"], "document")
    assert remote.waits == [7.0]


@pytest.mark.parametrize("remote", ["openai"], indirect=True)
def test_of_several_keys_the_next_is_used_after_401_403_and_429(
    remote: Remote, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-first, sk-second,,sk-third")
    server, embedder = remote.server, RemoteEmbedder(remote_space("openai"), remote.server.url)
    embedder.embed(["blue"], "query")
    server.faults = ["401", None, None, "403", "429"]

    for _ in range(3):
        assert embedder.embed(["blue"], "query") != [None]
    assert server.keys == [f"sk-{key}" for key in ("first", "first", "second", "second", "second", "third", "first")]

    server.faults = ["500"]
    with pytest.raises(EmbeddingError, match="HTTP 500"):
        embedder.embed(["blue"], "query")
    server.faults = ["429", "429", "401"]
    with pytest.raises(EmbeddingError, match="refused the key") as raised:
        embedder.embed(["blue"], "query")
    assert server.keys[7:] == [f"sk-{key}" for key in ("first", "first", "second", "third")]
    assert not any(key in str(raised.value) for key in server.keys)


@pytest.mark.medium
@pytest.mark.parametrize(
    ("provider", "package", "make", "variable"),
    [
        ("gemini", "google.genai", GeminiServer, "GEMINI_API_KEY"),
        ("voyage", "voyageai", VoyageServer, "VOYAGE_API_KEY"),
    ],
)
def test_gemini_and_voyage_embed_with_what_their_extras_install(
    provider: str,
    package: str,
    make: Callable[[], Loopback],
    variable: str,
    monkeypatch: pytest.MonkeyPatch,
    cosine: Callable[..., float],
) -> None:
    pytest.importorskip(package, reason=f'pip install "co-cli[{provider}]"')
    monkeypatch.delenv("GOOGLE_API_KEY", raising=False)
    monkeypatch.setenv(variable, "key-first,key-second")
    with closing(make()) as server:
        embedder = RemoteEmbedder(remote_space(provider), server.url)
        server.faults = ["403"]
        near, far = embedder.embed(["The blue pool takes traffic first.", "Invoices are due in May."], "document")
        (query,) = embedder.embed(["which pool takes traffic"], "query")

        assert cosine(query, near) > cosine(query, far)
        assert server.keys == ["key-first", "key-second", "key-second"]
        server.faults = ["401", "401"]
        with pytest.raises(EmbeddingError, match="refused the key") as raised:
            embedder.embed(["blue"], "query")
        assert "key-" not in str(raised.value)


def test_a_server_that_dies_between_batches_gives_no_half_answer(remote: Remote) -> None:
    remote.server.faults = [None, "dies"]

    with pytest.raises(EmbeddingError):
        remote.embedder.embed([f"note {number}" for number in range(70)], "document")


WRONG_ANSWERS = {
    "404": "`ollama pull embeddinggemma`|CO_KNOWLEDGE_EMBEDDING_MODEL",
    "400": "HTTP 400",
    "401": "check your API key",
    "wrong dimensions": "100 values are not a vector of 256 dimensions",
    "nan": "not finite",
    "infinity": "not finite",
    "zeros": "zero",
    "one vector too few": "1 vectors for 2 texts",
    "endless": "the answer from 127.0.0.1 was refused",
    "packed": "the answer from 127.0.0.1 was refused",
    "words": r"broke off|sent no vectors",
}


def test_a_wrong_answer_is_refused_at_once_on_one_line_without_the_key(
    remote: Remote, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("co_cli.embedding.remote_embedders.MAX_ANSWER_BYTES", 2_000_000)
    remote.embedder.embed(["blue"], "document")  # loads the client, which a query on a busy machine does not wait for
    for fault, said in WRONG_ANSWERS.items():
        remote.server.faults = [fault]

        with pytest.raises(EmbeddingError, match=said) as raised:
            remote.embedder.embed(["blue", "green"], "query")

        assert "\n" not in str(raised.value), fault
        assert SECRET not in str(raised.value), "though the server repeats it"
    assert set(remote.server.keys) == {SECRET}
    assert remote.server.written < 20_000_000
    assert remote.embedder.embed(["blue"], "document") != [None]


@pytest.mark.medium
def test_a_slow_server_is_left_when_the_time_is_over(remote: Remote) -> None:
    remote.embedder.embed(["the clients are imported"], "query")
    for fault in ("slow", "drips", "drips its head"):
        remote.server.faults = [fault]
        started = time.monotonic()

        with pytest.raises(EmbeddingError, match=r"did not answer within 0\.3 s"):
            remote.embedder.embed(["blue"], "document", 0.3)
        assert time.monotonic() - started < 20, fault


@pytest.mark.parametrize(("kind", "seconds"), [("document", 60), ("query", None)])
def test_the_seconds_that_importing_a_client_takes_are_not_the_server_s(
    kind: EmbedKind, seconds: float | None, ollama: OllamaServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock, real, import_ = [0.0], time.monotonic, builtins.__import__

    def import_slowly(name: str, *given: Any) -> Any:
        clock[0] += 100 if name == "ollama" else 0
        return import_(name, *given)

    monkeypatch.setattr(time, "monotonic", lambda: real() + clock[0])
    monkeypatch.setattr(builtins, "__import__", import_slowly)

    assert RemoteEmbedder(remote_space("ollama"), ollama.url).embed(["blue"], kind, seconds) != [None]
    assert clock[0] >= 100


def test_a_server_that_is_not_running_is_reported_without_the_password_of_its_address(
    dead_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", SECRET)
    address = dead_url.replace("//", f"//me:{SECRET}@")

    for provider, said in (("ollama", "`ollama serve`"), ("openai", "cannot be reached")):
        with pytest.raises(EmbeddingError, match=said) as raised:
            RemoteEmbedder(remote_space(provider), address).embed(["blue"], "query")
        assert SECRET not in str(raised.value)


def test_embeddinggemma_gets_its_prompts_and_an_unknown_model_the_text(
    ollama: OllamaServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OLLAMA_HOST", ollama.url)
    embedder = RemoteEmbedder(remote_space("ollama", "somebody/embeddinggemma:300m"))

    embedder.embed(["blue pool"], "query")
    embedder.embed(["Deploys\nRolling back\nBlue first.", "just one line", "\nno title {text}"], "document")
    RemoteEmbedder(remote_space("ollama", "somebody/else")).embed(["Deploys\nBlue first."], "document")

    assert [request["input"] for request in ollama.requests] == [
        ["task: search result | query: blue pool"],
        [
            "title: Deploys | text: Rolling back\nBlue first.",
            "title: none | text: just one line",
            "title: none | text: \nno title {text}",
        ],
        ["Deploys\nBlue first."],
    ]


def test_what_a_provider_lacks_is_reported_by_the_first_call() -> None:
    for provider, model, host, said in (
        ("openai", None, None, "not set up: .*OPENAI_API_KEY"),
        ("opnai", "text-embedding-3-small", None, "opnai is not set up: Unknown provider"),
        ("openrouter", "some/model", "http://127.0.0.1:1/v1", "cannot be given an address"),
        ("ollama", None, "http://[", "is not an address of an Ollama server"),
    ):
        with pytest.raises((EmbeddingError, SettingsError), match=said):
            RemoteEmbedder(remote_space(provider, model), host).embed(["blue"], "query")
