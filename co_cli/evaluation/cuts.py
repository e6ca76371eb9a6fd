"""Names of ways to cut a long text, for measuring them against each other.

`co` is how articles are cut. LONGEST[/OVERLAP[/NEIGHBOURS]] is the same with other numbers, as in 1200/0/2: characters
of a passage, sentences said again, sentences of the neighbours. `fixed/LONGEST` looks at nothing but characters.
`parts` cuts exactly where the parts begin, which nobody can know who only reads: no proposal of a model can do better.
"""

from __future__ import annotations

from collections.abc import Iterator

from co_cli.errors import InvalidInputError
from co_cli.evaluation.long_texts import Cutter, LongText, spans
from co_cli.notes.note import Note
from co_cli.sources.cutting import LONGEST, WHOLE, Rule
from co_cli.sources.passages import Lines, passages_of
from co_cli.sources.sentences import short_enough
from co_cli.values import Passage

AS_WE_DO = "co"
LONG_PART = 2 * LONGEST
"""Characters of a part that is cut again between its lines, or it would be no passage."""


def cutter(name: str) -> Cutter:
    """By its name. Raises InvalidInputError with what names look like."""
    if name == AS_WE_DO:
        return lambda text, note: passages_of(note)
    if name == "parts":
        return _at_parts
    kind, _, rest = name.partition("/")
    try:
        numbers = [int(number) for number in (rest if kind == "fixed" else name).split("/")]
        if numbers[0] < 1 or min(numbers) < 0 or len(numbers) > (1 if kind == "fixed" else 3):
            raise ValueError
    except ValueError:
        raise InvalidInputError(
            f"--cut {name}: there are co, parts, fixed/2000, LONGEST/OVERLAP/NEIGHBOURS as in 1200/1/1, and model"
        ) from None
    if kind == "fixed":
        return lambda text, note: list(_windows(note, numbers[0]))
    fields = dict(zip(("longest", "overlap", "neighbours"), numbers, strict=False))
    rule = Rule(whole=max(WHOLE, numbers[0]))._replace(**fields)
    return lambda text, note: passages_of(note, rule=rule)


def _at_parts(text: LongText, note: Note) -> list[Passage]:
    ranges = [lines for part in spans(text) for lines in _short(note.body.split("\n"), part)]
    return passages_of(note, boundaries=lambda note: ranges)


def _short(lines: list[str], part: Lines) -> Iterator[Lines]:
    """A part, or several runs of its lines."""
    first, size = part[0], 0
    for number in range(part[0], part[1] + 1):
        length = len(lines[number - 1]) + 1
        if size + length > LONG_PART and any(line.strip() for line in lines[first - 1 : number - 1]):
            yield first, number - 1
            first, size = number, 0
        size += length
    if any(line.strip() for line in lines[first - 1 : part[1]]):
        yield first, part[1]


def _windows(note: Note, longest: int) -> Iterator[Passage]:
    for start, end in short_enough(note.body, (0, len(note.body)), longest):
        first = note.body_line + note.body.count("\n", 0, start)
        yield Passage(note.body[start:end], first, first + note.body.count("\n", start, end))
