"""Transcripts: the turns of a conversation as Markdown, and back. Pure.

    ## Mara · 2026-11-16T09:12:00Z

    Blue takes traffic first.

A heading of level two begins a turn. What somebody says cannot begin another one: its own headings are moved below, and
a code block that it leaves open is closed.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Sequence
from itertools import groupby, pairwise
from typing import NamedTuple
from urllib.parse import unquote

from co_cli.ground.values import moment_text, to_utf8
from co_cli.notes.dates import read_moment
from co_cli.notes.markdown import FENCE, blocks, headings

USER = "User"
"""Who speaks, if the note's field `user` does not name another person."""
ASSISTANT, TOOL = "Assistant", "Tool"
ROLES = {
    **dict.fromkeys(("user", "human", "you"), USER),
    **dict.fromkeys(("assistant", "ai", "model", "gemini", "bot", "agent"), ASSISTANT),
    **dict.fromkeys(("tool", "function", "tool_result", "system", "developer"), TOOL),
}
"""What programs call the speakers. What a system says is not said by a person either."""
LONGEST_NAME = 60
GIVEN = "given "
ERASED = "(erased)"
"""What is left of a turn whose text was erased."""
QUOTED_LINE = re.compile(r"\s{0,3}>")
PASTED = re.compile(r"<(context|file|document|page|note|knowledge)\b.*?(?:</\1>|\Z)", re.S | re.I)
"""What programs put around text that is not the speaker's own."""


class SpokenTurn(NamedTuple):
    """What one speaker said, and where it is in a file."""

    speaker: str
    text: str
    at: float | None = None
    given: tuple[str, ...] = ()
    """Refs of the notes that were added to the prompt of this answer."""
    line: int = 0
    """The line of the heading in the file; the text ends on `last`."""
    last: int = 0


def speaker_of(role: str, name: str = "") -> str:
    """The name to write: that of a person, or what the role is called here. A program cannot pass for a person."""
    text = " ".join(re.sub(r"[\x00-\x1f\x7f·#]", " ", to_utf8(name)).split())[:LONGEST_NAME].strip()
    known = ROLES.get(role.strip().casefold())
    if known in (ASSISTANT, TOOL):
        return known if text.casefold() in ("", known.casefold()) else f"{known} {text}"
    return text or known or speaker_of("", role.strip() or "Unknown")


def user_name(said: Iterable[tuple[str, str]]) -> str:
    """What the user is called, given roles and names; empty if it is `User`."""
    names = (speaker_of(role, name) for role, name in said if name and ROLES.get(role.strip().casefold()) == USER)
    return next((name for name in names if name != USER), "")


def render_turns(turns: Iterable[SpokenTurn]) -> str:
    return "\n".join(map(_render, turns))


def _render(turn: SpokenTurn) -> str:
    given = GIVEN + " ".join(ref.replace("%", "%25").replace(" ", "%20") for ref in turn.given) if turn.given else ""
    moment = "" if turn.at is None else moment_text(turn.at)
    return f"## {' · '.join(filter(None, (turn.speaker, moment, given)))}\n\n{nested(turn.text)}\n"


def nested(text: str) -> str:
    """A text that can stand below a heading of level two and be followed by another."""
    lines = to_utf8(text).replace("\r\n", "\n").replace("\r", "\n").replace("\0", "").strip("\n").rstrip().split("\n")
    fence = ""  # of the last block, which may be left open
    for block in blocks(lines):
        if block.kind == "heading":
            lines[block.start] = lines[block.start].replace("#", "#" * min(3, 7 - block.level), 1)
        opened = FENCE.match(lines[block.start]) if block.kind == "code" else None
        fence = opened[1] if opened else ""
    for mark in dict.fromkeys(("", fence)):
        closed = [*lines, mark] if mark else lines
        if _starts([*closed, "", "## x"]) == [len(closed) + 1]:
            return "\n".join(closed)
    return "\n".join(f"> {line}" for line in lines)


def read_turns(body: str, first: int = 1) -> list[SpokenTurn]:
    """The turns of a note's body, which begins on the line `first` of its file. Text before them is not a turn."""
    lines = body.split("\n")
    found: list[SpokenTurn] = []
    for start, end in pairwise([*_starts(lines), len(lines)]):
        speaker, *more = [part.strip() for part in lines[start].removeprefix("## ").split(" · ")]
        while end > start + 1 and not lines[end - 1].strip():
            end -= 1
        text = "\n".join(lines[start + 1 : end]).strip("\n")
        at = next((moment for part in more if (moment := read_moment(part)) is not None), None)
        refs = next((part.removeprefix(GIVEN) for part in more if part.startswith(GIVEN)), "").split()
        found.append(SpokenTurn(speaker, text, at, tuple(map(unquote, refs)), first + start, first + end - 1))
    return found


def own_lines(turn: SpokenTurn) -> set[int]:
    """The lines of the file that are the speaker's own words: not quoted, not code, not pasted by a program."""
    text = PASTED.sub(lambda found: re.sub(r"[^\n]+", "", found[0]), turn.text)
    lines = text.split("\n")
    first, fence = turn.last - len(lines) + 1, ""
    own: set[int] = set()
    for number, line in enumerate(lines):
        mark = FENCE.match(line)
        if mark:
            fence = mark[1] if not fence else "" if mark[1].startswith(fence) else fence
        elif not fence and line.strip() and not QUOTED_LINE.match(line):
            own.add(first + number)
    return own


def is_tool(speaker: str) -> bool:
    return speaker.partition(" ")[0] == TOOL


def is_assistant(speaker: str) -> bool:
    return speaker.partition(" ")[0] == ASSISTANT


def _starts(lines: Sequence[str]) -> list[int]:
    return [heading.line for heading in headings(lines) if heading.level == 2 and lines[heading.line].startswith("## ")]


def merged(turns: Iterable[SpokenTurn]) -> list[SpokenTurn]:
    """Without empty turns, and with consecutive ones of a speaker as one."""
    found: list[SpokenTurn] = []
    for _, group in groupby((turn for turn in turns if turn.text.strip()), lambda turn: turn.speaker):
        first, *rest = group
        text, given = "\n\n".join(turn.text.strip() for turn in (first, *rest)), [turn.given for turn in (first, *rest)]
        found.append(first._replace(text=text, given=tuple(dict.fromkeys(ref for refs in given for ref in refs))))
    return found


def participants(turns: Collection[SpokenTurn]) -> list[str]:
    return list(dict.fromkeys(turn.speaker for turn in turns if not is_tool(turn.speaker)))
