"""The embedder that the settings choose, and those of older spaces that still answer.

Opening one never touches the network and never fails because a package, a key or a server is missing: the first `embed`
says what is wrong. An unknown provider, or a model that the provider cannot have, is refused at once.
"""

from __future__ import annotations

import os
import threading

from co_cli.embedding import static
from co_cli.embedding.encoder import EncoderEmbedder
from co_cli.embedding.languages_weights import is_converted, is_installed
from co_cli.embedding.model_file import can_run
from co_cli.embedding.multilingual import MultilingualEmbedder
from co_cli.embedding.remote_embedders import Outage, RemoteEmbedder, remote_space
from co_cli.embedding.space import ENCODER, LANGUAGES, Embedder, VectorSpace
from co_cli.ground.errors import EmbeddingError, SettingsError
from co_cli.ground.paths import user_data_dir

LOCAL_SPACES = {space.provider: space for space in (static.SPACE, ENCODER, LANGUAGES)}
"""Providers with one model, which need no server."""
PASSAGES_A_SECOND = {"static": 3_000.0, "encoder": 25.0, "languages": 25.0}
"""About, of 150 words and on two cores, to say how long what waits will take."""


def space_of(provider: str, model: str | None = None) -> VectorSpace | None:
    """The space of these settings, without loading or asking anything; None for the provider `none`."""
    if provider == "none":
        return None
    space = LOCAL_SPACES.get(provider)
    if space is None:
        return remote_space(provider, model)
    name = space.model.partition("@")[0]
    if model and model not in (name, space.model):
        fix = "unset CO_KNOWLEDGE_EMBEDDING_MODEL, or choose another provider"
        raise SettingsError(f"the embedding provider {provider} has one model, {name}: {fix}")
    return space


def default_provider() -> str:
    """What is used where nothing is set."""
    return next(space.provider for space in (LANGUAGES, ENCODER, static.SPACE) if can_use(space))


def can_use(space: VectorSpace) -> bool:
    """Whether this environment has what the space needs. Only asked of those that are chosen by themselves."""
    needs = {LANGUAGES.provider: is_installed, ENCODER.provider: can_run}
    return needs[space.provider]() if space.provider in needs else True


class Embedders:
    """One provider, model and host from the settings. Each embedder is opened when it is first needed."""

    def __init__(
        self, provider: str | None, model: str | None = None, host: str | None = None, data_dir: str | None = None
    ) -> None:
        """Without a provider, `languages` if its extra is installed, else `encoder`; `static` where nothing runs that.

        In `data_dir`, processes tell each other about a server that cannot be reached.
        """
        self.chosen = provider is not None
        """Whether the user chose the provider."""
        self.space: VectorSpace | None = space_of(provider or default_provider(), model)
        """The space of new vectors; None: search by words only."""
        self._data_dir = data_dir or user_data_dir(os.environ)
        self._file, self._host = data_dir and os.path.join(data_dir, "outage.json"), host
        self.outage = Outage(self._file, self.space.provider if self.space else "none", host)
        """Of the server that makes new vectors."""
        self._lock = threading.Lock()
        self._open: dict[str, Embedder | None] = {}

    @property
    def ready(self) -> bool:
        """False if the first text has to wait until the weights of `languages` are unpacked, for some seconds."""
        return self.space is not LANGUAGES or is_converted(self._data_dir)

    def of(self, space: VectorSpace) -> Embedder | None:
        """The embedder of a space; None if this version or these settings have none any more."""
        with self._lock:
            if space.key not in self._open:
                self._open[space.key] = self._opened(space)
            return self._open[space.key]

    def is_loaded(self, space: VectorSpace) -> bool:
        """Whether its embedder need not be loaded first: nobody waits for that to save a note."""
        known = self._open.get(space.key)
        if isinstance(known, EncoderEmbedder | MultilingualEmbedder):
            return known.loaded
        return space.provider not in (ENCODER.provider, LANGUAGES.provider)

    def problem(self) -> str | None:
        """Ask the chosen embedder now, whatever it said a moment ago: what is wrong with it, and the fix."""
        if self.space is None:
            return None
        local = self.space.provider in LOCAL_SPACES
        embedder = self.of(self.space) if local else RemoteEmbedder(self.space, self._host)
        try:
            if embedder is not None:
                embedder.embed(["Is anybody there?", "Ist da jemand?"], "query")
        except (EmbeddingError, SettingsError) as error:
            return str(error)
        return None

    def _opened(self, space: VectorSpace) -> Embedder | None:
        try:
            known = space_of(space.provider, space.model)
        except SettingsError:
            return None
        if known is None or known.key != space.key:
            return None
        if known is static.SPACE:
            return static.shared_embedder()
        if known is ENCODER:
            return EncoderEmbedder()
        if known is LANGUAGES:
            return MultilingualEmbedder(self._data_dir)
        # with a local provider, a host in the settings belongs to the server that was used before
        is_theirs = self.space is None or self.space.provider in (space.provider, *LOCAL_SPACES)
        host = self._host if is_theirs else None
        return RemoteEmbedder(known, host, Outage(self._file, known.provider, host))
