"""Compare texts: as they are written (`body_hash`), by the same words (`fingerprint`), by similar words (`likeness`).

Words ignore case, white space, punctuation and Markdown marks.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence

WORD = re.compile(
    r"[^\W_]+(?:['\u2019.,][^\W_]+)*"
    r"|[^\w\s.,;:!?'\"*_`()\[\]#>\u2010-\u201f\u2026\u00ab\u00bb\u00b7\u2022-]+"
    r"|(?<!\w)-(?=\w)|(?<=\w)#"
)
"""Words and meaningful signs, such as `C++`, `-e`, `<`, `$`; no punctuation and no Markdown marks."""
NO_WORDS = "b8e1dda3ac0aa3820ad2990b"
"""The fingerprint of a text without words."""
ARTICLES = frozenset(("a", "an", "the"))


def words_of(text: str) -> list[str]:
    """The words of a text, in lower case."""
    text = unicodedata.normalize("NFKC", text).casefold().replace("\u2019", "'")
    return WORD.findall(text)


def without_articles(words: Sequence[str]) -> list[str]:
    """So that "Door code is 1111" and "The door code is 2222" differ in one word."""
    return [word for word in words if word not in ARTICLES]


def fingerprint(text: str) -> str:
    """Equal for texts with the same words."""
    import hashlib  # loads OpenSSL, which takes 4 ms

    words = words_of(text)
    if not words and text.strip():
        words = [" ".join(text.split())]  # punctuation only: compare as written
    return hashlib.blake2b(" ".join(words).encode("utf-8", "replace"), digest_size=12).hexdigest()


def body_hash(text: str) -> str:
    """The hash of a text, whatever its line endings."""
    import hashlib  # loads OpenSSL, which takes 4 ms

    plain = text.replace("\r\n", "\n").strip()
    return hashlib.blake2b(plain.encode("utf-8", "surrogatepass"), digest_size=8).hexdigest()


def likeness(left: Sequence[str], right: Sequence[str], at_least: float = 0.0) -> float:
    """The share of words that two texts have in common, in order, 0 to 1; 0 if it is below `at_least`."""
    from rapidfuzz.distance import Indel  # slow to import, and a sync needs only fingerprints

    if not left or not right:
        return 0.0
    least = at_least - 1e-6  # four of five words are 0.8, whatever floating point makes of it
    return Indel.normalized_similarity(left, right, score_cutoff=max(0.0, least))
