"""Texts to unit vectors through any provider that pydantic-ai can ask: batches, rate limits, several keys.

Synchronous on the outside and safe to call where an event loop is already running. pydantic-ai is imported by the first
call, not before. A query waits for nobody; documents wait as long as the provider asks, within reason. A missing
package, key or model is told with its cure.
"""

from __future__ import annotations

import asyncio
import inspect
import os
import time
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal

from co_cli.embedding.answers import batches, put_back, unit_vectors
from co_cli.embedding.bounded import TooMuchError, bound
from co_cli.embedding.catalogue import remote_model, remote_space
from co_cli.embedding.own_loop import OwnLoop
from co_cli.embedding.remote_keys import Keyring, key_variables, keys_of
from co_cli.embedding.space import EmbedKind, Vector, VectorSpace
from co_cli.errors import EmbedderUnreachableError, EmbeddingError, ModelMissingError, SettingsError

if TYPE_CHECKING:
    from pydantic_ai.embeddings import EmbeddingModel, EmbeddingSettings
    from pydantic_ai.exceptions import ModelHTTPError
    from pydantic_ai.providers import Provider

BATCH_TEXTS = 64
BATCH_CHARACTERS = 60_000
LONGEST_TEXT = 8_000
"""Characters of a text that are embedded: providers take that many, in nearly any script, without complaint."""
QUERY_SECONDS = 5.0
DOCUMENT_SECONDS = 60.0
LONGEST_WAIT = 60.0
SHORTEST_WAIT = 0.1
PAUSES = (1.0, 2.0, 4.0, 8.0)
"""Seconds before each further try when the provider does not say how long to wait."""
PASSING_STATUS = frozenset({408, 409, 425, 429, 500, 502, 503, 504, 529})
EXTRAS = {"google-cloud": "google"}
OWN_EXTRA = ("bedrock", "cohere", "google", "sentence-transformers", "voyageai")


