"""A section's blocks into stretches of text that are short enough to be found by.

Between blocks where that does; a block that is too long alone is cut where it can be: prose at sentence ends, a list
between its items, a table between its rows, code at blank lines. What is cut off is only ever a stretch of the body.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from co_cli.notes.markdown import FENCE, Block, Heading, blocks, closes, is_item
from co_cli.sources.documents.endings import ending_of
from co_cli.sources.sentences import Span, sentences, short_enough

LONGEST = 1_000
"""Characters; a section beyond that is split."""
WHOLE = 4_000
"""Characters up to which a list, a table or a code block is left whole, though a paragraph of that length is not."""
OVERLAP = 1
"""Sentences that are said again where prose is cut."""
NEIGHBOURS = 1
"""Sentences of the passages before and behind that are searched with a passage."""
PROSE = frozenset(("", *"txt text rst rest adoc asciidoc org tex ltx".split()))
"""Files of sentences, though they are no Markdown."""
WORTH_REPEATING = 0.2
"""Of the longest passage: a longer overlap would make two passages of the same text."""


class Rule(NamedTuple):
    """How to cut. The defaults are what was measured best; others are for measuring."""

    longest: int = LONGEST
    whole: int = WHOLE
    overlap: int = OVERLAP
    neighbours: int = NEIGHBOURS


class Stretch(NamedTuple):
    """A part of the body, from one character up to another, and what is searched with it though it stands elsewhere."""

    start: int
    end: int
    context: str = ""


class Unit(NamedTuple):
    """What is not cut any further."""

    start: int
    end: int
    goes_on: bool = False
    """It is a sentence, and the one before it is of the same paragraph."""
    leads: bool = False
    """It announces what follows: `as in this example:`."""
    context: str = ""


class Body(NamedTuple):
    """A text, its lines, and the character that each line begins at."""

    text: str
    lines: list[str]
    starts: list[int]

    def span(self, first: int, end: int) -> Span:
        """The characters of these lines, without the last line's end."""
        return self.starts[first], self.starts[end - 1] + len(self.lines[end - 1])


def read_body(text: str) -> Body:
    lines = text.split("\n")
    starts: list[int] = []
    place = 0
    for line in lines:
        starts.append(place)
        place += len(line) + 1
    return Body(text, lines, starts)


def blocks_of(body: Body, path: str, sections: Sequence[Heading] | None) -> Iterator[Block]:
    """The blocks of a body. What is no Markdown says itself where its sections begin, and its paragraphs are blocks.

    The line on which such a section begins is part of its text: in code, it is the function's own.
    """
    if sections is None:
        yield from blocks(body.lines)
        return
    prose = ending_of(path) in PROSE
    edges = [*(section.line for section in sections), len(body.lines)]
    yield from _paragraphs(body, 0, edges[0], prose)
    for section, end in zip(sections, edges[1:], strict=True):
        yield Block("heading", section.line, section.line, section.level, section.text)
        start, stop = _text_of(body, section.line, end)
        if not prose and stop - start <= WHOLE:
            yield from _block("code", body, section.line, end)  # a function is not torn apart at its blank lines
        else:
            yield from _paragraphs(body, section.line, end, prose)


def cut(body: Body, section: Sequence[Block], rule: Rule) -> list[Stretch]:
    """The blocks of one section, as few stretches as possible and each about as long as the others."""
    units = [unit for block in section for unit in _units(body, block, rule)]
    found: list[Stretch] = []
    for first, end in _packed(units, rule.longest):
        start = _with_overlap(units, first, rule)
        context = "\n".join(dict.fromkeys(unit.context for unit in units[first:end] if unit.context))
        if context and body.text.startswith(context, units[first].start):
            context = ""  # it stands there already
        found.append(Stretch(start, units[end - 1].end, context))
    return found


