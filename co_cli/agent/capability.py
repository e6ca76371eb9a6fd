"""Knowledge: the capability that gives any pydantic-ai agent a memory.

Tools to recall and to save, instructions when to use which, and notes that are added to the user's turn before a run.
Constructing it touches nothing: the first run or the first call opens the vault.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import KW_ONLY, dataclass, field, replace
from functools import cached_property
from typing import Any, Literal, get_args

import anyio
import anyio.to_thread
from pydantic_ai import Agent, CapabilityEvent, FunctionToolset, RunContext
from pydantic_ai.capabilities import AbstractCapability, PrefixTools
from pydantic_ai.exceptions import UserError
from pydantic_ai.messages import ModelMessage, TextContent, UserPromptPart
from pydantic_ai.run import AgentRunResult

from co_cli.agent.deps import PathLike
from co_cli.agent.facet_model import background
from co_cli.agent.injection import KEY, Seen, skill_for, spoken_turns, user_text, user_texts
from co_cli.agent.message_history import load_checkpoint, save_checkpoint
from co_cli.agent.toolset import VaultAccess, make_toolset
from co_cli.conversations.checkpoints import Checkpoint
from co_cli.entrance.knowledge_base import KnowledgeBase
from co_cli.entrance.local import LocalKnowledgeBase
from co_cli.ground.errors import KnowledgeError
from co_cli.notes.logbook import logger
from co_cli.notes.refs import without_lines
from co_cli.notes.transcripts import SpokenTurn
from co_cli.saving.turns import KeptSession, keep_turns
from co_cli.searching.context import ContextNote, WorkingSet
from co_cli.tools.budget import estimate_tokens
from co_cli.tools.fencing import unfenced
from co_cli.tools.guidance import instructions, vault_name
from co_cli.tools.prompt_notes import FENCED, is_unchanged, named_frame, render_notes
from co_cli.tools.toolbox import RESULT_TOKENS

FRESH_SECONDS = 0.3
"""How long a run waits for changed files to be indexed before it looks for notes; indexing continues meanwhile."""
CONTEXT_SECONDS = 2.0
"""How long a run waits for notes at all, as with an embedding server that does not answer."""
DEFAULT_ROOM = 1_000
"""Tokens for notes if the vault could not be opened in time to read its setting."""
SkillUse = Literal["off", "tools", "inject"]
SKILL_USES: tuple[SkillUse, ...] = get_args(SkillUse)
REASONS = {
    "always": "it is marked `loading: always`",
    "named": "the task asks by name about this entity, or about one that this names",
    "contextual": "it is marked `loading: contextual` and is about the task",
    "recalled": "a memory that is clearly about the task",
}


@dataclass(kw_only=True)
class ContextAddedEvent(CapabilityEvent, namespace="knowledge"):
    """In the run's event stream, before the first request: what was added to the user's turn, and what was not."""

    report: dict[str, Any] = field(default_factory=dict[str, Any])
    """`injected`, `cut`, `budget`, `degraded`, and `skill` if one was added."""


@dataclass
class Knowledge(AbstractCapability[Any]):
    """A memory and a library in Markdown files: `Agent("ollama:qwen3", capabilities=[Knowledge()])`.

    Works with any dependencies. If the run's are `CoDeps` and neither `vault` nor `knowledge_base` is given, their
    knowledge base is used.
    """

    vault: PathLike | None = None
    """The folder of notes; default: the project's or the user's own, as `co` finds it."""
    _: KW_ONLY
    data_dir: PathLike | None = None
    """Where search.db is, if not in the user's data folder."""
    knowledge_base: KnowledgeBase | None = None
    """One that is open already; you close it."""
    tools: Sequence[str] | None = None
    """Names of the tools that the agent gets; None: those of `default`."""
    read_only: bool = False
    """Leave out the tools that write."""
    approve_forget: bool = False
    """Pause for approval before a note is forgotten. The agent's output type must include `DeferredToolRequests`, or a
    handler must be attached."""
    context: bool = True
    """Add notes that are about the prompt to the user's turn, before the model is called."""
    context_tokens: int | None = None
    """Maximum length of these notes; None: the setting `context_tokens`."""
    context_seconds: float | None = None
    """How long a run waits for them; None: two seconds."""
    result_tokens: int = RESULT_TOKENS
    """Maximum length of a tool's answer."""
    skills: SkillUse = "off"
    """`tools`: find and load skills of the project, the user and configured folders, wherever there are any. `inject`:
    also add a skill that clearly fits to the user's turn."""
    private: bool = False
    """Keep nothing of what is said, whatever the setting `capture` says."""
    create: bool = False
    """Create the vault on first use if it does not exist."""
    server: str | None = None
    """The address of a `co serve`, instead of a vault on this machine."""
    token: str | None = field(default=None, repr=False)
    """For the server; None: the one in the variable CO_TOKEN."""
    id: str | None = "knowledge"
    tool_prefix: str = field(default="", repr=False)
    """What `prefix_tools` puts before the names of the tools."""

    @classmethod
    def combine(cls, capabilities: Sequence[AbstractCapability[Any]]) -> AbstractCapability[Any]:
        """Not merged, because one may forbid what the other allows."""
        raise UserError(
            f"two Knowledge capabilities have the id {capabilities[-1].id!r}: give each its own id, and one of them "
            "other tool names with .prefix_tools(...)"
        )

    @cached_property
    def access(self) -> VaultAccess:
        if self.skills not in SKILL_USES:
            raise UserError(f"skills must be one of {', '.join(SKILL_USES)}, not {self.skills!r}")
        tools, skills = (self.tools, self.read_only, self.result_tokens), self.skills != "off"
        place = (self.vault, self.data_dir, self.knowledge_base)
        return VaultAccess(*place, *tools, skills, self.create, self.server, self.token, self.tool_prefix)

    @cached_property
    def toolset(self) -> FunctionToolset[Any]:
        return make_toolset(self.access, self.approve_forget, self.id)

    def get_toolset(self) -> FunctionToolset[Any]:
        return self.toolset

    def prefix_tools(self, prefix: str) -> PrefixTools[Any]:
        """The same with other names of its tools, for an agent with two vaults; the instructions use these names."""
        return PrefixTools(wrapped=replace(self, tool_prefix=f"{prefix}_{self.tool_prefix}"), prefix=prefix)

    def get_instructions(self) -> Callable[[RunContext[Any]], str]:
        return lambda ctx: self.instruct(ctx.deps)

    def instruct(self, deps: object = None) -> str:
        """When to use which tool, and which vault they use, if it can be opened."""
        try:
            vault = self.access.toolbox(deps).vault
        except (KnowledgeError, UserError):  # the run says so
            vault = "a vault"
        return instructions([tool.name for tool in self.access.selected], self.context, vault, self.tool_prefix)

    def checkpoint(
        self,
        said: AgentRunResult[Any] | Sequence[ModelMessage],
        title: str | None = None,
        *,
        deps: object = None,
        **about: Any,
    ) -> Checkpoint:
        """Save a conversation to continue from: the result of a run, or messages.

        `about` is its `description`, `keywords` and `topics`; by default they come from the messages. Secrets are
        masked. `deps` are those of the run, if they have the knowledge base.
        """
        messages = said.all_messages() if isinstance(said, AgentRunResult) else said
        return save_checkpoint(self.access.kb(deps).local, messages, title, **about)

    def load(self, name: str, deps: object = None) -> list[ModelMessage]:
        """The messages of a checkpoint, for `message_history`. Refused if the user does not trust the vault."""
        return load_checkpoint(self.access.kb(deps).local, name)

    def __getstate__(self) -> dict[str, Any]:
        """Without what is opened on first use, so that it can be pickled and copied."""
        return {name: value for name, value in self.__dict__.items() if name not in ("access", "toolset")}

    async def before_run(self, ctx: RunContext[Any]) -> None:
        """Find the notes and the skill for the prompt, and add them to the user's turn as data."""
        text = user_text(ctx.prompt, ctx.messages)
        if text is None or not (self.context or self.skills == "inject"):
            return
        found = Additions(self.context_tokens or DEFAULT_ROOM)
        seconds = CONTEXT_SECONDS if self.context_seconds is None else self.context_seconds
        seen = Seen.in_messages(ctx.messages, self.tool_prefix)
        with ctx.tracer.start_as_current_span("add knowledge to the prompt") as span:
            with anyio.move_on_after(seconds) as limit:
                await anyio.to_thread.run_sync(self.find, ctx.deps, text, seen, found, abandon_on_cancel=True)
            if limit.cancelled_caught:
                found.degraded.append(f"not everything was searched: finding notes took longer than {seconds:g} s")
            part, report = self.finish(found)
            span.set_attribute("knowledge.notes", len(report.get("injected", ())))
            if ctx.trace_include_content:
                span.set_attribute("knowledge.report", json.dumps(report))
        for addition in (found.skill, part):
            if addition is not None:
                ctx.enqueue(addition)
        if part is not None:
            given = "\n".join(user_texts([part.content] if isinstance(part.content, str) else part.content))
            kb = self.access.kb(ctx.deps)
            kb.injected(report["injected"], ctx.conversation_id, ctx.run_id, prompt=text, given=given)
        await ctx.emit(ContextAddedEvent(report=report))

    def find(self, deps: object, text: str, seen: Seen, found: Additions) -> None:
        """Collect step by step in `found`, so that a run that cannot wait uses what is there."""
        toolbox = self.access.toolbox(deps)
        kb = toolbox.kb
        found.vault = vault_name(kb)
        found.room = kb.settings.context_tokens if self.context_tokens is None else self.context_tokens
        if self.skills == "inject":
            found.skill, found.skill_report = skill_for(kb, text, seen.skills, found.room)
        if not self.context:
            return
        found.degraded += toolbox.freshener.ensure(FRESH_SECONDS)
        always = kb.always_notes()
        found.notes += [note for note in always.notes if not is_unchanged(note, seen.notes)]
        found.degraded += always.degraded
        matching = kb.matching_notes(text, {*seen.refs, *(note.ref for note in always.notes)})
        # what is seen is known as fences spell it, which is not always how the index does
        found.notes += [note for note in matching.notes if unfenced(without_lines(note.ref)) not in seen.refs]
        found.degraded += matching.degraded

    def finish(self, found: Additions) -> tuple[UserPromptPart | None, dict[str, Any]]:
        """The part with the notes, and the report."""
        skill = {"skill": found.skill_report} if found.skill_report else {}
        if not self.context:
            return None, skill
        frame = named_frame(found.vault, f"{self.tool_prefix}read_note") if self.tool_prefix else FENCED
        text, report = render_notes(list(found.notes), found.room, frame)
        part = UserPromptPart([TextContent(text, metadata={KEY: report})]) if text else None
        return part, {**skill, **report, "degraded": list(found.degraded)}

    async def after_run(self, ctx: RunContext[Any], *, result: AgentRunResult[Any]) -> AgentRunResult[Any]:
        """Count the notes that the answer cites as used, and keep what was said if the user wants that."""
        kb = self.access.kb(ctx.deps)
        if isinstance(result.output, str):
            kb.cited(result.output, ctx.conversation_id, ctx.run_id)
        if not self.private and kb.captures:
            name = getattr(ctx.agent, "name", None) or kb.local.vault.opening.front_end
            session = KeptSession(ctx.conversation_id or ctx.run_id or "", name)
            await anyio.to_thread.run_sync(keep_said, kb.local, session, spoken_turns(result.new_messages()))
        return result


