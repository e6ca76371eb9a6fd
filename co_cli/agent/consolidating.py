"""A language model that makes one memory out of several. What it writes is checked by who asks it."""

from __future__ import annotations

from collections.abc import Sequence

from pydantic import BaseModel, Field
from pydantic_ai import Agent
from pydantic_ai.models import Model

from co_cli.embedding.own_loop import OwnLoop
from co_cli.notes.moments import moment_text
from co_cli.notes.note import Note
from co_cli.service.consolidating import Rewrite
from co_cli.tools.fencing import GUIDE, fence_note

INSTRUCTIONS = (
    "You tidy up a memory. You get several notes that may say the same. Write the one note that can take their place: "
    "every fact of them, each once, in the notes' own words and language. Keep all numbers, names and dates. Add "
    "nothing that no note says. Where notes disagree, state the newest and say what held before. If they are about "
    f"different things, answer with an empty content. {GUIDE}"
)


class OneNote(BaseModel):
    """The note that takes the place of the others."""

    title: str = Field(description="A title of a few words that says what it states.")
    content: str = Field(description="The text, in Markdown; empty if the notes are better left apart.")


class ModelRewriter:
    """A rewriter over any model of pydantic-ai."""

    def __init__(self, model: Model | str) -> None:
        self._agent: Agent[None, OneNote] = Agent(model, output_type=OneNote, instructions=INSTRUCTIONS, retries=2)
        self._loop = OwnLoop("consolidate")

    def __call__(self, sources: Sequence[Note], /) -> Rewrite:
        notes = [
            fence_note(note.ref, note.title, note.provenance, note.body, created=_day(note.created)) for note in sources
        ]
        answer = self._loop.run(self._run("\n".join(notes)))
        return Rewrite(answer.title, answer.content)

    async def _run(self, prompt: str) -> OneNote:
        return (await self._agent.run(prompt)).output


def _day(moment: float | None) -> str:
    return "" if moment is None else moment_text(moment)[:10]
