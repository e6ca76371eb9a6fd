"""What a conversation has already been given, and the skill that clearly fits a prompt.

What earlier turns added is read from the text itself: metadata can be lost, or forged, on its way through a web page.
What a compaction replaced counts as not given.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from html import unescape
from typing import Any, cast

from pydantic_ai.messages import (
    ModelMessage,
    ModelRequest,
    ModelResponse,
    TextContent,
    TextPart,
    ToolReturnPart,
    UserContent,
    UserPromptPart,
    post_compaction_window,
)

from co_cli.entrance.knowledge_base import KnowledgeBase
from co_cli.ground.errors import KnowledgeError
from co_cli.notes.refs import without_lines
from co_cli.notes.transcripts import ASSISTANT, USER, SpokenTurn, merged
from co_cli.tools.budget import estimate_tokens
from co_cli.tools.prompt_notes import rendered_notes
from co_cli.tools.skill_tools import fence_skill
from co_cli.tools.toolbox import TOOLS

KEY = "co_cli_context"
SKILL_KEY = "co_cli_skill"
"""In the metadata of a part: what it added."""
TOOL_NAMES = tuple(tool.name for tool in TOOLS)

SURE, AHEAD = 0.3, 0.05
"""Minimum confidence of a search for skills, and distance to the score of the next skill. Measured on 144 tasks with
1,000 skills: 58 get their skill at once and none a wrong one; 12 of 93 everyday prompts get one."""
SKILL_HEAD = "<skills>\nA skill that may fit: use it if it does, and do not mention it if it does not."
SKILL_NAME = re.compile(r'^<skill name="([^"]+)"', re.MULTILINE)


def skill_for(
    kb: KnowledgeBase, prompt: str, seen: Collection[str], budget: int
) -> tuple[UserPromptPart | None, dict[str, Any]]:
    """The part to add, and a report; nothing if no skill clearly fits and has room, or if it is the project's."""
    try:
        found, result = kb.local.search_skills(prompt[:1_000], 2)  # people say what they want at the beginning
        ahead = found[0][1] - sum(score for _, score in found[1:]) if found else 0.0
        if ahead < AHEAD or (result.confidence or 0.0) < SURE:
            return None, {}
        skill = found[0][0]
        text, cut = fence_skill(skill, *kb.local.skills.open(skill), budget)
    except KnowledgeError as error:
        return None, {"problem": str(error)}  # the run goes on without it
    tokens = estimate_tokens(text)
    if cut or tokens > budget or skill.level == "project" or skill.name in seen:
        return None, {}
    report = {"name": skill.name, "confidence": result.confidence, "tokens": tokens}
    content = TextContent(f"{SKILL_HEAD}\n{text}\n</skills>", metadata={SKILL_KEY: report})
    return UserPromptPart([content]), report


@dataclass(frozen=True, slots=True)
class Seen:
    """What a conversation has, as far as the model still sees it."""

    notes: dict[str, str]
    """Notes that we added, by ref, with the text that was shown last."""
    refs: frozenset[str]
    """These, and notes that a tool showed in full or wrote."""
    skills: frozenset[str]
    """Skills that were added automatically, or loaded by a tool."""

    @classmethod
    def in_messages(cls, history: Sequence[ModelMessage], prefix: str = "") -> Seen:
        """`prefix` is that of the tools' names: two vaults of one agent differ in it, and may have the same refs."""
        messages = post_compaction_window(history)
        notes: dict[str, str] = {}
        texts = user_texts(user_contents(messages))
        for text in texts:
            notes |= rendered_notes(text, f"{prefix}read_note")
        refs = [*notes]
        for part in tool_returns(messages, {prefix + name for name in TOOL_NAMES}.__contains__):
            shown = [part.metadata, *(hit for hit in parts_of(part.metadata, "hits") if _get(hit, "whole"))]
            refs += [str(_get(note, "ref") or "") for note in shown]
        texts += [str(part.content) for part in tool_returns(messages, f"{prefix}load_skill".__eq__)]
        skills = frozenset(unescape(name) for text in texts for name in SKILL_NAME.findall(text))
        return cls(notes, frozenset(map(without_lines, refs)), skills)


def tool_returns(messages: Sequence[ModelMessage], is_wanted: Callable[[str], bool]) -> Iterator[ToolReturnPart]:
    """The answers of tools whose names are wanted."""
    for part in (part for message in messages if isinstance(message, ModelRequest) for part in message.parts):
        if isinstance(part, ToolReturnPart) and is_wanted(part.tool_name):
            yield part


def _get(value: object, key: str) -> Any:
    return cast("dict[str, Any]", value).get(key) if isinstance(value, dict) else None


def parts_of(value: object, key: str) -> list[object]:
    """A list in metadata, which may have come from a web page, so that it can be anything."""
    found = _get(value, key)
    return cast("list[object]", found) if isinstance(found, list) else []


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


def spoken_turns(messages: Sequence[ModelMessage]) -> list[SpokenTurn]:
    """What the user and the model said, without tools, thoughts, and what we added to the user's turn."""
    found: list[SpokenTurn] = []
    given: list[str] = []
    for message in messages:
        after_tool = False  # what a tool adds to its answer comes as a prompt, too, but the user does not say it
        for part in message.parts:
            after_tool = after_tool or isinstance(part, ToolReturnPart)
            if isinstance(part, UserPromptPart):
                own: list[UserContent] = []
                for content in [part.content] if isinstance(part.content, str) else part.content:
                    metadata = getattr(content, "metadata", None)
                    report = _get(metadata, KEY)
                    given += [str(_get(note, "ref")) for note in parts_of(report, "injected")]
                    own += [] if report or _get(metadata, SKILL_KEY) else [content]
                if not after_tool:
                    found.append(SpokenTurn(USER, "\n".join(user_texts(own)), part.timestamp.timestamp()))
            elif isinstance(part, TextPart) and isinstance(message, ModelResponse):
                found.append(SpokenTurn(ASSISTANT, part.content, message.timestamp.timestamp(), tuple(given)))
                given = []
    return merged(found)


def user_texts(contents: Iterator[UserContent] | Sequence[UserContent]) -> list[str]:
    texts = [content.content if isinstance(content, TextContent) else content for content in contents]
    return [text for text in texts if isinstance(text, str)]
