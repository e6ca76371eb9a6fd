"""The lines of a note that a ref names, also after the note was changed.

A ref such as `article:guide#L10-24` counts lines of the file, as an editor does, so an edit above makes it name other
lines. A ref that is given to an agent ends in a mark of its first and last line, `#L10-24~3k9a`: by these the lines are
found again, and if they are gone, the excerpt says so.
"""

from __future__ import annotations

from bisect import bisect_left
from typing import NamedTuple
from zlib import crc32

from co_cli.ground.errors import InvalidInputError
from co_cli.notes.note import Note
from co_cli.notes.refs import lines_of, mark_of, without_lines

DIGITS = "0123456789abcdefghijklmnopqrstuvwxyz"
CHANGED = "this text was changed since the ref was given"


class Excerpt(NamedTuple):
    """Lines of the body."""

    lines: list[str]
    first: int
    """The number of the first one in the file."""
    remark: str = ""
    """What happened to them since the ref was given."""

    @property
    def last(self) -> int:
        return self.first + len(self.lines) - 1


def excerpt(ref: str, note: Note) -> Excerpt:
    """The lines that the ref names, where they are now; all of them if it names none."""
    lines, wanted, mark = note.body.rstrip("\n").split("\n"), lines_of(ref), mark_of(ref)
    if wanted is None:
        return Excerpt(lines, note.body_line)
    first, last = (line - note.body_line for line in wanted)
    first, last, remark = _find(lines, first, last, mark) if mark else (first, last, "")
    end = note.body_line + len(lines) - 1
    if not 1 <= first + note.body_line <= min(last + note.body_line, end):
        raise InvalidInputError(f"{ref}: the text of this note is on the lines {note.body_line} to {end}")
    first = max(first, 0)
    found = Excerpt(lines[first : max(last + 1, first + 1)], first + note.body_line, remark)
    if mark and not remark and (found.first, found.last) != wanted:
        moved = f"these lines were {wanted[0]}-{wanted[1]} when the ref was given"
        return found._replace(remark=f"{moved}, and are {found.first}-{found.last} now")
    return found


def marked_ref(ref: str, shown: Excerpt) -> str:
    """The ref of an excerpt, with a mark of what it says; a ref of a whole note as it is."""
    if lines_of(ref) is None:
        return ref
    return f"{without_lines(ref)}#L{shown.first}-{shown.last}~{_mark(shown.lines[0])}{_mark(shown.lines[-1])}"


def _mark(line: str) -> str:
    """Two letters or digits."""
    high, low = divmod(crc32(line.strip().encode("utf-8", "replace")) % len(DIGITS) ** 2, len(DIGITS))
    return DIGITS[high] + DIGITS[low]


def _find(lines: list[str], first: int, last: int, mark: str) -> tuple[int, int, str]:
    """Where lines with these marks are now, counted from 0: at best as many as before, at best near to where they were.

    If only one of the two marks is found, the lines after or before it; if none is, the same numbers.
    """
    marks, length = [_mark(line) for line in lines], last - first
    if marks[first : first + 1] == [mark[:2]] and marks[last : last + 1] == [mark[2:]] and first >= 0:
        return first, last, ""
    starts, ends = ([place for place, found in enumerate(marks) if found == part] for part in (mark[:2], mark[2:]))
    pairs: list[tuple[int, int]] = []
    for start in starts:
        near = bisect_left(ends, start + length)
        pairs += [(start, end) for end in ends[max(near - 1, 0) : near + 1] if end >= start]
    if pairs:
        return *min(pairs, key=lambda pair: (abs(pair[1] - pair[0] - length), abs(pair[0] - first))), ""
    if starts:
        start = min(starts, key=lambda place: abs(place - first))
        return start, min(start + length, len(lines) - 1), CHANGED
    if ends:
        end = min(ends, key=lambda place: abs(place - last))
        return max(end - length, 0), end, CHANGED
    return first, last, CHANGED
