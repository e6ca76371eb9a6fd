"""`python -m benchmarks.model_index`: write the sorted index of the embedded model's word pieces next to the model."""

from __future__ import annotations

import os
from itertools import accumulate

from co_cli.embedding.static import FILE, PIECE, PREFIX


def index_of(data: bytes) -> bytes:
    """The `.idx` file of a model file: each piece's offset, row and length, sorted by the piece."""
    _, header_size, vocabulary_size = PREFIX.unpack_from(data)
    start = PREFIX.size + header_size
    pieces = data[start : start + vocabulary_size].split(b"\n")
    offsets = accumulate((len(piece) + 1 for piece in pieces), initial=start)
    entries = sorted((piece, at, row) for row, (piece, at) in enumerate(zip(pieces, offsets, strict=False)))
    return b"".join(PIECE.pack(at, row, len(piece)) for piece, at, row in entries)


if __name__ == "__main__":
    with open(FILE, "rb") as model, open(os.path.splitext(FILE)[0] + ".idx", "wb") as index:
        index.write(index_of(model.read()))
