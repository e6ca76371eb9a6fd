"""Feedback: judgements of answers kept, weights learned from them, and those put where a search finds them.

Judgements are replayed on the candidates as they were ranked, by the default profile and the default weights of the
vectors in use. What use implies is written down without them, and gets them when somebody next learns.
"""

from __future__ import annotations

import time
from typing import NamedTuple

from co_cli.activity.background import write_now
from co_cli.activity.database import available
from co_cli.activity.events import place_of
from co_cli.activity.feedback import (
    Judged,
    Ranked,
    Tuning,
    asked_lately,
    clear_judgements,
    fill,
    judgements,
    put_judgement,
    put_tuning,
    said_of,
    tunings,
)
from co_cli.activity.query_log import fold
from co_cli.activity.versions import document_id, vault_id
from co_cli.errors import InvalidInputError
from co_cli.knowledge_base import KnowledgeBase
from co_cli.notes.refs import without_lines
from co_cli.retrieval.profiles import DEFAULT
from co_cli.service.learned import learned_weights, write_learned
from co_cli.service.learning import (
    ENOUGH,
    WEIGHTS,
    Candidate,
    Judgement,
    Lesson,
    Weights,
    candidates,
    count,
    learn,
)
from co_cli.service.searching import settings_weights
from co_cli.values import to_utf8

SHOWN = 20
"""Candidates that are kept of each ranking."""
LOOKED_THROUGH = 100
"""Hits among which the judged note is looked for."""
AGAIN = 10
"""Judgements after which weights are learned anew by themselves."""
FILLED = 200
"""Judgements implied by use that are given their candidates at a time."""
VERDICTS = {"good": True, "bad": False}


class Receipt(NamedTuple):
    """What became of one judgement."""

    ref: str
    title: str
    verdict: str
    query: str | None
    """The question it was about; None: the note alone."""
    rank: int | None
    """Where the default weights rank the note for it; None: not among the first hundred, or of no question."""
    good: int
    """How often the note was called good, and bad, this time included."""
    bad: int
    judgements: float
    """That can be learned from, each with its weight."""
    lesson: Lesson | None = None
    """If it was time to learn: what came of it."""
    applied: bool = False


class Shown(NamedTuple):
    """A question, ranked by the default weights."""

    ranked: Ranked
    shown: tuple[Candidate, ...]
    rank: int | None


class State(NamedTuple):
    """How a vault's weights stand."""

    learn: str
    """The setting: on, off or ask."""
    space: str | None
    default: Weights | None
    """Of the vectors in use; None: there are none."""
    explicit: Weights | None
    """Of a person's settings, which win; None: they say nothing."""
    learned: Weights | None
    """Those applied now."""
    lesson: Lesson
    said: int
    implied: int
    """Judgements concluded from use."""
    silent: int
    """Judgements that teach nothing: of no question, of a note that was not found, or of other vectors."""
    history: list[Tuning]
    """Newest first."""

    @property
    def in_use(self) -> Weights | None:
        return self.explicit or (self.learned if self.learn != "off" else None) or self.default


def judge(kb: KnowledgeBase, ref: str, verdict: str, query: str | None = None) -> Receipt:
    """Write down what somebody says of a note as an answer to a question, by default to the last that it answered."""
    if verdict not in VERDICTS:
        raise InvalidInputError(f"a verdict is good or bad, not {verdict!r}")
    query = to_utf8(query).strip() if query is not None else None
    if query is not None and not query:
        raise InvalidInputError("the query is empty: give the question that the note was found with, or leave it out")
    note = kb.note(ref)
    place = place_of(kb.file_of(note.ref), (kb.root, *(origin.root for origin in kb.index.beside)))
    database, now = kb.activity.database, time.time()
    kb.activity.flush()
    write_now(kb.activity, [])  # what was spooled
    if kb.settings.query_log != "on":
        query = None  # not even a digest: a short question can be guessed from it
    elif query is None:
        with available(database.path), database.writing() as connection:
            query = asked_lately(connection, kb.root, [note.ref], now)
    shown = ranked_for(kb, query, note.ref) if query else None
    with available(database.path), database.writing() as connection:
        told = (query, fold(query or ""), shown.ranked if shown else None)
        put_judgement(connection, kb.root, place, note.ref, VERDICTS[verdict], "said", now, *told)
        document = document_id(connection, vault_id(connection, place[0])[0], place[1])
        good, bad = said_of(connection, document)
        rows, last = judgements(connection, kb.root), tunings(connection, kb.root, 1)
    space = _space(kb)
    usable = count(usable_of(rows, space[0])) if space else 0.0
    receipt = Receipt(note.ref, note.title, verdict, query, shown.rank if shown else None, good, bad, usable)
    if kb.settings.learn != "on" or not _time_to_learn(usable, last):
        return receipt
    state = tune(kb, apply=True, by_itself=True)
    return receipt._replace(lesson=state.lesson, applied=state.lesson.kept)


def _time_to_learn(usable: float, last: list[Tuning]) -> bool:
    """By itself, every so many judgements; not after somebody took the weights back."""
    if usable < ENOUGH:
        return False
    return not last or (last[0].what != "reset" and usable >= last[0].judgements + AGAIN)


