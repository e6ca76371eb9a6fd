"""Knowledge: the capability that gives any pydantic-ai agent a memory.

Tools to recall and to save, static instructions when to use which, and, before a run, the notes that belong beside the
prompt. Constructing it touches nothing; the vault is opened by the first run or the first call.
"""

from __future__ import annotations

import copy
import os
from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass, field, replace
from functools import cached_property
from typing import Any, Literal, cast, get_args

import anyio
import anyio.to_thread
from pydantic_ai import FunctionToolset, RunContext
from pydantic_ai.capabilities import AbstractCapability
from pydantic_ai.exceptions import UserError
from pydantic_ai.messages import UserPromptPart
from pydantic_ai.run import AgentRunResult

from co_cli.agent.access import Access
from co_cli.agent.deps import PathLike
from co_cli.agent.guidance import instructions
from co_cli.agent.injection import inject, seen_refs, user_text
from co_cli.agent.skill_injection import seen_skills, skill_for
from co_cli.agent.toolset import toolset_of
from co_cli.knowledge_base import KnowledgeBase
from co_cli.notes.refs import without_lines
from co_cli.service.context import Context, ContextNote, always_there, matching
from co_cli.tools.fencing import one_line

FRESH_SECONDS = 0.3
"""How long a run waits for changed files to be indexed before it looks for context; the rest is indexed meanwhile."""
CONTEXT_SECONDS = 2.0
"""How long it waits for context altogether, as with an embedding server that does not answer; then it goes without."""
UNKNOWN_ROOM = 1_000
"""Tokens for context where the vault could not be opened in time to say how many."""

SkillUse = Literal["off", "tools", "inject"]
SKILL_USES: tuple[SkillUse, ...] = get_args(SkillUse)


