"""The embedded model read as plainly as can be: the yardstick for what embedding costs, and for what it should give.

Standard library only, one text at a time, nothing remembered between texts.
"""

from __future__ import annotations

import json
import math
import re
import struct
import unicodedata
from collections import Counter

from co_cli.embedding.static import FILE

WORDS = re.compile(r"[^\W_]+(?:[\u0300-\u036f]+[^\W_]*)*|[^\w\s]|_")
LONGEST_WORD = 60


class PlainModel:
    """The whole file in memory, as Python objects."""

    def __init__(self, path: str = FILE) -> None:
        with open(path, "rb") as stream:
            data = stream.read()
        header_size, vocabulary_size = struct.unpack("<II", data[4:12])
        header = json.loads(data[12 : 12 + header_size])
        at = 12 + header_size
        tokens = data[at : at + vocabulary_size].decode().split("\n")
        at += vocabulary_size
        self._dimensions, rows = header["dim"], header["rows"]
        self._power = 1 - header["tf"]
        self._row_of = {token: row for row, token in enumerate(tokens)}
        self._scales = struct.unpack(f"<{rows}e", data[at : at + 2 * rows])
        self._table = memoryview(data)[at + 2 * rows : at + 2 * rows + rows * self._dimensions].cast("b")

    def embed(self, text: str) -> list[float]:
        vector = [0.0] * self._dimensions
        for row, count in Counter(self._rows(text)).items():
            weight = self._scales[row] * count**self._power
            values = self._table[row * self._dimensions : (row + 1) * self._dimensions]
            vector = [total + weight * value for total, value in zip(vector, values, strict=True)]
        length = math.sqrt(sum(value * value for value in vector)) or 1.0
        return [value / length for value in vector]

    def _rows(self, text: str) -> list[int]:
        text = text.lower() if text.isascii() else unicodedata.normalize("NFD", text.lower())
        return [row for word in WORDS.findall(text) for row in self._pieces(word) if row]

    def _pieces(self, word: str) -> list[int]:
        if not word.isascii():
            word = "".join(letter for letter in word if unicodedata.category(letter) != "Mn")
        if len(word) > LONGEST_WORD:
            return []
        found: list[int] = []
        start = 0
        while start < len(word):
            for end in range(len(word), start, -1):
                row = self._row_of.get(word[start:end] if start == 0 else "##" + word[start:end])
                if row is not None:
                    found.append(row)
                    start = end
                    break
            else:
                return []
        return found
