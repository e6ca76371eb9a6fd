"""Vectors of a byte a number: the same bytes with numpy and without, and cosines that hardly differ."""

from __future__ import annotations

import struct
import sys

import pytest

from benchmarks.corpus import Writer
from co_cli.embedding.space import Vector
from co_cli.embedding.static import shared_embedder
from co_cli.index.packing import FEW, finest, pack, unpack, unpack_all


def vectors(count: int) -> list[Vector]:
    writer = Writer(seed=5)
    made = shared_embedder().embed([writer.sentence() for _ in range(count)], "document")
    return [vector for vector in made if vector is not None]


def floats(vector: Vector) -> tuple[float, ...]:
    return struct.unpack("<256f", vector)


def dot(one: tuple[float, ...] | list[float], other: tuple[float, ...] | list[float]) -> float:
    return sum(a * b for a, b in zip(one, other, strict=True))


def test_numpy_and_plain_python_give_the_same_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("numpy", reason="it is compared with plain Python: pip install numpy")
    some = vectors(40)
    assert len(some) > FEW
    with_numpy = pack(some)

    monkeypatch.delitem(sys.modules, "numpy")

    assert pack(some) == with_numpy
    assert {len(packed) for packed in with_numpy} == {256}


def test_numpy_and_plain_python_give_the_same_numbers(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("numpy", reason="it is compared with plain Python: pip install numpy")
    stored = [*pack(vectors(40)), bytes(256)]
    with_numpy = unpack_all(stored)

    monkeypatch.delitem(sys.modules, "numpy")

    for plain, quick in zip(unpack_all(stored), with_numpy, strict=True):
        assert plain == pytest.approx(quick, abs=1e-15)


def test_a_cosine_is_off_by_a_thousandth() -> None:
    *texts, question = vectors(150)
    asked = unpack(finest(question))

    off = [
        dot(asked, unpack(stored)) - dot(floats(question), floats(text))
        for text, stored in zip(texts, pack(texts), strict=True)
    ]

    assert max(map(abs, off)) < 6e-3
    assert sum(one * one for one in off) / len(off) < 2e-3**2


def test_what_is_unpacked_has_unit_length() -> None:
    for stored in pack(vectors(5)):
        assert dot(unpack(stored), unpack(stored)) == pytest.approx(1)


@pytest.mark.parametrize("count", [1, FEW + 1])
def test_a_number_beyond_what_a_byte_holds_is_cut(count: int) -> None:
    """No text of the embedded model has one; a file of another make might."""
    spike = struct.pack("<256f", 0.8, -0.6, *[0.0] * 254)

    for stored in pack([spike] * count):
        assert struct.unpack("256b", stored)[:3] == (127, -127, 0)
    assert struct.unpack("256b", finest(spike))[:3] == (127, -95, 0)


def test_a_vector_of_nothing_stays_one() -> None:
    assert finest(bytes(1024)) == bytes(256)
    assert unpack(bytes(256)) == [0.0] * 256
