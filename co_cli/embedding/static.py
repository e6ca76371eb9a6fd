"""The embedded static model: texts to unit vectors on every machine, with no server, no key and no download.

A vector is the weighted sum of the table rows of a text's word pieces. A process that embeds little reads rows in
plain Python; numpy sums many at once if it is loaded anyway or there is enough text to pay for its import. Both agree
to 1e-4.

The file: b"SEM2", two little-endian uint32 (bytes of the JSON header, bytes of the vocabulary), the header, the
vocabulary (one piece a line), a float16 scale for each row, int8 rows. A row's values are scale x int8. The `.idx` file
next to it has the pieces in sorted order (offset, row, length), so that a few words are found without reading them all.
To replace the model, replace the file, run `python -m benchmarks.model_index` and set `REVISION` to the first eight hex
digits of the file's sha256: the space gets a new name, so every vault is embedded again.
"""

from __future__ import annotations

import json
import mmap
import os
import re
import struct
import sys
import unicodedata
from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Sequence
from functools import cache
from itertools import chain, pairwise
from typing import TYPE_CHECKING

from co_cli.embedding.space import EmbedKind, Vector, VectorSpace
from co_cli.ground.errors import EmbeddingError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

NAME = "co-static-256"
REVISION = "83172e9b"
FILE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "model", f"{NAME}.bin")
SPACE = VectorSpace(
    "static", f"{NAME}@{REVISION}", 256, noise=0.14, reading=(20, 1.2), certainty=(11.6, 2.7, -0.25, -3.4), near=0.1
)
"""The certainty was fitted on nine public sets of seven families and on three vaults of short notes, `near` on the half
`tune` of benchmarks/quality/precision."""

PREFIX = struct.Struct("<4sII")
PIECE = struct.Struct("<IHB")
"""An entry of the `.idx` file: where a piece is in the model file, its row, and its bytes."""
COLD_CHARACTERS = 20_000
"""Importing numpy costs as much as embedding about this much text without it."""
BATCH_ROWS = 2_000
"""Rows that numpy sums at a time: fewer pay for the calls, more do not fit into the processor's cache."""
FEW_WORDS = 200
"""Looking up this many words one by one takes as long as building a dict of all pieces, 10 ms."""
MAX_WORD_LENGTH = 60
MAX_CACHED_WORDS = 200_000
WORDS = re.compile(r"[^\W_]+(?:[\u0300-\u036f]+[^\W_]*)*|[^\w\s]|_")
PUNCTUATION = [(mark, f" {mark} ") for mark in map(chr, range(128)) if not mark.isalnum() and not mark.isspace()]


class StaticEmbedder:
    """A query and a document with the same words have the same vector."""

    def __init__(self, path: str = FILE) -> None:
        self._path = path
        self._model: StaticModel | None = None
        self._characters = 0

    @property
    def space(self) -> VectorSpace:
        return SPACE

    def embed(self, texts: Sequence[str], kind: EmbedKind, seconds: float | None = None) -> list[Vector | None]:
        model = self._load()
        self._characters += sum(map(len, texts))
        if "numpy" in sys.modules or self._characters > COLD_CHARACTERS:
            return model.embed_many(texts)
        return model.embed_few(texts)

    def _load(self) -> StaticModel:
        if self._model is None:
            self._model = StaticModel(self._path)
        return self._model


@cache
def shared_embedder() -> StaticEmbedder:
    """The one of this process, so that the model is opened once."""
    return StaticEmbedder()


