"""Where sentences end, in any script that marks it; and where to cut what has no end at all. Pure, one pass."""

from __future__ import annotations

import re
from collections.abc import Iterator

Span = tuple[int, int]
"""From this character up to that one."""

CLOSERS = "\"'”’»›)\\]*_`」』）】〉》"
END = re.compile(rf"([.!?…‽؟۔։።။។᠃]+)[{CLOSERS}]*|[。！？｡．।॥፨]+[{CLOSERS}]*")
"""What ends a sentence. That of the first kind needs a space behind it; the others, of scripts without spaces, none."""
NEAR = 300
"""Characters of the sentences at a text's beginning or end."""
SHORTEST = 12
"""Characters: what is shorter goes with the sentence behind it."""
WORD_BEFORE = re.compile(r"[^\s(\[\"'“‘]{1,16}$")
ABBREVIATIONS = frozenset(
    """
    e.g i.e etc cf vs al ca approx resp viz incl excl dr mr mrs ms prof sr jr st rev hon gen col lt capt sgt fig figs
    eq eqs sec no nos vol vols pp p ch chap ed eds dept est inc ltd co corp bros jan feb mar apr jun jul aug sep sept
    oct nov dec mon tue wed thu fri sat sun a.m p.m u.s u.k u.n z.b d.h u.a o.ä bzw usw ggf evtl vgl nr abs bd hrsg
    p.ex m mm mme mlle sra srta ej p.ej
    """.split()
)


def sentences(text: str, start: int, end: int) -> Iterator[Span]:
    """The sentences of text[start:end], one behind the other, without the space between them."""
    first = _skip_space(text, start, end)
    for found in END.finditer(text, start, end):
        stop = found.end()
        if stop - first < SHORTEST or (found[1] and not _ends(text, found.start(), stop, end, found[1])):
            continue
        yield first, stop
        first = _skip_space(text, stop, end)
    last = len(text[first:end].rstrip()) + first
    if last > first:
        yield first, last


def short_enough(text: str, span: Span, longest: int) -> Iterator[Span]:
    """The span, or pieces of it: cut at a line's end, else at a space, else in the middle of whatever that is."""
    start, end = span
    while end - start > longest:
        cut = text.rfind("\n", start + longest // 2, start + longest)
        if cut < 0:
            cut = text.rfind(" ", start + longest // 2, start + longest)
        stop = cut if cut > start else start + longest
        if not text[start:stop].isspace():
            yield start, stop
        start = _skip_space(text, stop, end)
    if end > start:
        yield start, end


def first_words(text: str, count: int, longest: int = NEAR) -> str:
    """The first sentences, or the beginning of a long one."""
    end = len(text)
    if end > longest:
        end = max(text.rfind(" ", 0, longest), text.rfind("\n", 0, longest))
        end = end if end > 0 else longest
    found = [span for _, span in zip(range(count), sentences(text, 0, end), strict=False)]
    return text[found[0][0] : found[-1][1]] if found else ""


def last_words(text: str, count: int, longest: int = NEAR) -> str:
    """The last sentences, or the end of a long one."""
    start = max(0, len(text) - longest)
    if start:
        places = [place for place in (text.find(" ", start), text.find("\n", start)) if place >= 0]
        start = min(places, default=start)
    found = [*sentences(text, start, len(text))][-count:] if count else []
    return text[found[0][0] : found[-1][1]] if found else ""


def _ends(text: str, mark: int, stop: int, end: int, signs: str) -> bool:
    """A dot in a number, in an abbreviation or before a small letter ends nothing."""
    if stop >= end:
        return True
    if not text[stop].isspace():
        return False
    if signs != ".":
        return True
    following = text[_skip_space(text, stop, min(end, stop + 100)) : stop + 101][:1]
    if following.islower():
        return False
    before = WORD_BEFORE.search(text, max(0, mark - 16), mark)
    word = before[0].casefold() if before else ""
    return not (word in ABBREVIATIONS or (len(word) == 1 and word.isalpha() and word.isascii() and word != "i"))


def _skip_space(text: str, start: int, end: int) -> int:
    while start < end and text[start].isspace():
        start += 1
    return start
