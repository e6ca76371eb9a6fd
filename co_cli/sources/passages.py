"""A note into passages: a memory is one, an article is cut where its author cut it.

Sections follow headings; a long section splits between paragraphs, never inside a code block, and knows its lines.
"""

from __future__ import annotations

from co_cli.notes.markdown import FENCE, headings
from co_cli.notes.note import Note
from co_cli.values import Passage

LONGEST = 2_000
"""Characters; a section beyond that is split at a blank line, or failing that at a line."""
HARD_LIMIT = 8_000


def passages_of(note: Note) -> list[Passage]:
    lines = note.body.split("\n")
    if note.source == "memory":
        return [_passage(note, lines, 0, len(lines), "")]
    found: list[Passage] = []
    path: list[tuple[int, str]] = []
    start, heading = 0, ""
    for mark in headings(lines):
        alone = bool(path) and mark.level <= path[-1][0]
        found += _split(note, lines, start, mark.line, heading, bool(path), alone)
        path = [(level, text) for level, text in path if level < mark.level] + [(mark.level, mark.text)]
        start, heading = mark.line, _heading_path(path, note.title)
    found += _split(note, lines, start, len(lines), heading, bool(path), True)
    return found or [_passage(note, lines, 0, len(lines), "")]


def _heading_path(path: list[tuple[int, str]], title: str) -> str:
    """Without the first heading where it only repeats the title."""
    texts = [text for _, text in path if text]
    if texts and texts[0] == title:
        texts = texts[1:]
    return " > ".join(texts)


def _split(
    note: Note, lines: list[str], start: int, end: int, heading: str, headed: bool, alone: bool
) -> list[Passage]:
    """The lines start..end as one or more passages. `headed`: the first of them is the heading.

    Nothing but a heading is a passage only if it stands `alone`: those with sections below are found through these.
    """
    body = start + 1 if headed else start
    if not any(line.strip() for line in lines[body:end]):
        return [_passage(note, lines, start, start + 1, heading)] if alone and heading else []
    found: list[Passage] = []
    first, size, fence, gap = body, 0, "", -1
    for number in range(body, end):
        line = lines[number]
        mark = FENCE.match(line)
        if mark and not fence:
            fence = mark[1]
        elif mark and mark[1][0] == fence[0] and len(mark[1]) >= len(fence):
            fence = ""
        if not line.strip() and not fence:
            gap = number
        size += len(line) + 1
        if (size > LONGEST and first < gap < number) or (size > HARD_LIMIT and number > first):
            cut = gap if first < gap < number else number
            found.append(_passage(note, lines, first, cut, heading, headed=first == body > start))
            first, gap = cut, -1
            size = sum(len(rest) + 1 for rest in lines[first : number + 1])
    if any(line.strip() for line in lines[first:end]):
        found.append(_passage(note, lines, first, end, heading, headed=first == body > start))
    return found


def _passage(note: Note, lines: list[str], start: int, end: int, heading: str, headed: bool = False) -> Passage:
    """Without blank lines around it. Its heading is not part of its text, but its lines begin there."""
    first = start - 1 if headed else start
    while start < end - 1 and not lines[start].strip():
        start += 1
    while end > start + 1 and not lines[end - 1].strip():
        end -= 1
    text = "\n".join(lines[start:end]).strip("\n")
    return Passage(text, note.body_line + (first if headed else start), note.body_line + max(end - 1, start), heading)
