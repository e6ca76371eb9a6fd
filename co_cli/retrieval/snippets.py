"""A passage into the few words that show why it was found, with the places of the matched ones."""

from __future__ import annotations

import re
from typing import NamedTuple

LENGTH = 240
OPEN, CLOSE = "\x02", "\x03"


class Snippet(NamedTuple):
    """One line of text, and where in it the matched words stand."""

    text: str
    marks: tuple[tuple[int, int], ...]


def from_marked(marked: str) -> Snippet:
    """Out of a text in which the matched words stand between the characters 2 and 3."""
    text, marks, start = "", [], 0
    for part in re.split(f"([{OPEN}{CLOSE}])", " ".join(marked.split())):
        if part == OPEN:
            start = len(text)
        elif part == CLOSE:
            if start < len(text):
                marks.append((start, len(text)))
        else:
            text += part
    return Snippet(text, tuple(marks))


def around(body: str, words: tuple[str, ...]) -> Snippet:
    """The stretch of a text around the first of these words; its beginning if none of them occurs."""
    text = " ".join(body.split())
    folded = text.lower()
    if len(folded) != len(text):  # a few letters grow in lower case: then places would not agree
        folded = text
    places = [folded.find(word.lower()) for word in words]
    first = min((place for place in places if place >= 0), default=0)
    start = 0 if first < LENGTH // 2 else _word_start(text, first - LENGTH // 3)
    end = len(text) if len(text) - start <= LENGTH else _word_start(text, start + LENGTH)
    cut = text[start:end].rstrip()
    head, tail = "…" if start else "", "…" if end < len(text) else ""
    marks = _marks(folded[start : start + len(cut)], words, len(head))
    return Snippet(f"{head}{cut}{tail}", marks)


def _marks(text: str, words: tuple[str, ...], shift: int) -> tuple[tuple[int, int], ...]:
    pattern = "|".join(re.escape(word.lower()) for word in sorted(words, key=len, reverse=True) if word)
    if not pattern:
        return ()
    return tuple((found.start() + shift, found.end() + shift) for found in re.finditer(pattern, text))


def _word_start(text: str, place: int) -> int:
    """The first place behind a blank at or before this one; the place itself in a text without blanks."""
    blank = text.rfind(" ", max(0, place - 40), place + 1)
    return blank + 1 if blank >= 0 else place
