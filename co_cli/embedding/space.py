"""What makes two vectors comparable, and the interface of everything that turns text into vectors.

A vector is the bytes of little-endian float32: sqlite-vec stores that, numpy reads it without a copy, and a fresh
process handles it without importing either.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from functools import cache, lru_cache
from typing import Literal, NamedTuple, Protocol

from co_cli.ground.errors import EmbeddingError

EmbedKind = Literal["query", "document"]
Vector = bytes
ENGLISH_MODELS = ("static", "encoder")
"""Providers that know English only: what they make of other text is noise, and worse than words alone."""
VOCABULARY = os.path.join(os.path.dirname(os.path.abspath(__file__)), "model", "pieces.txt")
"""The word pieces of the encoder and of the reader, one a line."""


@lru_cache(10_000)
def is_english_word(word: str) -> bool:
    """Whether it is among the 30,000 pieces of English text that the models know: then it is spelled right."""
    return f"\n{word.lower()}\n".encode() in _pieces()


@cache
def _pieces() -> bytes:
    with open(VOCABULARY, "rb") as pieces:
        return pieces.read()


class VectorSpace(NamedTuple):
    """Provider, model, dimensions and prompt version: vectors of two spaces are never compared."""

    provider: str
    model: str
    dimensions: int
    prompts: str = "1"
    """The version of what is put around a text before it is embedded."""
    noise: float = -1.0
    """The cosine that unrelated texts easily reach: a passage that shares no word must be nearer than that."""

    reading: tuple[int, float] = (10, 0.3)
    """How many notes are read, and the weight of what the reader says, beside 1 for meaning and words: the more, the
    less these vectors tell notes apart."""
    certainty: tuple[float, float, float, float] | None = None
    """How sure a search is that something answers: a logistic in the best cosine, the share of the question's words and
    the logarithm of the vault's passages, and its constant. Fitted by `python -m benchmarks absence`."""
    near: float | None = None
    """Where nothing is read: how far a note that also answers may be below the best one, in 0.7 · cosine + 0.3 · the
    share of the question's words. None: not measured, so no hit is weaker than others for that."""

    def knows(self, language: str) -> bool:
        """Whether a passage in this language may have a vector: of models for English, only if it may be English."""
        return self.provider not in ENGLISH_MODELS or language in ("", "en")

    @property
    def key(self) -> str:
        return f"{self.provider}:{self.model}:{self.dimensions}:{self.prompts}"


ENCODER = VectorSpace(
    "encoder", "co-encoder-256@e5014d18", 256, noise=0.16, certainty=(17.5, 2.3, -0.25, -6.7), near=0.1
)
"""Named after the checksum of its weights. The noise is what the same share of unrelated
questions and notes reaches as .14 with the static model. The certainty was fitted on XQuAD, LoCoMo's observations,
Anthropic's documentation, Cranfield and vaults of short notes; `near` on the half `tune` of
benchmarks/quality/precision."""

LANGUAGES = VectorSpace(
    "languages",
    f"use-multilingual-3@51d177e1-{ENCODER.model[-8:]}",
    256,
    noise=0.15,
    certainty=(9.0, 4.0, -0.25, -2.8),
    near=0.07,
)
"""Named after the first eight hex digits of the sha256 of the projection's file, and after the encoder. The noise is
what the same share of unrelated questions and notes reaches as .14 with the static model, a fifth: .12 to .15 in one
other language, .12 to .17 in two, .14 to .21 in English. The certainty was fitted on XQuAD in German, Spanish, Chinese
and English, and on vaults of short notes in these languages, French and Japanese. Its constant is .8 higher than
fitted, because no reader corrects it in other languages: about 5 % of their answered questions are absent, not 20 %.
`near` was chosen on benchmarks/quality/languages."""


class Embedder(Protocol):
    """Texts to unit vectors. A new `space` makes stored vectors unusable, never silently wrong."""

    @property
    def space(self) -> VectorSpace: ...

    def embed(self, texts: Sequence[str], kind: EmbedKind, seconds: float | None = None) -> list[Vector | None]:
        """One unit vector for each text; None for a text without meaning in this space (empty, no known word).

        Raises EmbeddingError when the texts cannot be embedded now, OutOfTimeError if a server took longer than
        `seconds`. Models in this process are not interrupted.
        """
        ...


class OutOfTimeError(EmbeddingError):
    """The time was over before the answer came."""
