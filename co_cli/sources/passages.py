"""A note into passages: a memory is one, an article is cut where its author cut it.

Sections follow headings; how a long one is cut says `cutting`. Each passage is a stretch of the note's own text, knows
its lines and its headings, and stands between its neighbours in the list. Somebody else may propose the cuts, as line
numbers and nothing more; what is wrong with them is a reason to do without.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Sequence

from co_cli.notes.markdown import Block
from co_cli.notes.note import Note
from co_cli.sources.cutting import LONGEST, WHOLE, Body, Rule, blocks_of, cut, read_body
from co_cli.sources.sentences import first_words, last_words
from co_cli.values import Passage

__all__ = ["LONGEST", "Boundaries", "Lines", "passages_of", "what_is_wrong"]

Lines = tuple[int, int]
"""The first and the last line, counted from 1 in the note's body."""
Boundaries = Callable[[Note], Sequence[Lines] | None]
"""Proposes where to cut a note; None: as we do ourselves."""
LONGEST_PROPOSED = WHOLE
"""Characters of a passage that was proposed by somebody else."""
RULE = Rule()


def passages_of(note: Note, boundaries: Boundaries | None = None, rule: Rule = RULE) -> list[Passage]:
    body = read_body(note.body)
    if note.source == "memory":
        return [_of_lines(note, body, 0, len(body.lines))]
    if note.source == "skill":
        from co_cli.sources.skill import skill_passage  # few notes are skills

        return [skill_passage(note)]
    proposed = _proposed(note, body, boundaries) if boundaries else None
    found = _sections(note, body, rule) if proposed is None else _as_proposed(note, body, proposed, rule)
    return _side_by_side(found, rule.neighbours) or [_of_lines(note, body, 0, len(body.lines))]


def what_is_wrong(ranges: Sequence[Lines], lines: Sequence[str]) -> str:
    """Why these ranges are no way to cut these lines; empty if they are one."""
    expected = 1
    for first, last in ranges:
        if not 1 <= first <= last <= len(lines):
            return f"lines {first}-{last} of {len(lines)}"
        if first < expected:
            return f"line {first} comes after line {expected - 1}"
        if any(line.strip() for line in lines[expected - 1 : first - 1]):
            return f"lines {expected}-{first - 1} are left out"
        shown = lines[first - 1 : last]
        longest = max(map(len, shown))
        beside = sum(map(len, shown)) - longest
        if beside > LONGEST_PROPOSED or (longest <= LONGEST_PROPOSED < longest + beside):
            return f"lines {first}-{last} are more than {LONGEST_PROPOSED:,} characters"
        if not any(line.strip() for line in shown):
            return f"lines {first}-{last} are blank"
        expected = last + 1
    if any(line.strip() for line in lines[expected - 1 :]):
        return f"lines {expected}-{len(lines)} are left out"
    return "" if ranges else "no lines at all"


def _side_by_side(passages: list[Passage], count: int) -> list[Passage]:
    """Each with the last words of the one before it and the first words of the one behind: searched, and not shown.

    A heading that stands alone has no words for others.
    """
    if not count or len(passages) < 2:
        return passages
    texts = [passage.text if "\n" in passage.text or passage.text[:1] != "#" else "" for passage in passages]
    found: list[Passage] = []
    for place, passage in enumerate(passages):
        before = last_words(texts[place - 1], count) if place else ""
        before = "" if passage.text.startswith(before) else before  # where it is said again
        behind = first_words(texts[place + 1], count) if place + 1 < len(passages) else ""
        context = "\n".join(part for part in (passage.context, before, behind) if part)
        found.append(passage._replace(context=context))
    return found


