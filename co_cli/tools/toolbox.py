"""All tools, and one way to call them by name: validate the arguments, refresh the index, shorten errors."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, is_dataclass
from functools import cached_property
from typing import Any, cast

from co_cli.activity import request_record
from co_cli.entrance.knowledge_base import KnowledgeBase
from co_cli.ground.errors import InvalidInputError, KnowledgeError, NoteConflictError, NoteMissingError, UnknownRefError
from co_cli.searching.freshness import Freshener
from co_cli.tools.article_tools import read_note, recall_article, save_article
from co_cli.tools.context_tools import context_refresh, context_tree, find_checkpoint, next_step
from co_cli.tools.conversation_tools import save_conversation
from co_cli.tools.fencing import one_line
from co_cli.tools.guidance import describe_vault
from co_cli.tools.knowledge import search_grep, search_knowledge, search_semantic
from co_cli.tools.memory import forget_memory, list_memories, rate_memory, recall_memory, save_memory, update_memory
from co_cli.tools.skill_tools import SKILL_TOOLS
from co_cli.tools.tool import Tool, ToolCall, ToolResult

TOOLS: tuple[Tool, ...] = (
    *(recall_memory, save_memory, update_memory, forget_memory, list_memories),
    *(recall_article, save_article, read_note, search_knowledge),
)
"""What an agent gets by default: every tool costs tokens in every request."""
EVERY_TOOL = (
    *(*TOOLS, rate_memory, save_conversation, find_checkpoint, context_tree, context_refresh),
    *(search_grep, search_semantic, *SKILL_TOOLS),
)
DEFAULT = "default"
"""Stands for the tools of the default list among the names of others."""

RESULT_TOKENS = 2_000
PATIENCE = 5.0
"""Seconds a call waits for changed files to be indexed; after that it answers from what there is, and says so."""
MAX_REF, MAX_ERROR, MAX_IGNORED = 200, 2_000, 10
"""How much of what a model sent is repeated to it."""


def select_tools(names: Sequence[str] | None, read_only: bool, with_skills: bool) -> tuple[Tool, ...]:
    """The named tools, or the default ones. Raises InvalidInputError for a name that no tool has."""
    names = [names] if isinstance(names, str) else [DEFAULT] if names is None else names
    known = [tool.name for tool in EVERY_TOOL]
    unknown = [name for name in names if name not in (*known, DEFAULT)]
    if unknown:
        raise InvalidInputError(f"there is no tool {', '.join(unknown)}; the tools are {', '.join(known)}")
    default = (*TOOLS, *SKILL_TOOLS) if DEFAULT in names else ()
    tools = [tool for tool in EVERY_TOOL if tool.name in names or tool in default]
    return tuple(
        tool for tool in tools if (tool.read_only or not read_only) and (with_skills or tool not in SKILL_TOOLS)
    )


class Toolbox:
    """The tools of one vault. Synchronous; calls may run in parallel threads."""

    def __init__(
        self,
        kb: KnowledgeBase,
        *,
        names: Sequence[str] | None = None,
        read_only: bool = False,
        result_tokens: int = RESULT_TOKENS,
        patience: float = PATIENCE,
        with_skills: bool | None = None,
        prefix: str = "",
    ) -> None:
        """`with_skills` says whether to offer tools for skills; None: if there are any, so others pay no tokens.

        `prefix`: what an agent has before the names of the tools.
        """
        self.kb, self.result_tokens, self.patience, self.prefix = kb, result_tokens, patience, prefix
        if names is None and kb.captures:
            names = [DEFAULT, save_conversation.name]
        self.tools = select_tools(names, read_only, with_skills is not False)
        if with_skills is None and set(self.tools) & set(SKILL_TOOLS) and not kb.local.skills.there():
            self.tools = select_tools(names, read_only, False)
        self.freshener = Freshener(kb)

    @cached_property
    def vault(self) -> str:
        """Which vault this is, for instructions; as it was first asked, so that they stay the same."""
        return describe_vault(self.kb)

    def call(
        self, name: str, arguments: Mapping[str, Any] | None = None, tokens: int | None = None
    ) -> ToolResult[dict[str, Any]]:
        """Run one tool, where the vault is. A KnowledgeError says in one line what is wrong and how to fix it.

        `tokens` is the maximum of this answer, if it is not that of all.
        """
        tool = next((tool for tool in self.tools if tool.name == name), None)
        if now := request_record.get():
            now.tool = name if any(known.name == name for known in EVERY_TOOL) else "unknown tool"
            now.refused = tool is None
        if tool is None:
            known = ", ".join(tool.name for tool in self.tools)
            raise InvalidInputError(f"there is no tool {name[:MAX_REF]!r} here; there are {known}")
        if self.kb.server:
            told = self.kb.server.ask(
                "POST", f"/tools/{name}", dict[str, Any], arguments=arguments, tokens=self.result_tokens
            )
            return ToolResult(told["text"], told["data"])
        values, ignored, changed = tool.read_arguments(arguments)
        unknown = f"Not arguments of {name}, ignored: {', '.join(map(one_line, ignored[:MAX_IGNORED]))}"
        try:
            degraded = [] if tool in (*SKILL_TOOLS, context_refresh) else self.freshener.ensure(self.patience)
            call = ToolCall(self.kb, tokens or self.result_tokens, degraded, prefix=self.prefix)
            text, data = tool.function(call, **values)
        except NoteMissingError:
            raise
        except NoteConflictError as error:
            raise NoteConflictError(
                f"{str(error).rstrip('.')}.{next_step(self.kb.local, values, self.prefix)}"
            ) from None
        except UnknownRefError as error:
            shown = error.ref if len(error.ref) <= MAX_REF else error.ref[:MAX_REF] + "..."
            if error.closest:  # file names, which anybody may have chosen
                raise UnknownRefError(shown, [one_line(ref) for ref in error.closest]) from None
            tools = f"{self.prefix}search_knowledge and {self.prefix}list_memories"
            raise InvalidInputError(f"no note {shown!r}: {tools} give refs") from None
        except KnowledgeError as error:
            if ignored and isinstance(error, InvalidInputError):  # what was meant may have been one of them
                raise InvalidInputError(f"{one_line(str(error))[:MAX_ERROR]} ({unknown})") from None
            if len(str(error)) <= MAX_ERROR and "\n" not in str(error):
                raise
            raise InvalidInputError(f"{one_line(str(error))[:MAX_ERROR]}...") from None
        remarks = [*([unknown] if ignored else []), *changed]
        text += "".join(f"\n({remark}.)" for remark in remarks)
        values: dict[str, Any] = asdict(cast("Any", data)) if is_dataclass(data) else dict(data)
        return ToolResult(text, {**values, "ignored": ignored})
