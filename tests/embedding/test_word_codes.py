"""A code of 1,024 bits keeps the direction of a vector, with numpy and without it."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest

from co_cli.embedding.static import StaticEmbedder
from co_cli.embedding.word_codes import BITS, codes_of, cosine_table

WORDS = "guitar musician banjo physician doctor deploy deployment customer client banana carrot protein".split()
ONE_BY_ONE = """
import sys
from co_cli.embedding.static_cold import ColdStaticModel
from co_cli.embedding.word_codes import codes_of
vectors = ColdStaticModel().embed(sys.argv[1:])
print(*[code.hex() for code in codes_of(vectors)])
assert "numpy" not in sys.modules
"""


def vectors() -> list[bytes]:
    return [vector for vector in StaticEmbedder().embed(WORDS, "document") if vector]


def test_differing_bits_tell_the_cosine() -> None:
    made = vectors()
    codes, table = [int.from_bytes(code, "big") for code in codes_of(made)], cosine_table()
    exact = np.array([np.frombuffer(vector, "<f4") for vector in made])
    exact = exact @ exact.T

    guessed = np.array([[table[(one ^ other).bit_count()] for other in codes] for one in codes])

    assert len(table) == BITS + 1
    assert guessed.diagonal() == pytest.approx(1.0)
    assert np.abs(guessed - exact).mean() < 0.05
    assert np.abs(guessed - exact).max() < 0.2


def test_a_process_without_numpy_makes_the_same_codes() -> None:
    alone = subprocess.run([sys.executable, "-c", ONE_BY_ONE, *WORDS], capture_output=True, text=True, check=True)

    together = codes_of(vectors())
    for one, other in zip(alone.stdout.split(), together, strict=True):
        differing = (int(one, 16) ^ int.from_bytes(other, "big")).bit_count()
        assert differing <= 2  # a value next to zero may fall on either side
