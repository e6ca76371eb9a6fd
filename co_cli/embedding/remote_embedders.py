"""Texts to unit vectors through a server: Ollama with its own client, every other provider with pydantic-ai's Embedder.

A query is tried once, because a search can do with words; documents are sent in batches and tried again if the problem
may pass. Both are bounded in time and in bytes. The clients are imported by the first call, which is also the first to
use the network; the time for an answer begins with the request, because importing takes as long as a good server.
"""

from __future__ import annotations

import contextlib
import math
import os
import re
import struct
import sys
import threading
import time
from collections.abc import Callable, Coroutine, Sequence
from importlib import import_module
from typing import Any

from co_cli.embedding.space import EmbedKind, OutOfTimeError, Vector, VectorSpace
from co_cli.ground.errors import EmbeddingError, KnowledgeError, ModelMissingError, SettingsError
from co_cli.ground.event_loop import run_async
from co_cli.ground.paths import install_line
from co_cli.notes.files import change_json, read_json

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
EXTRAS = {"openai": "openai", "google": "gemini", "google-cloud": "gemini", "voyageai": "voyage"}
"""Which of our extras installs what a provider needs."""
DIMENSIONS = 256
"""What is kept of a vector. Most models are trained so that its beginning is a good vector; these are not."""
FIXED_DIMENSIONS = {
    384: "all-minilm embed-english-light-v3.0 embed-multilingual-light-v3.0",
    1024: "bge-m3 voyage-finance-2 voyage-law-2 embed-english-v3.0 embed-multilingual-v3.0 cohere.embed-english-v3"
    " cohere.embed-multilingual-v3",
    1536: "text-embedding-ada-002 voyage-code-2 amazon.titan-embed-text-v1",
}
PROMPTS = {
    "embeddinggemma": ("task: search result | query: {text}", "title: {title} | text: {rest}"),
    "nomic-embed-text": ("search_query: {text}", "search_document: {text}"),
    "mxbai-embed-large": ("Represent this sentence for searching relevant passages: {text}", "{text}"),
}
"""What the authors of Ollama's models recommend for queries and documents. `{title}` is a document's first line."""
DEFAULT_OLLAMA_HOST = "http://127.0.0.1:11434"
CONNECT_SECONDS = 1.0
"""Less than a command gives slow vectors, so that an address where nothing answers is noticed as such."""
SECONDS: dict[EmbedKind, float] = {"query": 5.0, "document": 120.0}
PAUSES = (1.0, 4.0)
"""Seconds before each further try with documents, unless the provider asks for more."""
MAX_WAIT = 60.0
REST_SECONDS = 300.0
"""How long searches and saves do without a server that cannot be reached. `co index sync` asks it again."""
BATCH_TEXTS = 32
MAX_TEXT = 8_000
"""Characters of a text that are embedded. Providers accept that many in nearly any script."""
MAX_ANSWER_BYTES = 32_000_000
"""32 texts with 4,096 numbers of 20 digits each are 2.6 MB."""
RETRY_STATUS = frozenset({408, 409, 425, 429, 500, 502, 503, 504, 529})
NEXT_KEY = frozenset({401, 403, 429})
"""Of several keys, the next one is used after these."""
KEYS = {
    "google": "GOOGLE_API_KEY GEMINI_API_KEY",
    "google-cloud": "GOOGLE_API_KEY GEMINI_API_KEY",
    "cohere": "CO_API_KEY",
    "voyageai": "VOYAGE_API_KEY",
}
"""The variables of providers that are not called after them."""
SECRET_NAMES = re.compile("KEY|TOKEN|SECRET|PASSWORD")
OTHER_MODEL = "choose another model with CO_KNOWLEDGE_EMBEDDING_MODEL"
Call = Callable[[Sequence[str], EmbedKind], Coroutine[Any, Any, Sequence[Sequence[float]]]]


def remote_space(provider: str, model: str | None = None) -> VectorSpace:
    """The space of a provider's model, without loading or asking anything."""
    provider = OTHER_NAMES.get(provider, provider)
    name = (model or DEFAULT_MODELS.get(provider, "")).removesuffix(":latest")
    if not name:
        raise SettingsError(
            f"there is no embedding provider {provider!r} with a default model: choose one of encoder, static,"
            f" {', '.join(DEFAULT_MODELS)} or none, or name a model with CO_KNOWLEDGE_EMBEDDING_MODEL"
        )
    fixed = (size for size, models in FIXED_DIMENSIONS.items() if _plain_name(name) in models.split())
    return VectorSpace(provider, name, next(fixed, DIMENSIONS))


