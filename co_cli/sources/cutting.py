"""Cut text into pieces that are short enough to be found: sentences, and stretches of one section. Pure.

A section is cut between its blocks. A block that is too long itself is cut where its kind allows it: prose between
sentences, a list between items, a table between rows, code at blank lines. A stretch is always a part of the body.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from co_cli.notes.markdown import FENCE, Block, Heading, blocks, closes, is_item
from co_cli.sources.documents.formats import ending_of

Span = tuple[int, int]
"""Start and end in characters."""
PROSE = frozenset(("", *"txt text rst rest adoc asciidoc org tex ltx".split()))
"""Endings of files that hold sentences although they are not Markdown."""

CLOSERS = "\"'”’»›)\\]*_`」』）】〉》"
END = re.compile(rf"([.!?…‽؟۔։።။។᠃]+)[{CLOSERS}]*|[。！？｡．।॥፨]+[{CLOSERS}]*")
"""Ends of sentences. The first kind needs a space after it; the others belong to scripts without spaces."""
SHORTEST = 12
"""Characters; a shorter sentence is joined with the next one."""
WORD_BEFORE = re.compile(r"[^\s(\[\"'“‘]{1,16}$")
ABBREVIATIONS = frozenset(
    """
    e.g i.e etc cf vs al ca approx resp viz incl excl dr mr mrs ms prof sr jr st rev hon gen col lt capt sgt fig figs
    eq eqs sec no nos vol vols pp p ch chap ed eds dept est inc ltd co corp bros jan feb mar apr jun jul aug sep sept
    oct nov dec mon tue wed thu fri sat sun a.m p.m u.s u.k u.n z.b d.h u.a o.ä bzw usw ggf evtl vgl nr abs bd hrsg
    p.ex m mm mme mlle sra srta ej p.ej
    """.split()
)


class CutRule(NamedTuple):
    """How to cut. The defaults measured best on long texts (docs/benchmarks.md)."""

    longest: int = 1_000
    """Characters; a longer section is cut."""
    whole: int = 4_000
    """Characters; lists, tables and code blocks up to this length are not cut."""
    overlap: float = 0.2
    """Share of `longest`: where prose is cut, the sentence before is repeated unless it is longer."""


RULE = CutRule()


class Stretch(NamedTuple):
    """A part of the body, and text from elsewhere that is searched with it."""

    start: int
    end: int
    around: str = ""


class Unit(NamedTuple):
    """What is not cut any further."""

    start: int
    end: int
    continues: bool = False
    """A sentence of the same paragraph as the unit before."""
    leads: bool = False
    """Introduces what follows: `as in this example:`."""
    around: str = ""


class Body(NamedTuple):
    """A text, its lines, and the position at which each line starts."""

    text: str
    lines: list[str]
    starts: list[int]

    @classmethod
    def read(cls, text: str) -> Body:
        lines = text.split("\n")
        starts = [0]
        for line in lines[:-1]:
            starts.append(starts[-1] + len(line) + 1)
        return cls(text, lines, starts)

    def span(self, first: int, end: int) -> Span:
        """The characters of these lines, without the last line's end."""
        return self.starts[first], self.starts[end - 1] + len(self.lines[end - 1])

    def trim(self, first: int, end: int) -> tuple[int, int]:
        """These lines without blank lines around them; at least one line."""
        while first < end - 1 and not self.lines[first].strip():
            first += 1
        while end > first + 1 and not self.lines[end - 1].strip():
            end -= 1
        return first, end

    def text_span(self, first: int, end: int) -> Span:
        """The characters of these lines, without blank lines and space around them."""
        start, stop = self.span(*self.trim(first, end))
        return start, start + len(self.text[start:stop].rstrip())


def blocks_of(body: Body, path: str, sections: Sequence[Heading] | None) -> Iterator[Block]:
    """The blocks of a body. `sections` are those of text that is not Markdown; its paragraphs are blocks.

    The line on which such a section starts is part of its text: in code, it is the function's own.
    """
    if sections is None:
        yield from blocks(body.lines)
        return
    kind = "paragraph" if ending_of(path) in PROSE else "code"
    edges = [*(section.line for section in sections), len(body.lines)]
    yield from _paragraphs(body, 0, edges[0], kind)
    for section, end in zip(sections, edges[1:], strict=True):
        yield Block("heading", section.line, section.line, section.level, section.text)
        start, stop = body.text_span(section.line, end)
        if kind == "code" and start < stop <= start + RULE.whole:
            yield Block(kind, *body.trim(section.line, end))  # a function is not cut at its blank lines
        else:
            yield from _paragraphs(body, section.line, end, kind)


