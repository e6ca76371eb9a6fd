"""Add the skill that clearly fits a prompt to the user's turn, before the model is asked.

Measured on 1,000 skills and 144 tasks (`python -m benchmarks skills`): with these limits 58 tasks get their skill at
once and none a wrong one; 12 of 93 everyday prompts get one. A project's skill is never added.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from html import unescape
from typing import Any, cast

from pydantic_ai.messages import ModelMessage, ModelRequest, TextContent, ToolReturnPart, UserPromptPart

from co_cli.agent.injection import user_contents
from co_cli.errors import KnowledgeError
from co_cli.knowledge_base import KnowledgeBase
from co_cli.tools.budget import estimate_tokens
from co_cli.tools.fencing import one_line
from co_cli.tools.skill_tools import fence_skill

SURE = 0.3
"""Minimum confidence of the search."""
AHEAD = 0.05
"""Minimum distance to the score of the next skill."""
LONGEST = 1_000
"""Characters of a prompt that are compared: people say what they want at the beginning."""
OPENING = "<skills>\n"
HEAD = f"{OPENING}A skill that may fit, added unasked: use it if it does, and do not mention it if it does not."
NAME = re.compile(r'^<skill name="([^"]+)"', re.MULTILINE)


def skill_for(
    kb: KnowledgeBase, prompt: str, seen: set[str], budget: int
) -> tuple[UserPromptPart | None, dict[str, Any]]:
    """The part to add, and a report of it; nothing if no skill clearly fits, or it was seen already."""
    try:
        found, result = kb.skills.search(prompt[:LONGEST], 2)
        if not found or (result.confidence or 0.0) < SURE:
            return None, {}
        (skill, score), *others = found
        if score - sum(other for _, other in others) < AHEAD or skill.level == "project" or skill.name in seen:
            return None, {}
        text, rest = fence_skill(kb.skills.open(skill), budget)
    except KnowledgeError as error:
        return None, {"problem": str(error)}  # the run goes on without it
    whole = rest is None and estimate_tokens(text) <= budget
    if not whole:
        opening = f'<skill name="{one_line(skill.name)}" from="{skill.level}">'
        text = f"{opening}\n{one_line(skill.description)}\n</skill>\nload_skill opens it."
    report = {"name": skill.name, "confidence": result.confidence, "whole": whole, "tokens": estimate_tokens(text)}
    content = TextContent(f"{HEAD}\n{text}\n</skills>", metadata={"co_cli_skill": report})
    return UserPromptPart([content]), report


def seen_skills(messages: Sequence[ModelMessage]) -> set[str]:
    """Skills that this conversation has already: added unasked, or loaded by a tool."""
    seen: set[str] = set()
    for content in user_contents(messages):
        text = content.content if isinstance(content, TextContent) else content
        if isinstance(text, str) and text.startswith(OPENING):
            seen |= {unescape(name) for name in NAME.findall(text)}
    for part in (part for message in messages if isinstance(message, ModelRequest) for part in message.parts):
        if isinstance(part, ToolReturnPart) and part.tool_name.endswith("load_skill"):
            data = cast("dict[str, Any]", cast("Any", part).metadata or {})
            seen |= {str(data["name"])} if "name" in data else set()
    return seen
