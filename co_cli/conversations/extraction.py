"""Read new turns of conversations for facets, compare these with what is known, and propose or save them.

A batch of turns is one request to a model. Its facets and the line that was reached are stored in one transaction;
memories are written after that, from rows that wait for it. So a process may be killed at any point: the next one goes
on, loses nothing and writes nothing twice.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple, Protocol

from co_cli.activity import extracted
from co_cli.activity.extracted import FacetRow, ReadSoFar
from co_cli.conversations.facets import Facet, FacetBatch, Relation, checked, facet_id, folded, make_batch
from co_cli.ground.errors import KnowledgeError
from co_cli.ground.values import DAY, content_hash
from co_cli.notes.files import locked
from co_cli.notes.logbook import logger
from co_cli.notes.note import Note, read_note
from co_cli.notes.secrets import redact
from co_cli.notes.similarity import fingerprint
from co_cli.notes.transcripts import SpokenTurn, read_turns
from co_cli.saving.proposals import entities_named, save_waiting
from co_cli.saving.writer import VaultWriter
from co_cli.vault.lookup import open_note
from co_cli.vault.vault import Vault, sync_vault

LOCK = "extract.lock"
MOST_TURNS, MOST_LETTERS, BEFORE = 12, 8_000, 4
"""Of one batch, and turns before it that the model sees."""
BUDGET = 50_000
"""Tokens that one call may spend."""
DAILY_BUDGET = 200_000
"""Tokens that a vault may spend in 24 hours."""
LETTERS_A_TOKEN, OVERHEAD = 3, 1_500
"""To estimate what a request costs before it is made."""
OVER = 600.0
"""Seconds without a new turn, after which a conversation is over and what is left of it is read."""
GIVE_UP = 3
"""Useless answers to a batch, after which it is left out."""
SURE = 0.5
"""The least confidence with which a facet is saved without being asked about."""

log = logger("extraction")


class KnownMemory(NamedTuple):
    """A memory that a facet is compared with."""

    ref: str
    text: str


class Reply(NamedTuple):
    """What a model answered, and what it took: a model may be asked again to correct itself."""

    value: Any
    tokens: int
    requests: int = 1


class UselessAnswerError(KnowledgeError):
    """A model answered with something else than what it was asked for, such as a refusal."""

    def __init__(self, problem: str, tokens: int, requests: int) -> None:
        super().__init__(problem)
        self.tokens, self.requests = tokens, requests


class Extractor(Protocol):
    """A model that reads turns. Raises UselessAnswerError, or another KnowledgeError if it cannot be asked."""

    name: str

    def extract(self, batch: FacetBatch) -> Reply:
        """A list of Facet."""
        ...

    def compare(self, pairs: Sequence[tuple[str, Sequence[KnownMemory]]]) -> Reply:
        """For each text, in order: a Relation, and the ref of the memory that it is about."""
        ...


class Extraction(NamedTuple):
    """What one call did."""

    proposed: list[FacetRow]
    saved: list[FacetRow]
    noted: list[FacetRow]
    """Feedback."""
    known: int = 0
    refused: int = 0
    tokens: int = 0
    requests: int = 0
    batches: int = 0
    """Batches of turns that were read."""
    problem: str = ""
    """Why it stopped early."""
    unsaved: Sequence[str] = ()
    """Memories that cannot be written now, each with the reason."""


def extract(
    vault: Vault, model: Extractor, tokens: int = BUDGET, least: int = 1, everything: bool = False
) -> Extraction:
    """Read what was said since the last time, in conversations that were captured here, or with `everything` in all.

    `least` is how many new turns of a conversation that goes on make it worth asking. A second process that does the
    same has nothing to do.
    """
    started = time.time()
    os.makedirs(vault.settings.data_dir, exist_ok=True)
    with locked(os.path.join(vault.settings.data_dir, LOCK)):
        sync_vault(vault, seconds=0)
        with vault.activity.written().writing() as connection:
            extracted.drop_gone(connection)
        reading = _Reading(vault, model, tokens)
        reading.unsaved = save_waiting(vault)
        for path in _conversations(vault, everything):
            if not reading.read(path, least):
                break
    with vault.activity.written().reading() as connection:
        found = [row for row in extracted.facets(connection, vault.root) if row.at >= started]
    by_state = {
        state: [row for row in found if row.state == state] for state in ("proposed", "saved", "noted", "known")
    }
    return Extraction(
        by_state["proposed"],
        by_state["saved"],
        by_state["noted"],
        len(by_state["known"]),
        reading.refused,
        reading.tokens,
        reading.requests,
        reading.batches,
        reading.problem,
        reading.unsaved,
    )


class _Reading:
    """Reading of conversations, until the budget is spent or the model fails."""

    def __init__(self, vault: Vault, model: Extractor, budget: int) -> None:
        self._vault, self.model = vault, model
        self.tokens = self.requests = self.refused = self.batches = 0
        self.problem, self.unsaved = "", list[str]()
        with vault.activity.written().reading() as connection:
            spent = extracted.cost(connection, vault.root, time.time() - DAY).tokens
        self.budget = max(0, min(budget, DAILY_BUDGET - spent))

    def read(self, path: str, least: int) -> bool:
        """Read a conversation to its end. False: stop."""
        note = read_note(path, self._vault.store.read(path))
        while True:
            with self._vault.activity.database.writing() as connection:
                reached = extracted.progress(connection, self._vault.root, path)
            turns = read_turns(note.body, note.body_line)
            if reached.line and reached.hash != _hash_to(note, reached.line):
                reached = ReadSoFar()  # somebody edited what was read; facets that are known are not added again
            new = [turn for turn in turns if turn.line - note.body_line >= reached.line]
            over = bool(new) and time.time() - (new[-1].at or 0.0) > OVER
            if len(new) < (1 if over else max(least, 1)):
                return True
            chosen = _first_of(new)
            first = turns.index(chosen[0])
            shown = turns[max(0, first - BEFORE) : first + len(chosen)]
            batch = make_batch(note.ref, note.title, note.metadata, shown, len(chosen))
            if self.tokens + _estimate(shown) > self.budget:
                self.problem = f"the budget of {self.budget:,} tokens is used up: the rest is read later"
                return False
            if not self._read_batch(note, batch, reached):
                return False

    def _read_batch(self, note: Note, batch: FacetBatch, reached: ReadSoFar) -> bool:
        """Ask about a batch, and store what was found. False: the model cannot be asked now."""
        last = batch.turns[-1].last
        after = ReadSoFar(last - note.body_line + 1, _hash_to(note, last - note.body_line + 1))
        rows: list[FacetRow] = []
        problem, refused, before = None, 0, self.tokens
        try:
            found = self._facets(batch) if any(map(batch.is_person, batch.turns)) else []
            kept = [facet for facet in found if not isinstance(facet, str)]
            refused = len(found) - len(kept)
            rows = self._compared(note, batch, kept)
            self.batches += 1
        except UselessAnswerError as error:
            self._count(error)
            problem, failures = str(error), reached.failures + 1
            if failures < GIVE_UP:
                after = reached._replace(failures=failures)
            log.warning("%s, lines %d-%d: %s", note.path, batch.turns[0].line, last, problem)
        except KnowledgeError as error:
            problem, after = str(error), reached
        self.refused += refused
        with self._vault.activity.database.writing() as connection:
            added = extracted.put(connection, self._vault.root, note.path, after, rows)
            about = {"model": self.model.name, "tokens": self.tokens - before, "facets": len(added)}
            extracted.log(connection, self._vault.root, at=time.time(), refused=refused, problem=problem, **about)
        self.unsaved = save_waiting(self._vault)
        if after.line == reached.line:
            self.problem = problem or ""
            return False
        return True

    def _count(self, answer: Reply | UselessAnswerError) -> None:
        self.tokens, self.requests = self.tokens + answer.tokens, self.requests + answer.requests

    def _facets(self, batch: FacetBatch) -> list[Facet | str]:
        reply = self.model.extract(batch)
        self._count(reply)
        found = [checked(facet, batch) for facet in reply.value]
        for facet, why in zip(reply.value, found, strict=True):
            if isinstance(why, str):
                log.info("%s, lines %d-%d: a facet was refused: %s", batch.ref, facet.first, facet.last, why)
        return found

    def _compared(self, note: Note, batch: FacetBatch, facets: Sequence[Facet]) -> list[FacetRow]:
        """The facets as rows, each with what is known already."""
        conversation = str(note.metadata.get("session") or note.path)
        facets = [facet._replace(text=redact(facet.text), name=redact(facet.name or "")) for facet in facets]
        related = [self._known(facet) if facet.kind != "feedback" else [] for facet in facets]
        relations: list[tuple[Relation, str | None]] = [("new", None)] * len(facets)
        unclear: list[int] = []
        for place, (facet, known) in enumerate(zip(facets, related, strict=True)):
            same = next((memory for memory in known if fingerprint(memory.text) == fingerprint(facet.text)), None)
            if same:
                relations[place] = "same", same.ref
            elif known:
                unclear.append(place)
        if unclear:
            reply = self.model.compare([(facets[place].text, related[place]) for place in unclear])
            self._count(reply)
            for place, (relation, ref) in zip(unclear, reply.value, strict=False):
                shown = [memory.ref for memory in related[place]]
                ref = shown[0] if ref is None and len(shown) == 1 else ref  # it can mean no other
                if relation != "new" and ref in shown:
                    relations[place] = relation, ref
        return [
            self._row(note, batch, facet, (facet_id(conversation, facet), *relation))
            for facet, relation in zip(facets, relations, strict=True)
        ]

    def _known(self, facet: Facet) -> list[KnownMemory]:
        notes = [open_note(self._vault, note.ref) for note in VaultWriter(self._vault).related(facet.text)]
        return [KnownMemory(note.ref, note.body.strip()) for note in (*notes, *entities_named(self._vault, facet.name))]

    def _row(self, note: Note, batch: FacetBatch, facet: Facet, about: tuple[str, Relation, str | None]) -> FacetRow:
        id, relation, known = about
        # what the user wrote is replaced only by the user
        replaces = relation == "changed" and open_note(self._vault, str(known)).provenance != "user"
        sure = (relation == "new" or replaces) and facet.spoken and facet.confidence >= SURE
        saves = self._vault.settings.capture == "save" and sure and note.metadata.get("provenance") != "import"
        state = "waiting" if saves or facet.kind == "feedback" else "known" if relation == "same" else "proposed"
        turn = next(turn for turn in batch.turns if turn.last >= facet.first)
        detail: dict[str, Any] = {
            "confidence": facet.confidence,
            "speaker": turn.speaker,
            "relation": relation,
            "known": known,
            "name": facet.name or None,
            "valid_from": facet.valid_from,
            "valid_until": facet.valid_until,
        }
        if facet.kind == "feedback":
            turns = [*batch.before, *batch.turns]
            place = turns.index(turn)
            answer = next((earlier for earlier in turns[:place][::-1] if batch.is_answer(earlier)), None)
            asked = (
                [earlier.text for earlier in turns[: turns.index(answer)] if batch.is_person(earlier)] if answer else []
            )
            logged = asked and self._vault.settings.query_log == "on"  # else no database keeps a question
            detail |= {
                "feeling": facet.feeling or "correction",
                "given": list(answer.given) if answer else [],
                "question": redact(asked[-1])[:500] if logged else None,
            }
        detail = {name: value for name, value in detail.items() if value is not None}
        said, lines = (facet.kind, facet.text, folded(facet.text)), (facet.first, facet.last)
        return FacetRow(id, note.path, time.time(), *said, *lines, detail, state, known)


def _conversations(vault: Vault, everything: bool) -> Iterator[str]:
    with vault.activity.written().reading() as connection:
        captured = extracted.captured(connection, vault.root)
    notes = [note for note in vault.index.notes.all() if note.source == "conversation"]
    for note in sorted(notes, key=lambda note: (note.created, note.path)):
        if (everything or note.path in captured) and vault.store.exists(note.path):
            yield note.path


def _first_of(turns: Sequence[SpokenTurn]) -> list[SpokenTurn]:
    """A small batch: at least one turn."""
    chosen: list[SpokenTurn] = []
    for turn in turns[:MOST_TURNS]:
        if chosen and sum(len(said.text) for said in (*chosen, turn)) > MOST_LETTERS:
            break
        chosen.append(turn)
    return chosen


def _estimate(turns: Sequence[SpokenTurn]) -> int:
    return OVERHEAD + sum(min(len(turn.text), MOST_LETTERS) for turn in turns) // LETTERS_A_TOKEN


def _hash_to(note: Note, line: int) -> str:
    """A hash of the first lines of the body. The frontmatter may change."""
    return content_hash("\n".join(note.body.split("\n")[:line]).encode("utf-8", "replace"))