class Outage:
    """A provider's server that cannot be reached, noted in a file, so that only one of many processes waits for it."""

    def __init__(self, file: str | None, provider: str, host: str | None) -> None:
        own = os.environ.get("OLLAMA_HOST") if provider == "ollama" else None
        address = (host or own or "default").rpartition("@")[2]  # without a password
        self._file, self._server = file, f"{provider} {address}"

    def problem(self) -> str | None:
        """What was wrong a moment ago; None if the server was not asked lately, or answered."""
        at, problem = (read_json(self._file).get(self._server) if self._file else None) or (0.0, "")
        if not 0 <= time.time() - at < REST_SECONDS:
            return None
        return f"{problem}; it is asked again after {REST_SECONDS / 60:.0f} minutes, or by `co index sync`"

    def note(self, problem: str | None) -> None:
        """None: the server answered."""
        if self._file is None or (problem is None and not os.path.exists(self._file)):
            return
        noted = {self._server: (time.time(), problem)} if problem else {}
        with contextlib.suppress(OSError):
            change_json(self._file, lambda state: (state.pop(self._server, None), state.update(noted)))


class RemoteEmbedder:
    """Any provider behind one interface. Safe to call from several threads and where an event loop is running."""

    def __init__(self, space: VectorSpace, host: str | None = None, outage: Outage | None = None) -> None:
        self.space = space
        self._host, self._outage = host, outage
        self._name = f"{space.provider}'s {space.model}"
        self._lock = threading.Lock()
        self._call: Call | None = None

    def embed(self, texts: Sequence[str], kind: EmbedKind, seconds: float | None = None) -> list[Vector | None]:
        sent = [add_prompt(self.space, text[:MAX_TEXT], kind) for text in texts if text.strip()]
        if self._outage and (kind == "query" or seconds is not None) and (problem := self._outage.problem()):
            raise EmbeddingError(problem)  # somebody is waiting, and would wait in vain
        call = self._open()
        deadline = math.inf if seconds is None else time.monotonic() + seconds
        vectors: list[Vector] = []
        for at in range(0, len(sent), BATCH_TEXTS):
            vectors += self._ask(call, sent[at : at + BATCH_TEXTS], kind, deadline)
        received = iter(vectors)
        return [next(received) if text.strip() else None for text in texts]

    def _open(self) -> Call:
        """The client, imported by the first call."""
        with self._lock:
            if self._call is None:
                self._call = (_ollama if self.space.provider == "ollama" else _pydantic_ai)(self.space, self._host)
            return self._call

    def _ask(self, call: Call, texts: Sequence[str], kind: EmbedKind, deadline: float) -> list[Vector]:
        pauses = list(PAUSES) if kind == "document" else []
        while True:
            seconds = min(SECONDS[kind], deadline - time.monotonic())
            try:
                answer = run_async(call(texts, kind), seconds)
                if self._outage:
                    self._outage.note(None)
                return self._unit_vectors(answer, len(texts))
            except TimeoutError as error:
                raise OutOfTimeError(f"{self._name} did not answer within {seconds:.2g} s: try again later") from error
            except Exception as error:
                problem = self._problem(error)
                if self._outage and isinstance(problem, _UnreachableError):
                    self._outage.note(str(problem))
                wait = max(pauses.pop(0), problem.seconds) if pauses and isinstance(problem, _RetryError) else math.inf
                if wait > min(MAX_WAIT, deadline - time.monotonic()):
                    raise problem from error
            time.sleep(wait)

    def _unit_vectors(self, answer: Sequence[Sequence[float]], count: int) -> list[Vector]:
        size, vectors = self.space.dimensions, list[Vector]()
        if len(answer) != count:
            raise EmbeddingError(f"{self._name} sent {len(answer)} vectors for {count} texts: {OTHER_MODEL}")
        for values in answer:
            try:
                length = math.hypot(*values[:size])
                if len(values) < size or not 0 < length < math.inf:
                    raise ValueError("they are of the wrong length, zero, or not finite")
                vectors.append(struct.pack(f"<{size}f", *[value / length for value in values[:size]]))
            except (TypeError, ValueError, OverflowError) as error:
                expected = f"{len(values)} values are not a vector of {size} dimensions ({error})"
                raise EmbeddingError(f"{self._name} sent no vectors, {expected}: {OTHER_MODEL}") from error
        return vectors

    def _problem(self, error: Exception) -> EmbeddingError:
        """What went wrong, and what to do about it. Both clients' errors have a status if the server answered."""
        provider, model, said = self.space.provider, self.space.model, _quote(error)
        status = _status(error)
        if isinstance(error, EmbeddingError):
            return error
        if provider == "ollama" and (isinstance(error, ConnectionError) or type(error).__name__ == "ConnectTimeout"):
            host = _quote(self._host or os.environ.get("OLLAMA_HOST") or DEFAULT_OLLAMA_HOST)
            return _UnreachableError(f"Ollama is not running at {host}: run `ollama serve`, or set OLLAMA_HOST")
        if status is None:
            at = f" at {_quote(self._host)}" if self._host else ""
            return _RetryError(f"{self._name}{at} cannot be reached, or broke off ({said}): check the network")
        if status in (401, 402, 403) or getattr(error, "provider_error_code", None) == "insufficient_quota":
            return EmbeddingError(f"{self._name} refused the key (HTTP {status}): check your API key and the account")
        if status == 404:
            fix = f"`ollama pull {model}`" if provider == "ollama" else OTHER_MODEL
            return ModelMissingError(f"{self._name} does not exist there: {fix}")
        if status in RETRY_STATUS:
            seconds = float(getattr(error, "retry_after", None) or 0)
            later = f"in {seconds:.0f} s" if seconds else "later"
            return _RetryError(f"{self._name} is overloaded (HTTP {status}, {said}): try again {later}", seconds)
        return EmbeddingError(f"{self._name} refused the texts (HTTP {status}, {said}): {OTHER_MODEL}")


