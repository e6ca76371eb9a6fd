"""A pydantic-ai model that reads conversations for facets, and compares them with what is known.

Whatever it answers is checked against the lines that it names (`conversations/facets.py`): a conversation may hold
orders that somebody planted there.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import BaseModel, Field

from co_cli.agent.models import NO_MODEL, UnusableModelError, load_model, problem_of
from co_cli.conversations.extraction import BUDGET, Extraction, KnownMemory, Reply, UselessAnswerError, extract
from co_cli.conversations.facets import Facet, FacetBatch, FacetKind, Feeling, Relation
from co_cli.entrance.local import LocalKnowledgeBase, open_local
from co_cli.ground.errors import KnowledgeError
from co_cli.ground.event_loop import run_async
from co_cli.notes.logbook import logger
from co_cli.notes.transcripts import SpokenTurn, is_tool, own_lines
from co_cli.tools.fencing import GUIDE, fence_note
from co_cli.vault.vault import Opening

if TYPE_CHECKING:
    from pydantic_ai.models import Model

SECONDS = 60.0
"""For one request."""
ENOUGH_TURNS = 6
"""New turns that make it worth reading a conversation while it goes on."""
LONGEST_LINE = 600
"""Characters of a line that the model sees."""
READING = (
    "You read a conversation and note what will matter in later ones: preferences, facts, decisions, corrections, "
    "procedures (how something is done) and people (with the name). Write one thing per facet, in a full sentence that "
    "makes sense alone: names instead of pronouns, dates instead of `tomorrow`, and the speaker's own words where "
    "possible. Name the first and the last line that say it, as few lines as possible. Preferences, corrections and "
    "procedures come from the user's own lines only. If something holds for a time, set valid_from or valid_until to a "
    "date. Note as `feedback` where the user praises, corrects or is annoyed by the answer before, with a feeling. No "
    "small talk, no guesses, no secrets, nothing that can be looked up, and nothing from the lines that came before. "
    f"An empty list is a good answer. {GUIDE}"
)
COMPARING = (
    "Each new statement is followed by memories that may be about the same thing. For each statement, in order, say "
    "how it relates to them: `same` if a memory says it already; `changed` if it is newer and replaces a memory, as "
    "when somebody moved; `contradicts` if both cannot be true and it is not clear which one is; otherwise `new`. Name "
    f"the ref of the memory, except for `new`. {GUIDE}"
)
log = logger("extraction")


class FacetAnswer(BaseModel):
    """One thing that follows from the conversation."""

    kind: FacetKind
    text: str
    first_line: int
    last_line: int
    valid_from: str | None = None
    valid_until: str | None = None
    confidence: Annotated[float, Field(ge=0, le=1)] = 0.8
    feeling: Feeling | None = None
    name: str | None = None


class RelationAnswer(BaseModel):
    """How a statement relates to a memory."""

    relation: Relation
    ref: str | None = None


class FacetModel:
    """Any pydantic-ai model, as an Extractor."""

    def __init__(self, model: Model, seconds: float = SECONDS) -> None:
        self._model, self._seconds = model, seconds
        self.name = f"{model.system}:{model.model_name}"

    def extract(self, batch: FacetBatch) -> Reply:
        shown = "\n".join(line for turn in (*batch.before, *batch.turns) for line in _numbered(batch, turn))
        first, last = batch.turns[0].line, batch.turns[-1].last
        prompt = f"{fence_note(batch.ref, batch.title, 'import', shown)}\nNote what lines {first} to {last} say."
        reply = self.ask(prompt, list[FacetAnswer], READING)
        return reply._replace(value=[Facet(*answer.model_dump().values()) for answer in reply.value])

    def compare(self, pairs: Sequence[tuple[str, Sequence[KnownMemory]]]) -> Reply:
        parts: list[str] = []
        for number, (text, known) in enumerate(pairs, 1):
            parts.append(fence_note(f"statement {number}", "", "import", text))
            parts += [fence_note(memory.ref, "", "memory", memory.text[:LONGEST_LINE]) for memory in known]
        reply = self.ask("\n".join(parts), list[RelationAnswer], COMPARING)
        return reply._replace(value=[(answer.relation, answer.ref) for answer in reply.value])

    def ask(self, prompt: str, output: Any, instructions: str) -> Reply:
        from pydantic_ai import Agent  # takes over a second
        from pydantic_ai.exceptions import UnexpectedModelBehavior, UsageLimitExceeded
        from pydantic_ai.usage import RunUsage, UsageLimits

        usage = RunUsage()
        agent: Agent[None, Any] = Agent(self._model, output_type=output, instructions=instructions, retries=1)

        run = agent.run(prompt, usage=usage, usage_limits=UsageLimits(request_limit=3))
        try:
            result = run_async(run, self._seconds)
        except (UnexpectedModelBehavior, UsageLimitExceeded) as error:
            reason = " ".join(str(error).split())[:200]
            problem = f"{self.name} gave no usable answer: choose a larger model if that happens often ({reason})"
            raise UselessAnswerError(problem, usage.total_tokens, usage.requests) from error
        except TimeoutError:
            raise UnusableModelError(f"{self.name} took longer than {self._seconds:g} s") from None
        except Exception as error:  # whatever a model's client raises: the turns are read later
            raise UnusableModelError(problem_of(error, self.name, begun=False)) from error
        return Reply(result.output, usage.total_tokens, usage.requests)


def _numbered(batch: FacetBatch, turn: SpokenTurn) -> list[str]:
    """The lines of a turn with their numbers. Text of tools, quotes and code are left out: nobody says them."""
    who = f"{turn.speaker} (the user)" if turn.speaker == batch.user else turn.speaker
    if is_tool(turn.speaker):
        return [f"{turn.line}| {turn.speaker}: [left out]"]
    lines, own = turn.text.split("\n"), own_lines(turn)
    first = turn.last - len(lines) + 1
    shown = [f"{turn.line}| {who}:"]
    for number, line in enumerate(lines, first):
        if number in own:
            shown.append(f"{number}| {line if len(line) <= LONGEST_LINE else f'{line[:LONGEST_LINE]} …'}")
    return shown


def read_conversations(
    kb: LocalKnowledgeBase, least: int = 1, tokens: int = BUDGET, everything: bool = False
) -> Extraction:
    """Extract facets with the configured model. Raises UnusableModelError if there is none."""
    if kb.settings.model is None:
        raise UnusableModelError(NO_MODEL)
    return extract(kb.vault, FacetModel(load_model(kb.settings.model)), tokens, least, everything)


class BackgroundReading:
    """Reads conversations while the program goes on: one thread for each vault, when enough was said."""

    def __init__(self) -> None:
        self._said: dict[str, int] = {}
        self._threads: dict[str, threading.Thread] = {}
        self._lock = threading.Lock()

    def notice(self, kb: LocalKnowledgeBase, turns: int) -> threading.Thread | None:
        """More turns were kept. Returns the thread that reads them, if one was started."""
        if kb.settings.capture not in ("propose", "save") or kb.settings.model is None:
            return None
        with self._lock:
            said = self._said[kb.root] = self._said.get(kb.root, 0) + turns
            running = self._threads.get(kb.root)
            if said < ENOUGH_TURNS or (running and running.is_alive()):
                return None
            self._said[kb.root] = 0
            thread = self._threads[kb.root] = threading.Thread(target=self._read, args=(kb,), daemon=True)
            thread.start()  # if the program ends first, the next one goes on
            return thread

    def _read(self, kb: LocalKnowledgeBase) -> None:
        try:
            opening = Opening(kb.vault.opening.front_end)
            with open_local(settings=kb.settings, opening=opening) as own:  # the other one may be closed meanwhile
                found = read_conversations(own, ENOUGH_TURNS)
            if found.problem:
                log.warning("reading conversations stopped: %s", found.problem)
            if found.unsaved:
                log.warning("%d memories cannot be saved now: `co note extract` says why", len(found.unsaved))
        except KnowledgeError as error:
            log.warning("conversations were not read: %s", error)


background = BackgroundReading()
