"""The embedded static model: texts to unit vectors on every machine, with no server, no key and no download.

A vector is the weighted sum of the table rows of a text's words. A process that embeds little sums single rows in
plain Python; numpy does it once it is loaded anyway or there is enough text to pay for its import. Both agree to 1e-4.
"""

from __future__ import annotations

import struct
import sys
from collections import Counter
from collections.abc import Sequence
from functools import cache
from itertools import chain, pairwise
from typing import TYPE_CHECKING

from co_cli.embedding.space import EmbedKind, Vector, VectorSpace
from co_cli.embedding.static_model import FILE, SPACE, ModelFile, Vocabulary, words

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

COLD_CHARACTERS = 20_000
"""Importing numpy costs as much as embedding about this much text without it."""
BATCH_ROWS = 2_000
"""Rows that numpy sums at a time: fewer pay for the calls, more do not fit into the processor's cache."""


class StaticEmbedder:
    """A query and a document with the same words have the same vector."""

    def __init__(self, path: str = FILE) -> None:
        self._path = path
        self._model: StaticModel | None = None
        self._characters = 0

    @property
    def space(self) -> VectorSpace:
        return SPACE

    def embed(self, texts: Sequence[str], kind: EmbedKind) -> list[Vector | None]:
        model = self._model
        if model is None:
            model = self._model = StaticModel(self._path)
        self._characters += sum(map(len, texts))
        if "numpy" in sys.modules or self._characters > COLD_CHARACTERS:
            return model.embed_many(texts)
        return model.embed_few(texts)


@cache
def shared_embedder() -> StaticEmbedder:
    """The one of this process, so that the model is opened once."""
    return StaticEmbedder()


class StaticModel:
    """The opened model, with a plain and a numpy implementation of the same sum."""

    def __init__(self, path: str = FILE) -> None:
        self._file = ModelFile(path)
        self._vocabulary = Vocabulary(self._file.tokens())
        self._arrays: tuple[NDArray[np.float32], NDArray[np.int8]] | None = None

    def embed_few(self, texts: Sequence[str]) -> list[Vector | None]:
        """Without numpy. Reads only the rows that the texts need."""
        return [self._vector(text) for text in texts]

    def embed_many(self, texts: Sequence[str]) -> list[Vector | None]:
        """With numpy. Sums the rows of many texts at once."""
        vectors: list[Vector | None] = []
        rows: list[int] = []
        ends: list[int] = []
        for text in texts:
            rows += self._rows(text)
            ends.append(len(rows))
            if len(rows) >= BATCH_ROWS:
                vectors += self._batch(rows, ends)
                rows, ends = [], []
        return vectors + self._batch(rows, ends) if ends else vectors

    def _rows(self, text: str) -> chain[int]:
        return chain.from_iterable(map(self._vocabulary.__getitem__, words(text)))

    def _vector(self, text: str) -> Vector | None:
        total = [0.0] * self._file.dimensions
        for number, count in Counter(self._rows(text)).items():
            scale, values = self._file.row(number)
            weight = scale * count**self._file.power
            total = [so_far + weight * value for so_far, value in zip(total, values, strict=True)]
        length = sum([value * value for value in total]) ** 0.5
        return struct.pack(f"<{len(total)}f", *[value / length for value in total]) if length else None

    def _batch(self, rows: list[int], ends: list[int]) -> list[Vector | None]:
        """The unit vectors of texts whose rows follow each other; text i ends at `ends[i]`."""
        import numpy as np

        scales, table = self._arrays or self._load_arrays()
        totals = np.zeros((len(ends), self._file.dimensions), dtype="<f4")
        texts = np.repeat(np.arange(len(ends)), np.diff(ends, prepend=0))
        keys, counts = np.unique(texts * len(scales) + np.array(rows, dtype=np.int64), return_counts=True)
        texts, chosen = np.divmod(keys, len(scales))
        weights = counts.astype(np.float32) ** np.float32(self._file.power) * scales.take(chosen)
        values = table.take(chosen, axis=0).astype(np.float32)
        starts = np.searchsorted(texts, np.arange(len(ends) + 1)).tolist()
        for total, (start, end) in zip(totals, pairwise(starts), strict=True):
            np.dot(weights[start:end], values[start:end], out=total)
        lengths = np.linalg.norm(totals, axis=1)
        totals /= np.where(lengths > 0, lengths, 1)[:, None]
        return [total.tobytes() if length else None for total, length in zip(totals, lengths.tolist(), strict=True)]

    def _load_arrays(self) -> tuple[NDArray[np.float32], NDArray[np.int8]]:
        import numpy as np

        file = self._file
        data = np.frombuffer(file.data, dtype=np.uint8)
        scales = data[file.scales_at : file.table_at].view("<f2").astype(np.float32)
        table = data[file.table_at :].view(np.int8).reshape(file.rows, -1)
        self._arrays = scales, table
        return self._arrays