class RemoteEmbedder:
    """One adapter for OpenAI, Gemini, Voyage, Cohere, Bedrock and everything that speaks like them."""

    def __init__(
        self,
        provider: str,
        model: str | None = None,
        *,
        host: str | None = None,
        dimensions: int | None = None,
        query_seconds: float = QUERY_SECONDS,
        document_seconds: float = DOCUMENT_SECONDS,
        pauses: Sequence[float] = PAUSES,
        environment: Mapping[str, str] = os.environ,
        sleep: Callable[[float], None] = time.sleep,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._space = remote_space(provider, model, dimensions)
        self._who = f"{self._space.provider}'s {self._space.model}"
        self._host = host
        self._seconds: dict[EmbedKind, float] = {"query": query_seconds, "document": document_seconds}
        self._pauses: dict[EmbedKind, Sequence[float]] = {"query": (), "document": pauses}
        self._sleep = sleep
        self._keys = Keyring(keys_of(self._space.provider, environment), clock)
        self._models: dict[str | None, EmbeddingModel] = {}
        self._loop = OwnLoop(f"co-embed-{self._space.provider}")

    @property
    def space(self) -> VectorSpace:
        return self._space

    def embed(self, texts: Sequence[str], kind: EmbedKind) -> list[Vector | None]:
        asked = [text[:LONGEST_TEXT] for text in texts if text.strip()]
        vectors: list[Vector] = []
        for batch in batches(asked, BATCH_TEXTS, BATCH_CHARACTERS):
            answered = self._answer_with_retries(batch, kind)
            vectors += unit_vectors(answered, len(batch), self._space.dimensions, self._who)
        return put_back(texts, vectors)

    def close(self) -> None:
        self._models.clear()
        self._loop.close()

    def _answer_with_retries(self, texts: list[str], kind: EmbedKind) -> Sequence[Sequence[float]]:
        pauses = self._pauses[kind]
        patience = LONGEST_WAIT if kind == "document" else 0.0
        tries = len(self._keys) + len(pauses)
        problem = EmbeddingError(f"{self._who} was not asked")
        for number in range(tries):
            key, wait = self._keys.next()
            if wait > patience:
                raise EmbedderUnreachableError(
                    f"{self._who} has reached its rate limit: try again in {wait:.0f} s, or give more keys in"
                    f" {key_variables(self._space.provider)[0]}S, separated by commas"
                )
            if wait:
                self._sleep(wait)
            try:
                return self._answer(texts, kind, key)
            except _TroubleError as trouble:
                problem = trouble.problem
                pause = pauses[min(number, len(pauses) - 1)] if pauses else PAUSES[0]
                seconds = pause if trouble.seconds is None else trouble.seconds
                if trouble.kind == "key":
                    self._keys.drop(key)
                elif trouble.kind == "limit":
                    self._keys.rest(key, max(seconds, SHORTEST_WAIT))
                elif kind == "query":
                    break
                elif number < tries - 1:
                    self._sleep(min(seconds, LONGEST_WAIT))
        raise problem

    def _answer(self, texts: list[str], kind: EmbedKind, key: str | None) -> Sequence[Sequence[float]]:
        model = self._model(key)
        from pydantic_ai.exceptions import ModelAPIError, ModelHTTPError, UnexpectedModelBehavior

        async def ask() -> Sequence[Sequence[float]]:
            answer = model.embed(texts, input_type=kind, settings=self._settings())
            return (await asyncio.wait_for(answer, self._seconds[kind])).embeddings

        try:
            return self._loop.run(ask())
        except TimeoutError as error:
            late = f"{self._who} did not answer within {self._seconds[kind]:g} s: try again, or use the static provider"
            raise _TroubleError("passing", EmbedderUnreachableError(late)) from error
        except TooMuchError as error:
            raise EmbeddingError(f"{self._who} gave an answer that is no vectors ({error}): see who answers") from error
        except ModelHTTPError as error:
            raise self._refusal(error) from error
        except ModelAPIError as error:
            gone = f"{self._who} cannot be reached ({error}): check the network, or use the static provider"
            raise _TroubleError("passing", EmbedderUnreachableError(gone)) from error
        except (UnexpectedModelBehavior, ValueError) as error:
            broken = f"{self._who} gave an answer that cannot be read ({error}): try again"
            raise _TroubleError("passing", EmbedderUnreachableError(broken)) from error
        except Exception as error:  # each provider's package has its own; a search goes on by words all the same
            raise EmbeddingError(f"{self._who} failed, {type(error).__name__}: {error}: check its settings") from error

    def _refusal(self, error: ModelHTTPError) -> Exception:
        status, variable = error.status_code, " or ".join(key_variables(self._space.provider))
        if status in (401, 402, 403) or getattr(error, "provider_error_code", None) == "insufficient_quota":
            return _TroubleError(
                "key", EmbeddingError(f"{self._who} refused the key (HTTP {status}): check {variable} and the account")
            )
        if status == 404:
            return ModelMissingError(
                f"{self._who} does not exist there: choose another model with CO_KNOWLEDGE_EMBEDDING_MODEL"
            )
        if status in PASSING_STATUS:
            return _TroubleError(
                "limit" if status == 429 else "passing",
                EmbedderUnreachableError(
                    f"{self._who} is overloaded or limits the rate (HTTP {status}): try again later"
                ),
                _retry_after(error),
            )
        return EmbeddingError(
            f"{self._who} refused the texts (HTTP {status}: {error.body}): choose another model with"
            " CO_KNOWLEDGE_EMBEDDING_MODEL"
        )

    def _settings(self) -> EmbeddingSettings:
        if remote_model(self._space.model).adjustable:
            return {"dimensions": self._space.dimensions, "truncate": True}
        return {"truncate": True}

    def _model(self, key: str | None) -> EmbeddingModel:
        model = self._models.get(key)
        if model is None:
            model = self._models[key] = self._open_model(key)
        return model

    def _open_model(self, key: str | None) -> EmbeddingModel:
        provider = self._space.provider
        try:
            from pydantic_ai.embeddings import infer_embedding_model
            from pydantic_ai.exceptions import UserError

            try:
                return infer_embedding_model(
                    f"{provider}:{self._space.model}", provider_factory=lambda name: self._open_provider(name, key)
                )
            except UserError as error:
                reason = str(error).partition(". ")[0]
                raise EmbeddingError(
                    f"the embedding provider {provider} is not set up,"
                    f" set {' or '.join(key_variables(provider))}: {reason}"
                ) from error
        except ImportError as error:
            extra = EXTRAS.get(provider, provider if provider in OWN_EXTRA else "openai")
            raise EmbeddingError(
                f'the embedding provider {provider} needs a package: `pip install "pydantic-ai-slim[{extra}]"`'
            ) from error

    def _open_provider(self, name: str, key: str | None) -> Provider[Any]:
        from pydantic_ai.providers import infer_provider_class

        opened = infer_provider_class(name)
        arguments = {"api_key": key, "base_url": self._host}
        arguments = {argument: value for argument, value in arguments.items() if value is not None}
        for argument in arguments.keys() - inspect.signature(opened).parameters.keys():
            what = "an address" if argument == "base_url" else "keys"
            raise SettingsError(f"the embedding provider {name} cannot be given {what}: leave that setting out")
        provider = opened(**arguments)
        if hasattr(provider.client, "max_retries"):
            provider.client.max_retries = 0  # we wait ourselves: another key may be ready sooner
        http = getattr(provider.client, "_client", None)
        if hasattr(http, "event_hooks"):
            bound(http)
        return provider


class _TroubleError(Exception):
    """An answer worth another try: with another key, after a rest, or simply later."""

    def __init__(
        self, kind: Literal["key", "limit", "passing"], problem: EmbeddingError, seconds: float | None = None
    ) -> None:
        self.kind, self.problem, self.seconds = kind, problem, seconds
        super().__init__(str(problem))


_NO_HEADERS: Mapping[str, str] = {}


def _retry_after(error: ModelHTTPError) -> float | None:
    """The seconds the provider asks for. Versions of pydantic-ai that don't tell keep them in the cause's headers."""
    seconds = getattr(error, "retry_after", None)
    if seconds is None:
        headers: Mapping[str, str] = getattr(getattr(error.__cause__, "response", None), "headers", None) or _NO_HEADERS
        try:
            seconds = float(headers.get("retry-after", ""))
        except ValueError:
            return None  # absent, or a date: our own pauses will do
    return float(seconds)
