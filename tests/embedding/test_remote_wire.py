"""pydantic-ai's genuine OpenAI client against a server on loopback: batches, limits, keys and faults."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterator

import pytest

from co_cli.embedding.remote import BATCH_TEXTS, LONGEST_TEXT, RemoteEmbedder
from co_cli.embedding.remote_keys import Keyring, keys_of
from co_cli.errors import (
    EmbedderUnreachableError,
    EmbeddingError,
    ModelMissingError,
    SettingsError,
    WrongDimensionsError,
)

from .loopback import OpenAIServer

pytest.importorskip("pydantic_ai", reason="pydantic-ai is not installed: pip install pydantic-ai-slim")
pytest.importorskip("openai", reason='openai is not installed: pip install "pydantic-ai-slim[openai]"')

Embedder = Callable[..., RemoteEmbedder]


class Clock:
    """Time that passes only when somebody waits."""

    def __init__(self) -> None:
        self.now = 1000.0
        self.waits: list[float] = []

    def __call__(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.waits.append(seconds)
        self.now += seconds


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def embedder(openai_server: OpenAIServer, clock: Clock) -> Iterator[Embedder]:
    opened: list[RemoteEmbedder] = []

    def open_embedder(keys: str = "key-a", provider: str = "openai", **settings: object) -> RemoteEmbedder:
        arguments = {
            "host": openai_server.url,
            "environment": {"OPENAI_API_KEYS": keys},
            "sleep": clock.sleep,
            "clock": clock,
            **settings,
        }
        opened.append(RemoteEmbedder(provider, **arguments))  # pyright: ignore[reportArgumentType]
        return opened[-1]

    yield open_embedder
    for remote in opened:
        remote.close()


def test_a_question_is_nearest_to_the_note_that_means_the_same(
    embedder: Embedder, openai_server: OpenAIServer, cosine: Callable[..., float]
) -> None:
    openai = embedder()

    [question] = openai.embed(["how do we calm an angry customer"], "query")
    apology, backup = openai.embed(
        ["De-escalation starts with an apology to the client.", "The database backup runs at night."], "document"
    )

    assert openai.space.key == "openai:text-embedding-3-small:256:1"
    assert openai_server.requests[0]["dimensions"] == 256
    assert cosine(question, apology) > cosine(question, backup)


def test_many_texts_travel_in_batches_and_come_back_in_order(
    embedder: Embedder, openai_server: OpenAIServer, cosine: Callable[..., float]
) -> None:
    texts = [f"note number {number} about {'deploys' if number % 2 else 'customers'}" for number in range(150)]
    openai = embedder()

    vectors = openai.embed(texts, "document")

    assert [len(request["input"]) for request in openai_server.requests] == [BATCH_TEXTS, BATCH_TEXTS, 22]
    [alone] = openai.embed([texts[149]], "document")
    assert cosine(vectors[149], alone) == pytest.approx(1.0, abs=1e-5)


def test_long_texts_make_smaller_batches_and_are_cut(embedder: Embedder, openai_server: OpenAIServer) -> None:
    embedder().embed(["word " * 5_000] * 10, "document")

    assert [len(request["input"]) for request in openai_server.requests] == [7, 3]
    assert len(openai_server.requests[0]["input"][0]) == LONGEST_TEXT


def test_a_blank_text_has_no_vector_and_is_not_sent(embedder: Embedder, openai_server: OpenAIServer) -> None:
    openai = embedder()

    assert openai.embed([" ", ""], "document") == [None, None]
    assert openai_server.requests == []


def test_it_can_be_called_where_an_event_loop_is_running(embedder: Embedder) -> None:
    openai = embedder()

    async def door() -> list[bytes | None]:
        return openai.embed(["blue"], "query")

    assert asyncio.run(door()) != [None]
    assert asyncio.run(door()) != [None]


def test_several_threads_share_one_embedder(embedder: Embedder) -> None:
    openai = embedder()
    found: list[list[bytes | None]] = []
    threads = [threading.Thread(target=lambda: found.append(openai.embed(["blue pool"], "document"))) for _ in range(4)]

    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert len(found) == 4
    assert all(vectors == found[0] for vectors in found)


def test_documents_wait_as_long_as_the_provider_asks(
    embedder: Embedder, openai_server: OpenAIServer, clock: Clock
) -> None:
    openai_server.faults = ["429 7", "429 3"]

    assert embedder().embed(["blue"], "document") != [None]
    assert clock.waits == [7.0, 3.0]


def test_without_a_word_from_the_provider_the_pauses_grow(
    embedder: Embedder, openai_server: OpenAIServer, clock: Clock
) -> None:
    openai_server.faults = ["429", "500", "503"]

    assert embedder().embed(["blue"], "document") != [None]
    assert clock.waits == [1.0, 2.0, 4.0]


def test_another_key_takes_over_from_one_that_met_a_limit(
    embedder: Embedder, openai_server: OpenAIServer, clock: Clock
) -> None:
    openai_server.faults_of_key = {"key-a": ["429 30"]}
    openai = embedder("key-a, key-b")

    openai.embed(["blue"], "document")
    openai.embed(["green"], "query")

    assert openai_server.keys == ["key-a", "key-b", "key-b"]
    assert clock.waits == []


def test_when_every_key_rests_the_shortest_rest_is_waited_for(
    embedder: Embedder, openai_server: OpenAIServer, clock: Clock
) -> None:
    openai_server.faults_of_key = {"key-a": ["429 30"], "key-b": ["429 4"]}

    assert embedder("key-a,key-b").embed(["blue"], "document") != [None]
    assert openai_server.keys == ["key-a", "key-b", "key-b"]
    assert clock.waits == [4.0]


def test_a_query_waits_for_no_limit(embedder: Embedder, openai_server: OpenAIServer, clock: Clock) -> None:
    openai_server.faults = ["429 7"]
    openai = embedder()

    with pytest.raises(EmbedderUnreachableError, match="429"):
        openai.embed(["blue"], "query")
    with pytest.raises(EmbedderUnreachableError, match=r"try again in 7 s, or give more keys in OPENAI_API_KEYS"):
        openai.embed(["blue"], "query")
    assert clock.waits == []
    assert len(openai_server.requests) == 1


def test_a_limit_of_an_hour_is_told_instead_of_waited_for(
    embedder: Embedder, openai_server: OpenAIServer, clock: Clock
) -> None:
    openai_server.faults = ["429 3600"]

    with pytest.raises(EmbedderUnreachableError, match="try again in 3600 s"):
        embedder().embed(["blue"], "document")
    assert clock.waits == []


def test_a_refused_key_is_left_out_and_the_others_go_on(embedder: Embedder, openai_server: OpenAIServer) -> None:
    openai_server.faults_of_key = {"key-a": ["401"] * 9}
    openai = embedder("key-a,key-b")

    openai.embed(["blue"], "document")
    openai.embed(["green"], "document")

    assert openai_server.keys == ["key-a", "key-b", "key-b"]


def test_when_no_key_is_accepted_the_message_names_the_variable_and_no_key(
    embedder: Embedder, openai_server: OpenAIServer
) -> None:
    openai_server.faults = ["401"] * 9

    with pytest.raises(EmbeddingError, match="check OPENAI_API_KEY") as raised:
        embedder("key-a,key-b").embed(["blue"], "document")
    assert "key-a" not in str(raised.value)
    assert "key-b" not in str(raised.value)


@pytest.mark.parametrize(
    ("fault", "error", "words"),
    [
        ("404", ModelMissingError, "does not exist there"),
        ("400", EmbeddingError, "refused the texts"),
        ("wrong dimensions", WrongDimensionsError, "100 dimensions where 256 are needed"),
        ("nan", WrongDimensionsError, "NaN or infinity"),
        ("one vector too few", EmbeddingError, "1 vectors for 2 texts"),
    ],
)
def test_what_will_not_pass_is_told_at_once(
    embedder: Embedder, openai_server: OpenAIServer, fault: str, error: type[EmbeddingError], words: str
) -> None:
    openai_server.faults = [fault]

    with pytest.raises(error, match=words):
        embedder().embed(["blue", "green"], "document")
    assert len(openai_server.requests) == 1


@pytest.mark.parametrize("fault", ["500", "truncated", "cut"])
def test_a_query_is_not_repeated_and_documents_are(embedder: Embedder, openai_server: OpenAIServer, fault: str) -> None:
    openai_server.faults = [fault]
    openai = embedder()
    with pytest.raises(EmbeddingError):
        openai.embed(["blue"], "query")
    assert len(openai_server.requests) == 1

    openai_server.faults = [fault]
    assert openai.embed(["blue"], "document") != [None]


def test_a_query_gives_up_quickly_on_a_slow_server(embedder: Embedder, openai_server: OpenAIServer) -> None:
    openai_server.faults = ["slow"]

    with pytest.raises(EmbedderUnreachableError, match=r"did not answer within 0\.3 s"):
        embedder(query_seconds=0.3).embed(["blue"], "query")


def test_a_provider_that_cannot_be_reached_is_told(embedder: Embedder, dead_url: str) -> None:
    with pytest.raises(EmbedderUnreachableError, match="cannot be reached"):
        embedder(host=f"{dead_url}/v1").embed(["blue"], "query")


def test_a_missing_key_is_told_with_the_variable_to_set() -> None:
    openai = RemoteEmbedder("openai", environment={})

    with pytest.raises(EmbeddingError, match="not set up, set OPENAI_API_KEY"):
        openai.embed(["blue"], "query")


def test_a_missing_package_is_told_with_what_to_install() -> None:
    import importlib.util

    if importlib.util.find_spec("voyageai") is not None:
        pytest.skip("the package of this provider is installed, so it cannot be missing")

    with pytest.raises(EmbeddingError, match=r'pip install "pydantic-ai-slim\[voyageai\]"'):
        RemoteEmbedder("voyageai", environment={"VOYAGE_API_KEYS": "a"}).embed(["blue"], "query")


def test_an_address_for_a_provider_that_has_none_is_refused() -> None:
    remote = RemoteEmbedder("openrouter", "some/model", host="http://127.0.0.1:1/v1", environment={})

    with pytest.raises(SettingsError, match="cannot be given an address"):
        remote.embed(["blue"], "query")


def test_keys_are_read_from_the_plural_variable_only() -> None:
    assert keys_of("openai", {"OPENAI_API_KEYS": " a, b,,a ", "OPENAI_API_KEY": "c"}) == ["a", "b"]
    assert keys_of("openai", {"OPENAI_API_KEY": "c"}) == []
    assert keys_of("google", {"GEMINI_API_KEYS": "g"}) == ["g"]


def test_the_last_key_is_never_dropped(clock: Clock) -> None:
    keys = Keyring(["a", "b"], clock)

    keys.drop("a")
    keys.drop("b")

    assert keys.next() == ("b", 0.0)
