"""Many texts to unit vectors in a long-lived process, with numpy and a memory of the words seen so far.

Agrees with the cold implementation to 1e-4; tokenising is most of the work, so a word is split into pieces once.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain, pairwise

import numpy as np
from numpy.typing import NDArray

from co_cli.embedding.space import Vector
from co_cli.embedding.static_file import FILE, ModelFile
from co_cli.embedding.static_vocabulary import IndexedVocabulary
from co_cli.embedding.static_words import pieces, words

BLOCK = 1024
GATHERED = 2_000
"""Rows that are counted and fetched at a time: one text alone pays more for the calls than for the work, and what does
not fit into the processor's cache is slower again."""
REMEMBERED_WORDS = 200_000


class _PiecesOfWord(dict[str, list[int]]):
    """Rows of each word seen so far; forgets them all rather than grow without end."""

    def __init__(self, vocabulary: IndexedVocabulary) -> None:
        super().__init__()
        self._longest = vocabulary.longest

    def __missing__(self, word: str) -> list[int]:
        if len(self) >= REMEMBERED_WORDS:
            self.clear()
        rows = self[word] = pieces(word, self._longest)
        return rows


class BatchStaticModel:
    """The embedded model for those who stay."""

    def __init__(self, path: str = FILE) -> None:
        file = ModelFile(path)
        layout = file.layout
        data = np.frombuffer(file.mapped(), dtype=np.uint8)
        self._power = layout.power
        self._dimensions = layout.dimensions
        self._scales = data[layout.scales_at : layout.table_at].view("<f2").astype(np.float32)
        self._table: NDArray[np.int8] = data[layout.table_at :].view(np.int8).reshape(layout.rows, -1)
        self._rows_of = _PiecesOfWord(IndexedVocabulary(file.vocabulary()))

    def embed(self, texts: Sequence[str]) -> list[Vector | None]:
        vectors: list[Vector | None] = []
        for start in range(0, len(texts), BLOCK):
            vectors += self._embed_block(texts[start : start + BLOCK])
        return vectors

    def _embed_block(self, texts: Sequence[str]) -> list[Vector | None]:
        totals = np.zeros((len(texts), self._dimensions), dtype="<f4")
        rows_of = self._rows_of.__getitem__
        rows: list[int] = []
        ends: list[int] = []
        first = 0
        for text in texts:
            rows += chain.from_iterable(map(rows_of, words(text)))
            ends.append(len(rows))
            if len(rows) >= GATHERED:
                self._add(rows, ends, totals[first : first + len(ends)])
                first += len(ends)
                rows, ends = [], []
        self._add(rows, ends, totals[first:])
        lengths = np.sqrt(np.einsum("ij,ij->i", totals, totals))
        totals /= np.where(lengths > 0, lengths, 1)[:, None]
        size = 4 * self._dimensions
        joined = totals.tobytes()
        return [joined[at * size : (at + 1) * size] if length else None for at, length in enumerate(lengths.tolist())]

    def _add(self, rows: list[int], ends: list[int], totals: NDArray[np.float32]) -> None:
        """The weighted sum of each text's rows; a text ends where `ends` says. Counted and gathered at once."""
        if not rows:
            return
        size = len(self._scales)
        texts = np.repeat(np.arange(len(ends)), np.diff(ends, prepend=0))
        keys, counts = np.unique(texts * size + np.array(rows), return_counts=True)
        texts, chosen = np.divmod(keys, size)
        weights = counts.astype(np.float32) ** np.float32(self._power) * self._scales.take(chosen)
        values = self._table.take(chosen, axis=0).astype(np.float32)
        starts = np.searchsorted(texts, np.arange(len(ends) + 1)).tolist()
        for total, (start, end) in zip(totals, pairwise(starts), strict=True):
            if end > start:
                np.dot(weights[start:end], values[start:end], out=total)
