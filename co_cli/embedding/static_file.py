"""The embedded model's file: which one it is, and where its parts lie.

A better file of the same format replaces `model/co-static-256.bin`; then `REVISION` becomes the first eight hex digits
of its sha256 and every vault is embedded anew in the background, because the space has another name. A file of another
format, or a torn one, is refused.

The format: b"SEM2", two little-endian uint32 (bytes of the JSON header, bytes of the vocabulary), the header, the
vocabulary (one token a line), a float16 scale for each row, int8 rows. A row's values are scale x int8.
"""

from __future__ import annotations

import os
import struct
from _thread import allocate_lock
from typing import TYPE_CHECKING

from co_cli.embedding.space import VectorSpace
from co_cli.errors import EmbeddingError

NAME = "co-static-256"
REVISION = "83172e9b"
FILE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "model", f"{NAME}.bin")
SPACE = VectorSpace("static", f"{NAME}@{REVISION}", 256, noise=0.14, certainty=(20.3, 7.6, -0.45, -8.3))

if TYPE_CHECKING:
    import mmap
    from collections.abc import Callable

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


class ModelFile:
    """The file, open, and where its parts lie: for those who need a few rows. Raises EmbeddingError if it is no use."""

    def __init__(self, path: str = FILE) -> None:
        self._handle = -1
        try:
            self._handle = os.open(path, os.O_RDONLY | getattr(os, "O_BINARY", 0))
            size = os.fstat(self._handle).st_size
        except OSError as error:
            raise _unusable(path, str(error)) from error
        self._lock = allocate_lock()
        if self.read(0, len(MAGIC)) != MAGIC:
            raise _unusable(path, "it does not begin with SEM2")
        try:
            header_size, vocabulary_size = SIZES.unpack(self.read(len(MAGIC), SIZES.size))
            header_at = len(MAGIC) + SIZES.size
            header = _flat_numbers(self.read(header_at, header_size).decode())
            self.layout = layout = Layout(header, header_at + header_size, vocabulary_size)
        except (KeyError, ValueError, struct.error) as error:
            raise _unusable(path, "its header cannot be read") from error
        if layout.table_at + layout.rows * layout.dimensions != size:
            raise _unusable(path, "its size is not what its header says")
        if layout.dimensions != SPACE.dimensions or header.get("bigrams") or header.get("hidden"):
            raise _unusable(path, "this version cannot compute a model of its shape")

    def read(self, at: int, size: int) -> bytes:
        with self._lock:  # threads share the place in the file
            os.lseek(self._handle, at, os.SEEK_SET)
            return os.read(self._handle, size)

    def vocabulary(self) -> bytes:
        return self.read(self.layout.vocabulary_at, self.layout.scales_at - self.layout.vocabulary_at)

    def mapped(self) -> mmap.mmap:
        """All of it in memory, as far as it is looked at: for those who need many rows."""
        import mmap  # a cold query does without

        return mmap.mmap(self._handle, 0, access=mmap.ACCESS_READ)

    def __del__(self, close: Callable[[int], None] = os.close) -> None:  # `os` may be gone at exit
        if self._handle >= 0:
            close(self._handle)


def _flat_numbers(header: str) -> dict[str, float]:
    """`{"rows": 3, "tf": 0.25}` without importing json, which costs a cold process more than the whole query."""
    pairs = (pair.split(":") for pair in header.strip("{} ").split(","))
    return {name.strip(' "'): float(number) for name, number in pairs}


def _unusable(path: str, problem: str) -> EmbeddingError:
    return EmbeddingError(f'{path} cannot be used, {problem}: reinstall with `pip install --force-reinstall "co-cli"`')