def _packed(units: Sequence[Unit], longest: int) -> Iterator[tuple[int, int]]:
    """Neighbours together: groups of at most `longest`, all about as long, and none that ends with an announcement."""
    first = 0
    while first < len(units):
        start = units[first].start
        rest = units[-1].end - start
        goal = rest / -(-rest // longest) if rest else 0
        end = first + 1
        while end < len(units) and units[end].end - start <= longest:
            have, then = units[end - 1].end - start, units[end].end - start
            if then > goal and then - goal > goal - have:
                break
            end += 1
        if end < len(units) and end - 1 > first and units[end - 1].leads:
            end -= 1
        yield first, end
        first = end


def _with_overlap(units: Sequence[Unit], first: int, rule: Rule) -> int:
    """Where a group begins that goes on in the middle of a paragraph: a sentence or two earlier."""
    start = place = first
    while place > 0 and first - place < rule.overlap and units[place].goes_on:
        place -= 1
        if units[first].start - units[place].start > rule.longest * WORTH_REPEATING:
            break
        start = place
    return units[start].start


def _units(body: Body, block: Block, rule: Rule) -> Iterator[Unit]:
    start, end = body.span(block.start, block.end)
    end = start + len(body.text[start:end].rstrip())
    limit = rule.longest if block.kind == "paragraph" else max(rule.whole, rule.longest)
    if end - start <= limit:
        yield Unit(start, end, leads=block.kind == "paragraph" and body.text[end - 1] in ":：")
    elif block.kind == "paragraph":
        yield from _prose(body, (start, end), rule)
    elif block.kind == "list":
        for item in _items(body, block):
            if item[1] - item[0] <= rule.longest:
                yield Unit(*item)
            else:
                yield from _prose(body, item, rule)
    elif block.kind == "table":
        header = body.lines[block.start].strip()
        for number in range(block.start, block.end):
            for span in short_enough(body.text, body.span(number, number + 1), rule.longest):
                yield Unit(*span, context=header)
    else:
        for chunk in _chunks(body, block, rule.longest):
            for span in short_enough(body.text, chunk, rule.longest):
                yield Unit(*span)


def _paragraphs(body: Body, first: int, end: int, prose: bool) -> Iterator[Block]:
    """What stands between blank lines."""
    kind = "paragraph" if prose else "code"
    start = first
    for number in range(first, end):
        if not body.lines[number].strip():
            yield from _block(kind, body, start, number)
            start = number + 1
    yield from _block(kind, body, start, end)


def _block(kind: str, body: Body, first: int, end: int) -> Iterator[Block]:
    """These lines without blank ones around them, if anything is left."""
    while first < end and not body.lines[first].strip():
        first += 1
    while end > first and not body.lines[end - 1].strip():
        end -= 1
    if end > first:
        yield Block(kind, first, end)


def _prose(body: Body, span: Span, rule: Rule) -> Iterator[Unit]:
    goes_on = False
    for sentence in sentences(body.text, *span):
        for piece in short_enough(body.text, sentence, rule.longest):
            yield Unit(*piece, goes_on=goes_on)
            goes_on = True


def _items(body: Body, block: Block) -> Iterator[Span]:
    """The outermost items, each with whatever stands under it."""
    fence, first = "", block.start
    indent = _indent(body.lines[first])
    for number in range(block.start + 1, block.end):
        line = body.lines[number]
        if fence:
            fence = "" if closes(line.strip(), fence) else fence
        elif is_item(line) and _indent(line) <= indent + 1:
            yield _text_of(body, first, number)
            first = number
        elif mark := FENCE.match(line.lstrip()):
            fence = mark[1]
    yield _text_of(body, first, block.end)


def _chunks(body: Body, block: Block, longest: int) -> Iterator[Span]:
    """Code between its blank lines; what has none is cut between its lines."""
    first = block.start
    for number in range(block.start, block.end):
        if number > first and not body.lines[number].strip():
            yield from _lines(body, first, number, longest)
            first = number
    yield from _lines(body, first, block.end, longest)


def _lines(body: Body, first: int, end: int, longest: int) -> Iterator[Span]:
    start, stop = _text_of(body, first, end)
    if stop - start <= longest:
        if stop > start:
            yield start, stop
        return
    for number in range(first, end):
        if body.lines[number].strip():
            yield body.span(number, number + 1)


def _text_of(body: Body, first: int, end: int) -> Span:
    """The characters of these lines, without blank lines around them."""
    while first < end - 1 and not body.lines[first].strip():
        first += 1
    start, stop = body.span(first, end)
    return start, start + len(body.text[start:stop].rstrip())


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip())
