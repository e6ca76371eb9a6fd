"""Texts to unit vectors through a server: Ollama with its own client, every other provider with pydantic-ai's Embedder.

A query is tried once, because a search can do with words; documents are sent in batches and tried again if the problem
may pass. Both are bounded in time and in bytes. The clients are imported by the first call, which is also the first to
use the network.
"""

from __future__ import annotations

import asyncio
import math
import os
import re
import struct
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from co_cli.embedding.own_loop import OwnLoop
from co_cli.embedding.space import EmbedKind, Vector, VectorSpace
from co_cli.errors import (
    EmbedderUnreachableError,
    EmbeddingError,
    KnowledgeError,
    ModelMissingError,
    SettingsError,
    WrongDimensionsError,
)

if TYPE_CHECKING:
    from ollama import AsyncClient
    from pydantic_ai.embeddings import Embedder, EmbeddingSettings
    from pydantic_ai.providers import Provider

DIMENSIONS = 256
DEFAULT_MODELS = {
    "ollama": "embeddinggemma",
    "openai": "text-embedding-3-small",
    "google": "gemini-embedding-001",
    "google-cloud": "gemini-embedding-001",
    "cohere": "embed-v4.0",
    "voyageai": "voyage-4",
    "bedrock": "amazon.titan-embed-text-v2:0",
}
OTHER_NAMES = {"gemini": "google", "voyage": "voyageai"}
FIXED_DIMENSIONS = {
    "all-minilm": 384,
    "bge-m3": 1024,
    "text-embedding-ada-002": 1536,
    "embed-english-v3.0": 1024,
    "embed-english-light-v3.0": 384,
    "embed-multilingual-v3.0": 1024,
    "embed-multilingual-light-v3.0": 384,
    "voyage-finance-2": 1024,
    "voyage-law-2": 1024,
    "voyage-code-2": 1536,
    "amazon.titan-embed-text-v1": 1536,
    "cohere.embed-english-v3": 1024,
    "cohere.embed-multilingual-v3": 1024,
}
"""Models whose vectors cannot be shortened."""
ADJUSTABLE = (
    "text-embedding-3-",
    "text-embedding-005",
    "text-multilingual-embedding-",
    "gemini-embedding-",
    "embed-v4",
    "voyage-3",
    "voyage-4",
    "voyage-code-3",
    "amazon.titan-embed-text-v2",
    "amazon.nova-2-",
    "cohere.embed-v4",
)
"""Models that can be asked for fewer dimensions. Others may refuse that, so their vectors are shortened here."""
PROMPTS = {
    "embeddinggemma": ("task: search result | query: {text}", "title: {title} | text: {text}"),
    "nomic-embed-text": ("search_query: {text}", "search_document: {text}"),
    "mxbai-embed-large": ("Represent this sentence for searching relevant passages: {text}", "{text}"),
}
"""What the authors of Ollama's models recommend for queries and documents. `{title}` is a document's first line."""
KEY_VARIABLES = {
    "google": ("GOOGLE_API_KEY", "GEMINI_API_KEY"),
    "google-cloud": ("GOOGLE_CLOUD_PROJECT",),
    "cohere": ("CO_API_KEY",),
    "voyageai": ("VOYAGE_API_KEY",),
    "bedrock": ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_BEARER_TOKEN_BEDROCK"),
    "azure": ("AZURE_OPENAI_API_KEY",),
}

DEFAULT_OLLAMA_HOST = "http://127.0.0.1:11434"
CONNECT_SECONDS = 2.0
SECONDS: Mapping[EmbedKind, float] = {"query": 5.0, "document": 120.0}
PAUSES = (1.0, 4.0)
"""Seconds before each further try with documents, unless the provider asks for more."""
MAX_WAIT = 60.0
BATCH_TEXTS = 32
BATCH_CHARACTERS = 60_000
MAX_TEXT = 8_000
"""Characters of a text that are embedded. Providers accept that many in nearly any script."""
MAX_ANSWER_BYTES = 32_000_000
"""32 texts with 4,096 numbers of 20 digits each are 2.6 MB."""
RETRY_STATUS = frozenset({408, 409, 425, 429, 500, 502, 503, 504, 529})
OTHER_MODEL = "choose another model with CO_KNOWLEDGE_EMBEDDING_MODEL"

