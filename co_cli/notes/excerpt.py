"""The lines of a note that a ref points at."""

from __future__ import annotations

from co_cli.errors import InvalidInputError
from co_cli.notes.note import Note
from co_cli.notes.refs import lines_of


def excerpt(ref: str, note: Note) -> list[str]:
    """The lines of the body that the ref points at: all of them, if it names none."""
    lines, wanted = note.body.rstrip("\n").split("\n"), lines_of(ref)
    if wanted is None:
        return lines
    last = note.body_line + len(lines) - 1
    if not 1 <= wanted[0] <= min(wanted[1], last):
        raise InvalidInputError(f"{ref}: the text of this note is on the lines {note.body_line} to {last}")
    first = max(wanted[0] - note.body_line, 0)
    return lines[first : max(wanted[1] - note.body_line + 1, first + 1)]
