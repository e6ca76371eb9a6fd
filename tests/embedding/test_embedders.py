"""Settings to embedders."""

from __future__ import annotations

from typing import get_args

import pytest

from co_cli.embedding.embedders import Embedders, space_of
from co_cli.embedding.remote import ADJUSTABLE, FIXED_DIMENSIONS
from co_cli.embedding.space import VectorSpace
from co_cli.errors import SettingsError


def test_none_means_no_embedder() -> None:
    assert Embedders("none").space is None


@pytest.mark.parametrize(
    ("provider", "model", "dimensions"),
    [
        ("static", "co-static-256", 256),
        ("minilm", "all-MiniLM-L6-v2", 384),
        ("ollama", "embeddinggemma", 256),
        ("openai", "text-embedding-3-small", 256),
        ("gemini", "gemini-embedding-001", 256),
        ("cohere", "embed-v4.0", 256),
        ("voyage", "voyage-4", 256),
        ("bedrock", "amazon.titan-embed-text-v2:0", 256),
    ],
)
def test_each_provider_has_a_default_model(provider: str, model: str, dimensions: int) -> None:
    embedders = Embedders(provider)

    assert embedders.space is not None
    embedder = embedders.of(embedders.space)
    assert embedder is not None
    assert embedder.space == embedders.space
    assert embedder.space.model.partition("@")[0] == model
    assert embedder.space.dimensions == dimensions
    assert embedders.of(embedders.space) is embedder


def test_an_unknown_provider_is_refused_with_the_known_ones() -> None:
    with pytest.raises(SettingsError, match=r"no embedding provider 'bert'.*static, minilm, ollama.*none"):
        Embedders("bert")


@pytest.mark.parametrize("provider", ["static", "minilm"])
def test_a_provider_with_one_model_refuses_another(provider: str) -> None:
    with pytest.raises(SettingsError, match="has one model"):
        Embedders(provider, model="embeddinggemma")


def test_the_same_model_under_another_name_is_the_same_space() -> None:
    assert space_of("gemini") == space_of("google")
    assert space_of("ollama", "embeddinggemma:latest") == space_of("ollama")


def test_a_model_that_cannot_be_shortened_keeps_its_dimensions() -> None:
    spaces = [
        space_of("openai", "text-embedding-ada-002"),
        space_of("cohere", "embed-english-v3.0"),
        space_of("ollama", "bge-m3"),
        space_of("openrouter", "openai/text-embedding-3-large"),
    ]

    assert [space.dimensions for space in spaces if space] == [1536, 1024, 1024, 256]


def test_every_model_that_pydantic_ai_knows_has_its_dimensions() -> None:
    from pydantic_ai.embeddings import KnownEmbeddingModelName

    models = [name.split(":", 1)[1] for name in get_args(KnownEmbeddingModelName.__value__)]

    assert [model for model in models if model not in FIXED_DIMENSIONS and not model.startswith(ADJUSTABLE)] == []


def test_the_embedder_of_another_space_is_opened_while_this_version_has_it() -> None:
    embedders = Embedders("ollama")
    minilm = space_of("minilm")

    assert minilm is not None
    assert embedders.of(VectorSpace(*minilm[:3])) is not None
    assert embedders.of(VectorSpace("static", "co-static-256@00000000", 256)) is None
    assert embedders.of(VectorSpace("ollama", "embeddinggemma", 512)) is None
    assert embedders.of(VectorSpace("ollama", "embeddinggemma", 256, prompts="0")) is None
