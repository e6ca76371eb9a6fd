"""A provider and a model's name to the space its vectors live in, without loading or asking anything.

Cheap enough for a cold process: tables and string work only. An unknown model is cut to 256 dimensions and gets no
prompts; whoever knows better says `dimensions`.
"""

from __future__ import annotations

from typing import NamedTuple

from co_cli.embedding.space import EmbedKind, VectorSpace
from co_cli.errors import SettingsError

DIMENSIONS = 256

MINILM_SPACE = VectorSpace("minilm", "all-MiniLM-L6-v2", 384, certainty=(28.2, 1.4, -0.45, -12.6))

DEFAULT_OLLAMA_MODEL = "embeddinggemma"


class OllamaModel(NamedTuple):
    """What a model's authors say must stand around a text. `{title}` is the document's first line."""

    dimensions: int = DIMENSIONS
    query: str = "{text}"
    document: str = "{text}"


OLLAMA_MODELS = {
    "embeddinggemma": OllamaModel(
        query="task: search result | query: {text}", document="title: {title} | text: {text}"
    ),
    "nomic-embed-text": OllamaModel(query="search_query: {text}", document="search_document: {text}"),
    "mxbai-embed-large": OllamaModel(query="Represent this sentence for searching relevant passages: {text}"),
    "all-minilm": OllamaModel(dimensions=384),
    "bge-m3": OllamaModel(dimensions=1024),
}


def ollama_model(model: str) -> OllamaModel:
    """`registry/embeddinggemma:300m` is embeddinggemma."""
    return OLLAMA_MODELS.get(model.rpartition("/")[2].partition(":")[0], OllamaModel())


def ollama_space(model: str | None = None, dimensions: int | None = None) -> VectorSpace:
    name = (model or DEFAULT_OLLAMA_MODEL).removesuffix(":latest")
    return VectorSpace("ollama", name, dimensions or ollama_model(name).dimensions)


def prompted(model: str, text: str, kind: EmbedKind) -> str:
    """The text as this Ollama model wants to see it."""
    known = ollama_model(model)
    if kind == "query":
        return known.query.replace("{text}", text)
    if "{title}" not in known.document:
        return known.document.replace("{text}", text)
    title, _, rest = text.partition("\n")
    if not title.strip() or not rest.strip():
        title, rest = "none", text
    before, _, after = known.document.partition("{title}")
    return before + title.strip() + after.replace("{text}", rest)


class RemoteModel(NamedTuple):
    """The dimensions we use, and whether they have to be asked for."""

    dimensions: int = DIMENSIONS
    adjustable: bool = False


ADJUSTABLE = RemoteModel(DIMENSIONS, adjustable=True)

REMOTE_MODELS = {
    "text-embedding-3-small": ADJUSTABLE,
    "text-embedding-3-large": ADJUSTABLE,
    "text-embedding-ada-002": RemoteModel(1536),
    "gemini-embedding-001": ADJUSTABLE,
    "gemini-embedding-2-preview": ADJUSTABLE,
    "gemini-embedding-2": ADJUSTABLE,
    "text-embedding-005": ADJUSTABLE,
    "text-multilingual-embedding-002": ADJUSTABLE,
    "embed-v4.0": ADJUSTABLE,
    "embed-english-v3.0": RemoteModel(1024),
    "embed-english-light-v3.0": RemoteModel(384),
    "embed-multilingual-v3.0": RemoteModel(1024),
    "embed-multilingual-light-v3.0": RemoteModel(384),
    "voyage-4-large": ADJUSTABLE,
    "voyage-4": ADJUSTABLE,
    "voyage-4-lite": ADJUSTABLE,
    "voyage-3-large": ADJUSTABLE,
    "voyage-3.5": ADJUSTABLE,
    "voyage-3.5-lite": ADJUSTABLE,
    "voyage-code-3": ADJUSTABLE,
    "voyage-finance-2": RemoteModel(1024),
    "voyage-law-2": RemoteModel(1024),
    "voyage-code-2": RemoteModel(1536),
    "amazon.titan-embed-text-v1": RemoteModel(1536),
    "amazon.titan-embed-text-v2:0": ADJUSTABLE,
    "amazon.nova-2-multimodal-embeddings-v1:0": ADJUSTABLE,
    "cohere.embed-english-v3": RemoteModel(1024),
    "cohere.embed-multilingual-v3": RemoteModel(1024),
    "cohere.embed-v4:0": ADJUSTABLE,
}

DEFAULT_REMOTE_MODELS = {
    "openai": "text-embedding-3-small",
    "google": "gemini-embedding-001",
    "google-cloud": "gemini-embedding-001",
    "cohere": "embed-v4.0",
    "voyageai": "voyage-4",
    "bedrock": "amazon.titan-embed-text-v2:0",
}

OTHER_NAMES = {"gemini": "google", "voyage": "voyageai"}

COMPATIBLE_PROVIDERS = (
    "alibaba",
    "azure",
    "cerebras",
    "crusoe",
    "deepseek",
    "fireworks",
    "github",
    "github-copilot",
    "heroku",
    "litellm",
    "meta",
    "moonshotai",
    "nebius",
    "openai-chatgpt",
    "openai-codex",
    "openrouter",
    "ovhcloud",
    "sambanova",
    "sentence-transformers",
    "snowflake",
    "together",
    "vercel",
    "vllm",
    "zai",
)
"""Providers that pydantic-ai can ask for vectors but that have no usual embedding model: one has to be named."""

REMOTE_PROVIDERS = (*DEFAULT_REMOTE_MODELS, *OTHER_NAMES, *COMPATIBLE_PROVIDERS)


def remote_model(model: str) -> RemoteModel:
    """`openai/text-embedding-3-small` behind a router is the same model."""
    return REMOTE_MODELS.get(model.rpartition("/")[2], RemoteModel())


def remote_space(provider: str, model: str | None = None, dimensions: int | None = None) -> VectorSpace:
    provider = OTHER_NAMES.get(provider, provider)
    name = model or DEFAULT_REMOTE_MODELS.get(provider)
    if name is None:
        raise SettingsError(
            f"the embedding provider {provider} has no usual model: name one with CO_KNOWLEDGE_EMBEDDING_MODEL"
        )
    return VectorSpace(provider, name, dimensions or remote_model(name).dimensions)
