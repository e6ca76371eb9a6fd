"""All the tools, and one door to call them by name: arguments read, index fresh, answer bounded."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from co_cli.errors import InvalidInputError, KnowledgeError, NoteMissingError, UnknownRefError
from co_cli.knowledge_base import KnowledgeBase
from co_cli.service.freshness import Freshener
from co_cli.tools import opening, rating, recall, skills, writing
from co_cli.tools.arguments import read_arguments
from co_cli.tools.fencing import one_line
from co_cli.tools.tool import Tool, ToolResult

TOOLS: tuple[Tool, ...] = (
    recall.RECALL_MEMORY,
    writing.SAVE_MEMORY,
    writing.UPDATE_MEMORY,
    writing.FORGET_MEMORY,
    opening.LIST_MEMORIES,
    recall.RECALL_ARTICLE,
    writing.SAVE_ARTICLE,
    opening.READ_NOTE,
    recall.SEARCH_KNOWLEDGE,
    rating.RATE_MEMORY,
)
EVERY_TOOL = (*TOOLS, *skills.SKILL_TOOLS)
"""With those that are there only where there are skills."""
READING = {
    "recall_memory": recall.recall_memory,
    "recall_article": recall.recall_article,
    "search_knowledge": recall.search_knowledge,
    "read_note": opening.read_note,
    "list_memories": opening.list_memories,
}
SKILLS = {"find_skills": skills.find_skills, "load_skill": skills.load_skill}
WRITING = {
    "save_memory": writing.save_memory,
    "save_article": writing.save_article,
    "update_memory": writing.update_memory,
    "forget_memory": writing.forget_memory,
    "rate_memory": rating.rate_memory,
}

RESULT_TOKENS = 2_000
PATIENCE = 5.0
"""Seconds a call waits for changed files to be indexed; it answers from what there is after that, and says so."""
LONGEST_REF, LONGEST_ERROR = 200, 2_000
"""Characters of what was asked for and of what was wrong with it, as a model is told them."""


class Toolbox:
    """The tools of one vault. Synchronous; calls may run in parallel threads."""

    def __init__(
        self,
        kb: KnowledgeBase,
        *,
        names: Sequence[str] | None = None,
        read_only: bool = False,
        result_tokens: int = RESULT_TOKENS,
        provenance: str = "agent",
        patience: float = PATIENCE,
        with_skills: bool | None = None,
    ) -> None:
        """`with_skills` says whether there are tools for skills; None: if there are skills."""
        unknown = [name for name in names or () if name not in {tool.name for tool in EVERY_TOOL}]
        if unknown:
            known = ", ".join(tool.name for tool in EVERY_TOOL)
            raise InvalidInputError(f"there is no tool {', '.join(unknown)}; the tools are {known}")
        self.kb, self.result_tokens, self.provenance, self.patience = kb, result_tokens, provenance, patience
        self.tools = tuple(
            tool for tool in EVERY_TOOL if (names is None or tool.name in names) and (tool.read_only or not read_only)
        )
        if any(tool.name in SKILLS for tool in self.tools) and not _wanted(kb, with_skills):
            self.tools = tuple(tool for tool in self.tools if tool.name not in SKILLS)
        self.freshener = Freshener(kb)

    def call(self, name: str, arguments: Mapping[str, Any] | None = None) -> ToolResult:
        """Run one tool. A KnowledgeError says what was wrong and what would be right."""
        tool = next((tool for tool in self.tools if tool.name == name), None)
        if tool is None:
            raise InvalidInputError(
                f"there is no tool {name!r} here; there are {', '.join(t.name for t in self.tools)}"
            )
        values, ignored = read_arguments(name, tool.parameters, arguments)
        try:
            result = self._run(name, values)
        except NoteMissingError:
            raise
        except UnknownRefError as error:
            shown = error.ref if len(error.ref) <= LONGEST_REF else error.ref[:LONGEST_REF] + "..."
            if error.closest:  # names of files, which anybody may have chosen
                raise UnknownRefError(shown, [one_line(ref) for ref in error.closest]) from None
            raise InvalidInputError(f"no note {shown!r}: search_knowledge and list_memories give refs") from None
        except KnowledgeError as error:
            if len(str(error)) <= LONGEST_ERROR:
                raise
            # it repeats what a model said: that need not be paid for twice
            raise InvalidInputError(f"{str(error)[:LONGEST_ERROR]}...") from None
        told = f"\n(Not arguments of {name}, ignored: {', '.join(ignored)}.)" if ignored else ""
        return ToolResult(result.text + told, {**result.data, "ignored": ignored})

    def _run(self, name: str, values: dict[str, Any]) -> ToolResult:
        if name in SKILLS:  # which look at their own files
            return SKILLS[name](self.kb, values, self.result_tokens, [])
        behind = self.freshener.ensure(self.patience)
        if name in READING:
            return READING[name](self.kb, values, self.result_tokens, behind)
        return WRITING[name](self.kb, values, self.provenance)


def _wanted(kb: KnowledgeBase, with_skills: bool | None) -> bool:
    """An agent without skills pays no tokens for them."""
    return kb.skills.there() if with_skills is None else with_skills