class _UnreachableError(EmbeddingError):
    """Nothing listens at the address of the server."""


class _RetryError(EmbeddingError):
    """A problem that may be gone at the next try, after the seconds that the provider asks for."""

    def __init__(self, message: str, seconds: float = 0.0) -> None:
        self.seconds = seconds
        super().__init__(message)


def _ollama(space: VectorSpace, host: str | None) -> Call:
    import httpx
    from ollama import AsyncClient

    host = host or os.environ.get("OLLAMA_HOST") or DEFAULT_OLLAMA_HOST
    timeout, hooks = httpx.Timeout(None, connect=CONNECT_SECONDS), {"response": [_limit]}
    try:
        client = AsyncClient(host, timeout=timeout, headers={"accept-encoding": "identity"}, event_hooks=hooks)
    except (ValueError, httpx.InvalidURL) as error:
        fix = "set CO_KNOWLEDGE_EMBEDDING_HOST"
        raise EmbeddingError(f"{_quote(host)!r} is not an address of an Ollama server: {fix}") from error

    async def embed(texts: Sequence[str], kind: EmbedKind) -> Sequence[Sequence[float]]:
        return (await client.embed(space.model, texts, truncate=True, dimensions=space.dimensions)).embeddings

    return embed


def _pydantic_ai(space: VectorSpace, host: str | None) -> Call:
    from pydantic_ai.embeddings import Embedder, infer_embedding_model

    keys = keys_of(space.provider)
    try:
        embedders = [
            Embedder(infer_embedding_model(f"{space.provider}:{space.model}", provider_factory=_provider(key, host)))
            for key in (keys if len(keys) > 1 else [None])
        ]
    except KnowledgeError:
        raise
    except ImportError as error:
        extra = EXTRAS.get(space.provider)
        fix = f"`{install_line(extra)}`" if extra else _quote(error)
        raise ModelMissingError(f"the embedding provider {space.provider} needs more packages: {fix}") from error
    except Exception as error:  # its key is missing; the message has the fix
        raise EmbeddingError(f"the embedding provider {space.provider} is not set up: {_quote(error)}") from error

    async def embed(texts: Sequence[str], kind: EmbedKind) -> Sequence[Sequence[float]]:
        plain: Any = {"truncate": True, "extra_headers": {"accept-encoding": "identity"}}
        for left in reversed(range(len(embedders))):
            try:
                return (await embedders[0].embed(texts, input_type=kind, settings=plain)).embeddings
            except Exception as error:
                if _status(error) in NEXT_KEY:
                    embedders.append(embedders.pop(0))  # the next key, from now on
                    if left:
                        continue
                raise
        raise AssertionError("there is always a key, or a provider that needs none")

    return embed