@dataclass
class Additions:
    """What was found for a prompt so far."""

    room: int
    vault: str = ""
    notes: list[ContextNote] = field(default_factory=list[ContextNote])
    degraded: list[str] = field(default_factory=list[str])
    skill: UserPromptPart | None = None
    skill_report: dict[str, Any] = field(default_factory=dict[str, Any])


def keep_said(kb: LocalKnowledgeBase, session: KeptSession, turns: Sequence[SpokenTurn]) -> None:
    """Keep turns, and read them for facets in the background. A run never fails because of it."""
    try:
        background.notice(kb, keep_turns(kb.vault, session, turns).added if turns else 0)
    except KnowledgeError as error:
        logger("capture").warning("what was said is not kept: %s", error)


def working_set(kb: KnowledgeBase, task: str, context_tokens: int | None = None) -> WorkingSet:
    """For this task as the first prompt; an empty one gets the notes that are always added. Nothing is recorded."""
    given = Knowledge(knowledge_base=kb, context_tokens=context_tokens)
    found = Additions(DEFAULT_ROOM)
    given.find(None, task, Seen.in_messages([]), found)
    part, report = given.finish(found)
    report: dict[str, Any] = {"warnings": [], **report}
    titles = {note.ref: note.title for note in found.notes}
    for note in (*report["injected"], *report["cut"]):
        note |= {"title": titles[note["ref"]], "reason": REASONS[note["why"]]}
    content = part.content[0] if part else ""
    knowledge = content.content if isinstance(content, TextContent) else ""
    tools = {
        tool.name: estimate_tokens(f"{tool.name} {tool.description} {tool.parameters}")
        for tool in given.access.selected
    }
    instructed = given.instruct()
    return WorkingSet(instructed, estimate_tokens(instructed), tools, knowledge, estimate_tokens(knowledge), report)


agent: Agent[object, str] = Agent(
    name="co", instructions="You are a helpful assistant. Answer briefly.", capabilities=[Knowledge()]
)
"""Ready to use: `clai --agent co_cli.agent:agent --model ollama:qwen3`. It has no model of its own."""
