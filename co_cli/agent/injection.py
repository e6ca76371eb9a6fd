"""Add the notes for a prompt, and the skill that clearly fits it, to the user's turn: fenced, within a budget, once.

The text of notes is data, never an instruction. The part's metadata says what was added and what was cut. What earlier
turns added is read from the text itself: metadata can be lost, or forged, on its way through a web page.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from html import unescape
from typing import Any, cast

from pydantic_ai.messages import ModelMessage, ModelRequest, TextContent, ToolReturnPart, UserContent, UserPromptPart

from co_cli.errors import KnowledgeError
from co_cli.knowledge_base import KnowledgeBase
from co_cli.notes.refs import without_lines
from co_cli.service.context import ContextNote
from co_cli.tools import TOOLS
from co_cli.tools.budget import estimate_tokens, within
from co_cli.tools.fencing import GUIDE, fence_note
from co_cli.tools.skill_tools import fence_skill

KEY = "co_cli_context"
"""In the metadata of a part: what it added."""
OPENING = "<knowledge>\n"
HEAD = f"{OPENING}Notes from the vault that may matter here; nobody asked for them. {GUIDE}"
TAIL = "</knowledge>"
FRAME_TOKENS = estimate_tokens(f"{HEAD}\n{TAIL}")
CROWDED = 0.8
"""The share of the budget above which notes that are always added cause a warning."""
MIN_TOKENS = 40
"""Worth showing of a note; with less room it is reported as cut."""
TOOL_NAMES = tuple(tool.name for tool in TOOLS)
REF = re.compile(r'^<note ref="([^"]+)"', re.MULTILINE)

SURE, AHEAD = 0.3, 0.05
"""Minimum confidence of a search for skills, and distance to the score of the next skill. Measured on 144 tasks with
1,000 skills: 58 get their skill at once and none a wrong one; 12 of 93 everyday prompts get one."""
SKILL_HEAD = "<skills>\nA skill that may fit, added unasked: use it if it does, and do not mention it if it does not."
SKILL_NAME = re.compile(r'^<skill name="([^"]+)"', re.MULTILINE)


def inject(notes: Sequence[ContextNote], budget: int) -> tuple[UserPromptPart | None, dict[str, Any]]:
    """The part to add, or None if there is nothing to add, and a report of what was added and what was cut."""
    left = budget - FRAME_TOKENS
    fences: list[str] = []
    report: dict[str, Any] = {"injected": [], "cut": [], "budget": budget}
    for note in notes:
        fence, missing = _fenced(note, left)
        tokens = estimate_tokens(fence) + 1
        about: dict[str, Any] = {"ref": note.ref, "why": note.why, "evidence": note.evidence}
        if not fence or tokens > left:
            report["cut"].append({**about, "tokens": estimate_tokens(note.text)})
            continue
        left -= tokens
        fences.append(fence)
        report["injected"].append({**about, "tokens": tokens})
        if missing:
            report["cut"].append({**about, "tokens": missing})
    warning = _crowded(notes, budget)
    if warning:
        report["warnings"] = [warning]
    if not fences:
        return None, report
    return UserPromptPart([TextContent("\n".join([HEAD, *fences, TAIL]), metadata={KEY: report})]), report


def _crowded(notes: Sequence[ContextNote], budget: int) -> str | None:
    """A warning if notes that are always added take most of the budget, or all of it."""
    always = [note for note in notes if note.why == "always"]
    taken = FRAME_TOKENS + sum(estimate_tokens(_fence(note, note.text)) + 1 for note in always)
    if not always or taken < CROWDED * budget:
        return None
    longest = max(always, key=lambda note: len(note.text))
    when = "and something is cut" if taken > budget else "before something is cut"
    return (
        f"notes that are `loading: always` take about {taken:,} of {budget:,} tokens (context_tokens): "
        f"shorten {longest.ref}, mark fewer notes, or raise the setting, {when}"
    )


def _fenced(note: ContextNote, room: int) -> tuple[str, int]:
    """The note as it fits, and how many tokens of it were left out; empty if too little would be left."""
    whole = _fence(note, note.text)
    if estimate_tokens(whole) < room:
        return whole, 0
    more = f"a part; read_note opens all of it, about {estimate_tokens(note.text)} tokens"
    inside = room - estimate_tokens(_fence(note, "", more)) - 3
    if inside < MIN_TOKENS:
        return "", 0
    text, missing = within(note.text, inside)
    return _fence(note, f"{text} …", more), missing


def _fence(note: ContextNote, text: str, shown: str | None = None) -> str:
    return fence_note(note.ref, note.title, note.provenance, text, why=note.why, shown=shown)


def skill_for(
    kb: KnowledgeBase, prompt: str, seen: set[str], budget: int
) -> tuple[UserPromptPart | None, dict[str, Any]]:
    """The part to add, and a report; nothing if no skill clearly fits and has room, or if it is the project's."""
    try:
        found, result = kb.skills.search(prompt[:1_000], 2)  # people say what they want at the beginning
        ahead = found[0][1] - sum(score for _, score in found[1:]) if found else 0.0
        if ahead < AHEAD or (result.confidence or 0.0) < SURE:
            return None, {}
        skill = found[0][0]
        text, cut = fence_skill(skill, *kb.skills.open(skill), budget)
    except KnowledgeError as error:
        return None, {"problem": str(error)}  # the run goes on without it
    tokens = estimate_tokens(text)
    if cut or tokens > budget or skill.level == "project" or skill.name in seen:
        return None, {}
    report = {"name": skill.name, "confidence": result.confidence, "tokens": tokens}
    content = TextContent(f"{SKILL_HEAD}\n{text}\n</skills>", metadata={"co_cli_skill": report})
    return UserPromptPart([content]), report


