"""All tools, and one way to call them by name: read the arguments, refresh the index, shorten errors."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from co_cli.errors import InvalidInputError, KnowledgeError, NoteMissingError, UnknownRefError
from co_cli.knowledge_base import KnowledgeBase
from co_cli.service.freshness import Freshener
from co_cli.tools.articles import read_note, recall_article, save_article
from co_cli.tools.fencing import one_line
from co_cli.tools.knowledge import search_knowledge
from co_cli.tools.memory import forget_memory, list_memories, rate_memory, recall_memory, save_memory, update_memory
from co_cli.tools.skill_tools import SKILL_TOOLS
from co_cli.tools.tool import Tool, ToolContext, ToolResult

TOOLS: tuple[Tool, ...] = (
    recall_memory,
    save_memory,
    update_memory,
    forget_memory,
    list_memories,
    recall_article,
    save_article,
    read_note,
    search_knowledge,
    rate_memory,
)
EVERY_TOOL = (*TOOLS, *SKILL_TOOLS)

RESULT_TOKENS = 2_000
PATIENCE = 5.0
"""Seconds a call waits for changed files to be indexed; after that it answers from what there is, and says so."""
LONGEST_REF, LONGEST_ERROR, MOST_IGNORED = 200, 2_000, 10
"""How much of what a model sent is repeated to it."""


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
        """`with_skills` says whether to offer tools for skills; None: if there are any, so others pay no tokens."""
        unknown = [name for name in names or () if name not in {tool.name for tool in EVERY_TOOL}]
        if unknown:
            known = ", ".join(tool.name for tool in EVERY_TOOL)
            raise InvalidInputError(f"there is no tool {', '.join(unknown)}; the tools are {known}")
        self.kb, self.result_tokens, self.provenance, self.patience = kb, result_tokens, provenance, patience
        self.tools = tuple(
            tool for tool in EVERY_TOOL if (names is None or tool.name in names) and (tool.read_only or not read_only)
        )
        if any(tool in SKILL_TOOLS for tool in self.tools):
            offered = kb.skills.there() if with_skills is None else with_skills
            self.tools = tuple(tool for tool in self.tools if offered or tool not in SKILL_TOOLS)
        self.freshener = Freshener(kb)

    def call(self, name: str, arguments: Mapping[str, Any] | None = None) -> ToolResult[dict[str, Any]]:
        """Run one tool. A KnowledgeError says in one line what was wrong and what would be right."""
        tool = next((tool for tool in self.tools if tool.name == name), None)
        if tool is None:
            known = ", ".join(tool.name for tool in self.tools)
            raise InvalidInputError(f"there is no tool {name[:LONGEST_REF]!r} here; there are {known}")
        values, ignored = tool.read_arguments(arguments)
        try:
            degraded = [] if tool in SKILL_TOOLS else self.freshener.ensure(self.patience)
            context = ToolContext(self.kb, self.result_tokens, self.provenance, degraded)
            text, data = tool.function(context, **values)
        except NoteMissingError:
            raise
        except UnknownRefError as error:
            shown = error.ref if len(error.ref) <= LONGEST_REF else error.ref[:LONGEST_REF] + "..."
            if error.closest:  # file names, which anybody may have chosen
                raise UnknownRefError(shown, [one_line(ref) for ref in error.closest]) from None
            raise InvalidInputError(f"no note {shown!r}: search_knowledge and list_memories give refs") from None
        except KnowledgeError as error:
            if len(str(error)) <= LONGEST_ERROR and "\n" not in str(error):
                raise
            raise InvalidInputError(f"{one_line(str(error))[:LONGEST_ERROR]}...") from None
        if ignored:
            names = ", ".join(map(one_line, ignored[:MOST_IGNORED]))
            text += f"\n(Not arguments of {name}, ignored: {names}.)"
        return ToolResult(text, {**data, "ignored": ignored})
