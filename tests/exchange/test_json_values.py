"""Large JSON is read value by value, whatever the size of the pieces it comes in."""

from __future__ import annotations

import contextlib
import io
import json
from itertools import islice
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from co_cli.exchange.archive import Unreadable
from co_cli.exchange.json_values import json_lines, json_values

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=20,
)


class Drip:
    """A stream that gives a few bytes at a time, and counts them."""

    def __init__(self, data: bytes, size: int) -> None:
        self.stream, self.size, self.given = io.BytesIO(data), size, 0

    def read(self, size: int = -1, /) -> bytes:
        data = self.stream.read(self.size)
        self.given += len(data)
        return data


@settings(max_examples=40)
@given(st.lists(JSON, max_size=6), st.integers(1, 40), st.sampled_from([None, 1]), st.booleans())
def test_a_list_in_any_pieces_gives_its_members(values: list[Any], size: int, indent: int | None, ascii: bool) -> None:
    data = json.dumps(values, indent=indent, ensure_ascii=ascii).encode("utf-8", "surrogatepass")
    expected = json.loads(data.decode("utf-8", "replace"))

    assert repr(list(json_values(Drip(data, size)))) == repr(expected)


@settings(max_examples=40)
@given(st.lists(JSON, max_size=5), st.integers(1, 40))
def test_lines_in_any_pieces_give_their_values(values: list[Any], size: int) -> None:
    data = "".join(json.dumps(value) + "\n" for value in values).encode()

    assert repr([value for _, value in json_lines(Drip(data, size))]) == repr(values)


@settings(max_examples=40)
@given(st.binary(max_size=200), st.integers(1, 20))
def test_any_bytes_give_values_or_say_why_not(data: bytes, size: int) -> None:
    for begin in (b"", b"[", b'[{"a": "', b"[1, "):
        with contextlib.suppress(Unreadable):  # anything else would be a traceback
            list(json_values(Drip(begin + data, size)))
    for _, value in json_lines(Drip(data, size)):
        assert not isinstance(value, bytes)


def test_only_as_much_is_read_as_is_needed() -> None:
    item = json.dumps({"text": "word " * 2_000}).encode()
    stream = Drip(b"[" + b",".join([item] * 3_000) + b"]", 1 << 20)

    list(islice(json_values(stream), 10))

    assert stream.given <= 2 << 20


def test_a_value_that_never_ends_is_given_up() -> None:
    with pytest.raises(Unreadable, match="item 1 is longer than 5,000"):
        list(json_values(Drip(b'["' + b"a" * 100_000, 1_000), longest=5_000))
    with pytest.raises(Unreadable, match="line 1 is longer than 5,000"):
        list(json_lines(Drip(b"a" * 100_000, 1_000), longest=5_000))
