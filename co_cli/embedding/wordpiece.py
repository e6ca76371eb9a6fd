"""A text to BERT's uncased WordPiece token numbers. Pure, with only the standard library.

As BERT's own tokenizer does it: control characters dropped, Chinese characters on their own, lower case, accents
stripped, punctuation split off, then greedy longest pieces. A word that no pieces cover becomes [UNK].
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence

UNKNOWN, START, END = "[UNK]", "[CLS]", "[SEP]"
LONGEST_WORD = 100
CHINESE = re.compile(
    "([\u4e00-\u9fff\u3400-\u4dbf\U00020000-\U0002a6df\U0002a700-\U0002b73f\U0002b740-\U0002b81f\U0002b820-\U0002ceaf"
    "\uf900-\ufaff\U0002f800-\U0002fa1f])"
)
REMEMBERED_WORDS = 100_000


class WordPieces:
    """Keeps the pieces of the words it has seen."""

    def __init__(self, vocabulary: Sequence[str]) -> None:
        self._number_of = {token: number for number, token in enumerate(vocabulary)}
        self._unknown = [self._number_of[UNKNOWN]]
        self._start, self._end = self._number_of[START], self._number_of[END]
        self._pieces_of: dict[str, list[int]] = {}

    def numbers(self, text: str, most: int) -> list[int]:
        """[CLS], at most `most` - 2 pieces, [SEP]. Empty when the text has no piece that the vocabulary knows."""
        numbers = [self._start]
        for word in words(text):
            numbers += self._pieces(word)
            if len(numbers) >= most - 1:
                break
        del numbers[most - 1 :]
        if all(number in self._unknown for number in numbers[1:]):
            return []
        return [*numbers, self._end]

    def _pieces(self, word: str) -> list[int]:
        pieces = self._pieces_of.get(word)
        if pieces is None:
            if len(self._pieces_of) >= REMEMBERED_WORDS:
                self._pieces_of.clear()
            pieces = self._pieces_of[word] = self._split(word)
        return pieces

    def _split(self, word: str) -> list[int]:
        if len(word) > LONGEST_WORD:
            return self._unknown
        pieces: list[int] = []
        start = 0
        while start < len(word):
            for end in range(len(word), start, -1):
                number = self._number_of.get(word[start:end] if start == 0 else "##" + word[start:end])
                if number is not None:
                    pieces.append(number)
                    start = end
                    break
            else:
                return self._unknown
        return pieces


def words(text: str) -> list[str]:
    """Lower-case words without accents, each punctuation mark and Chinese character on its own."""
    if not text.isascii():
        text = CHINESE.sub(r" \1 ", text)
    text = unicodedata.normalize("NFD", "".join(map(_kept, text)).lower())
    return "".join(map(_separated, text)).split()


def _kept(letter: str) -> str:
    if letter in "\t\n\r":
        return " "
    if letter == "\ufffd":
        return ""
    category = unicodedata.category(letter)
    if category.startswith("C"):
        return ""
    return " " if category == "Zs" else letter


def _separated(letter: str) -> str:
    if letter.isalnum():
        return letter
    category = unicodedata.category(letter)
    if category == "Mn":
        return ""
    is_punctuation = category.startswith("P") or (letter.isascii() and letter.isprintable() and letter != " ")
    return f" {letter} " if is_punctuation else letter
