"""The embedded model's file: its name and format, and the table rows that a text's words stand for.

To replace the model, put a file of the same format in place of `model/co-static-256.bin` and set `REVISION` to the
first eight hex digits of its sha256: the space gets a new name, so every vault is embedded again.

The format: b"SEM2", two little-endian uint32 (bytes of the JSON header, bytes of the vocabulary), the header, the
vocabulary (one token a line), a float16 scale for each row, int8 rows. A row's values are scale x int8.
"""

from __future__ import annotations

import json
import mmap
import os
import re
import struct
import unicodedata

from co_cli.embedding.space import VectorSpace
from co_cli.errors import EmbeddingError

NAME = "co-static-256"
REVISION = "83172e9b"
FILE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "model", f"{NAME}.bin")
SPACE = VectorSpace("static", f"{NAME}@{REVISION}", 256, noise=0.14, certainty=(20.3, 7.6, -0.45, -8.3))

PREFIX = struct.Struct("<4sII")
MAX_WORD_LENGTH = 60
MAX_CACHED_WORDS = 200_000
WORDS = re.compile(r"[^\W_]+(?:[\u0300-\u036f]+[^\W_]*)*|[^\w\s]|_")
PUNCTUATION = [(mark, f" {mark} ") for mark in map(chr, range(128)) if not mark.isalnum() and not mark.isspace()]


class ModelFile:
    """The mapped file and the offsets of its parts. Raises EmbeddingError if it cannot be used."""

    def __init__(self, path: str = FILE) -> None:
        try:
            with open(path, "rb") as file:
                self.data = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
            magic, header_size, vocabulary_size = PREFIX.unpack_from(self.data)
            if magic != b"SEM2":
                raise ValueError("it does not start with SEM2")
            header = json.loads(self.data[PREFIX.size : PREFIX.size + header_size])
            self.rows, self.dimensions = int(header["rows"]), int(header["dim"])
            self.power = 1 - header["tf"]
            """A token that occurs n times counts n ** power."""
        except (OSError, ValueError, LookupError, TypeError, struct.error) as error:
            raise _unusable(path, str(error)) from error
        self._vocabulary_at = PREFIX.size + header_size
        self.scales_at = self._vocabulary_at + vocabulary_size
        self.table_at = self.scales_at + 2 * self.rows
        if self.table_at + self.rows * self.dimensions != len(self.data):
            raise _unusable(path, "its size does not match its header")
        if self.dimensions != SPACE.dimensions or header.get("bigrams") or header.get("hidden"):
            raise _unusable(path, "this version cannot compute a model of its shape")

    def tokens(self) -> list[str]:
        return self.data[self._vocabulary_at : self.scales_at].decode().split("\n")

    def row(self, number: int) -> tuple[float, tuple[int, ...]]:
        """The scale and the values of one row. Touches nothing else of the file."""
        (scale,) = struct.unpack_from("<e", self.data, self.scales_at + 2 * number)
        return scale, struct.unpack_from(f"{self.dimensions}b", self.data, self.table_at + self.dimensions * number)


class Vocabulary(dict[str, list[int]]):
    """The rows of each word's pieces, by greedy longest match. Caches the words it has seen.

    A word that tokens cannot cover from start to end has no rows. Row 0 means unknown and is left out.
    """

    def __init__(self, tokens: list[str]) -> None:
        super().__init__()
        self._row_of = dict(zip(tokens, range(len(tokens)), strict=True))

    def __missing__(self, word: str) -> list[int]:
        if len(self) >= MAX_CACHED_WORDS:
            self.clear()
        rows = self[word] = self._pieces(word)
        return rows

    def _pieces(self, word: str) -> list[int]:
        if not word.isascii():
            word = "".join(letter for letter in word if unicodedata.category(letter) != "Mn")
        rows: list[int] = []
        start, lead = 0, ""
        while start < len(word) <= MAX_WORD_LENGTH:
            for end in range(len(word), start, -1):
                row = self._row_of.get(lead + word[start:end])
                if row is not None:
                    break
            else:
                return []
            if row:
                rows.append(row)
            start, lead = end, "##"
        return rows


def words(text: str) -> list[str]:
    """Lower-case words and single punctuation marks, accents still attached as combining marks."""
    if not text.isascii():
        return WORDS.findall(unicodedata.normalize("NFD", text.lower()))
    text = text.lower()  # the same words as WORDS finds, twice as fast
    for mark, separated in PUNCTUATION:
        if mark in text:
            text = text.replace(mark, separated)
    return text.split()


def _unusable(path: str, problem: str) -> EmbeddingError:
    return EmbeddingError(f'{path} cannot be used, {problem}: reinstall with `pip install --force-reinstall "co-cli"`')