def cut(body: Body, section: Sequence[Block], rule: CutRule) -> list[Stretch]:
    """The blocks of one section as few stretches of similar length."""
    units = [unit for block in section for unit in _units(body, block, rule)]
    found: list[Stretch] = []
    for first, end in _groups(units, rule.longest):
        start = units[first].start
        if units[first].continues and start - units[first - 1].start <= rule.longest * rule.overlap:
            start = units[first - 1].start
        around = "\n".join(dict.fromkeys(unit.around for unit in units[first:end] if unit.around))
        if around and body.text.startswith(around, units[first].start):
            around = ""
        found.append(Stretch(start, units[end - 1].end, around))
    return found


def sentences(text: str, start: int, end: int) -> Iterator[Span]:
    """The sentences of text[start:end], without the space between them."""
    first = _skip_space(text, start, end)
    for found in END.finditer(text, start, end):
        stop = found.end()
        if stop - first < SHORTEST or (found[1] and not _is_end(text, found.start(), stop, end, found[1])):
            continue
        yield first, stop
        first = _skip_space(text, stop, end)
    last = len(text[first:end].rstrip()) + first
    if last > first:
        yield first, last


def split_long(text: str, span: Span, longest: int) -> Iterator[Span]:
    """The span in pieces of at most `longest`: cut at a line's end, else at a space, else anywhere."""
    start, end = span
    while end - start > longest:
        stop = text.rfind("\n", start + longest // 2, start + longest)
        if stop < 0:
            stop = text.rfind(" ", start + longest // 2, start + longest)
        stop = stop if stop > start else start + longest
        if not text[start:stop].isspace():
            yield start, stop
        start = _skip_space(text, stop, end)
    if end > start:
        yield start, end


def _is_end(text: str, mark: int, stop: int, end: int, signs: str) -> bool:
    """A dot in a number, in an abbreviation or before a lower-case letter ends nothing."""
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


def _groups(units: Sequence[Unit], longest: int) -> Iterator[tuple[int, int]]:
    """Groups of units up to `longest`, of similar length. None ends with a unit that introduces the next."""
    first = 0
    while first < len(units):
        start = units[first].start
        rest = units[-1].end - start
        goal = rest / -(-rest // longest) if rest else 0
        end = first + 1
        while end < len(units) and units[end].end - start <= longest:
            before, after = units[end - 1].end - start, units[end].end - start
            if after > goal and after - goal > goal - before:
                break
            end += 1
        if end < len(units) and end - 1 > first and units[end - 1].leads:
            end -= 1
        yield first, end
        first = end


def _units(body: Body, block: Block, rule: CutRule) -> Iterator[Unit]:
    start, end = body.span(block.start, block.end)
    end = start + len(body.text[start:end].rstrip())
    limit = rule.longest if block.kind == "paragraph" else max(rule.whole, rule.longest)
    if end - start <= limit:
        yield Unit(start, end, leads=block.kind == "paragraph" and body.text[end - 1] in ":：")
    elif block.kind in ("paragraph", "list"):
        for item in _items(body, block) if block.kind == "list" else [(start, end)]:
            if block.kind == "list" and item[1] - item[0] <= rule.longest:
                yield Unit(*item)
                continue
            pieces = [
                part
                for sentence in sentences(body.text, *item)
                for part in split_long(body.text, sentence, rule.longest)
            ]
            for number, piece in enumerate(pieces):
                yield Unit(*piece, continues=number > 0)
    else:
        table, header = block.kind == "table", body.lines[block.start].strip()
        header = header if table and len(header) <= rule.longest else ""  # it is stored with each part of the table
        lines = range(block.start, block.end)
        rows = [body.span(number, number + 1) for number in lines] if table else _code_parts(body, block, rule.longest)
        for row in rows:
            for piece in split_long(body.text, row, rule.longest):
                yield Unit(*piece, around=header)


def _paragraphs(body: Body, first: int, end: int, kind: str) -> Iterator[Block]:
    """Lines between blank lines."""
    start = first
    for number in range(first, end + 1):
        if number == end or not body.lines[number].strip():
            if number > start:
                yield Block(kind, start, number)
            start = number + 1


def _items(body: Body, block: Block) -> Iterator[Span]:
    """The outermost items of a list, each with everything below it."""
    fence, first = "", block.start
    indent = _indent(body.lines[first])
    for number in range(block.start + 1, block.end):
        line = body.lines[number]
        if fence:
            fence = "" if closes(line.strip(), fence) else fence
        elif is_item(line) and _indent(line) <= indent + 1:
            yield body.text_span(first, number)
            first = number
        elif mark := FENCE.match(line.lstrip()):
            fence = mark[1]
    yield body.text_span(first, block.end)


def _code_parts(body: Body, block: Block, longest: int) -> Iterator[Span]:
    """Code between its blank lines; a part that is too long line by line."""
    for part in _paragraphs(body, block.start, block.end, "code"):
        start, stop = body.text_span(part.start, part.end)
        if stop - start <= longest:
            yield start, stop
        else:
            yield from (body.span(number, number + 1) for number in range(part.start, part.end))


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip())
