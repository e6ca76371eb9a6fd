"""Cut a note into passages, the units that are searched: a memory is one, each turn of a conversation is one, and an
article is cut at its headings.

Every passage is a part of the note's own text and knows its lines and its headings. A model may propose other cuts, as
line numbers; a proposal that does not fit the text is ignored.
"""

from __future__ import annotations

import time
from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from itertools import islice

from co_cli.ground.hits import Passage
from co_cli.notes.logbook import logger
from co_cli.notes.markdown import Block, starts_table
from co_cli.notes.note import Note
from co_cli.notes.transcripts import SpokenTurn, read_turns
from co_cli.sources.cutting import RULE, Body, CutRule, blocks_of, cut, sentences
from co_cli.sources.skill_format import skill_passage

Lines = tuple[int, int]
"""The first and the last line, counted from 1 in the note's body."""
Boundaries = Callable[[Note], Sequence[Lines] | None]
"""Proposes where to cut a note; None leaves it to us."""
LONGEST = RULE.longest
LONGEST_PROPOSED = RULE.whole
"""Characters of a proposed passage."""
NEAR = 300
"""Characters at the start or end of a neighbour in which its first or last sentences are looked for."""
NEAR_TURN = 400
"""Characters of a neighbouring turn that are searched with a turn."""
MANY, SHORT = 2_000, 200
"""A note may have this many passages, and one more for this many of its characters: each costs half a millisecond."""


def passages_of(note: Note, boundaries: Boundaries | None = None, rule: CutRule = RULE) -> list[Passage]:
    return cut_note(note, boundaries, rule)[0]


def cut_note(
    note: Note, boundaries: Boundaries | None = None, rule: CutRule = RULE
) -> tuple[list[Passage], str | None]:
    """The passages of a note, and what was given up to limit what it costs. All of its text is searched."""
    body = Body.read(note.body)
    if note.source == "memory":
        return [_of_lines(note, body, 0, len(body.lines))], None
    if note.source == "skill":
        return [skill_passage(note)], None
    most = MANY + len(note.body) // SHORT
    if note.source == "conversation" and (turns := read_turns(note.body, note.body_line)):
        said = (passage for place in range(len(turns)) for passage in _of_turn(note, body, turns, place, rule))
        found, problem = list(islice(said, most + 1)), None
    else:
        proposed = _proposed(note, body, boundaries) if boundaries else None
        found = _sections(note, body, rule, most) if proposed is None else _as_proposed(note, body, proposed, rule)
        found = _with_neighbours(found) if len(found) <= most else found
        problem = _wide_table(note, body, rule)
    if len(found) > most:
        found = _without_headings(note, body, 0, len(body.lines), rule)
        problem = f"more than {most:,} sections: it is searched without its headings"
    return found or [_of_lines(note, body, 0, len(body.lines))], problem


def _wide_table(note: Note, body: Body, rule: CutRule) -> str | None:
    """A table whose rows are not searched with its first one, because that is too long."""
    for number, line in enumerate(body.lines if note.sections is None else ()):
        if len(line) > rule.longest and starts_table(body.lines, number):
            what = f"line {note.body_line + number}: a table with a first row of {len(line):,} characters"
            return f"{what}: the other rows are searched without it"
    return None


def what_is_wrong(ranges: Sequence[Lines], lines: Sequence[str]) -> str:
    """Why these ranges cannot be used to cut these lines; empty if they can."""
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
        others = sum(map(len, shown)) - longest
        if others > LONGEST_PROPOSED or (longest <= LONGEST_PROPOSED < longest + others):
            return f"lines {first}-{last} are more than {LONGEST_PROPOSED:,} characters"
        if not any(line.strip() for line in shown):
            return f"lines {first}-{last} are blank"
        expected = last + 1
    if any(line.strip() for line in lines[expected - 1 :]):
        return f"lines {expected}-{len(lines)} are left out"
    return "" if ranges else "no lines at all"


def _of_turn(note: Note, body: Body, turns: Sequence[SpokenTurn], place: int, rule: CutRule) -> Iterator[Passage]:
    """A turn with its speaker and date as heading, and what was said before and after it around it."""
    turn = turns[place]
    first, end = turn.line - note.body_line, turn.last - note.body_line + 1
    day = "" if turn.at is None else time.strftime("%d %B %Y, %H:%M", time.gmtime(turn.at)).lstrip("0")
    heading = ", ".join(filter(None, (turn.speaker, day)))
    nearby = [f"{earlier.speaker}: {earlier.text[-NEAR_TURN:]}" for earlier in turns[max(0, place - 2) : place]]
    nearby += [f"{later.speaker}: {later.text[:NEAR_TURN]}" for later in turns[place + 1 : place + 2]]
    blocks = [
        block._replace(start=block.start + first + 1, end=block.end + first + 1)
        for block in blocks_of(Body.read("\n".join(body.lines[first + 1 : end])), note.path, None)
    ]
    for number, (start, stop, around) in enumerate(cut(body, blocks, rule)):
        passage = _passage(note, body, (start, stop), first if number == 0 else _line_at(body, start), heading)
        yield passage._replace(around="\n".join(filter(None, (around, *nearby))), said=turn.at)


