"""A text to the words that the embedded model looks up, and a word to the rows of its pieces.

Pure, and the only place where these rules are written: the cold and the batch implementation both read them from here.
A word that the vocabulary cannot cover from end to end gives nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    Longest = Callable[[str, bool], "tuple[int, int] | None"]
    """The row and length of the longest token at the start of a string; True asks for a continuation (`##`) token."""


LONGEST_WORD = 60
WORDS = r"[^\W_]+(?:[\u0300-\u036f]+[^\W_]*)*|[^\w\s]|_"
MARKS = [(mark, f" {mark} ") for mark in map(chr, range(128)) if not mark.isalnum() and not mark.isspace()]
"""Sets every mark of an ASCII text apart: what WORDS finds there, without importing re."""


def words(text: str) -> list[str]:
    """Lower-case words and single punctuation marks, accents still attached as combining marks."""
    if text.isascii():
        text = text.lower()
        if text.isalnum():
            return [text]  # a word alone, as the lexicon learns them
        for mark, apart in MARKS:  # a quarter of the time of `translate`: a text has few of them
            if mark in text:
                text = text.replace(mark, apart)
        return text.split()
    import re
    from unicodedata import normalize  # a megabyte of tables that most queries never need

    return re.findall(WORDS, normalize("NFD", text.lower()))


def bare(word: str) -> str:
    """The word without combining marks; empty if it is too long to be a word."""
    if not word.isascii():
        from unicodedata import category

        word = "".join(letter for letter in word if category(letter) != "Mn")
    return word if len(word) <= LONGEST_WORD else ""


def pieces(word: str, longest: Longest) -> list[int]:
    """Rows of a word's pieces by greedy longest match. Row 0 means unknown and is left out."""
    word = bare(word)
    rows: list[int] = []
    start = 0
    while start < len(word):
        found = longest(word[start:], start > 0)
        if found is None:
            return []
        row, length = found
        if row:
            rows.append(row)
        start += length
    return rows
