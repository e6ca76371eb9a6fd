"""When are two memories the same one? Texts are compared by their words, and facts that differ are never twins.

`fingerprint` finds exact twins through the index; `likeness` grades the near ones among a few candidates.
"""

from __future__ import annotations

import hashlib
import re
import unicodedata

NEGATIONS = frozenset("no not nor never none nobody nothing neither without cannot stop avoid except unless".split())
"""Beside these, whatever ends in n't."""
NUMBERS = frozenset(
    "two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen eighteen"
    " nineteen twenty thirty forty fifty sixty seventy eighty ninety hundred thousand million half third quarter"
    " once twice monday tuesday wednesday thursday friday saturday sunday january february march april june july"
    " august september october november december".split()
)
"""Words that say how many or when, as facts do. Not `one` and `may`, which mostly mean something else."""
WORD = re.compile(
    r"[^\W_]+(?:['\u2019.,][^\W_]+)*"
    r"|[^\w\s.,;:!?'\"*_`()\[\]#>\u2010-\u201f\u2026\u00ab\u00bb\u00b7\u2022-]+"
    r"|(?<!\w)-(?=\w)|(?<=\w)#"
)
"""Words, and the signs that mean something: `C++`, `-e`, `<`, `$`; not punctuation, and not Markdown's own marks."""


def words_of(text: str) -> list[str]:
    """The words of a text: case, accents of typing, punctuation and Markdown's marks do not count."""
    text = unicodedata.normalize("NFKC", text).casefold().replace("\u2019", "'")
    return WORD.findall(text)


def fingerprint(text: str) -> str:
    words = words_of(text)
    if not words and text.strip():
        words = [" ".join(text.split())]  # emoji and punctuation only: compare as written
    return hashlib.blake2b(" ".join(words).encode("utf-8", "replace"), digest_size=12).hexdigest()


def likeness(one: str, other: str, at_least: float = 0.0) -> float:
    """0 to 1; 0 for whatever is less than `at_least`, which is quicker to see.

    Nothing is alike that differs in a number, a day, a sign or a negation: that is a new fact, not a new wording.
    """
    return likeness_of_words(words_of(one), words_of(other), at_least)


def likeness_of_words(left: list[str], right: list[str], at_least: float = 0.0) -> float:
    """`likeness`, for those who have the words of a text already."""
    from rapidfuzz import fuzz  # slow to import, and a sync needs only fingerprints

    if left == right:
        return 1.0
    alike = fuzz.ratio(" ".join(left), " ".join(right), score_cutoff=100 * at_least) / 100
    return alike if alike and _facts(left) == _facts(right) else 0.0


def says_all_of(one: str, other: str) -> bool:
    """Does `one` contain every word of `other`, in order?"""
    words = iter(words_of(one))
    return all(word in words for word in words_of(other))


def keeps_all_of(new: str, old: str) -> bool:
    """Does `new` hold everything that stands in `old`, as it is written and in order? Only a full stop may go."""
    parts = iter([part.rstrip(".,;:!?") for part in new.split()])
    return all(part.rstrip(".,;:!?") in parts for part in old.split())


def has_paragraph(body: str, words: list[str]) -> bool:
    """Are these the words of one of the paragraphs?"""
    return any(words_of(paragraph) == words for paragraph in re.split(r"\n\s*\n", body))


def _facts(words: list[str]) -> list[str]:
    return sorted(word for word in words if _states(word))


def _states(word: str) -> bool:
    if word in NEGATIONS or word in NUMBERS or word.endswith("n't"):
        return True
    return any(letter.isdigit() for letter in word) or not any(letter.isalnum() for letter in word)