def _with_neighbours(passages: list[Passage]) -> list[Passage]:
    """Add the last sentence of the passage before and the first of the one after: searched, but not shown.

    A heading without text is left out.
    """
    texts = [passage.text if "\n" in passage.text or passage.text[:1] != "#" else "" for passage in passages]
    found: list[Passage] = []
    for place, passage in enumerate(passages):
        before = _last_sentence(texts[place - 1]) if place else ""
        before = "" if passage.text.startswith(before) else before  # the overlap
        after = _first_sentence(texts[place + 1]) if place + 1 < len(passages) else ""
        around = "\n".join(part for part in (passage.around, before, after) if part)
        found.append(passage._replace(around=around))
    return found


def _first_sentence(text: str) -> str:
    end = len(text)
    if end > NEAR:
        end = max(text.rfind(" ", 0, NEAR), text.rfind("\n", 0, NEAR))
        end = end if end > 0 else NEAR
    return next((text[first:last] for first, last in sentences(text, 0, end)), "")


def _last_sentence(text: str) -> str:
    start = max(0, len(text) - NEAR)
    if start:
        start = min((place for sign in " \n" if (place := text.find(sign, start)) >= 0), default=start)
    return ["", *(text[first:last] for first, last in sentences(text, start, len(text)))][-1]


def _sections(note: Note, body: Body, rule: CutRule, most: int) -> list[Passage]:
    """Cut at headings. A heading without text goes with what follows, or stands alone if a sibling follows.

    It stops soon after `most` passages.
    """
    found: list[Passage] = []
    path: list[Block] = []
    first = -1  # the line since which there were only headings
    section: list[Block] = []

    def close(following: int) -> None:
        nonlocal section, first
        heading, above = _heading_path(path, note.title), path[-1] if path else None
        if section:
            for place, (start, end, around) in enumerate(cut(body, section, rule)):
                top = first if place == 0 and first >= 0 else _line_at(body, start)
                found.append(_passage(note, body, (start, end), top, heading)._replace(around=around))
        elif above and above.end > above.start and ((heading and following <= above.level) or following == 0):
            found.append(_passage(note, body, body.span(above.start, above.end), first, heading))
        else:
            return
        section, first = [], -1

    for block in blocks_of(body, note.path, note.sections):
        if block.kind != "heading":
            section.append(block)
            continue
        close(block.level)
        if len(found) > most:
            return found
        first = block.start if first < 0 else first
        path = _below(path, block)
    close(0)
    return found


def _proposed(note: Note, body: Body, boundaries: Boundaries) -> Sequence[Lines] | None:
    """The proposal, if there is one that can be used."""
    ranges = boundaries(note)
    wrong = "" if ranges is None else what_is_wrong(ranges, body.lines)
    if wrong:
        logger().warning("%s is cut without the proposed boundaries: %s", note.path, wrong)
    return None if wrong else ranges


def _as_proposed(note: Note, body: Body, ranges: Sequence[Lines], rule: CutRule) -> list[Passage]:
    """Each passage with the headings above its text. Headings at the start of a range are not part of its text."""
    headings = [block for block in blocks_of(body, note.path, note.sections) if block.kind == "heading"]
    found: list[Passage] = []
    path: list[Block] = []
    for first, last in ranges:
        start = first - 1
        while start < last:
            if headings and headings[0].start <= start:
                start = max(start, headings[0].end)
                path = _below(path, headings.pop(0))
            elif body.lines[start].strip():
                break
            else:
                start += 1
        heading = _heading_path(path, note.title)
        if start >= last or not any(line.strip() for line in body.lines[start:last]):
            start = first - 1  # only headings
        for number, passage in enumerate(_split_long(note, body, start, last, rule)):
            top = note.body_line + first - 1 if number == 0 else passage.first_line
            found.append(passage._replace(first_line=top, heading=heading))
        while headings and headings[0].start < last:
            path = _below(path, headings.pop(0))
    return found


def _split_long(note: Note, body: Body, first: int, end: int, rule: CutRule) -> list[Passage]:
    """These lines as one passage. If a line of it is too long for any proposal, it is cut like a paragraph."""
    whole = _of_lines(note, body, first, end)
    if len(whole.text) <= LONGEST_PROPOSED + end - first:
        return [whole]
    return _without_headings(note, body, first, end, rule)


def _without_headings(note: Note, body: Body, first: int, end: int, rule: CutRule) -> list[Passage]:
    """These lines cut like a paragraph."""
    stretches = cut(body, [Block("paragraph", *body.trim(first, end))], rule)
    return [_passage(note, body, (start, end), _line_at(body, start)) for start, end, _ in stretches]


def _below(path: list[Block], heading: Block) -> list[Block]:
    return [*(parent for parent in path if parent.level < heading.level), heading]


def _heading_path(path: list[Block], title: str) -> str:
    """Without the first heading if it repeats the title."""
    texts = [heading.text for heading in path if heading.text]
    return " > ".join(texts[1:] if texts and texts[0] == title else texts)


def _of_lines(note: Note, body: Body, first: int, end: int) -> Passage:
    """These lines as one passage, without blank lines around it."""
    first, end = body.trim(first, end)
    start, stop = body.span(first, end)
    return _passage(note, body, (start, start if body.text[start:stop].isspace() else stop), first)


def _passage(note: Note, body: Body, span: tuple[int, int], first: int, heading: str = "") -> Passage:
    """Its lines begin at its heading, which is not part of its text."""
    start, end = span
    last = _line_at(body, max(start, end - 1))
    return Passage(body.text[start:end], note.body_line + first, note.body_line + last, heading)


def _line_at(body: Body, character: int) -> int:
    return bisect_right(body.starts, character) - 1
