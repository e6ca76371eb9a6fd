"""Numbers that a service answered with, to unit vectors. Pure.

Refuses what would be silently wrong later: a missing vector, too few numbers, NaN or infinity, a vector without length.
More numbers than wanted are cut to the wanted ones and brought to unit length again (Matryoshka models allow it).
"""

from __future__ import annotations

import math
import struct
from collections.abc import Iterator, Sequence

from co_cli.embedding.space import Vector
from co_cli.errors import EmbeddingError, WrongDimensionsError


def unit_vectors(answered: Sequence[Sequence[float]], texts: int, dimensions: int, who: str) -> list[Vector]:
    """One unit vector for each of `texts` texts; `who` names the service and model in messages."""
    if len(answered) != texts:
        raise EmbeddingError(
            f"{who} answered with {len(answered)} vectors for {texts} texts: update the service, or choose another"
            " model with CO_KNOWLEDGE_EMBEDDING_MODEL"
        )
    return [unit_vector(values, dimensions, who) for values in answered]


def unit_vector(values: Sequence[float], dimensions: int, who: str) -> Vector:
    if len(values) < dimensions:
        raise WrongDimensionsError(
            f"{who} answered with {len(values)} dimensions where {dimensions} are needed: choose another model with"
            " CO_KNOWLEDGE_EMBEDDING_MODEL"
        )
    kept = values[:dimensions]
    length = math.hypot(*kept)
    if not math.isfinite(length) or length == 0:
        raise WrongDimensionsError(
            f"{who} answered with {'zeros' if length == 0 else 'NaN or infinity'} instead of a vector: restart the"
            " service, or choose another model with CO_KNOWLEDGE_EMBEDDING_MODEL"
        )
    return struct.pack(f"<{dimensions}f", *[value / length for value in kept])


def batches(texts: Sequence[str], most_texts: int, most_characters: int) -> Iterator[list[str]]:
    """Texts in order, in groups that one request can carry. A text is never split, so one alone may be longer."""
    batch: list[str] = []
    characters = 0
    for text in texts:
        if batch and (len(batch) == most_texts or characters + len(text) > most_characters):
            yield batch
            batch, characters = [], 0
        batch.append(text)
        characters += len(text)
    if batch:
        yield batch


def put_back(texts: Sequence[str], vectors: Sequence[Vector]) -> list[Vector | None]:
    """The vectors of the texts that were asked for, with None where a text was blank and was not sent."""
    answered = iter(vectors)
    return [next(answered) if text.strip() else None for text in texts]
