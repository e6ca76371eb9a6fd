"""The turns of a conversation into an article that passages understand.

One heading for each thing that was asked, so that a question and its answer are one passage and a long answer that is
split still knows the question. Headings inside a message move below it, and a code block that a message left open is
closed: otherwise it would swallow the rest of the conversation.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import NamedTuple

from co_cli.exchange.items import Entry, Left, Text
from co_cli.notes.markdown import FENCE, headings
from co_cli.service.saving import title_from

YOU = "You"
NO_WORDS = "nobody says anything in it"
A_BEGINNING = 500
"""Letters in which a title is looked for."""
BELOW = 2
"""How many levels a message's own headings move down."""


class Turn(NamedTuple):
    """What one of the two said."""

    speaker: str
    text: str


class Conversation(NamedTuple):
    """A conversation as its reader understood it."""

    place: str
    id: str
    title: str
    turns: list[Turn]
    created: str | None
    updated: str | None
    fields: dict[str, object]


def conversation_entry(found: Conversation, folder: str) -> Entry:
    """The article it becomes, or why it becomes none."""
    turns = merged(found.turns)
    title = " ".join(found.title.split())
    if not turns:
        return Left(found.place, "conversation", title or "without a title", NO_WORDS)
    asked = next((turn.text for turn in turns if turn.speaker == YOU), turns[0].text)
    return Text(
        place=found.place,
        id=found.id,
        noun="conversation",
        title=title or title_from(asked[:A_BEGINNING]),
        text=conversation_text(turns),
        folder=folder,
        created=found.created,
        updated=found.updated,
        fields=found.fields,
    )


def merged(turns: Iterable[Turn]) -> list[Turn]:
    """Without silent turns; what one speaker says in several messages is one turn."""
    found: list[Turn] = []
    for turn in turns:
        text = turn.text.replace("\r\n", "\n").strip()
        if not text:
            continue
        if found and found[-1].speaker == turn.speaker:
            found[-1] = Turn(turn.speaker, found[-1].text + "\n\n" + text)
        else:
            found.append(Turn(turn.speaker, text))
    return found


def conversation_text(turns: list[Turn]) -> str:
    parts: list[str] = []
    for turn in turns:
        if turn.speaker == YOU:
            parts.append(f"## {_heading(turn.text)}")
        parts += [f"**{turn.speaker}:**", _message(turn.text)]
    return "\n\n".join(parts)


def _heading(text: str) -> str:
    """What was asked, as far as a heading can hold it."""
    title = title_from(text[:A_BEGINNING])
    asks = text[text.find(title) + len(title) :][:1] == "?"
    return (re.sub(r"[\[\]]", "", title).strip("# ") or "…") + ("?" if asks else "")


def _message(text: str) -> str:
    lines = text.split("\n")
    for heading in headings(lines):
        deeper = min(6, heading.level + BELOW) - heading.level
        lines[heading.line] = lines[heading.line].replace("#", "#" * (deeper + 1), 1)
    fence = _left_open(lines)
    return "\n".join([*lines, fence] if fence else lines)


def _left_open(lines: list[str]) -> str:
    """The mark that would close the code block at the end, if there is one."""
    fence = ""
    for line in lines:
        mark = FENCE.match(line)
        if mark and not fence:
            fence = mark[1]
        elif mark and mark[1][0] == fence[0] and len(mark[1]) >= len(fence):
            fence = ""
    return fence
