"""What an agent would be given for a prompt, for the page: the same as `co note context --json`."""

from __future__ import annotations

from collections.abc import Sequence

from pydantic import BaseModel, Field

from co_cli.knowledge_base import KnowledgeBase
from co_cli.server.routes import route
from co_cli.service.context import Context, WorkingSet, always_notes, matching_notes, untrusted_vaults


class GivenFor(BaseModel):
    """A prompt, and how much room there is."""

    prompt: str = ""
    """Without one, only notes that are always added."""
    tokens: int | None = Field(None, ge=1)
    """For notes; by default the setting `context_tokens`."""


class ContextFor(BaseModel):
    """A prompt of an agent that runs elsewhere."""

    prompt: str = ""
    """Without one, the notes that are always added."""
    seen: Sequence[str] = ()
    """Refs of notes that the agent has already."""


@route("POST", "/context", role="read")
def choose_notes(kb: KnowledgeBase, asked: ContextFor) -> Context:
    """Choose the notes that an agent elsewhere adds to a prompt."""
    return matching_notes(kb, asked.prompt, asked.seen) if asked.prompt else always_notes(kb)


@route("POST", "/given", role="read")
def show_given(kb: KnowledgeBase, asked: GivenFor) -> WorkingSet:
    """Show exactly what an agent would be given for a prompt, and why. No model is called; nothing is recorded."""
    from co_cli.agent.capability import working_set  # imports pydantic-ai, which `co web` does not wait for

    given = working_set(kb, asked.prompt.strip(), asked.tokens)
    given.report["warnings"] += untrusted_vaults(kb, given.report["degraded"])
    return given
