"""A provider's name from the settings to the `Embedder` behind it, importing nothing that was not chosen.

Opening never touches the network and never fails for lack of a package, a key or a server: the first `embed` says what
is missing. A name that nobody knows, or a setting that the provider cannot have, is refused at once.
"""

from __future__ import annotations

from co_cli.embedding.space import Embedder, VectorSpace
from co_cli.errors import SettingsError

DEFAULT_PROVIDER = "static"


def open_embedder(
    provider: str = DEFAULT_PROVIDER,
    model: str | None = None,
    host: str | None = None,
    dimensions: int | None = None,
) -> Embedder | None:
    """The embedder of this provider; None for `none`. `host` is a server's address, where the provider has one."""
    space = space_of(provider, model, dimensions)
    if space is None:
        return None
    if space.provider == "static":
        from co_cli.embedding.static import shared_embedder

        return shared_embedder()
    if space.provider == "minilm":
        from co_cli.embedding.minilm import MiniLMEmbedder

        return MiniLMEmbedder()
    if space.provider == "ollama":
        from co_cli.embedding.ollama import OllamaEmbedder

        return OllamaEmbedder(model, host=host, dimensions=dimensions)
    from co_cli.embedding.remote import RemoteEmbedder

    return RemoteEmbedder(provider, model, host=host, dimensions=dimensions)


def space_of(
    provider: str = DEFAULT_PROVIDER, model: str | None = None, dimensions: int | None = None
) -> VectorSpace | None:
    """The space that `open_embedder` would give with the same settings, without loading or asking anything."""
    if provider == "none":
        return None
    if provider == "static":
        from co_cli.embedding.static_file import SPACE

        return _only(SPACE, model, dimensions)
    from co_cli.embedding.catalogue import MINILM_SPACE, REMOTE_PROVIDERS, ollama_space, remote_space

    if provider == "minilm":
        return _only(MINILM_SPACE, model, dimensions)
    if provider == "ollama":
        return ollama_space(model, dimensions)
    if provider in REMOTE_PROVIDERS:
        return remote_space(provider, model, dimensions)
    raise SettingsError(f"there is no embedding provider {provider!r}: choose one of {', '.join(provider_names())}")


def provider_names() -> tuple[str, ...]:
    """Every name that CO_KNOWLEDGE_EMBEDDING_PROVIDER may have."""
    from co_cli.embedding.catalogue import REMOTE_PROVIDERS

    return ("static", "minilm", "ollama", *REMOTE_PROVIDERS, "none")


def _only(space: VectorSpace, model: str | None, dimensions: int | None) -> VectorSpace:
    """The one space of a provider that has no choice, unless somebody asks for another."""
    name = space.model.partition("@")[0]
    if model not in (None, "", name, space.model) or dimensions not in (None, space.dimensions):
        raise SettingsError(
            f"the embedding provider {space.provider} has one model, {name} with {space.dimensions} dimensions: unset"
            " CO_KNOWLEDGE_EMBEDDING_MODEL, or choose another provider"
        )
    return space
