"""Vectors of the embedded model as search.db keeps them: a byte a number, a quarter of what they take as floats.

A number is stored as so many 256ths. None of the model's words has one beyond 115 of them, and a cosine is off by .001,
which is far less than a word more or less in a passage makes. A question is measured in as many steps as fit, and by
each way of scanning in the same steps, so that all of them give the same cosine.
"""

from __future__ import annotations

import struct
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from co_cli.embedding.space import Vector

Packed = bytes
STEPS = 256
MOST = 127
FEW = 3
"""Vectors for which numpy's calls take longer than its work saves."""


def pack(vectors: Sequence[Vector]) -> list[Packed]:
    """Unit vectors as they are stored. With numpy where it is loaded anyway; the bytes are the same."""
    if len(vectors) > FEW and "numpy" in sys.modules:
        import numpy as np

        rows = np.frombuffer(b"".join(vectors), dtype="<f4").reshape(len(vectors), -1)
        whole = np.clip(np.rint(rows * np.float32(STEPS)), -MOST, MOST).astype(np.int8)
        return [row.tobytes() for row in whole]
    return [_pack(vector, STEPS) for vector in vectors]


def finest(vector: Vector) -> Packed:
    """A question's vector in the smallest steps that it fits into: a cosine does not ask for the length."""
    return _pack(vector, MOST / (max(map(abs, memoryview(vector).cast("f"))) or 1))


def unpack(packed: Packed) -> list[float]:
    """The numbers of a stored vector, of unit length again."""
    numbers = memoryview(packed).cast("b")
    length = sum([number * number for number in numbers]) ** 0.5 or 1.0
    return [number / length for number in numbers]


def unpack_all(packed: Sequence[Packed]) -> list[list[float]]:
    """The same for many: with numpy where it is loaded anyway, in a tenth of the time."""
    if len(packed) > FEW and "numpy" in sys.modules:
        import numpy as np

        rows = np.frombuffer(b"".join(packed), dtype=np.int8).reshape(len(packed), -1).astype(np.float64)
        lengths = np.sqrt((rows * rows).sum(axis=1, keepdims=True))
        return (rows / np.where(lengths > 0, lengths, 1)).tolist()
    return [unpack(one) for one in packed]


def _pack(vector: Vector, steps: float) -> Packed:
    numbers = [round(number * steps) for number in memoryview(vector).cast("f")]
    if max(numbers) > MOST or min(numbers) < -MOST:
        numbers = [max(-MOST, min(MOST, number)) for number in numbers]
    return struct.pack(f"{len(numbers)}b", *numbers)
