"""Estimate how many tokens a text costs a model, and cut it to fit. Pure."""

from __future__ import annotations

import re

LETTERS_A_TOKEN = 4
"""Of Latin text. Other characters count as one token or as half of one: better too many than too few."""
WIDE = re.compile("[\u2e80-\U0010ffff]+")
"""Of scripts without spaces, and emoji."""
SENTENCE_END = re.compile(r"(?<=[.!?\u3002])\s")


def estimate_tokens(text: str) -> int:
    """About what a tokenizer would count, without one; the error is on the safe side for scripts without spaces."""
    if text.isascii():
        return -(-len(text) // LETTERS_A_TOKEN)
    plain = len(text.encode("ascii", "ignore"))
    wide = sum(map(len, WIDE.findall(text)))
    return -(-plain // LETTERS_A_TOKEN) + wide + -(-(len(text) - plain - wide) // 2)


def within(text: str, tokens: int) -> tuple[str, int]:
    """As much of the text as fits, cut after a line, a sentence or a word, and how many tokens were left out."""
    total = estimate_tokens(text)
    if total <= tokens:
        return text, 0
    low, high = 0, min(len(text), tokens * LETTERS_A_TOKEN)  # no text is cheaper; of two megabytes the rest is not read
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if estimate_tokens(text[:middle]) <= tokens else (low, middle - 1)
    kept = text[: _cut_place(text, low)].rstrip()
    return kept, total - estimate_tokens(kept)


def whole_lines(text: str, tokens: int) -> tuple[str, bool]:
    """As many whole lines as fit, and whether the last is cut: only a first line that does not fit on its own."""
    kept, left = within(text, tokens)
    if not left or text[len(kept) :].lstrip(" \t").startswith("\n"):
        return kept, False
    before = kept[: max(kept.rfind("\n"), 0)].rstrip()
    return (before, False) if before else (kept, True)


def _cut_place(text: str, most: int) -> int:
    """The last good place to stop in the second half of what fits."""
    least = most // 2
    line = text.rfind("\n", least, most)
    if line > 0:
        return line
    sentences = [match.start() for match in SENTENCE_END.finditer(text, least, most)]
    if sentences:
        return sentences[-1]
    word = text.rfind(" ", least, most)
    return word if word > 0 else most
