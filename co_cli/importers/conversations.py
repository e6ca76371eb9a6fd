"""A conversation into an article with one heading for each question, so that question and answer are one passage."""

from __future__ import annotations

import re
from collections.abc import Iterable

from co_cli.importers.items import Entry, Item, as_line, dates_of, first_text, id_of, skipped
from co_cli.notes.markdown import FENCE, headings
from co_cli.notes.new_note import title_from

YOU = "You"
TITLE_LETTERS = 500
"""How much of a text is searched for a title."""
Turn = tuple[str, str]
"""Who said what."""


def conversation_item(found: dict[str, object], messages: Iterable[Turn], folder: str, place: str) -> Entry:
    """`found` is a conversation as the service exports it; `messages` are those that belong in it, in order."""
    turns: list[Turn] = []
    for speaker, text in messages:
        text = text.replace("\r\n", "\n").strip()
        if text and turns and turns[-1][0] == speaker:  # consecutive messages of one speaker are one turn
            turns[-1] = (speaker, f"{turns[-1][1]}\n\n{text}")
        elif text:
            turns.append((speaker, text))
    title, model = as_line(first_text(found, "title", "name")), first_text(found, "default_model_slug", "model")
    if not turns:
        return skipped(place, "conversation", title or "without a title", "it has no messages")
    if not title:
        title = title_from(next((text for speaker, text in turns if speaker == YOU), turns[0][1])[:TITLE_LETTERS])
    fields = {**dates_of(found), **({"model": model} if model else {})}
    text = "\n\n".join(map(_markdown, turns))
    return Item(place, id_of(found, str(turns)), "conversation", text, title, folder=folder, fields=fields)


def branch(parents: dict[str, object], last: object) -> list[str]:
    """The ids from the first message to `last`; ends where a loop would begin."""
    found: dict[str, None] = {}
    while isinstance(last, str) and last in parents and last not in found:
        found[last] = None
        last = parents[last]
    return [*found][::-1]


def _markdown(turn: Turn) -> str:
    speaker, text = turn
    lines = text.split("\n")
    for heading in headings(lines):  # below our own heading
        deeper = min(6, heading.level + 2) - heading.level
        lines[heading.line] = lines[heading.line].replace("#", "#" * (deeper + 1), 1)
    fence = ""
    for mark in filter(None, map(FENCE.match, lines)):
        fence = mark[1] if not fence else "" if mark[1].startswith(fence) else fence
    if fence:  # an open code block would swallow the rest of the conversation
        lines.append(fence)
    message = f"**{speaker}:**\n\n" + "\n".join(lines)
    if speaker != YOU:
        return message
    title = title_from(text[:TITLE_LETTERS])
    mark = "?" if text[text.find(title) + len(title) :].startswith("?") else ""
    heading = re.sub(r"[\[\]]", "", title).strip("# ") or "…"
    return f"## {heading}{mark}\n\n{message}"
