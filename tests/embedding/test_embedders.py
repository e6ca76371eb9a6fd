"""Settings to embedders."""

from __future__ import annotations

import pytest

from co_cli.embedding.embedders import Embedders, space_of
from co_cli.embedding.space import VectorSpace
from co_cli.ground.errors import SettingsError


def test_each_provider_has_a_default_model_and_one_embedder() -> None:
    defaults = {
        "static": ("co-static-256", 256),
        "encoder": ("co-encoder-256", 256),
        "ollama": ("embeddinggemma", 256),
        "openai": ("text-embedding-3-small", 256),
        "gemini": ("gemini-embedding-001", 256),
        "cohere": ("embed-v4.0", 256),
        "voyage": ("voyage-4", 256),
        "bedrock": ("amazon.titan-embed-text-v2:0", 256),
    }
    for provider, expected in defaults.items():
        embedders = Embedders(provider)
        assert embedders.space is not None
        embedder = embedders.of(embedders.space)
        assert embedder is not None
        assert embedder is embedders.of(embedders.space)
        assert embedder.space == embedders.space
        assert (embedder.space.model.partition("@")[0], embedder.space.dimensions) == expected
    assert Embedders("none").space is None


def test_an_unknown_provider_or_model_is_refused() -> None:
    for provider, model, said in (
        ("bert", None, r"no embedding provider 'bert'.*encoder, static, ollama.*none"),
        ("static", "embeddinggemma", "has one model"),
        ("encoder", "embeddinggemma", "has one model"),
    ):
        with pytest.raises(SettingsError, match=said):
            Embedders(provider, model)


def test_a_model_that_cannot_be_shortened_keeps_its_dimensions() -> None:
    models = [("openai", "text-embedding-ada-002"), ("cohere", "embed-english-v3.0"), ("ollama", "bge-m3")]
    spaces = [space_of(*model) for model in [*models, ("openrouter", "openai/text-embedding-3-large")]]
    assert [space.dimensions for space in spaces if space] == [1536, 1024, 1024, 256]


def test_the_embedder_of_another_space_is_opened_while_this_version_has_it() -> None:
    embedders = Embedders("ollama")
    encoder = space_of("encoder")

    assert encoder is not None
    assert embedders.of(VectorSpace(*encoder[:3])) is not None
    assert embedders.of(VectorSpace("static", "co-static-256@00000000", 256)) is None
    assert embedders.of(VectorSpace("ollama", "embeddinggemma", 512)) is None
    assert embedders.of(VectorSpace("ollama", "embeddinggemma", 256, prompts="0")) is None
