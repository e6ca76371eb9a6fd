"""The skill for a prompt, added to the user's turn before the model is asked: only one that is clearly meant.

Measured on 1,000 skills and 144 tasks (`python -m benchmarks skills`): with these limits 58 tasks get their skill at
once and none a wrong one; of 93 everyday prompts 12 bring one along, nearly all of its kind. A project's skill never
comes unasked.
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
from co_cli.tools.skills import fence_skill

SURE = 0.3
"""Confidence of the search from which on a skill is clearly meant."""
AHEAD = 0.05
"""By how much its score is above that of the next."""
LONGEST = 1_000
"""Letters of a prompt that are compared: people say what they want at the beginning."""
Report = dict[str, Any]
OPENING = "<skills>\n"
HEAD = f"{OPENING}A skill that may fit, added unasked: use it if it does, and do not mention it if it does not."
TAIL = "</skills>"
NAME = re.compile(r'^<skill name="([^"]+)"', re.MULTILINE)


def skill_for(kb: KnowledgeBase, prompt: str, seen: set[str], budget: int) -> tuple[UserPromptPart | None, Report]:
    """The part to add, and a report of it; nothing if no skill is clearly meant, or it was seen already."""
    try:
        return _skill_for(kb, prompt, seen, budget)
    except KnowledgeError as error:
        return None, {"problem": str(error)}  # a run goes on without a skill that nobody asked for


def _skill_for(kb: KnowledgeBase, prompt: str, seen: set[str], budget: int) -> tuple[UserPromptPart | None, Report]:
    found, result = kb.skills.search(prompt[:LONGEST], 2)
    if not found or result.confidence is None or result.confidence < SURE:
        return None, {}
    skill, score = found[0]
    ahead = score - (found[1][1] if len(found) > 1 else 0.0)
    if ahead < AHEAD or skill.level == "project" or skill.name in seen:
        return None, {}
    text, rest = fence_skill(kb.skills.open(skill), budget)
    whole = rest is None and estimate_tokens(text) <= budget
    if not whole:
        opening = f'<skill name="{one_line(skill.name)}" from="{skill.level}">'
        text = f"{opening}\n{one_line(skill.description)}\n</skill>\nload_skill opens it."
    report = {"name": skill.name, "confidence": result.confidence, "whole": whole, "tokens": estimate_tokens(text)}
    content = TextContent("\n".join([HEAD, text, TAIL]), metadata={"co_cli_skill": report})
    return UserPromptPart([content]), report


def seen_skills(messages: Sequence[ModelMessage]) -> set[str]:
    """Skills that this conversation holds already: added unasked, or loaded by a tool."""
    seen: set[str] = set()
    for content in user_contents(messages):
        text = content.content if isinstance(content, TextContent) else content
        if isinstance(text, str) and text.startswith(OPENING):
            seen |= {unescape(name) for name in NAME.findall(text)}
    for message in messages:
        for part in message.parts if isinstance(message, ModelRequest) else ():
            if isinstance(part, ToolReturnPart) and part.tool_name.endswith("load_skill"):
                data: Any = cast("Any", part).metadata
                seen |= {str(cast("Any", data)["name"])} if isinstance(data, dict) and "name" in data else set()
    return seen
