"""Texts to unit vectors through an Ollama server, with the genuine `ollama` client and the model's own prompts.

A query gives up quickly and is never tried twice, because a search goes on by words; documents are sent in batches and
tried again when the trouble may pass. Says which of three things is wrong: nobody answers, the model was not pulled, or
the vectors have the wrong dimensions. An answer is bounded, in bytes and in the time for all of it. The `ollama`
package is imported by the first call, not before.
"""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from co_cli.embedding.answers import batches, put_back, unit_vectors
from co_cli.embedding.bounded import TooMuchError, bound
from co_cli.embedding.catalogue import ollama_space, prompted
from co_cli.embedding.own_loop import OwnLoop
from co_cli.embedding.space import EmbedKind, Vector, VectorSpace
from co_cli.errors import EmbedderUnreachableError, EmbeddingError, ModelMissingError

if TYPE_CHECKING:
    from ollama import AsyncClient

DEFAULT_HOST = "http://127.0.0.1:11434"
BATCH_TEXTS = 32
BATCH_CHARACTERS = 64_000
QUERY_SECONDS = 3.0
DOCUMENT_SECONDS = 120.0
CONNECT_SECONDS = 2.0
PAUSES = (0.5, 2.0)
"""Seconds to wait before the second and the third try of a batch of documents."""


class OllamaEmbedder:
    """`embeddinggemma` at 256 dimensions, or another model that the server has."""

    def __init__(
        self,
        model: str | None = None,
        *,
        host: str | None = None,
        dimensions: int | None = None,
        query_seconds: float = QUERY_SECONDS,
        document_seconds: float = DOCUMENT_SECONDS,
        pauses: Sequence[float] = PAUSES,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._space = ollama_space(model, dimensions)
        self._host = host or os.environ.get("OLLAMA_HOST") or DEFAULT_HOST
        self._seconds: dict[EmbedKind, float] = {"query": query_seconds, "document": document_seconds}
        self._pauses: dict[EmbedKind, Sequence[float]] = {"query": (), "document": pauses}
        self._sleep = sleep
        self._clients: dict[EmbedKind, AsyncClient] = {}
        self._loop = OwnLoop("co-embed-ollama")

    @property
    def space(self) -> VectorSpace:
        return self._space

    def embed(self, texts: Sequence[str], kind: EmbedKind) -> list[Vector | None]:
        asked = [prompted(self._space.model, text, kind) for text in texts if text.strip()]
        vectors: list[Vector] = []
        for batch in batches(asked, BATCH_TEXTS, BATCH_CHARACTERS):
            answered = self._answer_with_retries(batch, kind)
            vectors += unit_vectors(answered, len(batch), self._space.dimensions, f"Ollama's {self._space.model}")
        return put_back(texts, vectors)

    def close(self) -> None:
        for client in self._clients.values():
            self._loop.run(client.close())
        self._clients.clear()
        self._loop.close()

    def _answer_with_retries(self, texts: Sequence[str], kind: EmbedKind) -> Sequence[Sequence[float]]:
        for pause in self._pauses[kind]:
            try:
                return self._answer(texts, kind)
            except _PassingError:
                self._sleep(pause)
        try:
            return self._answer(texts, kind)
        except _PassingError as passing:
            raise passing.problem from passing.__cause__

    def _answer(self, texts: Sequence[str], kind: EmbedKind) -> Sequence[Sequence[float]]:
        client = self._client(kind)
        import httpx
        import ollama

        name = self._space.model

        async def ask() -> Sequence[Sequence[float]]:
            answer = client.embed(model=name, input=texts, dimensions=self._space.dimensions)
            return (await asyncio.wait_for(answer, self._seconds[kind])).embeddings  # the whole of it, not each read

        try:
            return self._loop.run(ask())
        except TooMuchError as error:
            raise EmbeddingError(
                f"Ollama at {self._host} gave an answer that is no vectors ({error}): see what answers at that address"
            ) from error
        except ollama.ResponseError as error:
            if error.status_code == 404:
                raise ModelMissingError(
                    f"Ollama at {self._host} does not have the model {name}: `ollama pull {name}`"
                ) from error
            refused = EmbeddingError(
                f"Ollama at {self._host} could not embed with {name}: {error.error} (HTTP {error.status_code}):"
                " look at its log, or choose another model with CO_KNOWLEDGE_EMBEDDING_MODEL"
            )
            if error.status_code < 500 and error.status_code not in (408, 429):
                raise refused from error
            raise _PassingError(refused) from error
        except ConnectionError as error:
            raise _PassingError(
                EmbedderUnreachableError(
                    f"Ollama is not running at {self._host}: start it with `ollama serve`, or set OLLAMA_HOST"
                )
            ) from error
        except (httpx.TimeoutException, TimeoutError) as error:
            raise _PassingError(
                EmbedderUnreachableError(
                    f"Ollama at {self._host} did not answer within {self._seconds[kind]:g} s: it may still be loading"
                    f" {name}; try again, or see `ollama ps`"
                )
            ) from error
        except (httpx.TransportError, ValueError) as error:  # cut off, or not the JSON it should be
            raise _PassingError(
                EmbedderUnreachableError(
                    f"Ollama at {self._host} broke off its answer: see whether `ollama serve` still runs, and try again"
                )
            ) from error

    def _client(self, kind: EmbedKind) -> AsyncClient:
        client = self._clients.get(kind)
        if client is None:
            try:
                from ollama import AsyncClient
            except ModuleNotFoundError as error:
                raise EmbeddingError("the embedding provider ollama needs a package: `pip install ollama`") from error
            read = self._seconds[kind]
            import httpx

            try:
                client = AsyncClient(host=self._host, timeout=(min(CONNECT_SECONDS, read), read, read, read))
                bound(client._client)  # type: ignore[reportPrivateUsage]
            except (ValueError, httpx.InvalidURL) as error:
                raise EmbeddingError(
                    f"{self._host!r} is no address of an Ollama server ({error}): set CO_KNOWLEDGE_EMBEDDING_HOST"
                ) from error
            self._clients[kind] = client
        return client


class _PassingError(Exception):
    """Trouble that may be over at the next try; carries what to say if it is not."""

    def __init__(self, problem: EmbeddingError) -> None:
        self.problem = problem
        super().__init__(str(problem))
