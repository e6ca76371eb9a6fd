"""Names in the settings to embedders."""

from __future__ import annotations

from typing import get_args

import pytest

from co_cli.embedding.catalogue import COMPATIBLE_PROVIDERS, REMOTE_MODELS, REMOTE_PROVIDERS
from co_cli.embedding.providers import open_embedder, provider_names, space_of
from co_cli.errors import SettingsError


def test_none_means_no_embedder() -> None:
    assert open_embedder("none") is None
    assert space_of("none") is None


@pytest.mark.parametrize(
    ("provider", "model", "dimensions"),
    [
        ("static", "co-static-256", 256),
        ("minilm", "all-MiniLM-L6-v2", 384),
        ("ollama", "embeddinggemma", 256),
        ("openai", "text-embedding-3-small", 256),
        ("gemini", "gemini-embedding-001", 256),
        ("cohere", "embed-v4.0", 256),
        ("voyageai", "voyage-4", 256),
        ("bedrock", "amazon.titan-embed-text-v2:0", 256),
    ],
)
def test_each_provider_has_a_default_model(provider: str, model: str, dimensions: int) -> None:
    embedder = open_embedder(provider)

    assert embedder is not None
    assert embedder.space == space_of(provider)
    assert embedder.space.model.partition("@")[0] == model
    assert embedder.space.dimensions == dimensions


def test_an_unknown_provider_is_refused_with_the_known_ones() -> None:
    with pytest.raises(SettingsError, match=r"no embedding provider 'bert'.*static, minilm, ollama.*none"):
        open_embedder("bert")


@pytest.mark.parametrize("provider", ["static", "minilm"])
def test_a_provider_with_one_model_refuses_another(provider: str) -> None:
    with pytest.raises(SettingsError, match="has one model"):
        open_embedder(provider, model="embeddinggemma")


def test_a_provider_without_a_usual_model_asks_for_one() -> None:
    with pytest.raises(SettingsError, match="CO_KNOWLEDGE_EMBEDDING_MODEL"):
        space_of("openrouter")


def test_the_same_model_under_another_name_is_the_same_space() -> None:
    assert space_of("gemini") == space_of("google")
    assert space_of("ollama", "embeddinggemma:latest") == space_of("ollama")


def test_a_model_that_cannot_be_shortened_keeps_its_dimensions() -> None:
    spaces = [
        space_of("openai", "text-embedding-ada-002"),
        space_of("cohere", "embed-english-v3.0"),
        space_of("ollama", "bge-m3"),
        space_of("openrouter", "openai/text-embedding-3-large"),
        space_of("ollama", "unheard-of", dimensions=512),
    ]

    assert [space.dimensions for space in spaces if space] == [1536, 1024, 1024, 256, 512]


def test_every_provider_and_model_that_pydantic_ai_knows_has_a_name_here() -> None:
    pytest.importorskip("pydantic_ai", reason="pydantic-ai is not installed: pip install pydantic-ai-slim")
    from pydantic_ai.embeddings import KnownEmbeddingModelName
    from pydantic_ai.models import OpenAIChatCompatibleProvider, OpenAIResponsesCompatibleProvider

    known = [name.split(":", 1) for name in get_args(KnownEmbeddingModelName.__value__)]
    compatible = {
        *get_args(OpenAIChatCompatibleProvider.__value__),
        *get_args(OpenAIResponsesCompatibleProvider.__value__),
    }

    assert {provider for provider, _ in known} <= set(REMOTE_PROVIDERS)
    assert {model for _, model in known} <= set(REMOTE_MODELS)
    assert compatible - {"ollama"} <= set(COMPATIBLE_PROVIDERS)
    assert len(set(provider_names())) == len(provider_names())