def _sections(note: Note, body: Body, rule: Rule) -> list[Passage]:
    """Cut at headings. A heading with nothing under it goes with what follows, or stands alone if that is a sibling."""
    found: list[Passage] = []
    path: list[tuple[int, str]] = []
    heading, first = "", -1  # the line from which on there were only headings
    section: list[Block] = []
    above: Block | None = None

    def close(following: int) -> None:
        nonlocal section, first
        if section:
            for place, stretch in enumerate(cut(body, section, rule)):
                start = first if place == 0 and first >= 0 else _line_at(body, stretch.start)
                found.append(_passage(note, body, stretch.start, stretch.end, start, heading, stretch.context))
        elif above and above.end > above.start and ((heading and following <= above.level) or following == 0):
            start, end = body.span(above.start, above.end)
            found.append(_passage(note, body, start, end, first, heading))
        else:
            return
        section, first = [], -1

    for block in blocks_of(body, note.path, note.sections):
        if block.kind != "heading":
            section.append(block)
            continue
        close(block.level)
        first = block.start if first < 0 else first
        above = block
        path = _below(path, block)
        heading = _heading_path(path, note.title)
    close(0)
    return found


def _proposed(note: Note, body: Body, boundaries: Boundaries) -> Sequence[Lines] | None:
    """What somebody else proposes, if it can be used."""
    ranges = boundaries(note)
    if ranges is None:
        return None
    wrong = what_is_wrong(ranges, body.lines)
    if wrong:
        from co_cli.logbook import logger  # slow to import, and rarely needed

        logger().warning("%s is cut without a proposal: %s", note.path, wrong)
        return None
    return ranges


def _as_proposed(note: Note, body: Body, ranges: Sequence[Lines], rule: Rule) -> list[Passage]:
    """Each with the headings above its text; headings that a range begins with are not part of its text."""
    marks = [block for block in blocks_of(body, note.path, note.sections) if block.kind == "heading"]
    found: list[Passage] = []
    path: list[tuple[int, str]] = []
    place = 0
    for first, last in ranges:
        start = first - 1
        while start < last:
            if place < len(marks) and marks[place].start <= start:
                path = _below(path, marks[place])
                start = max(start, marks[place].end)
                place += 1
            elif body.lines[start].strip():
                break
            else:
                start += 1
        heading = _heading_path(path, note.title)
        if start >= last or not any(line.strip() for line in body.lines[start:last]):
            start = first - 1  # nothing but headings
        for number, passage in enumerate(_short_enough(note, body, start, last, rule)):
            top = note.body_line + first - 1 if number == 0 else passage.first_line
            found.append(passage._replace(first_line=top, heading=heading))
        while place < len(marks) and marks[place].start < last:
            path = _below(path, marks[place])
            place += 1
    return found


def _short_enough(note: Note, body: Body, first: int, end: int, rule: Rule) -> list[Passage]:
    """These lines as one passage; where one of them is too long for that, nobody could propose better: cut as ever."""
    whole = _of_lines(note, body, first, end)
    if len(whole.text) <= LONGEST_PROPOSED + end - first:
        return [whole]
    lines = whole.first_line - note.body_line, whole.last_line - note.body_line + 1
    return [
        _passage(note, body, stretch.start, stretch.end, _line_at(body, stretch.start), "")
        for stretch in cut(body, [Block("paragraph", *lines)], rule)
    ]


def _below(path: list[tuple[int, str]], block: Block) -> list[tuple[int, str]]:
    return [(level, text) for level, text in path if level < block.level] + [(block.level, block.text)]


def _heading_path(path: list[tuple[int, str]], title: str) -> str:
    """Without the first heading where it only repeats the title."""
    texts = [text for _, text in path if text]
    if texts and texts[0] == title:
        texts = texts[1:]
    return " > ".join(texts)


def _of_lines(note: Note, body: Body, first: int, end: int) -> Passage:
    """These lines as one passage, without blank lines around it."""
    while first < end - 1 and not body.lines[first].strip():
        first += 1
    while end > first + 1 and not body.lines[end - 1].strip():
        end -= 1
    start, stop = body.span(first, end)
    if body.text[start:stop].isspace():
        stop = start
    return _passage(note, body, start, stop, first, "")


def _passage(note: Note, body: Body, start: int, end: int, first: int, heading: str, context: str = "") -> Passage:
    """Its heading is not part of its text, but its lines begin there."""
    text = body.text[start:end]
    last = _line_at(body, max(start, end - 1))
    return Passage(text, note.body_line + first, note.body_line + last, heading, context)


def _line_at(body: Body, character: int) -> int:
    return bisect_right(body.starts, character) - 1
