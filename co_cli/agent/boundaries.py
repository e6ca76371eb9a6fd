"""A language model proposes where to cut a document: it sees numbered lines and answers with line numbers.

passages_of(note, boundaries=ModelBoundaries("ollama:qwen3"))

Nothing that it writes gets into the index: a passage is always made of the document's own lines. An answer that leaves
lines out, takes some twice or makes a passage too long, one that comes too late, and a model that cannot be asked mean
that the document is cut without it, which is said once. Answers are kept, so that no document is asked about twice.
"""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Sequence

from pydantic import BaseModel
from pydantic_ai import Agent
from pydantic_ai.models import Model
from pydantic_ai.usage import UsageLimits

from co_cli.embedding.own_loop import OwnLoop
from co_cli.logbook import logger
from co_cli.notes.note import Note
from co_cli.notes.store import content_hash
from co_cli.sources.cutting import LONGEST
from co_cli.sources.passages import LONGEST_PROPOSED, Lines, what_is_wrong
from co_cli.tools.fencing import GUIDE, fence_note

SECONDS = 60.0
"""How long a model may take for one document."""
LONGEST_SHOWN = 60_000
"""Characters of a document; a longer one is cut without a model."""
LONGEST_LINE = 400
"""Characters of a line that the model gets to see."""
ENOUGH = 3
"""Failures in a row, after which it is not asked again."""
REQUESTS = 2
"""One answer, and one more try if that was not of the right form."""
PROMPT = 1
"""Another number makes kept answers count no more."""
INSTRUCTIONS = (
    "You cut a document into passages that are searched one by one, so each must make sense when it is read alone: one "
    "subject, with its heading and whatever introduces it. You see the document's lines, each with its number before "
    "the bar. Answer with the first and the last line of each passage, in order, so that every line is in exactly one "
    f"passage. A passage has 300 to 1,500 characters, never more than {LONGEST_PROPOSED:,}. Keep lists, tables and "
    f"code blocks whole. {GUIDE}"
)

log = logger("boundaries")


class Section(BaseModel):
    """The first and the last line of a passage, both included."""

    first: int
    last: int


class ModelBoundaries:
    """Boundaries from any model of pydantic-ai. `kept` is the file that remembers what it answered."""

    def __init__(self, model: Model | str, kept: str | None = None, seconds: float = SECONDS) -> None:
        self._model = model
        self._seconds = seconds
        self._file = kept
        self._answers: dict[str, list[Lines]] | None = None
        self._said: set[str] = set()
        self._failures = 0
        self._loop = OwnLoop("boundaries")

    def __call__(self, note: Note) -> Sequence[Lines] | None:
        if len(note.body) <= LONGEST or self._failures >= ENOUGH:
            return None  # short enough to be cut at its headings, or there is nobody to ask
        if len(note.body) > LONGEST_SHOWN:
            return self._without(note, "long", f"it has more than {LONGEST_SHOWN:,} characters")
        lines = note.body.split("\n")
        key = content_hash(f"{PROMPT}\n{self._name}\n{note.body}".encode("utf-8", "replace"))
        answers = self._kept()
        if key in answers:
            return answers[key]
        try:
            ranges = self._loop.run(asyncio.wait_for(self._ask(note, lines), self._seconds))
        except TimeoutError:
            self._failures += 1
            return self._without(note, "late", f"{self._name} took longer than {self._seconds:g} s")
        except Exception as error:  # whatever a provider's client raises: the document is cut all the same
            self._failures += 1
            return self._without(note, "failed", f"{self._name}: {' '.join(str(error).split())[:200]}")
        wrong = what_is_wrong(ranges, lines)
        if wrong:
            self._failures += 1
            return self._without(note, "wrong", f"{self._name} answered wrongly: {wrong}")
        self._failures = 0
        answers[key] = ranges
        self._keep(key, ranges)
        return ranges

    def close(self) -> None:
        self._loop.close()

    @property
    def _name(self) -> str:
        return self._model if isinstance(self._model, str) else self._model.model_name

    async def _ask(self, note: Note, lines: Sequence[str]) -> list[Lines]:
        agent: Agent[None, list[Section]] = Agent(self._model, output_type=list[Section], instructions=INSTRUCTIONS)
        shown = "\n".join(f"{number}| {_short(line)}" for number, line in enumerate(lines, 1))
        prompt = f"{fence_note(note.ref, note.title, note.provenance, shown)}\nThe lines are 1 to {len(lines)}."
        answer = await agent.run(prompt, usage_limits=UsageLimits(request_limit=REQUESTS))
        return [(section.first, section.last) for section in answer.output]

    def _without(self, note: Note, kind: str, reason: str) -> None:
        if kind not in self._said:
            self._said.add(kind)
            log.warning("%s is cut without a model: %s", note.path, reason)
        if self._failures == ENOUGH and "enough" not in self._said:
            self._said.add("enough")
            log.warning("%s is not asked again: it failed %d times in a row", self._name, ENOUGH)

    def _kept(self) -> dict[str, list[Lines]]:
        """What it answered before. A line that was torn by a crash is left out, and the document asked about again."""
        if self._answers is None:
            self._answers = {}
            if self._file and os.path.exists(self._file):
                with open(self._file, encoding="utf-8", errors="replace") as stream:
                    for line in stream:
                        try:
                            key, ranges = json.loads(line)
                            self._answers[str(key)] = [(int(first), int(last)) for first, last in ranges]
                        except (ValueError, TypeError):
                            log.debug("a torn line of %s", self._file)
        return self._answers

    def _keep(self, key: str, ranges: Sequence[Lines]) -> None:
        if self._file:
            os.makedirs(os.path.dirname(os.path.abspath(self._file)), exist_ok=True)
            with open(self._file, "a", encoding="utf-8") as stream:
                stream.write(json.dumps([key, ranges]) + "\n")


def _short(line: str) -> str:
    return line if len(line) <= LONGEST_LINE else f"{line[:LONGEST_LINE]} …"
