"""The embedder that the settings choose, and those of older spaces that still answer, each opened when first needed."""

from __future__ import annotations

from _thread import allocate_lock

from co_cli.embedding.providers import open_embedder, space_of
from co_cli.embedding.space import Embedder, VectorSpace
from co_cli.errors import SettingsError

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
