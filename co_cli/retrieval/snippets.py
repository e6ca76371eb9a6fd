"""A passage into the few words that show why it was found, with the places of the matched ones."""

from __future__ import annotations

from co_cli.record import Record

LENGTH = 240
OPEN, CLOSE = "\x02", "\x03"


class Snippet(Record):
    """One line of text, and where in it the matched words stand."""

    text: str
    marks: tuple[tuple[int, int], ...]


def from_marked(marked: str) -> Snippet:
    """Out of a text in which the matched words stand between the characters 2 and 3."""
    text, *pieces = " ".join(marked.split()).split(OPEN)
    text = text.replace(CLOSE, "")
    marks: list[tuple[int, int]] = []
    for piece in pieces:
        inside, closed, after = piece.partition(CLOSE)
        if inside and closed:
            marks.append((len(text), len(text) + len(inside)))
        text += inside + after.replace(CLOSE, "")
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
    """Where these words stand; of two that overlap the longer one."""
    found: list[tuple[int, int]] = []
    for word in sorted({word.lower() for word in words if word}, key=len, reverse=True):
        at = text.find(word)
        while at >= 0:
            if not any(first < at + len(word) and at < last for first, last in found):
                found.append((at, at + len(word)))
            at = text.find(word, at + 1)
    return tuple((first + shift, last + shift) for first, last in sorted(found))


def _word_start(text: str, place: int) -> int:
    """The first place behind a blank at or before this one; the place itself in a text without blanks."""
    blank = text.rfind(" ", max(0, place - 40), place + 1)
    return blank + 1 if blank >= 0 else place
