"""Titled: how near a question and a title are by meaning, estimated from the codes of their words. Pure.

A title says what a note is about in a few words, and the vector of the whole passage has many more. Where the words of
a question do not tell, a title that means the same is a good sign. Both vectors are sums of words, so their cosine
follows from those between single words, which the closer look knows anyway: no text is embedded for it.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from co_cli.index.lexicon import PassageWords, Word
    from co_cli.retrieval.question import Term

UNRELATED = 0.1
"""The cosine that a title easily has with a question about something else; what is above counts."""


def titles_near(
    terms: Sequence[Term], passages: Mapping[int, PassageWords], known: Mapping[str, Word], cosines: Sequence[float]
) -> dict[int, float]:
    """How near each passage's title is, 0 to 1. `cosines` says which cosine a number of differing bits stands for.

    Nothing where a title is only how the text begins, or where no word of it or of the question has a code.
    """
    asked = [term.code for term in terms if term.code and not term.named]
    if not asked:
        return {}
    length = _length(asked, cosines)
    near: dict[tuple[str, ...], float] = {}
    found: dict[int, float] = {}
    for passage, words in passages.items():
        if words.own_title:
            title = tuple(words.title)
            if title not in near:  # passages of one note have one title
                near[title] = _near(
                    asked, length, [known[word][1] for word in dict.fromkeys(title) if word in known], cosines
                )
            found[passage] = near[title]
    return found


def _near(asked: Sequence[int], length: float, title: Iterable[int], cosines: Sequence[float]) -> float:
    codes = [code for code in title if code]
    if not codes:
        return 0.0
    together = sum([cosines[(one ^ other).bit_count()] for one in asked for other in codes])
    return min(1.0, max(0.0, together / (length * _length(codes, cosines)) - UNRELATED))


def _length(codes: Sequence[int], cosines: Sequence[float]) -> float:
    """Of the sum of these unit vectors; that of one at least, for opposite words are an error of the estimate."""
    return max(1.0, sum([cosines[(one ^ other).bit_count()] for one in codes for other in codes])) ** 0.5
