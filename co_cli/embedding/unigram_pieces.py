"""Cut a short text into the pieces of a unigram tokenizer, without loading the tokenizer.

sentencepiece takes 280 ms to load the model's 128,000 pieces. Here they are found in a mapped file, and only the rules
of normalising are loaded: enough for a question.
"""

from __future__ import annotations

import importlib
import math
from bisect import bisect_left
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from numpy.typing import NDArray

UNKNOWN = 0
UNKNOWN_PENALTY = 10.0
"""How much less likely than the rarest piece an unknown letter is."""


class UnigramPieces:
    """Finds the likeliest of all ways to cut a text, as sentencepiece does."""

    def __init__(self, arrays: Mapping[str, NDArray[Any]]) -> None:
        self._normalizer: Any = None
        self._rules = arrays["rules"]
        self._letters: Any = arrays["letters"].data
        self._ends: Any = arrays["ends"].data
        self._numbers: Any = arrays["numbers"].data
        self._scores: Any = arrays["scores"].data
        self._unknown = float(arrays["scores"].min()) - UNKNOWN_PENALTY

    def cut(self, text: str) -> list[int]:
        if self._normalizer is None:
            whole = {"add_dummy_prefix": True, "escape_whitespaces": True, "remove_extra_whitespaces": True}
            sentencepiece: Any = importlib.import_module("sentencepiece")  # of an extra
            self._normalizer = sentencepiece.SentencePieceNormalizer(model_proto=self._rules.tobytes(), **whole)
        plain: str = self._normalizer.normalize(text)
        best = [(0.0, 0, 0), *[(-math.inf, 0, 0)] * len(plain)]
        """For each place in the text: the score of what ends there, where its last piece begins, and its number."""
        for start in range(len(plain)):
            score = best[start][0]
            found = dict(self._from(plain, start))
            for length, (worth, number) in (found if 1 in found else {1: (self._unknown, UNKNOWN), **found}).items():
                if score + worth > best[start + length][0]:
                    best[start + length] = score + worth, start, number
        pieces: list[int] = []
        place = len(plain)
        while place:
            _, place, number = best[place]
            pieces.append(number)
        return pieces[::-1]

    def _from(self, text: str, start: int) -> Iterator[tuple[int, tuple[float, int]]]:
        """The length, score and number of every piece with which the text goes on at `start`."""
        first = 0
        for end in range(start + 1, len(text) + 1):
            wanted = text[start:end].encode()
            first = bisect_left(range(len(self._ends)), wanted, first, key=self._piece)
            piece = self._piece(first) if first < len(self._ends) else b""
            if not piece.startswith(wanted):
                return
            if piece == wanted:
                yield end - start, (self._scores[first], self._numbers[first])

    def _piece(self, place: int) -> bytes:
        return bytes(self._letters[self._ends[place - 1] if place else 0 : self._ends[place]])
