"""Texts as numbers: one array of tokens for many texts, with where each ends; and xz files of named arrays."""

from __future__ import annotations

import lzma
from collections.abc import Iterable
from io import BytesIO
from pathlib import Path
from typing import NamedTuple

import numpy as np


class Texts(NamedTuple):
    """The tokens of all texts in a row. Text `i` is `tokens[ends[i] : ends[i + 1]]`."""

    tokens: np.ndarray  # uint16
    ends: np.ndarray  # int32, one more than there are texts

    @classmethod
    def of(cls, texts: Iterable[list[int]]) -> Texts:
        rows = [np.array(text, np.uint16) for text in texts]
        ends = np.cumsum([0, *map(len, rows)]).astype(np.int32)
        return cls(np.concatenate(rows) if rows else np.zeros(0, np.uint16), ends)

    def __len__(self) -> int:
        return len(self.ends) - 1


def padded(rows: Iterable[list[int]], width: int) -> np.ndarray:
    """Lists as one int32 table: cut to `width`, and filled up with -1."""
    return np.array([(row + [-1] * width)[:width] for row in rows], np.int32).reshape(-1, width)


def save(path: Path, **arrays: np.ndarray) -> None:
    buffer = BytesIO()
    np.savez(buffer, **arrays)
    path.write_bytes(lzma.compress(buffer.getvalue(), preset=4))


def load(path: Path) -> dict[str, np.ndarray]:
    with np.load(BytesIO(lzma.decompress(path.read_bytes()))) as arrays:
        return dict(arrays)
