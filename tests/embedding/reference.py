"""A second, plain reading of the embedded model's file, to hold the product's two implementations against."""

from __future__ import annotations

import collections
import json
import math
import re
import struct
import unicodedata
from pathlib import Path

WORDS = re.compile(r"[^\W_]+(?:[\u0300-\u036f]+[^\W_]*)*|[^\w\s]|_")


class ReferenceModel:
    """Everything in memory, one token after the other, no shortcuts."""

    def __init__(self, path: Path) -> None:
        data = path.read_bytes()
        header_size, vocabulary_size = struct.unpack("<II", data[4:12])
        header = json.loads(data[12 : 12 + header_size])
        at = 12 + header_size
        self.tokens = data[at : at + vocabulary_size].decode().split("\n")
        at += vocabulary_size
        self.dimensions = header["dim"]
        self.power = 1 - header["tf"]
        self.row_of = {token: row for row, token in enumerate(self.tokens)}
        self.scales = struct.unpack(f"<{header['rows']}e", data[at : at + 2 * header["rows"]])
        self.table = memoryview(data)[at + 2 * header["rows"] :].cast("b")

    def vector(self, text: str) -> list[float]:
        """The zero vector for a text it knows no piece of."""
        text = text.lower() if text.isascii() else unicodedata.normalize("NFD", text.lower())
        rows = [row for word in WORDS.findall(text) for row in self.pieces(word) if row]
        total = [0.0] * self.dimensions
        for row, count in collections.Counter(rows).items():
            weight = self.scales[row] * count**self.power
            for at in range(self.dimensions):
                total[at] += weight * self.table[row * self.dimensions + at]
        length = math.sqrt(sum(value * value for value in total)) or 1.0
        return [value / length for value in total]

    def pieces(self, word: str) -> list[int]:
        word = "".join(letter for letter in word if unicodedata.category(letter) != "Mn")
        found: list[int] = []
        start = 0
        while start < len(word) <= 60:
            candidates = [("##" if start else "") + word[start:end] for end in range(len(word), start, -1)]
            token = next((token for token in candidates if token in self.row_of), None)
            if token is None:
                return []
            found.append(self.row_of[token])
            start += len(token) - 2 * (start > 0)
        return found
