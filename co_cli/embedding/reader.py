"""The reader: a small cross-encoder that reads a question and a passage together and says how well it is answered."""

from __future__ import annotations

import time
from array import array
from collections.abc import Mapping, Sequence
from itertools import accumulate, islice
from math import log
from threading import Lock
from typing import NamedTuple

from co_cli.embedding.model_file import FOLDER, ModelFile, pool
from co_cli.embedding.word_pieces import END, START

QUESTION_TOKENS, PASSAGE_TOKENS = 48, 768
PAIR_TOKENS = 128
"""Tokens of a question and a window together. A longer passage is read in the window that matches best."""
MOST_KEPT = 20_000
"""Scores that are kept for the next time that somebody asks, about 400 bytes each."""
SUMS = "a6f500a0", "f22f2b22"


class CrossEncoder:
    """Loaded by the first call; after that it can be used from several threads."""

    def __init__(self, folder: str = FOLDER) -> None:
        self._file = ModelFile("reader", SUMS, folder)
        self._kept: dict[bytes, float] = {}
        self._keeping = Lock()
        self.pairs_read, self.pairs_kept, self.seconds_read = 0, 0, 0.0
        """What was read so far, what was known already, and how long searches waited for both."""

    def scores(self, question: str, texts: Sequence[str], seconds: float | None = None) -> list[float | None]:
        """A score for each text; None for those, from the end, for which these seconds of processor time are too few.

        Time in which others use the processor does not count, or a busy machine would give another answer.
        It is the logarithm of the odds that the question is answered, if no text has a higher one. A text's score does
        not depend on the other texts, nor on what is read at the same time.
        """
        model = self._file.load()
        started = time.monotonic()
        asked = model.pieces.pieces(question, QUESTION_TOKENS)
        room = PAIR_TOKENS - 3 - len(asked)
        pairs = [Pair(asked, best_window(asked, model.pieces.pieces(text, PASSAGE_TOKENS), room)) for text in texts]
        keys = [pair.key for pair in pairs]
        found = {key: self._kept[key] for key in keys if key in self._kept}
        new = [(key, pair) for key, pair in dict(zip(keys, pairs, strict=True)).items() if key not in found]

        spent: list[float] = []

        def read(keyed: tuple[bytes, Pair]) -> tuple[bytes, float] | None:
            key, pair = keyed
            if seconds is not None and sum(spent) > seconds:
                return None
            began = time.thread_time()
            score = float(model.run((START, *pair.asked, END, *pair.window, END), len(pair.asked) + 2))
            spent.append(time.thread_time() - began)
            return key, score

        found.update(filter(None, pool().map(read, new) if new else ()))
        self._keep(found)
        with self._keeping:
            self.pairs_read += len(new)
            self.pairs_kept += len(keys) - len(new)
            self.seconds_read += time.monotonic() - started
        return [found.get(key) for key in keys]

    def _keep(self, scores: Mapping[bytes, float]) -> None:
        with self._keeping:
            self._kept.update(scores)
            for key in list(islice(self._kept, max(0, len(self._kept) - MOST_KEPT))):  # the oldest
                del self._kept[key]


class Pair(NamedTuple):
    """The tokens of a question, and those of a passage that are read with it."""

    asked: Sequence[int]
    window: Sequence[int]

    @property
    def key(self) -> bytes:
        return array("H", (*self.asked, END, *self.window)).tobytes()


def best_window(asked: Sequence[int], passage: Sequence[int], room: int) -> Sequence[int]:
    """The stretch that has most of the question's tokens; the first one if they are equal."""
    if len(passage) <= room:
        return passage
    # BERT numbers its tokens from frequent to rare
    rarity = {token: log(token) - 6 for token in asked if token > 999}
    sums = list(accumulate((rarity.get(token, 0.0) for token in passage), initial=0.0))
    starts = range(0, len(passage) - room // 2, room // 2)
    start = min(starts, key=lambda start: (sums[start] - sums[min(start + room, len(passage))], start))
    return passage[start : start + room]
