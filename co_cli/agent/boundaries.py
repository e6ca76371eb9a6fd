"""A language model proposes where to cut a document: it sees numbered lines and answers with line numbers.

    passages_of(note, boundaries=ModelBoundaries("ollama:qwen3"))

A passage always consists of the document's own lines. If the model fails, is late or leaves lines out, the document is
cut without it, with one warning. Answers are stored, so that no document is asked about twice.
"""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from pydantic import BaseModel

from co_cli.agent.models import problem_of
from co_cli.ground.errors import KnowledgeError
from co_cli.ground.event_loop import run_async
from co_cli.ground.values import content_hash
from co_cli.notes.logbook import logger
from co_cli.notes.note import Note
from co_cli.sources.passages import LONGEST, LONGEST_PROPOSED, Lines, what_is_wrong
from co_cli.tools.fencing import GUIDE, fence_note

if TYPE_CHECKING:
    from pydantic_ai.models import Model

SECONDS = 60.0
"""For one document."""
LONGEST_SHOWN = 60_000
"""Characters of a document; a longer one is cut without a model."""
LONGEST_LINE = 400
"""Characters of a line that the model sees."""
ENOUGH = 3
"""Failures in a row, after which the model is not asked again."""
NOT_ASKED = f"it failed {ENOUGH} times in a row and is not asked again"
PROMPT = 1
"""Change this number with the instructions: it makes stored answers invalid."""
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
    """Boundaries from any pydantic-ai model, or from one that a function makes when the first document needs it.

    `stored` is the file that keeps its answers.
    """

    def __init__(
        self, model: Model | str | Callable[[], Model], stored: str | None = None, seconds: float = SECONDS
    ) -> None:
        self._model, self._file, self._seconds = model, stored, seconds
        self._answers: dict[str, list[Lines]] | None = None
        self.problems: dict[str, int] = {}
        """Why documents were cut without the model, and how many."""
        self._failures = 0

    def __call__(self, note: Note) -> Sequence[Lines] | None:
        if len(note.body) <= LONGEST:
            return None
        if self._failures >= ENOUGH:
            return self._warn(note, NOT_ASKED)
        if len(note.body) > LONGEST_SHOWN:
            return self._warn(note, f"it has more than {LONGEST_SHOWN:,} characters")
        try:
            model = self._model = self._model() if callable(self._model) else self._model
            name = model if isinstance(model, str) else model.model_name
            key = content_hash(f"{PROMPT}\n{name}\n{note.body}".encode("utf-8", "replace"))
            answers = self._stored()
            if key not in answers:
                lines = note.body.split("\n")
                ranges = run_async(self._ask(model, note, lines), self._seconds)
                wrong = what_is_wrong(ranges, lines)
                if wrong:
                    raise ValueError(f"the model answered wrongly: {wrong}")
                answers[key] = ranges
                self._store(key, ranges)
            self._failures = 0
            return answers[key]
        except Exception as error:  # whatever a model's client raises: the document is cut all the same
            self._failures += 1
            return self._warn(note, self._reason(error))

    async def _ask(self, model: Model | str, note: Note, lines: Sequence[str]) -> list[Lines]:
        from pydantic_ai import Agent  # takes over a second
        from pydantic_ai.usage import UsageLimits

        shown = "\n".join(
            f"{number}| {line if len(line) <= LONGEST_LINE else f'{line[:LONGEST_LINE]} …'}"
            for number, line in enumerate(lines, 1)
        )
        prompt = f"{fence_note(note.ref, note.title, note.provenance, shown)}\nThe lines are 1 to {len(lines)}."
        agent: Agent[None, list[Section]] = Agent(model, output_type=list[Section], instructions=INSTRUCTIONS)
        answer = await agent.run(prompt, usage_limits=UsageLimits(request_limit=2))
        return [(section.first, section.last) for section in answer.output]

    def _reason(self, error: Exception) -> str:
        if isinstance(error, TimeoutError):
            return f"the model took longer than {self._seconds:g} s"
        if isinstance(error, KnowledgeError | ValueError) or callable(self._model):
            return " ".join(str(error).split())[:200]
        known = self._model if isinstance(self._model, str) else f"{self._model.system}:{self._model.model_name}"
        return problem_of(error, known, begun=False)

    def _warn(self, note: Note, reason: str) -> None:
        if reason not in self.problems:
            log.warning("%s is cut without a model: %s", note.path, reason)
        self.problems[reason] = self.problems.get(reason, 0) + 1

    def _stored(self) -> dict[str, list[Lines]]:
        """Earlier answers, without lines that a crash left incomplete."""
        if self._answers is None:
            self._answers = {}
            if self._file and os.path.exists(self._file):
                with open(self._file, encoding="utf-8", errors="replace") as stream:
                    for line in stream:
                        with contextlib.suppress(ValueError, TypeError):
                            key, ranges = json.loads(line)
                            self._answers[str(key)] = [(int(first), int(last)) for first, last in ranges]
        return self._answers

    def _store(self, key: str, ranges: Sequence[Lines]) -> None:
        if self._file:
            os.makedirs(os.path.dirname(os.path.abspath(self._file)), exist_ok=True)
            with open(self._file, "a", encoding="utf-8") as stream:
                stream.write(json.dumps([key, ranges]) + "\n")
