"""A few short texts to unit vectors in a fresh process: the standard library and a few reads of the model's file.

Touches only the rows that the texts need. Imports neither numpy nor a tokenizer library, and never the network.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING

from co_cli.embedding.space import Vector
from co_cli.embedding.static_file import FILE, ModelFile
from co_cli.embedding.static_vocabulary import IndexedVocabulary, ScannedVocabulary
from co_cli.embedding.static_words import pieces, words

if TYPE_CHECKING:
    from collections.abc import Sequence

SCANNED_BYTES = 12_000_000
"""Scanning this much costs as much as building the index, so nobody pays more than twice."""


class ColdStaticModel:
    """The embedded model for those who ask once."""

    def __init__(self, path: str = FILE) -> None:
        self._file = ModelFile(path)
        self._vocabulary: ScannedVocabulary | IndexedVocabulary = ScannedVocabulary(self._file.vocabulary())

    def embed(self, texts: Sequence[str]) -> list[Vector | None]:
        return [self._vector(text) for text in texts]

    def _vector(self, text: str) -> Vector | None:
        layout, read = self._file.layout, self._file.read
        total = [0.0] * layout.dimensions
        row_format, row_size = f"{layout.dimensions}b", layout.dimensions
        for row, count in self._counted_rows(text).items():
            (scale,) = struct.unpack("<e", read(layout.scales_at + 2 * row, 2))
            values = struct.unpack(row_format, read(layout.table_at + row_size * row, row_size))
            weight = scale * count**layout.power
            total = [so_far + weight * value for so_far, value in zip(total, values, strict=True)]
        length = sum([value * value for value in total]) ** 0.5
        if not length:
            return None
        return struct.pack(f"<{layout.dimensions}f", *[value / length for value in total])

    def _counted_rows(self, text: str) -> dict[int, int]:
        counts: dict[int, int] = {}
        for word in words(text):
            for row in pieces(word, self._vocabulary.longest):
                counts[row] = counts.get(row, 0) + 1
            if isinstance(self._vocabulary, ScannedVocabulary) and self._vocabulary.scanned > SCANNED_BYTES:
                self._vocabulary = IndexedVocabulary(self._file.vocabulary())
        return counts
