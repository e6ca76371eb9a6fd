"""A vector into 1,024 bits that keep its direction: how alike two words are, by counting the bits that differ.

Each bit says on which side of a plane through the origin the vector lies; two vectors at an angle are parted by that
share of all planes. So the cosine is known to about .05, at 128 bytes a word and a tenth of a microsecond a pair,
without numpy: `(one ^ other).bit_count()`. The planes are the rows of Hadamard matrices with fixed random signs.
"""

from __future__ import annotations

import sys
from _operator import add, sub  # the module around it is slow to import
from math import cos, pi

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy as np
    from numpy.typing import NDArray

    from co_cli.embedding.space import Vector

DIMENSIONS = 256
BLOCKS = 4
BITS = DIMENSIONS * BLOCKS
BYTES = BITS // 8
SIDE = 16


SIGNS = 0x6EB96F6D68690B65AA73026F6B41C7AD3F68AA220652A188ED4D5D27B3D199A84AD4359B500B5717A9B4D1316791CC1E6810D2E6AFB6DE280596DA5E9AD95F853018E884B9E8C59634DBDCD9112FC4DE747FB391356677DDE86A5195DEAB3B4817E5E648BFC8CBCCF1EB511B34A84122E32EF2C93F965BF0C02DC28F5B5A526A  # noqa: E501
"""Random bits, drawn once: a code is only comparable with codes of the same planes."""
FEW = 3
"""Vectors for which setting up numpy is not worth it."""
WORTH_IMPORTING = 400
"""Vectors after which importing numpy would have cost less."""


def codes_of(vectors: Sequence[Vector]) -> list[bytes]:
    """The code of each vector of 256 dimensions; with numpy where it is loaded anyway, or worth loading."""
    global _coded
    _coded += len(vectors)
    if len(vectors) > FEW and ("numpy" in sys.modules or (_coded > WORTH_IMPORTING and _has_numpy())):
        return _codes_at_once(vectors)
    return [_code(list(memoryview(vector).cast("f"))) for vector in vectors]


def cosine_table() -> list[float]:
    """The cosine that each number of differing bits stands for."""
    return [cos(pi * count / BITS) for count in range(BITS + 1)]


def _code(values: list[float]) -> bytes:
    bits = "".join("1" if value > 0 else "0" for signs in _signs() for value in _transformed(values, signs))
    return int(bits, 2).to_bytes(BYTES, "big")


def _codes_at_once(vectors: Sequence[Vector]) -> list[bytes]:
    import numpy as np

    if not _half:
        _half.append(np.array([[(-1.0) ** (i & j).bit_count() for j in range(SIDE)] for i in range(SIDE)], dtype="<f4"))
    half = _half[0]
    rows = np.frombuffer(b"".join(vectors), dtype="<f4").reshape(len(vectors), DIMENSIONS)
    codes = np.empty((len(vectors), BITS), dtype=bool)
    for block, signs in enumerate(_signs()):
        # a Hadamard matrix of 256 is the product of two of 16: a sixteenth of the work of multiplying by all planes
        mixed = (rows * np.array(signs, dtype="<f4")).reshape(-1, SIDE, SIDE)
        codes[:, block * DIMENSIONS : (block + 1) * DIMENSIONS] = (half @ (mixed @ half)).reshape(-1, DIMENSIONS) > 0
    return [row.tobytes() for row in np.packbits(codes, axis=1)]


def _transformed(values: list[float], signs: list[int]) -> list[float]:
    """The fast Walsh-Hadamard transform of the signed values: eight rounds of sums and differences."""
    mixed = [value * sign for value, sign in zip(values, signs, strict=True)]
    for _ in range(8):
        first, second = mixed[::2], mixed[1::2]
        mixed = [*map(add, first, second), *map(sub, first, second)]
    return mixed


def _signs() -> list[list[int]]:
    """+1 or -1 for each dimension of each block, the same ones everywhere and for ever."""
    if not _made:
        bits = f"{SIGNS:0{BITS}b}"
        _made.extend(
            [1 if bit == "1" else -1 for bit in bits[start : start + DIMENSIONS]]
            for start in range(0, BITS, DIMENSIONS)
        )
    return _made


def _has_numpy() -> bool:
    try:
        import numpy  # noqa: F401  # pyright: ignore[reportUnusedImport]
    except ModuleNotFoundError:
        return False  # slower, with the same codes
    return True


_made: list[list[int]] = []
_half: list[NDArray[np.float32]] = []
_coded = 0
