"""The embedder that the settings choose, and those of older spaces that still answer, each opened when first needed."""

from __future__ import annotations

from _thread import allocate_lock
from typing import TYPE_CHECKING

from co_cli.embedding.providers import open_embedder, space_of
from co_cli.embedding.space import Embedder, VectorSpace
from co_cli.errors import EmbeddingError, SettingsError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from co_cli.embedding.space import EmbedKind, Vector

WITHOUT_HOST = ("static", "minilm", "none")
"""With these, an address in the settings is what is left of a provider that was chosen before."""


class Embedders:
    """One provider, model and host, as settings name them."""

    def __init__(self, provider: str, model: str | None = None, host: str | None = None) -> None:
        self.space: VectorSpace | None = space_of(provider, model)
        """Where new vectors are to live; None: search by words only."""
        self._choice = (provider, model, host)
        self._lock = allocate_lock()
        self._open: dict[str, Embedder | None] = {}

    def of(self, space: VectorSpace) -> Embedder | None:
        """The embedder of a space; None if there is none any more."""
        with self._lock:
            if space.key not in self._open:
                self._open[space.key] = self._opened(space)
            return self._open[space.key]

    def _opened(self, space: VectorSpace) -> Embedder | None:
        if self.space is not None and space.key == self.space.key:
            return open_embedder(*self._choice)
        provider, _, host = self._choice
        if provider not in (space.provider, *WITHOUT_HOST):
            host = None  # the address of another provider
        try:
            embedder = open_embedder(space.provider, None if "@" in space.model else space.model, host)
        except SettingsError:
            return None  # a provider or model that this version does not know any more
        return embedder if embedder is not None and embedder.space.key == space.key else None


class NotAskedYet(Exception):
    """Somebody slow has to be asked first: `ask` does, and must not be called while the index is being read."""

    def __init__(self, ask: Callable[[], None]) -> None:
        self.ask = ask


class Unhurried(Embedders):
    """The same embedders for one search, which ask no server while the index is being read.

    A snapshot that waits for one keeps every process from emptying the write-ahead log. So the first who needs a vector
    gets NotAskedYet, and finds it here when it begins again: for this text in this space, and for no other.
    """

    def __init__(self, embedders: Embedders) -> None:
        self.space = embedders.space
        self._embedders = embedders
        self._answers: dict[tuple[object, ...], list[Vector | None] | Exception] = {}

    def of(self, space: VectorSpace) -> Embedder | None:
        embedder = self._embedders.of(space)
        # the embedded model is here and answers at once
        return embedder if embedder is None or space.provider == "static" else _Unhurried(embedder, self._answers)


class _Unhurried:
    def __init__(self, embedder: Embedder, answers: dict[tuple[object, ...], list[Vector | None] | Exception]) -> None:
        self.space = embedder.space
        self._embedder, self._answers = embedder, answers

    def embed(self, texts: Sequence[str], kind: EmbedKind) -> list[Vector | None]:
        asked = (self.space.key, kind, *texts)

        def ask() -> None:
            try:
                self._answers[asked] = self._embedder.embed(texts, kind)
            except (EmbeddingError, SettingsError) as error:
                self._answers[asked] = error

        answer = self._answers.get(asked)
        if answer is None:
            raise NotAskedYet(ask)
        if isinstance(answer, Exception):
            raise answer
        return answer
