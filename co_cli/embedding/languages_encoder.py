"""universal-sentence-encoder-multilingual 3: texts in sixteen languages to 512 numbers, with numpy only.

What depends on one word piece only (its projections, and its part of the first convolutions) is computed once for all
its occurrences in a batch: half of all the work.
"""

from __future__ import annotations

import importlib
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from co_cli.embedding.languages_weights import CHUNKS, HALF, SPECIAL, WIDTH, WINDOWS, open_arrays
from co_cli.embedding.unigram_pieces import UnigramPieces

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Floats = NDArray[np.float32]

START, END = 1, 2
EPSILON = 1e-6
GAP = 2
"""Empty rows between two texts, so that no window reaches into another text."""
BATCH_PIECES, BLOCK_PIECES = 16_384, 768
"""Pieces of texts that share what depends on one piece only, and how many are then convolved at a time."""
MOST_PIECES = 1_024
"""Of one text; the rest is not read."""
FEW_LETTERS = 400
"""Cutting this much into pieces in Python takes 60 ms; loading the tokenizer takes 280."""


class SentenceEncoder:
    """The mapped file, and the tokenizer once there is much to cut. Raises EmbeddingError if damaged."""

    def __init__(self, path: str) -> None:
        self._arrays = open_arrays(path)
        self._pieces = UnigramPieces(self._arrays)
        self._tokenizer: Any = None
        self._letters = 0

    def encode(self, texts: Sequence[str]) -> Floats:
        """A unit vector for each text; zeros for one without any known piece."""
        import numpy as np

        pieces = self._cut(texts)
        vectors = np.zeros((len(texts), WIDTH), np.float32)
        for batch in _batches(pieces, BATCH_PIECES):
            vectors[batch] = self._batch([pieces[place] for place in batch])
        return vectors

    def _cut(self, texts: Sequence[str]) -> list[list[int]]:
        """The numbers of the pieces of each text; none if nothing in it is known."""
        self._letters += sum(map(len, texts))
        texts = [text.encode("utf-8", "replace").decode() for text in texts]  # half a surrogate pair is no text
        if self._tokenizer is None and self._letters > FEW_LETTERS:
            sentencepiece: Any = importlib.import_module("sentencepiece")  # of an extra
            self._tokenizer = sentencepiece.SentencePieceProcessor(model_proto=self._arrays["model"].tobytes())
        cut = self._tokenizer.encode(texts, num_threads=1) if self._tokenizer else map(self._pieces.cut, texts)
        return [
            [START, *pieces[:MOST_PIECES], END]
            if any(piece >= SPECIAL for piece in pieces)
            else []  # else nothing is known
            for pieces in cut
        ]

    def _batch(self, texts: Sequence[Sequence[int]]) -> Floats:
        """The vectors of texts that share what depends on one piece only."""
        import numpy as np

        known, places = np.unique(np.array([piece for text in texts for piece in text]), return_inverse=True)
        alone = self._each(known)
        sums, start = np.empty((len(texts), WIDTH + len(WINDOWS) * HALF), np.float32), 0
        sizes = [len(text) for text in texts]
        for block in _batches(sizes, BLOCK_PIECES):
            end = start + sum(sizes[text] for text in block)
            sums[block] = self._convolve(alone, places[start:end] + 1, [sizes[text] for text in block])
            start = end
        weights, lengths = self._arrays, np.array(sizes, np.float32)[:, None]
        mean = (sums @ weights["out"] + lengths * weights["out_bias"]) / np.sqrt(lengths)
        inner = np.maximum(mean @ weights["skip1"] + np.maximum(mean @ weights["dense0"], 0) @ weights["dense1"], 0)
        vectors = np.tanh(inner @ weights["skip3"] + np.maximum(inner @ weights["dense2"], 0) @ weights["dense3"])
        return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)

    def _each(self, known: NDArray[np.int64]) -> list[Floats]:
        """What depends on one piece only, with a first row of zeros for gaps: the table's row, its projections, and
        their products with each place of the first convolutions."""
        import numpy as np

        weights, chunks = self._arrays, known % CHUNKS
        rows = np.zeros((len(known) + 1, WIDTH), np.float32)
        rows[1:] = weights["table"][known] * weights["scale"][chunks, None] + weights["low"][chunks, None]
        projected = rows @ weights["project"] + weights["project_bias"]
        projected -= projected.mean(axis=1, keepdims=True)
        projected *= 1 / np.sqrt(np.einsum("ij,ij->i", projected, projected) / projected.shape[1] + EPSILON)[:, None]
        projected = projected * weights["project_gain"] + weights["project_shift"]
        projected[0] = 0
        parts = [projected[:, HALF * nth : HALF * (nth + 1)] for nth in range(len(WINDOWS))]
        products = [part @ weights[f"first{size}"] for part, (size, _) in zip(parts, WINDOWS, strict=True)]
        return [rows, *parts, *products]

    def _convolve(self, alone: Sequence[Floats], places: NDArray[np.int64], sizes: Sequence[int]) -> Floats:
        """The sum of each text's features, every piece's normalised to one length. `places` are rows of `alone`."""
        import numpy as np

        ends = np.cumsum(sizes) + GAP * np.arange(1, len(sizes) + 1)
        starts = ends - sizes
        at = np.zeros(int(ends[-1]) + GAP, np.int64)
        full = np.arange(len(places)) + GAP * np.repeat(np.arange(1, len(sizes) + 1), sizes)
        at[full] = places
        features, weights = [alone[0][at]], self._arrays
        for nth, (size, left) in enumerate(WINDOWS):
            own = alone[1 + nth][at]
            inner = _slide(alone[1 + len(WINDOWS) + nth][at], size, left)
            inner = np.maximum(inner + weights[f"first_bias{size}"], 0) + own
            inner[at == 0] = 0
            outer = _slide(inner @ weights[f"second{size}"], size, left)
            features.append(np.maximum(outer + weights[f"second_bias{size}"], 0) + inner)
        count = WIDTH + len(WINDOWS) * HALF
        means = sum(part.sum(axis=1) for part in features) / count
        squares = sum(np.einsum("ij,ij->i", part, part) for part in features) / count
        scales = np.where(at > 0, 1 / np.sqrt(squares - means * means + EPSILON), 0).astype(np.float32)
        shifts = scales * means
        found = np.empty((len(sizes), count), np.float32)
        for text, start, end in zip(found, starts.tolist(), ends.tolist(), strict=True):
            text[:] = np.concatenate([scales[start:end] @ part[start:end] for part in features])
            text -= shifts[start:end].sum()
        return found


def _slide(products: Floats, size: int, left: int) -> Floats:
    """Add, at each row, the product of place i of the window with the row that stands there."""
    total = products[:, left * HALF : (left + 1) * HALF].copy()
    for place in range(size):
        column, shift = products[:, place * HALF : (place + 1) * HALF], place - left
        if shift > 0:
            total[:-shift] += column[shift:]
        elif shift < 0:
            total[-shift:] += column[:shift]
    return total


def _batches(texts: Sequence[Sequence[int]] | Sequence[int], most: int) -> Iterator[list[int]]:
    """The places of texts that follow each other, with about `most` pieces in all. Those without any are left out."""
    batch: list[int] = []
    total = 0
    for place, text in enumerate(texts):
        size = text if isinstance(text, int) else len(text)
        if not size:
            continue
        if batch and total + size > most:
            yield batch
            batch, total = [], 0
        batch.append(place)
        total += size
    if batch:
        yield batch