def _status(error: Exception) -> int | None:
    """The status with which a server refused. With a pydantic-ai before 2.63, Voyage's is in the cause."""
    return getattr(error, "status_code", None) or getattr(error.__cause__, "http_status", None)


def _provider(key: str | None, host: str | None) -> Callable[[str], Any]:
    """Makes pydantic-ai's provider of a name, with a key (None: its variable has it) and an address, if any."""
    from pydantic_ai.providers import infer_provider, infer_provider_class

    given = {name: value for name, value in (("api_key", key), ("base_url", host)) if value}

    def provide(name: str) -> Any:
        kind: Any = infer_provider_class(name)
        try:
            if host and name == "voyageai":  # pydantic-ai has no address for it
                client: Any = import_module("voyageai.client_async")
                provider = kind(voyageai_client=client.AsyncClient(**given))
            else:
                provider = kind(**given) if given else infer_provider(name)
        except TypeError as error:
            fix = "unset CO_KNOWLEDGE_EMBEDDING_HOST" if host else f"set {KEYS.get(name, 'its variable')} to one key"
            what = "an address" if host else "several keys"
            raise SettingsError(f"the embedding provider {name} cannot be given {what}: {fix}") from error
        if hasattr(provider.client, "max_retries"):
            provider.client.max_retries = 0  # RemoteEmbedder tries again, and only with documents
        http: Any = getattr(provider.client, "_client", None) or getattr(provider, "_own_http_client", None)
        if hasattr(http, "event_hooks"):
            http.headers["accept-encoding"] = "identity"
            http.event_hooks["response"].append(_limit)
        return provider

    return provide


def keys_of(provider: str) -> list[str]:
    """The keys of a provider: its variable may have several, separated by commas."""
    names = KEYS.get(provider, f"{provider.partition('-')[0].upper()}_API_KEY").split()
    text = next((value for name in names if (value := os.environ.get(name))), "")
    return [key.strip() for key in text.split(",") if key.strip()]


def add_prompt(space: VectorSpace, text: str, kind: EmbedKind) -> str:
    """The text with the prompt of an Ollama model; other providers receive the kind."""
    query, document = PROMPTS.get(_plain_name(space.model), ("{text}", "{text}"))
    if space.provider != "ollama":
        return text
    title, _, rest = text.partition("\n")
    if not title.strip() or not rest.strip():
        title, rest = "none", text
    return (query if kind == "query" else document).format(text=text, title=title.strip(), rest=rest)


def _plain_name(model: str) -> str:
    """`registry/embeddinggemma:300m` is embeddinggemma."""
    return model.rpartition("/")[2].partition(":")[0]


async def _limit(response: Any) -> None:
    """A response hook for httpx: read the answer here, and refuse a large or compressed one (a gzip bomb)."""
    content, compressed = bytearray(), response.headers.get("content-encoding", "identity") != "identity"
    async for block in response.stream:
        content += block
        if compressed or len(content) > MAX_ANSWER_BYTES:
            await response.stream.aclose()
            why = "it is compressed" if compressed else f"it has more than {MAX_ANSWER_BYTES:,} bytes"
            fix = "check CO_KNOWLEDGE_EMBEDDING_HOST"
            raise EmbeddingError(f"the answer from {response.url.host} was refused, {why}: {fix}")
    await response.stream.aclose()
    response.stream = sys.modules[type(response).__module__].ByteStream(bytes(content))


def _quote(said: object) -> str:
    """What a server or a library said as one short line, without keys and passwords."""
    line = re.sub(r" or pass it via `[^`]*`", "", " ".join(str(said).split()))
    line = re.sub(r"//[^/@]*@", "//", line)
    for name, values in os.environ.items():
        for value in (values, *values.split(",")) if SECRET_NAMES.search(name) else ():
            line = line.replace(value.strip(), "***") if len(value.strip()) > 3 else line
    return line[:300]
