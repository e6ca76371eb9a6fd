"""Vectors as they are stored: int8 for the embedded model (a cosine is off by .001 at most), float for others."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from functools import lru_cache

from co_cli.embedding.space import Vector
from co_cli.index.stored import StoredSpace

STEPS, LARGEST = 256, 127
"""A number is stored in steps of 1/256; those of the embedded model have at most 115 steps."""


def stored_form(vector: Vector, space: StoredSpace) -> bytes:
    return packed(vector) if space.packed else vector


def numbers_of(blob: bytes, space: StoredSpace) -> list[float]:
    return unpacked(blob) if space.packed else list(memoryview(blob).cast("f"))


def vector_of(numbers: Sequence[float]) -> Vector:
    return struct.pack(f"<{len(numbers)}f", *numbers)


def asked(query: Vector, space: StoredSpace) -> bytes:
    """A query's vector as it is compared: in the smallest steps that it fits into."""
    return _finest(query) if space.packed else query


@lru_cache(16)  # a search compares it more than once
def _finest(query: Vector) -> bytes:
    return packed(query, finest=True)


def packed(vector: Vector, finest: bool = False) -> bytes:
    numbers = memoryview(vector).cast("f")
    steps = LARGEST / (max(map(abs, numbers)) or 1) if finest else STEPS
    return struct.pack(f"{len(numbers)}b", *[max(-LARGEST, min(LARGEST, round(number * steps))) for number in numbers])


def unpacked(stored: bytes) -> list[float]:
    """The numbers of a packed vector, of unit length again."""
    numbers = memoryview(stored).cast("b")
    length = sum([number * number for number in numbers]) ** 0.5 or 1.0
    return [number / length for number in numbers]