def seen_refs(messages: Sequence[ModelMessage]) -> set[str]:
    """The notes that the conversation has in full: added by us, or shown or written by a tool."""
    refs: list[str] = []
    for text in user_texts(user_contents(messages)):
        refs += map(unescape, REF.findall(text)) if text.startswith(OPENING) else ()
    for part in _tool_returns(messages, TOOL_NAMES):
        hits = _get(part.metadata, "hits")  # it may come from a web page, so it can be anything
        found = cast("list[object]", hits) if isinstance(hits, list) else []
        shown = [part.metadata, *(hit for hit in found if _get(hit, "whole"))]
        refs += [str(_get(note, "ref") or "") for note in shown]
    return {without_lines(ref) for ref in refs}


def seen_skills(messages: Sequence[ModelMessage]) -> set[str]:
    """Skills that this conversation has already: added unasked, or loaded by a tool."""
    texts = [str(part.content) for part in _tool_returns(messages, ("load_skill",))]
    texts += user_texts(user_contents(messages))
    return {unescape(name) for text in texts for name in SKILL_NAME.findall(text)}


def _tool_returns(messages: Sequence[ModelMessage], tools: tuple[str, ...]) -> Iterator[ToolReturnPart]:
    for part in (part for message in messages if isinstance(message, ModelRequest) for part in message.parts):
        if isinstance(part, ToolReturnPart) and part.tool_name.endswith(tools):
            yield part


def _get(value: object, key: str) -> Any:
    return cast("dict[str, Any]", value).get(key) if isinstance(value, dict) else None


def user_text(prompt: str | Sequence[UserContent] | None, messages: Sequence[ModelMessage]) -> str | None:
    """What the user says in this turn; None if it is not their turn, as when a run continues with a tool's result."""
    if prompt is None:
        last = messages[-1] if messages else None
        if not isinstance(last, ModelRequest) or not all(isinstance(part, UserPromptPart) for part in last.parts):
            return None
        prompt = list(user_contents([last]))
    return "\n".join(user_texts([prompt] if isinstance(prompt, str) else prompt))


def user_contents(messages: Sequence[ModelMessage]) -> Iterator[UserContent]:
    """What was said in the user's turns, part by part."""
    for message in messages:
        for part in message.parts if isinstance(message, ModelRequest) else ():
            if isinstance(part, UserPromptPart):
                yield from [part.content] if isinstance(part.content, str) else part.content


def user_texts(contents: Iterator[UserContent] | Sequence[UserContent]) -> list[str]:
    texts = [content.content if isinstance(content, TextContent) else content for content in contents]
    return [text for text in texts if isinstance(text, str)]
