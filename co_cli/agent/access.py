"""From what somebody asked for (a vault, a knowledge base, nothing) to a toolbox, when it is first used."""

from __future__ import annotations

import os
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Sequence

from pydantic_ai.exceptions import UserError

from co_cli.agent.deps import CoDeps, PathLike, open_once
from co_cli.errors import KnowledgeError, VaultError
from co_cli.knowledge_base import KnowledgeBase
from co_cli.tools import TOOLS, Tool, Toolbox
from co_cli.tools.toolbox import EVERY_TOOL

MOST_TOOLBOXES = 64
"""Kept for runs that bring knowledge bases of their own; what was used least recently goes, and is made anew."""


class Access:
    """A vault that is opened when a tool or a run needs it. Safe to share between threads."""

    def __init__(
        self,
        vault: PathLike | None = None,
        data_dir: PathLike | None = None,
        knowledge_base: KnowledgeBase | None = None,
        tools: Sequence[str] | None = None,
        read_only: bool = False,
        result_tokens: int = 2_000,
        skills: bool = False,
        create: bool = False,
    ) -> None:
        require_one(vault, data_dir, knowledge_base)
        self.tools = allowed_tools(tools, read_only, skills)
        self._place, self._given = (vault, data_dir), knowledge_base
        self._create = create
        self._opened: tuple[int, KnowledgeBase] | None = None
        """By which process, and what: it stays the same vault when the program changes its folder."""
        self._result_tokens = result_tokens
        self._toolboxes: OrderedDict[KnowledgeBase, Toolbox] = OrderedDict()
        self._lock = threading.Lock()

    def toolbox(self, deps: object) -> Toolbox:
        """The toolbox of the vault that was named, else of the one in the run's CoDeps, else of the settings' own."""
        kb = self._knowledge_base(deps)
        with self._lock:
            if kb not in self._toolboxes:
                names = [tool.name for tool in self.tools]
                self._toolboxes[kb] = Toolbox(kb, names=names, result_tokens=self._result_tokens, with_skills=True)
            self._toolboxes.move_to_end(kb)
            if len(self._toolboxes) > MOST_TOOLBOXES:
                self._toolboxes.popitem(last=False)
            return self._toolboxes[kb]

    def clock(self, deps: object) -> Callable[[], float]:
        return deps.clock if isinstance(deps, CoDeps) else time.time

    def _knowledge_base(self, deps: object) -> KnowledgeBase:
        if self._given is not None:
            return self._given
        if isinstance(deps, CoDeps) and self._place == (None, None):
            return deps.knowledge_base
        known = self._opened
        if known is not None and known[0] == os.getpid():
            return known[1]
        kb = opened(*self._place, self._create)
        self._opened = (os.getpid(), kb)
        return kb


def require_one(vault: PathLike | None, data_dir: PathLike | None, knowledge_base: KnowledgeBase | None) -> None:
    if knowledge_base is not None and (vault is not None or data_dir is not None):
        raise UserError("give a knowledge_base or a vault with its data_dir, not both")


def opened(vault: PathLike | None, data_dir: PathLike | None, create: bool = False) -> KnowledgeBase:
    """Open a vault; a mistake in its place is one of whoever wrote the agent, not of the model."""
    try:
        return open_once(vault, data_dir, create)
    except KnowledgeError as error:
        absent = isinstance(error, VaultError) and vault is not None and not os.path.exists(vault)
        cure = "; Knowledge(..., create=True) makes it when it is first used" if absent and not create else ""
        raise UserError(f"the knowledge base cannot be opened: {error}{cure}") from error


def allowed_tools(names: Sequence[str] | None, read_only: bool, skills: bool = False) -> tuple[Tool, ...]:
    """Those of all tools that an agent gets; a name that no tool has is a mistake of whoever wrote it.

    Tools for skills are there if they are wanted or named: the skills of whoever runs an agent are not always its own.
    """
    if isinstance(names, str):
        names = [names]
    known = {tool.name for tool in EVERY_TOOL}
    unknown = [name for name in names or () if name not in known]
    if unknown:
        raise UserError(f"there is no tool {', '.join(unknown)}; the tools are {', '.join(sorted(known))}")
    tools = EVERY_TOOL if skills or names is not None else TOOLS
    return tuple(tool for tool in tools if (names is None or tool.name in names) and (tool.read_only or not read_only))