@dataclass
class Knowledge(AbstractCapability[Any]):
    """A memory and a library in Markdown files: `Agent("ollama:qwen3", capabilities=[Knowledge()])`.

    Works with any dependencies. If the run's are `CoDeps` and neither `vault` nor `knowledge_base` is given, their
    knowledge base is used.
    """

    vault: PathLike | None = None
    """The folder of notes; without one the project's or the user's own, as `co` finds it."""
    _: KW_ONLY
    data_dir: PathLike | None = None
    """Where search.db lives, if not in the user's data folder."""
    knowledge_base: KnowledgeBase | None = None
    """One that is open already; whoever opened it closes it."""
    tools: Sequence[str] | None = None
    """The names of the tools that the agent gets; None: all."""
    read_only: bool = False
    """Leave out the tools that write."""
    approve_forget: bool = False
    """Pause for approval before a note is forgotten. The agent's output type must include `DeferredToolRequests`, or a
    handler must be attached."""
    context: bool = True
    """Add the notes that belong beside the prompt to the user's turn, before the model is asked."""
    context_tokens: int | None = None
    """How much of them, at most; None: as the setting `context_tokens` says."""
    context_seconds: float | None = None
    """How long a run waits for them before it goes without; None: two seconds."""
    result_tokens: int = 2_000
    """How long the answer of a tool may be."""
    skills: SkillUse = "off"
    """`tools`: find and load skills of the project, the user and configured folders, wherever there are any. `inject`:
    also add a skill that is clearly meant to the user's turn, unasked."""
    create: bool = False
    """Make the vault, if it is not there, when it is first used."""
    id: str | None = "knowledge"
    report: dict[str, Any] = field(default_factory=dict[str, Any], init=False, repr=False, compare=False)
    """What this run was given: `injected`, `cut`, `budget`, `degraded`. Also in the run's metadata, under `id`."""

    @classmethod
    def get_serialization_name(cls) -> str | None:
        return "Knowledge"

    @classmethod
    def from_spec(
        cls,
        vault: str | None = None,
        *,
        data_dir: str | None = None,
        tools: list[str] | None = None,
        read_only: bool = False,
        approve_forget: bool = False,
        context: bool = True,
        context_tokens: int | None = None,
        context_seconds: float | None = None,
        result_tokens: int = 2_000,
        skills: SkillUse = "off",
        create: bool = False,
        id: str = "knowledge",
        description: str | None = None,
        defer_loading: bool = False,
    ) -> Knowledge:
        """From an agent's spec file: everything but an open knowledge base can stand in one."""
        return cls(
            vault,
            data_dir=data_dir,
            tools=tools,
            read_only=read_only,
            approve_forget=approve_forget,
            context=context,
            context_tokens=context_tokens,
            context_seconds=context_seconds,
            result_tokens=result_tokens,
            skills=skills,
            create=create,
            id=id,
            description=description,
            defer_loading=defer_loading,
        )

    @classmethod
    def combine(cls, capabilities: Sequence[AbstractCapability[Any]]) -> AbstractCapability[Any]:
        """One vault stated twice: what either forbids stays forbidden. Two vaults need two ids."""
        stated = cast("Sequence[Knowledge]", capabilities)
        places = {os.path.abspath(one.vault) for one in stated if one.vault is not None}
        data_dirs = {os.path.abspath(one.data_dir) for one in stated if one.data_dir is not None}
        bases = {id(one.knowledge_base) for one in stated if one.knowledge_base is not None}
        if len(places) + len(bases) > 1 or len(data_dirs) > 1:
            raise UserError(
                f"two Knowledge capabilities with the id {stated[-1].id!r} name different vaults or data folders: give "
                "each its own id, and one of them other tool names with .prefix_tools(...)"
            )
        return replace(
            cast("Knowledge", super().combine(capabilities)),
            read_only=any(one.read_only for one in stated),
            approve_forget=any(one.approve_forget for one in stated),
            context=all(one.context for one in stated),
            tools=_allowed_by_all(stated),
            context_tokens=min((one.context_tokens for one in stated if one.context_tokens is not None), default=None),
            context_seconds=min(
                (one.context_seconds for one in stated if one.context_seconds is not None), default=None
            ),
            result_tokens=min(one.result_tokens for one in stated),
            skills=min((one.skills for one in stated), key=SKILL_USES.index),
            create=any(one.create for one in stated),
        )

    @cached_property
    def access(self) -> Access:
        """The way to the vault; nothing is opened yet."""
        if self.skills not in SKILL_USES:
            raise UserError(f"skills is one of {', '.join(SKILL_USES)}, not {self.skills!r}")
        return Access(
            self.vault,
            self.data_dir,
            self.knowledge_base,
            self.tools,
            self.read_only,
            self.result_tokens,
            self.skills != "off",
            self.create,
        )

    @cached_property
    def toolset(self) -> FunctionToolset[Any]:
        return toolset_of(self.access, self.approve_forget, self.id)

    def get_toolset(self) -> FunctionToolset[Any]:
        return self.toolset

    def get_instructions(self) -> str:
        return instructions([tool.name for tool in self.access.tools], self.context)

    async def for_run(self, ctx: RunContext[Any]) -> Knowledge:
        """The same vault and tools, with a report of its own."""
        mine = copy.copy(self)
        mine.report = {}
        return mine

    async def before_run(self, ctx: RunContext[Any]) -> None:
        """Find the notes that belong beside the prompt and queue them behind it, as data."""
        text = user_text(ctx.prompt, ctx.messages)
        if text is None:
            return
        if self.skills == "inject":
            await self._inject_skill(ctx, text)
        if not self.context:
            return
        seen = seen_refs(ctx.messages)
        notes: list[ContextNote] = []
        room = self.context_tokens or UNKNOWN_ROOM
        degraded: list[str] = []
        seconds = self._seconds
        with anyio.move_on_after(seconds) as patience:
            room = await anyio.to_thread.run_sync(self._room, ctx.deps, abandon_on_cancel=True)
            for step in (self._always, self._matching):
                found = await anyio.to_thread.run_sync(step, ctx.deps, text, seen, abandon_on_cancel=True)
                # the text names a note of an odd name as a fence can, which is not as the index does
                notes += [note for note in found.notes if one_line(without_lines(note.ref)) not in seen]
                degraded += found.degraded
                seen |= {without_lines(note.ref) for note in found.notes}
        if patience.cancelled_caught:
            degraded.append(f"not everything was asked: finding notes took longer than {seconds:g} s")
        part, report = inject(notes, room)
        self.report = {**self.report, **report, "degraded": degraded}
        if part is not None:
            ctx.enqueue(part)

    async def _inject_skill(self, ctx: RunContext[Any], text: str) -> None:
        """Find the skill that is clearly meant and queue it behind the prompt; if that takes too long, go without."""
        seen = seen_skills(ctx.messages)

        def find() -> tuple[UserPromptPart | None, dict[str, Any]]:
            return skill_for(self.access.toolbox(ctx.deps).kb, text, seen, self._room(ctx.deps))

        with anyio.move_on_after(self._seconds):
            part, report = await anyio.to_thread.run_sync(find, abandon_on_cancel=True)
            if report:
                self.report = {**self.report, "skill": report}
            if part is not None:
                ctx.enqueue(part)

    async def after_run(self, ctx: RunContext[Any], *, result: AgentRunResult[Any]) -> AgentRunResult[Any]:
        """Say in the run's metadata what was added and what was cut; and count what the answer cites as used."""
        if isinstance(result.output, str):
            self.access.toolbox(ctx.deps).kb.activity.cited(result.output)
        # there is no public way to add to it; without this one the report still stands in the part's own metadata
        state: Any = getattr(result, "_state", None)
        if self.report and state is not None:
            state.metadata = {**(result.metadata or {}), self.id or "knowledge": self.report}
        return result

    @property
    def _seconds(self) -> float:
        return CONTEXT_SECONDS if self.context_seconds is None else self.context_seconds

    def _room(self, deps: object) -> int:
        if self.context_tokens is not None:
            return self.context_tokens
        return self.access.toolbox(deps).kb.settings.context_tokens

    def _always(self, deps: object, text: str, seen: set[str]) -> Context:
        toolbox = self.access.toolbox(deps)
        behind = toolbox.freshener.ensure(FRESH_SECONDS)
        found = always_there(toolbox.kb, seen, self.access.clock(deps)())
        return Context(found.notes, [*behind, *found.degraded])

    def _matching(self, deps: object, text: str, seen: set[str]) -> Context:
        return matching(self.access.toolbox(deps).kb, text, seen, self.access.clock(deps)())


def _allowed_by_all(stated: Sequence[Knowledge]) -> Sequence[str] | None:
    named = [[one.tools] if isinstance(one.tools, str) else one.tools for one in stated if one.tools is not None]
    return [name for name in named[-1] if all(name in others for others in named)] if named else None
