"""How many tokens a text costs a model, by rule of thumb, and how to cut it where it may be cut. Pure."""

from __future__ import annotations

import re

LETTERS_A_TOKEN = 4
"""Of Latin text. Other characters count as one token or as half of one: better too many than too few."""
SENTENCE_END = re.compile(r"(?<=[.!?\u3002])\s")


def estimate_tokens(text: str) -> int:
    """About what a tokenizer would count, without one; the error is on the safe side for scripts without spaces."""
    plain = sum(map(str.isascii, text)) if not text.isascii() else len(text)
    wide = sum(1 for character in text if ord(character) >= 0x2E80) if plain < len(text) else 0
    return -(-plain // LETTERS_A_TOKEN) + wide + -(-(len(text) - plain - wide) // 2)


def within(text: str, tokens: int) -> tuple[str, int]:
    """As much of the text as fits, cut after a line, a sentence or a word, and how many tokens were left out."""
    total = estimate_tokens(text)
    if total <= tokens:
        return text, 0
    low, high = 0, len(text)
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if estimate_tokens(text[:middle]) <= tokens else (low, middle - 1)
    kept = text[: _cut_place(text, low)].rstrip()
    return kept, total - estimate_tokens(kept)


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
