"""A text to the token numbers of BERT's uncased WordPiece, which reader and encoder know.

Written by hand because the usual tokenizer is a large package: control characters are dropped, Chinese characters and
punctuation stand alone, accents are removed, then the longest pieces are taken.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Sequence

from co_cli.embedding.static import split_word

UNKNOWN, START, END = 100, 101, 102
MAX_WORD_LENGTH = 100
CHINESE = (
    "([\u4e00-\u9fff\u3400-\u4dbf\U00020000-\U0002a6df\U0002a700-\U0002b73f\U0002b740-\U0002b81f\U0002b820-\U0002ceaf"
    "\uf900-\ufaff\U0002f800-\U0002fa1f])"
)


class WordPieces:
    """A text to token numbers. A word that no pieces cover is [UNK]."""

    def __init__(self, vocabulary: Sequence[str]) -> None:
        self._number_of = {token: number for number, token in enumerate(vocabulary)}

    def pieces(self, text: str, most: int) -> list[int]:
        """The first `most` pieces."""
        numbers: list[int] = []
        for word in words(text):
            pieces = split_word(word, self._number_of.get) if len(word) <= MAX_WORD_LENGTH else []
            numbers += pieces or [UNKNOWN]
            if len(numbers) > most:
                break
        return numbers[:most]


def words(text: str) -> list[str]:
    """Lower-case words without accents, each punctuation mark and Chinese character on its own."""
    kept = re.sub(CHINESE, r" \1 ", text).translate(KEPT).lower()
    return unicodedata.normalize("NFD", kept).translate(SEPARATED).split()


class Letters(dict[int, str]):
    """A table for `str.translate` that asks `rule` once for each letter and its Unicode category."""

    def __init__(self, rule: Callable[[str, str], str]) -> None:
        super().__init__()
        self._rule = rule

    def __missing__(self, code: int) -> str:
        letter = chr(code)
        found = self[code] = self._rule(letter, unicodedata.category(letter))
        return found


def _keep(letter: str, category: str) -> str:
    if letter in "\t\n\r" or category == "Zs":
        return " "
    return "" if letter == "\ufffd" or category.startswith("C") else letter


def _separate(letter: str, category: str) -> str:
    if category == "Mn":
        return ""
    is_mark = category.startswith("P") or (letter.isascii() and category.startswith("S"))
    return f" {letter} " if is_mark else letter


KEPT, SEPARATED = Letters(_keep), Letters(_separate)
