"""A conversation into an article with one heading for each question, so that question and answer are one passage."""

from __future__ import annotations

import re
from collections.abc import Iterable

from co_cli.importers.items import Item, Text, as_line, dates_of, first_text, id_of, skipped
from co_cli.notes.markdown import FENCE, headings
from co_cli.service.saving import title_from

YOU = "You"
TITLE_LETTERS = 500
"""How much of a text is searched for a title."""
Turn = tuple[str, str]
"""Who said what."""


def branch(parents: dict[str, object], last: object) -> list[str]:
    """The ids from the first message to `last`; ends where a loop would begin."""
    found: dict[str, None] = {}
    while isinstance(last, str) and last in parents and last not in found:
        found[last] = None
        last = parents[last]
    return [*found][::-1]


def conversation_item(found: dict[str, object], turns: Iterable[Turn], folder: str, place: str) -> Item:
    """The article for a conversation of a service."""
    merged: list[Turn] = []
    for speaker, text in turns:
        text = text.replace("\r\n", "\n").strip()
        if text and merged and merged[-1][0] == speaker:
            merged[-1] = (speaker, f"{merged[-1][1]}\n\n{text}")
        elif text:
            merged.append((speaker, text))
    title = as_line(first_text(found, "title", "name"))
    if not merged:
        return skipped(place, "conversation", title or "without a title", "it has no messages")
    asked = next((text for speaker, text in merged if speaker == YOU), merged[0][1])
    model = first_text(found, "default_model_slug", "model")
    return Text(
        place=place,
        id=id_of(found, str(merged)),
        noun="conversation",
        title=title or title_from(asked[:TITLE_LETTERS]),
        text="\n\n".join(map(_markdown, merged)),
        folder=folder,
        dates=dates_of(found),
        fields={"model": model} if model else {},
    )


def _markdown(turn: Turn) -> str:
    speaker, text = turn
    lines = text.split("\n")
    for heading in headings(lines):  # below our own heading
        deeper = min(6, heading.level + 2) - heading.level
        lines[heading.line] = lines[heading.line].replace("#", "#" * (deeper + 1), 1)
    fence = ""
    for mark in filter(None, map(FENCE.match, lines)):
        if not fence:
            fence = mark[1]
        elif mark[1].startswith(fence):
            fence = ""
    if fence:  # an open code block would swallow the rest of the conversation
        lines.append(fence)
    message = f"**{speaker}:**\n\n" + "\n".join(lines)
    return f"## {_heading(text)}\n\n{message}" if speaker == YOU else message


def _heading(text: str) -> str:
    title = title_from(text[:TITLE_LETTERS])
    asks = text[text.find(title) + len(title) :][:1] == "?"
    return (re.sub(r"[\[\]]", "", title).strip("# ") or "…") + ("?" if asks else "")
