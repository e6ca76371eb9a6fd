"""Inline Markdown that is still arriving, into styled stretches of text that will not change any more. Pure.

A mark such as `**` is held back until its partner arrives, or until it is certain that none will: what was handed out
once is never taken back.
"""

from __future__ import annotations

import re
from typing import NamedTuple

Styles = frozenset[str]
PLAIN: Styles = frozenset()
PATIENCE = 600
"""Characters after which a mark without a partner is taken for what it looks like."""

ESCAPABLE = frozenset("\n\\`*_{}[]()#+-.!~|<>")
MARKS = {"***": ("bold", "italic"), "___": ("bold", "italic"), "**": ("bold",), "__": ("bold",), "~~": ("strike",)}
MARKS.update({"*": ("italic",), "_": ("italic",)})
NEXT_MARK = re.compile(r"[\\`*_~\[!<]")
LINK = re.compile(r"(!?)\[([^\]]*)\]\(\s*<?([^)\s>]*)>?(?:\s+\"[^\"]*\")?\s*\)")
LINK_BEGUN = re.compile(r"!?(?:\[[^\]]*(?:\](?:\([^)]*)?)?)?")
AUTOLINK = re.compile(r"<((?:https?|mailto):[^\s<>]+)>")
AUTOLINK_BEGUN = re.compile(r"<[a-z]*(?::[^\s<>]*)?")


class Span(NamedTuple):
    """A stretch of text and how it looks."""

    text: str
    styles: Styles = PLAIN


class Read(NamedTuple):
    """What is certain of a text so far, and up to which character."""

    spans: list[Span]
    consumed: int


def read_inline(text: str, final: bool, styles: Styles = PLAIN, start: int = 0) -> Read:
    """`final` says that no more text will follow: then everything is certain. What stands before `start` was read."""
    spans: list[Span] = []
    place = start
    while place < len(text):
        found = NEXT_MARK.search(text, place)
        marked = found.start() if found else len(text)
        if marked > place:
            spans.append(Span(text[place:marked], styles))
            place = marked
            continue
        step = _mark(text, place, final, styles)
        if step is None:
            if not final and len(text) - place < PATIENCE:
                break
            step = [Span(text[place], styles)], place + 1
        spans += step[0]
        place = step[1]
    return Read(spans, place)


def _mark(text: str, place: int, final: bool, styles: Styles) -> tuple[list[Span], int] | None:
    """What the mark at `place` turns into and where that ends; None while its partner is missing."""
    match text[place]:
        case "\\":
            after = text[place + 1 : place + 2]
            if not after and not final:
                return None
            return (
                ([Span(after, styles)], place + 2)
                if after and after in ESCAPABLE
                else ([Span("\\", styles)], place + 1)
            )
        case "`":
            return _code(text, place, final, styles)
        case "[" | "!":
            return _link(text, place, final, styles)
        case "<":
            return _autolink(text, place, final, styles)
        case _:
            return _emphasis(text, place, final, styles)


def _code(text: str, place: int, final: bool, styles: Styles) -> tuple[list[Span], int] | None:
    ticks = _run(text, place)
    if place + len(ticks) == len(text) and not final:
        return None  # there may be more of them
    closing = re.compile(rf"(?<!`){ticks}(?!`)").search(text, place + len(ticks))
    if closing is None:
        return None
    if closing.end() == len(text) and not final:
        return None
    inside = text[place + len(ticks) : closing.start()]
    if inside.strip() and inside[0] == inside[-1] == " ":
        inside = inside[1:-1]
    return [Span(inside, styles | {"code"})], closing.end()


def _emphasis(text: str, place: int, final: bool, styles: Styles) -> tuple[list[Span], int] | None:
    run = _run(text, place)
    end = place + len(run)
    if end == len(text) and not final:
        return None
    before, after = text[place - 1 : place], text[end : end + 1]
    opens = bool(after) and not after.isspace() and not (run[0] == "_" and before.isalnum())
    if run not in MARKS or not opens:
        return [Span(run, styles)], end
    close = end
    while (close := text.find(run, close)) >= 0:
        past = close + len(run)
        whole = _run(text, close) == run and text[close - 1] != run[0]
        if past == len(text) and not final:
            return None  # one more and it is another mark
        inner_word = run[0] == "_" and text[past : past + 1].isalnum()
        if whole and close > end and not text[close - 1].isspace() and not inner_word:
            inside = read_inline(text[end:close], True, styles | set(MARKS[run]))
            return inside.spans, past
        close += 1
    return None


def _link(text: str, place: int, final: bool, styles: Styles) -> tuple[list[Span], int] | None:
    found = LINK.match(text, place)
    if found:
        picture, words, address = found.groups()
        shown = read_inline(words or address, True, styles | {"link"}).spans
        if picture:
            shown = [Span("image: ", styles | {"dim"}), *shown]
        if address and address not in (words, f"mailto:{words}"):
            shown.append(Span(f" ({address})", styles | {"dim"}))
        return shown, found.end()
    begun = LINK_BEGUN.match(text, place)
    if begun and begun.end() == len(text) and not final:
        return None
    return [Span(text[place], styles)], place + 1


def _autolink(text: str, place: int, final: bool, styles: Styles) -> tuple[list[Span], int] | None:
    found = AUTOLINK.match(text, place)
    if found:
        return [Span(found[1], styles | {"link"})], found.end()
    begun = AUTOLINK_BEGUN.match(text, place)
    if begun and begun.end() == len(text) and not final:
        return None
    return [Span("<", styles)], place + 1


def _run(text: str, place: int) -> str:
    """The same character repeated from here."""
    end = place
    while end < len(text) and text[end] == text[place]:
        end += 1
    return text[place:end]