_loop = OwnLoop("co-embed")


def remote_space(provider: str, model: str | None = None) -> VectorSpace:
    """The space of a provider's model, without loading or asking anything."""
    provider = OTHER_NAMES.get(provider, provider)
    name = model or DEFAULT_MODELS.get(provider)
    if name is None:
        raise SettingsError(
            f"there is no embedding provider {provider!r} with a default model: choose one of static, minilm,"
            f" {', '.join(DEFAULT_MODELS)} or none, or name a model with CO_KNOWLEDGE_EMBEDDING_MODEL"
        )
    name = name.removesuffix(":latest")
    return VectorSpace(provider, name, FIXED_DIMENSIONS.get(_plain_name(name), DIMENSIONS))


def key_variables(provider: str) -> tuple[str, ...]:
    """The environment variables that hold this provider's key."""
    return KEY_VARIABLES.get(provider, (f"{provider.upper().replace('-', '_')}_API_KEY",))


class RemoteEmbedder:
    """Any provider behind one interface. Safe to call from several threads and where an event loop is running."""

    def __init__(
        self,
        space: VectorSpace,
        host: str | None = None,
        *,
        seconds: Mapping[EmbedKind, float] = SECONDS,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._space = space
        self._service = _Ollama(space, host) if space.provider == "ollama" else _PydanticAI(space, host)
        self._seconds = seconds
        self._sleep = sleep

    @property
    def space(self) -> VectorSpace:
        return self._space

    def embed(self, texts: Sequence[str], kind: EmbedKind) -> list[Vector | None]:
        sent = [prompted(self._space, text[:MAX_TEXT], kind) for text in texts if text.strip()]
        vectors: list[Vector] = []
        for batch in _batches(sent):
            answer = self._ask(batch, kind)
            if len(answer) != len(batch):
                raise EmbeddingError(
                    f"{self._service.name} sent {len(answer)} vectors for {len(batch)} texts: {OTHER_MODEL}"
                )
            vectors += [self._unit_vector(values) for values in answer]
        received = iter(vectors)
        return [next(received) if text.strip() else None for text in texts]

    def _ask(self, texts: Sequence[str], kind: EmbedKind) -> Sequence[Sequence[float]]:
        pauses = list(PAUSES) if kind == "document" else []
        self._service.open()
        while True:
            try:
                return _loop.run(asyncio.wait_for(self._service.embed(texts, kind), self._seconds[kind]))
            except Exception as error:
                problem = self._problem(error, kind)
                wait = max(pauses.pop(0), problem.seconds) if pauses and isinstance(problem, _RetryError) else math.inf
                if wait > MAX_WAIT:
                    raise problem from error
            self._sleep(wait)

    def _problem(self, error: Exception, kind: EmbedKind) -> EmbeddingError:
        if isinstance(error, EmbeddingError):
            return error
        if isinstance(error, TimeoutError):
            return _RetryError(
                f"{self._service.name} did not answer within {self._seconds[kind]:g} s: try again, or use another"
                " provider"
            )
        return self._service.problem(error)

    def _unit_vector(self, values: Sequence[float]) -> Vector:
        """More numbers than needed are cut off, which Matryoshka models allow."""
        name, dimensions = self._service.name, self._space.dimensions
        try:
            kept = values[:dimensions]
            length = math.hypot(*kept)
        except (TypeError, ValueError, OverflowError) as error:
            raise WrongDimensionsError(f"{name} sent something else than numbers: {OTHER_MODEL}") from error
        if len(kept) < dimensions:
            raise WrongDimensionsError(
                f"{name} sent {len(kept)} dimensions where {dimensions} are needed: {OTHER_MODEL}"
            )
        if not math.isfinite(length) or length == 0:
            what = "NaN or infinity" if length else "zeros"
            raise WrongDimensionsError(f"{name} sent {what} instead of a vector: restart the server, or {OTHER_MODEL}")
        return struct.pack(f"<{dimensions}f", *[value / length for value in kept])


class _RetryError(EmbedderUnreachableError):
    """A problem that may be gone at the next try, after the seconds that the provider asks for."""

    def __init__(self, message: str, seconds: float = 0.0) -> None:
        self.seconds = seconds
        super().__init__(message)


class _Ollama:
    """`/api/embed`."""

    def __init__(self, space: VectorSpace, host: str | None) -> None:
        self.name = f"Ollama's {space.model}"
        self._space = space
        self._host = host or os.environ.get("OLLAMA_HOST") or DEFAULT_OLLAMA_HOST
        self._shown_host = _quote(self._host, "ollama")
        self._client: AsyncClient | None = None

    def open(self) -> None:
        if self._client is not None:
            return
        import httpx
        from ollama import AsyncClient

        try:
            self._client = AsyncClient(
                self._host,
                timeout=httpx.Timeout(None, connect=CONNECT_SECONDS),
                headers={"accept-encoding": "identity"},
                event_hooks={"response": [_limit]},
            )
        except (ValueError, httpx.InvalidURL) as error:
            raise EmbeddingError(
                f"{self._shown_host!r} is not an address of an Ollama server: set CO_KNOWLEDGE_EMBEDDING_HOST"
            ) from error

    async def embed(self, texts: Sequence[str], kind: EmbedKind) -> Sequence[Sequence[float]]:
        assert self._client is not None
        space = self._space
        return (await self._client.embed(space.model, texts, truncate=True, dimensions=space.dimensions)).embeddings

    def problem(self, error: Exception) -> EmbeddingError:
        import httpx
        import ollama

        host, model = self._shown_host, self._space.model
        match error:
            case ollama.ResponseError(status_code=404):
                return ModelMissingError(f"Ollama at {host} does not have the model {model}: `ollama pull {model}`")
            case ollama.ResponseError(status_code=status):
                kind = _RetryError if status in RETRY_STATUS else EmbeddingError
                said = _quote(error.error, "ollama")
                return kind(f"Ollama at {host} could not embed with {model} ({said}, HTTP {status}): see its log")
            case ConnectionError() | httpx.ConnectTimeout():
                return EmbedderUnreachableError(
                    f"Ollama is not running at {host}: start it with `ollama serve`, or set OLLAMA_HOST"
                )
            case httpx.TransportError() | ValueError():
                return _RetryError(f"Ollama at {host} broke off its answer, or sent no vectors: try again")
            case _:
                return EmbeddingError(f"Ollama at {host} failed ({type(error).__name__}): see its log")


class _PydanticAI:
    """Every provider that pydantic-ai knows."""

    def __init__(self, space: VectorSpace, host: str | None) -> None:
        self.name = f"{space.provider}'s {space.model}"
        self._space = space
        self._host = host
        self._embedder: Embedder | None = None

    def open(self) -> None:
        if self._embedder is not None:
            return
        from pydantic_ai.embeddings import Embedder, infer_embedding_model

        provider = self._space.provider
        try:
            model = infer_embedding_model(f"{provider}:{self._space.model}", provider_factory=self._provider)
        except KnowledgeError:
            raise
        except Exception as error:  # its package or its key is missing; the message has the fix
            raise EmbeddingError(
                f"the embedding provider {provider} is not set up: {_quote(error, provider)}"
            ) from error
        self._embedder = Embedder(model)

    def _provider(self, name: str) -> Provider[Any]:
        from pydantic_ai.providers import infer_provider, infer_provider_class

        kind: Any = infer_provider_class(name)
        try:
            provider = kind(base_url=self._host) if self._host else infer_provider(name)
        except TypeError as error:
            raise SettingsError(
                f"the embedding provider {name} cannot be given an address: unset CO_KNOWLEDGE_EMBEDDING_HOST"
            ) from error
        if hasattr(provider.client, "max_retries"):
            provider.client.max_retries = 0  # RemoteEmbedder tries again, and only with documents
        http: Any = getattr(provider.client, "_client", None)
        if hasattr(http, "event_hooks"):
            http.event_hooks["response"].append(_limit)
        return provider

    async def embed(self, texts: Sequence[str], kind: EmbedKind) -> Sequence[Sequence[float]]:
        assert self._embedder is not None
        settings: EmbeddingSettings = {"truncate": True, "extra_headers": {"accept-encoding": "identity"}}
        if _plain_name(self._space.model).startswith(ADJUSTABLE):
            settings["dimensions"] = self._space.dimensions
        return (await self._embedder.embed(texts, input_type=kind, settings=settings)).embeddings

    def problem(self, error: Exception) -> EmbeddingError:
        from pydantic_ai.exceptions import ModelAPIError, ModelHTTPError, UnexpectedModelBehavior

        provider, name = self._space.provider, self.name
        if not isinstance(error, ModelHTTPError):
            said = _quote(error, provider)
            if isinstance(error, ModelAPIError):
                return _RetryError(f"{name} cannot be reached ({said}): check the network, or use another provider")
            if isinstance(error, UnexpectedModelBehavior | ValueError):
                return _RetryError(f"{name} sent an answer that cannot be read ({said}): try again")
            return EmbeddingError(f"{name} failed ({type(error).__name__}: {said}): check its settings")
        status = error.status_code
        if status in (401, 402, 403) or getattr(error, "provider_error_code", None) == "insufficient_quota":
            keys = " or ".join(key_variables(provider))
            return EmbeddingError(f"{name} refused the key (HTTP {status}): check {keys} and the account")
        if status == 404:
            return ModelMissingError(f"{name} does not exist there: {OTHER_MODEL}")
        if status in RETRY_STATUS:
            seconds = float(getattr(error, "retry_after", None) or 0)
            later = f"in {seconds:.0f} s" if seconds else "later"
            return _RetryError(
                f"{name} is overloaded or has reached its rate limit (HTTP {status}): try again {later}", seconds
            )
        return EmbeddingError(
            f"{name} refused the texts (HTTP {status}: {_quote(error.body, provider)}): {OTHER_MODEL}"
        )


def prompted(space: VectorSpace, text: str, kind: EmbedKind) -> str:
    """The text with the prompt of an Ollama model; other providers are told the kind."""
    query, document = PROMPTS.get(_plain_name(space.model), ("{text}", "{text}"))
    if space.provider != "ollama":
        return text
    if kind == "query":
        return query.replace("{text}", text)
    before, has_title, after = document.partition("{title}")
    if not has_title:
        return document.replace("{text}", text)
    title, _, rest = text.partition("\n")
    if not title.strip() or not rest.strip():
        title, rest = "none", text
    return before + title.strip() + after.replace("{text}", rest)


def _plain_name(model: str) -> str:
    """`registry/embeddinggemma:300m` is embeddinggemma."""
    return model.rpartition("/")[2].partition(":")[0]


def _batches(texts: Sequence[str]) -> Iterator[list[str]]:
    """The texts in order, in groups that one request can carry."""
    batch: list[str] = []
    for text in texts:
        if len(batch) == BATCH_TEXTS or (batch and sum(map(len, batch)) + len(text) > BATCH_CHARACTERS):
            yield batch
            batch = []
        batch.append(text)
    if batch:
        yield batch


async def _limit(response: Any) -> None:
    """A response hook for clients of httpx and httpx2: read the answer here, and refuse it if it is too large.

    A compressed one is refused too, because a few kilobytes can hold gigabytes and we asked for plain text.
    """
    problem, stream, content = "", response.stream, bytearray()
    if response.headers.get("content-encoding", "identity") != "identity":
        problem = "it is compressed"
    else:
        async for block in stream:
            content += block
            if len(content) > MAX_ANSWER_BYTES:
                problem = f"it has more than {MAX_ANSWER_BYTES:,} bytes"
                break
    await stream.aclose()
    if problem:
        raise EmbeddingError(
            f"the answer from {response.url.host} was refused, {problem}: check CO_KNOWLEDGE_EMBEDDING_HOST"
        )
    response.stream = sys.modules[type(response).__module__].ByteStream(bytes(content))


def _quote(said: object, provider: str) -> str:
    """What a server or a library said as one short line, without keys and passwords."""
    line = re.sub(r" or pass it via `[^`]*`", "", " ".join(str(said).split()))
    line = re.sub(r"//[^/@]*@", "//", line)
    for key in [os.environ.get(variable, "") for variable in key_variables(provider)]:
        if len(key) > 3:
            line = line.replace(key, "***")
    return line[:300]
