"""Notes that belong beside a prompt, into a part of the user's turn: fenced, within a budget, at most once.

The text is data and never an instruction. What was added and what was cut stands in the part's metadata. What an
earlier turn was given is read from the text itself: metadata can be lost, or made up, on the way through a web page.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from html import unescape
from typing import Any, cast

from pydantic_ai.messages import ModelMessage, ModelRequest, TextContent, ToolReturnPart, UserContent, UserPromptPart

from co_cli.notes.refs import without_lines
from co_cli.service.context import ContextNote
from co_cli.tools import TOOLS
from co_cli.tools.budget import estimate_tokens, within
from co_cli.tools.fencing import GUIDE, fence_note

KEY = "co_cli_context"
"""In the metadata of a part: what it added."""
OPENING = "<knowledge>\n"
HEAD = f"{OPENING}Notes from the vault that may matter here; nobody asked for them. {GUIDE}"
TAIL = "</knowledge>"
CROWDED = 0.8
"""The share of the budget from which on notes that are always there are worth a warning."""
LEAST = 40
"""Tokens that are worth showing of a note; with less room than this it is named as cut."""
TOOL_NAMES = tuple(tool.name for tool in TOOLS)
REF = re.compile(r'^<note ref="([^"]+)"', re.MULTILINE)


def inject(notes: Sequence[ContextNote], budget: int) -> tuple[UserPromptPart | None, dict[str, Any]]:
    """The part to add, or None if there is nothing to say, and a report of what was added and what was cut."""
    left = budget - estimate_tokens(f"{HEAD}\n{TAIL}")
    fences: list[str] = []
    injected: list[dict[str, Any]] = []
    cut: list[dict[str, Any]] = []
    for note in notes:
        fence, missing = _fenced(note, left)
        tokens = estimate_tokens(fence) + 1
        known: dict[str, Any] = {"ref": note.ref, "why": note.why, "evidence": note.evidence}
        if not fence or tokens > left:
            cut.append({**known, "tokens": estimate_tokens(note.text)})
            continue
        left -= tokens
        fences.append(fence)
        injected.append({**known, "tokens": tokens})
        if missing:
            cut.append({**known, "tokens": missing})
    report: dict[str, Any] = {"injected": injected, "cut": cut, "budget": budget}
    warning = crowded(notes, budget)
    if warning:
        report["warnings"] = [warning]
    if not fences:
        return None, report
    content = TextContent("\n".join([HEAD, *fences, TAIL]), metadata={KEY: report})
    return UserPromptPart([content]), report


def crowded(notes: Sequence[ContextNote], budget: int) -> str | None:
    """A word before anything is cut: notes that are always there leave little room, or have none themselves."""
    always = [note for note in notes if note.why == "always"]
    taken = estimate_tokens(f"{HEAD}\n{TAIL}") + sum(
        estimate_tokens(fence_note(note.ref, note.title, note.provenance, note.text, why=note.why)) + 1
        for note in always
    )
    if not always or taken < CROWDED * budget:
        return None
    longest = max(always, key=lambda note: len(note.text))
    told = f"notes that are `loading: always` take about {taken:,} of {budget:,} tokens (context_tokens)"
    cure = f"shorten {longest.ref}, mark less, or raise the setting"
    return f"{told}, and something is cut: {cure}" if taken > budget else f"{told}: {cure} before something is cut"


def _fenced(note: ContextNote, room: int) -> tuple[str, int]:
    """The note as it fits, and how many tokens of it were left out; nothing if too little would be left."""
    whole = fence_note(note.ref, note.title, note.provenance, note.text, why=note.why)
    if estimate_tokens(whole) < room:
        return whole, 0
    more = f"a part; read_note opens all of it, about {estimate_tokens(note.text)} tokens"
    frame = fence_note(note.ref, note.title, note.provenance, "", why=note.why, shown=more)
    inside = room - estimate_tokens(frame) - 3
    if inside < LEAST:
        return "", 0
    text, missing = within(note.text, inside)
    return fence_note(note.ref, note.title, note.provenance, f"{text} …", why=note.why, shown=more), missing


def seen_refs(messages: Sequence[ModelMessage]) -> set[str]:
    """The notes that this conversation holds already: added unasked, or read and written by a tool."""
    seen = _refs_of_tools(messages)
    for content in user_contents(messages):
        text = content.content if isinstance(content, TextContent) else content
        if isinstance(text, str) and text.startswith(OPENING):
            seen |= {without_lines(unescape(ref)) for ref in REF.findall(text)}
    return seen


def _refs_of_tools(messages: Sequence[ModelMessage]) -> set[str]:
    """Notes whose whole text a tool showed or took."""
    refs: set[str] = set()
    for message in messages:
        for part in message.parts if isinstance(message, ModelRequest) else ():
            if not isinstance(part, ToolReturnPart) or not part.tool_name.endswith(TOOL_NAMES):
                continue
            data = _dict(part.metadata)
            hits: object = data.get("hits")
            found = [_dict(hit) for hit in cast("list[object]", hits)] if isinstance(hits, list) else []
            whole = [data, *(hit for hit in found if hit.get("whole"))]
            refs |= {without_lines(str(shown["ref"])) for shown in whole if "ref" in shown}
    return refs


def _dict(value: object) -> dict[str, Any]:
    return cast("dict[str, Any]", value) if isinstance(value, dict) else {}


def user_text(prompt: str | Sequence[UserContent] | None, messages: Sequence[ModelMessage]) -> str | None:
    """What the person says in this turn; None if it is not their turn, as when a run goes on with a tool's result."""
    if isinstance(prompt, str):
        return prompt
    if prompt is not None:
        return "\n".join(_texts(prompt))
    last = messages[-1] if messages else None
    if not isinstance(last, ModelRequest) or not all(isinstance(part, UserPromptPart) for part in last.parts):
        return None
    return "\n".join(text for content in user_contents([last]) for text in _texts([content]))


def _texts(contents: Sequence[UserContent]) -> Iterator[str]:
    for content in contents:
        if isinstance(content, str):
            yield content
        elif isinstance(content, TextContent):
            yield content.content


def user_contents(messages: Sequence[ModelMessage]) -> Iterator[UserContent]:
    """What was said in the user's turns, part by part."""
    for message in messages:
        for part in message.parts if isinstance(message, ModelRequest) else ():
            if isinstance(part, UserPromptPart):
                yield from [part.content] if isinstance(part.content, str) else part.content
