"""The embedded model's file: which one it is, and where its parts lie.

A better file of the same format replaces `model/co-static-256.bin`; then `REVISION` becomes the first eight hex digits
of its sha256 and every vault is embedded anew in the background, because the space has another name. A file of another
format, or a torn one, is refused.

The format: b"SEM2", two little-endian uint32 (bytes of the JSON header, bytes of the vocabulary), the header, the
vocabulary (one token a line), a float16 scale for each row, int8 rows. A row's values are scale x int8.
"""

from __future__ import annotations

import mmap
import os
import struct

from co_cli.embedding.space import VectorSpace
from co_cli.errors import EmbeddingError

NAME = "co-static-256"
REVISION = "83172e9b"
FILE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "model", f"{NAME}.bin")
SPACE = VectorSpace("static", f"{NAME}@{REVISION}", 256, vector_weight=0.4, noise=0.14)

MAGIC = b"SEM2"
SIZES = struct.Struct("<II")


class Layout:
    """Offsets into the file, and the numbers its header carries."""

    __slots__ = ("dimensions", "power", "rows", "scales_at", "table_at", "vocabulary_at")

    def __init__(self, header: dict[str, float], vocabulary_at: int, vocabulary_size: int) -> None:
        self.rows, self.dimensions = int(header["rows"]), int(header["dim"])
        self.power = 1 - header["tf"]
        """A token seen n times counts n ** power."""
        self.vocabulary_at = vocabulary_at
        self.scales_at = vocabulary_at + vocabulary_size
        self.table_at = self.scales_at + 2 * self.rows


def map_file(path: str = FILE) -> tuple[mmap.mmap, Layout]:
    """The file, memory-mapped, and where its parts lie. Raises EmbeddingError if it cannot be used."""
    try:
        with open(path, "rb") as file:
            data = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    except (OSError, ValueError) as error:  # ValueError: it is empty
        raise _unusable(path, str(error)) from error
    if data[: len(MAGIC)] != MAGIC:
        raise _unusable(path, "it does not begin with SEM2")
    try:
        header_size, vocabulary_size = SIZES.unpack_from(data, len(MAGIC))
        header_at = len(MAGIC) + SIZES.size
        header = _flat_numbers(data[header_at : header_at + header_size].decode())
        layout = Layout(header, header_at + header_size, vocabulary_size)
    except (KeyError, ValueError, struct.error) as error:
        raise _unusable(path, "its header cannot be read") from error
    if layout.table_at + layout.rows * layout.dimensions != len(data):
        raise _unusable(path, "its size is not what its header says")
    if layout.dimensions != SPACE.dimensions or header.get("bigrams") or header.get("hidden"):
        raise _unusable(path, "this version cannot compute a model of its shape")
    return data, layout


def _flat_numbers(header: str) -> dict[str, float]:
    """`{"rows": 3, "tf": 0.25}` without importing json, which costs a cold process more than the whole query."""
    pairs = (pair.split(":") for pair in header.strip("{} ").split(","))
    return {name.strip(' "'): float(number) for name, number in pairs}


def _unusable(path: str, problem: str) -> EmbeddingError:
    return EmbeddingError(f'{path} cannot be used, {problem}: reinstall with `pip install --force-reinstall "co-cli"`')