def tune(kb: KnowledgeBase, apply: bool = False, by_itself: bool = False) -> State:
    """Learn from what there is. With `apply`, weights that passed the check are put in use."""
    space = _space(kb)
    database = kb.activity.database
    kb.activity.flush()
    write_now(kb.activity, [])
    with available(database.path), database.writing() as connection:
        rows, history = judgements(connection, kb.root), tunings(connection, kb.root)
    said = sum(row.how == "said" for row in rows)
    given = settings_weights(kb.settings)
    explicit = Weights(**given) if given else None
    if space is None:
        lesson = Lesson(0.0, False, "there are no vectors to weigh words against", 0.0, 0)
        return State(kb.settings.learn, None, None, explicit, None, lesson, said, len(rows) - said, len(rows), history)
    key, default = space
    rows = _filled(kb, rows)
    usable = usable_of(rows, key)
    found = learned_weights(kb.settings.data_dir, kb.root, key)
    present = Weights(**found) if found else None
    lesson = learn(usable, default.meaning, present.meaning if present else None)
    if apply and (lesson.kept or by_itself):
        weights = Weights(lesson.meaning, round(1 - lesson.meaning, 4))
        what = "applied" if lesson.kept else "refused"
        tuning = Tuning(time.time(), what, key, *weights, lesson.judgements, lesson.before, lesson.after)
        with available(database.path), database.writing() as connection:
            put_tuning(connection, kb.root, tuning)
        history = [tuning, *history]
        if lesson.kept:
            write_learned(kb.settings.data_dir, kb.root, key, weights)
            present = weights
    silent = len(rows) - len(usable)
    return State(kb.settings.learn, key, default, explicit, present, lesson, said, len(rows) - said, silent, history)


def reset(kb: KnowledgeBase) -> bool:
    """Back to the default weights, until somebody applies others. Judgements stay. False: there was nothing to undo."""
    space = _space(kb)
    present = learned_weights(kb.settings.data_dir, kb.root, space[0]) if space else None
    write_learned(kb.settings.data_dir, kb.root, "", None)
    if space:
        key, default = space
        database = kb.activity.database
        with available(database.path), database.writing() as connection:
            put_tuning(connection, kb.root, Tuning(time.time(), "reset", key, *default, 0.0, None, None))
    return present is not None


def clear(kb: KnowledgeBase) -> int:
    """Forget all judgements of this vault, and what was learned from them. Returns how many there were."""
    write_learned(kb.settings.data_dir, kb.root, "", None)
    kb.activity.flush()
    write_now(kb.activity, [])
    with available(kb.activity.database.path), kb.activity.database.writing() as connection:
        connection.pragma("secure_delete", 1)  # free pages would keep the words
        return clear_judgements(connection, kb.root)


def ranked_for(
    kb: KnowledgeBase, query: str, ref: str | None = None, *, meaning: float | None = None, outdated: bool = False
) -> Shown | None:
    """The first candidates for a question and the judged one, as the defaults rank them; None: not by meaning.

    `meaning` is another weight to rank by, for an experiment.
    """
    space = _space(kb)
    if space is None:
        return None
    key, default = space
    weights = default if meaning is None else Weights(meaning, round(1 - meaning, 4))
    found = kb.search(
        query, LOOKED_THROUGH, backend="hybrid", profile="default", weights=weights._asdict(), outdated=outdated
    )
    hits = [(without_lines(hit.ref), hit.signals) for hit in found.hits]
    if not any("meaning" in signals for _, signals in hits):
        return None
    rank = next((place for place, (one, _) in enumerate(hits, 1) if one == ref), None)
    kept = hits[:SHOWN] + ([hits[rank - 1]] if rank and rank > SHOWN else [])
    return Shown(Ranked(key, *weights, kept), candidates(kept, *weights), rank)


def usable_of(rows: list[Judged], space: str) -> list[Judgement]:
    """Judgements that teach something about these vectors."""
    found: list[Judgement] = []
    for row in rows:
        shown = row.candidates or []
        if row.folded and row.space == space and any(ref == row.ref for ref, _ in shown):
            told = candidates(shown, row.meaning or 0.0, row.words or 0.0)
            found.append(Judgement(row.folded, row.ref, row.good, WEIGHTS.get(row.how, 0.0), told))
    return found


def _filled(kb: KnowledgeBase, rows: list[Judged]) -> list[Judged]:
    """Those that use implied, with their candidates; the newest first, so many at a time."""
    waiting = [row for row in rows if row.candidates is None and row.query and row.how != "said"]
    for row in waiting[-FILLED:]:
        shown = ranked_for(kb, row.query or "", row.ref)
        if shown is not None:
            with available(kb.activity.database.path), kb.activity.database.writing() as connection:
                fill(connection, row.id, shown.ranked)
            rows[rows.index(row)] = row._replace(
                space=shown.ranked.space,
                meaning=shown.ranked.meaning,
                words=shown.ranked.words,
                candidates=shown.ranked.candidates,
            )
    return rows


def _space(kb: KnowledgeBase) -> tuple[str, Weights] | None:
    """The vectors in use and their default weights."""
    space = kb.embedders.space
    if space is None:
        return None
    return space.key, Weights(DEFAULT.weights["meaning"], DEFAULT.weights["words"])