class StaticModel:
    """The mapped file, with a plain and a numpy implementation of the same sum. Raises EmbeddingError if damaged."""

    def __init__(self, path: str = FILE) -> None:
        try:
            with open(path, "rb") as file:
                self._data = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
            with open(os.path.splitext(path)[0] + ".idx", "rb") as file:
                self._index = file.read()
            magic, header_size, vocabulary_size = PREFIX.unpack_from(self._data)
            if magic != b"SEM2":
                raise ValueError("it does not start with SEM2")
            header = json.loads(self._data[PREFIX.size : PREFIX.size + header_size])
            self._size, self._dimensions = int(header["rows"]), int(header["dim"])
            self._power = 1 - float(header["tf"])
            """A piece that occurs n times counts n ** power."""
            self._vocabulary_at = PREFIX.size + header_size
            self._scales_at = self._vocabulary_at + vocabulary_size
            self._table_at = self._scales_at + 2 * self._size
            if self._table_at + self._size * self._dimensions != len(self._data):
                raise ValueError("its size does not match its header")
            if len(self._index) != PIECE.size * self._size or self._dimensions != SPACE.dimensions:
                raise ValueError("it is another model")
        except (OSError, ValueError, LookupError, TypeError, struct.error) as error:
            fix = 'reinstall with `pip install --force-reinstall "co-cli"`'
            raise EmbeddingError(f"{path} cannot be used ({error}): {fix}") from error
        self._rows_of = WordRows(self._find)
        self._arrays: tuple[NDArray[np.float32], NDArray[np.int8]] | None = None

    def tokens(self) -> list[str]:
        """Every piece, in the order of the rows."""
        return self._data[self._vocabulary_at : self._scales_at].decode().split("\n")

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
        return chain.from_iterable(map(self._rows_of.__getitem__, split_words(text)))

    def _find(self, piece: str) -> int | None:
        """The row of a piece, by binary search in the `.idx` file."""
        if len(self._rows_of) >= FEW_WORDS:
            self._rows_of.find = dict(zip(self.tokens(), range(self._size), strict=True)).get
            return self._rows_of.find(piece)
        wanted = piece.encode("utf-8", "surrogatepass")
        place = bisect_left(range(self._size), wanted, key=lambda place: self._entry(place)[0])
        found, row = self._entry(min(place, self._size - 1))
        return row if found == wanted else None

    def _entry(self, place: int) -> tuple[bytes, int]:
        at, row, length = PIECE.unpack_from(self._index, PIECE.size * place)
        return self._data[at : at + length], row

    def _vector(self, text: str) -> Vector | None:
        total = [0.0] * self._dimensions
        for row, count in Counter(self._rows(text)).items():
            (scale,) = struct.unpack_from("<e", self._data, self._scales_at + 2 * row)
            values = struct.unpack_from(f"{len(total)}b", self._data, self._table_at + len(total) * row)
            weight = scale * count**self._power
            total = [so_far + weight * value for so_far, value in zip(total, values, strict=True)]
        length = sum([value * value for value in total]) ** 0.5
        return struct.pack(f"<{len(total)}f", *[value / length for value in total]) if length else None

    def _batch(self, rows: list[int], ends: list[int]) -> list[Vector | None]:
        """The unit vectors of texts whose rows follow each other; text i ends at `ends[i]`."""
        import numpy as np

        scales, table = self._arrays or self._load_arrays()
        totals = np.zeros((len(ends), self._dimensions), dtype="<f4")
        texts = np.repeat(np.arange(len(ends)), np.diff(ends, prepend=0))
        keys, counts = np.unique(texts * len(scales) + np.array(rows, dtype=np.int64), return_counts=True)
        texts, chosen = np.divmod(keys, len(scales))
        weights = counts.astype(np.float32) ** np.float32(self._power) * scales.take(chosen)
        values = table.take(chosen, axis=0).astype(np.float32)
        starts = np.searchsorted(texts, np.arange(len(ends) + 1)).tolist()
        for total, (start, end) in zip(totals, pairwise(starts), strict=True):
            np.dot(weights[start:end], values[start:end], out=total)
        lengths = np.linalg.norm(totals, axis=1)
        totals /= np.where(lengths > 0, lengths, 1)[:, None]
        return [total.tobytes() if length else None for total, length in zip(totals, lengths.tolist(), strict=True)]

    def _load_arrays(self) -> tuple[NDArray[np.float32], NDArray[np.int8]]:
        import numpy as np

        data = np.frombuffer(self._data, dtype=np.uint8)
        scales = data[self._scales_at : self._table_at].view("<f2").astype(np.float32)
        self._arrays = scales, data[self._table_at :].view(np.int8).reshape(self._size, -1)
        return self._arrays


class WordRows(dict[str, list[int]]):
    """The rows of each word's pieces. Caches the words it has seen. Row 0 means unknown and is left out."""

    def __init__(self, find: Callable[[str], int | None]) -> None:
        super().__init__()
        self.find = find

    def __missing__(self, word: str) -> list[int]:
        if len(self) >= MAX_CACHED_WORDS:
            self.clear()
        plain = word if word.isascii() else "".join(char for char in word if unicodedata.category(char) != "Mn")
        pieces = split_word(plain, self.find) if len(plain) <= MAX_WORD_LENGTH else []
        rows = self[word] = [row for row in pieces if row]
        return rows


def split_word(word: str, find: Callable[[str], int | None]) -> list[int]:
    """The rows of the longest pieces that cover the word, as in BERT's WordPiece; empty if none cover it."""
    rows: list[int] = []
    start, lead = 0, ""
    while start < len(word):
        for end in range(len(word), start, -1):
            row = find(lead + word[start:end])
            if row is not None:
                break
        else:
            return []
        rows.append(row)
        start, lead = end, "##"
    return rows


def split_words(text: str) -> list[str]:
    """Lower-case words and single punctuation marks, accents still attached as combining marks."""
    if not text.isascii():
        return WORDS.findall(unicodedata.normalize("NFD", text.lower()))
    text = text.lower()  # the same words as WORDS finds, twice as fast
    for mark, separated in PUNCTUATION:
        if mark in text:
            text = text.replace(mark, separated)
    return text.split()
