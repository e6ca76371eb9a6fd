"""Feedback: record judgements of answers, and learn the balance of words and meaning from them.

The rule. A note that was judged good should rank above every other candidate, and above all a note that was judged
bad, which counts double. What a balance is worth is the mean of 1 / log2(1 + rank) of the good notes over the
questions; a question counts once, however often it was judged. The balance that is worth most is taken, in steps of
.01, within BOUND of the default; PULL keeps it there unless something is gained.

The check. The questions are split in five parts, and each is ranked by what the other four teach. These held-out
questions must not rank worse on average, and more of them must rank better than worse, beyond chance.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from math import exp, log2, sqrt
from typing import NamedTuple
from zlib import crc32

from co_cli.activity.events import place_of
from co_cli.activity.judgements import (
    Judgement,
    change_learned,
    clear_judgements,
    judgements,
    put_judgement,
    read_learned,
)
from co_cli.activity.query_log import fold, last_question
from co_cli.errors import InvalidInputError
from co_cli.knowledge_base import KnowledgeBase
from co_cli.notes.refs import without_lines
from co_cli.retrieval.profiles import DEFAULT
from co_cli.service.searching import learned_weights, ranking_of, settings_weights
from co_cli.values import to_utf8

BOUND = 0.15
STEP = 0.01
SOFT = 0.003
"""A difference of scores that hardly matters: to learn, ranks are smooth."""
PULL = 0.1
"""The cost of going all the way to the bound, in questions whose good note rises from nowhere to the first rank."""
ENOUGH, ENOUGH_QUESTIONS = 30.0, 10
"""Judgements, each with its weight, and questions that it takes to learn."""
AGAIN = 10
"""Further judgements after which weights are learned again automatically."""
CHANCE = 1.64
"""Standard deviations: one time in twenty, as many would get better for no reason."""
PARTS = 5
MOST_QUESTIONS = 200
"""The newest teach. Each of them is searched."""
WEIGHTS = {"said": 1.0, "cited": 0.3, "opened": 0.3}
"""What a judgement counts: somebody who opens a note may yet find that it is not the answer."""
CANDIDATES = 100
"""Hits that a judged note is compared with."""
VERDICTS = {"good": True, "bad": False}
DEFAULT_WEIGHTS = {name: DEFAULT.weights[name] for name in ("meaning", "words")}


class Candidate(NamedTuple):
    """A note that was ranked for a question, with the parts of its score: words and meaning as with a weight of 1."""

    ref: str
    words: float
    meaning: float
    rest: float


class JudgedQuestion(NamedTuple):
    """A question with its judgements, the last of each note, and its candidates, best first."""

    text: str
    judged: tuple[Judgement, ...]
    candidates: tuple[Candidate, ...] = ()


class Lesson(NamedTuple):
    """What the judgements teach, and whether it passes the check."""

    meaning: float
    """The weight of meaning that was learned; words have the rest of 1."""
    kept: bool
    why: str
    judgements: float
    """How many were used, each counted with its weight."""
    questions: int
    before: float | None = None
    """The score of the current weights, 0 to 1; `after`: of the learned ones; `held_…`: on held-out questions."""
    after: float | None = None
    held_before: float | None = None
    held_after: float | None = None


class FeedbackReceipt(NamedTuple):
    """The result of one rating."""

    ref: str
    title: str
    verdict: str
    query: str | None
    """The question it was about; None: the note alone."""
    rank: int | None
    """Where the default weights rank the note; None: not among the first hundred, or no question."""
    good: int
    """How often the note was judged good, this time included."""
    bad: int
    judgements: float
    lesson: Lesson | None = None
    """What was learned, if it was time to."""

    @property
    def applied(self) -> bool:
        return self.lesson is not None and self.lesson.kept


class Tuning(NamedTuple):
    """A vault's weights, and what its judgements teach."""

    learn: str
    """The setting: on, off or ask."""
    default: dict[str, float] | None
    """None: there are no vectors."""
    settings: dict[str, float] | None
    """Weights of the settings, which win."""
    learned: dict[str, float] | None
    lesson: Lesson
    said: int
    implied: int
    """Judgements inferred from use."""

    @property
    def in_use(self) -> dict[str, float] | None:
        return self.settings or (self.learned if self.learn != "off" else None) or self.default


def judge(kb: KnowledgeBase, ref: str, verdict: str, query: str | None = None) -> FeedbackReceipt:
    """Record a verdict on a note as the answer to a question; by default the last one that it answered."""
    if verdict not in VERDICTS:
        raise InvalidInputError(f"a verdict is good or bad, not {verdict!r}")
    query = to_utf8(query).strip() if query is not None else None
    if query == "":
        raise InvalidInputError("the query is empty: give the question that the note was found with, or leave it out")
    note = kb.note(ref)
    place = place_of(kb.file_of(note.ref), (kb.root, *(origin.root for origin in kb.index.linked)))
    with kb.activity.written().writing() as connection:
        if kb.settings.query_log != "on":
            query = None  # not even a hash: a short question can be guessed from it
        elif query is None:
            query = last_question(connection, kb.root, [note.ref], time.time())
        judgement = Judgement(note.ref, query, VERDICTS[verdict])
        good, bad = put_judgement(connection, kb.root, place, judgement, time.time())
        questions = questions_of(judgements(connection, kb.root))
    refs = [one.ref for one in rank_candidates(kb, query)] if query else []
    rank = refs.index(note.ref) + 1 if note.ref in refs else None
    count = _weight(questions) if kb.embedders.space else 0.0
    receipt = FeedbackReceipt(note.ref, note.title, verdict, query, rank, good, bad, count)
    row = read_learned(kb.settings.data_dir).get(kb.root) or {"judgements": ENOUGH - AGAIN}
    again = row["judgements"]  # None after a reset
    if kb.settings.learn != "on" or count < ENOUGH or again is None or count < again + AGAIN:
        return receipt
    return receipt._replace(lesson=tune(kb, apply=True, automatic=True).lesson)


def tune(kb: KnowledgeBase, apply: bool = False, automatic: bool = False) -> Tuning:
    """Learn from all judgements. With `apply`, weights that pass the check are used from now on."""
    with kb.activity.written().writing() as connection:
        rows = judgements(connection, kb.root)
    said = sum(row.how == "said" for row in rows)
    counts, explicit = (said, len(rows) - said), settings_weights(kb.settings)
    if kb.embedders.space is None:
        lesson = Lesson(0.0, False, "there are no vectors to weigh words against", 0.0, 0)
        return Tuning(kb.settings.learn, None, explicit, None, lesson, *counts)
    questions = questions_of(rows)
    if _weight(questions) >= ENOUGH:
        questions = [one._replace(candidates=rank_candidates(kb, one.text)) for one in questions]
    learned = learned_weights(kb, even_if_off=True)
    lesson = learn(questions, DEFAULT_WEIGHTS["meaning"], learned["meaning"] if learned else None)
    if apply and (lesson.kept or automatic):
        learned = weights_of(lesson.meaning) if lesson.kept else learned
        row = {"ranking": ranking_of(kb), "meaning": learned and learned["meaning"], "judgements": _weight(questions)}
        change_learned(kb.settings.data_dir, lambda known: known.update({kb.root: row}))
    return Tuning(kb.settings.learn, DEFAULT_WEIGHTS, explicit, learned, lesson, *counts)


def reset(kb: KnowledgeBase) -> bool:
    """Back to the default weights, until somebody applies others. Judgements stay. False: there was nothing to undo."""
    learned = learned_weights(kb, even_if_off=True)
    row = {"ranking": None, "meaning": None, "judgements": None}
    change_learned(kb.settings.data_dir, lambda known: known.update({kb.root: row}))
    return learned is not None


def clear(kb: KnowledgeBase) -> int:
    """Delete all judgements of this vault, and what was learned from them. Returns how many there were."""
    change_learned(kb.settings.data_dir, lambda known: known.pop(kb.root, None))
    with kb.activity.written().writing() as connection:
        return clear_judgements(connection, kb.root)


def weights_of(meaning: float) -> dict[str, float]:
    return {"meaning": meaning, "words": round(1 - meaning, 4)}


def questions_of(rows: Sequence[Judgement]) -> list[JudgedQuestion]:
    """The newest questions for which some note was judged good. Bad notes alone do not say what should rank first."""
    found: dict[str, tuple[str, dict[str, Judgement]]] = {}
    for row in rows:
        if row.query:
            found.setdefault(fold(row.query), (row.query, {}))[1][row.ref] = row
    questions = [JudgedQuestion(text, tuple(judged.values())) for text, judged in found.values()]
    return [one for one in questions if any(row.good for row in one.judged)][-MOST_QUESTIONS:]


def rank_candidates(kb: KnowledgeBase, query: str, meaning: float | None = None) -> tuple[Candidate, ...]:
    """The candidates for a question, ranked by the default weight of meaning or by another, for an experiment."""
    if kb.embedders.space is None:
        return ()
    weights = DEFAULT_WEIGHTS if meaning is None else weights_of(meaning)
    found = kb.search(query, CANDIDATES, backend="hybrid", profile="default", weights=weights)
    candidates: list[Candidate] = []
    for hit in found.hits:
        parts = {name: hit.signals.get(name, 0.0) for name in DEFAULT_WEIGHTS}
        rest = sum(hit.signals.values()) - sum(parts.values())
        unit = {name: part / weights[name] if weights[name] else 0.0 for name, part in parts.items()}
        candidates.append(Candidate(without_lines(hit.ref), unit["words"], unit["meaning"], rest))
    return tuple(candidates)


def learn(questions: Sequence[JudgedQuestion], default: float, present: float | None = None) -> Lesson:
    """The weight of meaning that these judgements teach; `present` is the one in use, if not the default."""
    present = default if present is None else present
    weight = _weight(questions)
    if weight < ENOUGH:
        return Lesson(present, False, f"{weight:g} of the {ENOUGH:g} ratings needed to learn", weight, len(questions))
    rivals = {one.text: found for one in questions if (found := _rivals(one))}
    if len(rivals) < ENOUGH_QUESTIONS:
        why = f"they are about {len(rivals)} of the {ENOUGH_QUESTIONS} questions that it takes"
        return Lesson(present, False, why, weight, len(rivals))
    texts = sorted(rivals, key=lambda text: (crc32(text.encode("utf-8", "replace")), text))
    contests = [rivals[text] for text in texts]
    steps = round(BOUND / STEP)
    tried = [round(default + STEP * step, 4) for step in range(-steps, steps + 1)]
    tried = [meaning for meaning in tried if 0 <= meaning <= 1]
    curves = [[_worth(one, meaning, SOFT) for meaning in tried] for one in contests]

    def best(curves: Sequence[Sequence[float]]) -> float:
        def gain(place: int) -> tuple[float, float]:
            away = abs(tried[place] - default)
            return round(sum(curve[place] for curve in curves) - PULL * (away / BOUND) ** 2, 9), -away

        return tried[max(range(len(tried)), key=gain)]

    meaning = best(curves)
    held: list[tuple[float, float]] = []
    for part in range(PARTS):
        others = best([curve for place, curve in enumerate(curves) if place % PARTS != part])
        held += [(_worth(one, present), _worth(one, others)) for one in contests[part::PARTS]]
    better, worse = (sum(sign * (new - old) > 1e-9 for old, new in held) for sign in (1, -1))
    before, after = (_mean([_worth(one, weight) for one in contests]) for weight in (present, meaning))
    held_before, held_after = _mean([old for old, _ in held]), _mean([new for _, new in held])
    kept = False
    if after <= before:
        why = "other weights rank the judged notes no better"
    elif held_after < held_before or not better or better - worse < CHANCE * sqrt(better + worse):
        why = f"of held-out questions, {better} better and {worse} worse is no more than chance"
    else:
        kept, why = True, f"of held-out questions, {better} got better and {worse} worse"
    return Lesson(meaning, kept, why, weight, len(rivals), before, after, held_before, held_after)


def _mean(values: Sequence[float]) -> float:
    return round(sum(values) / len(values), 4)


def _weight(questions: Sequence[JudgedQuestion]) -> float:
    return round(sum(WEIGHTS.get(one.how, 0.0) for question in questions for one in question.judged), 1)


Rival = tuple[float, float, float]
"""What another note counts, and how far the good one is above it: without meaning, and more for each unit of it."""


def _rivals(question: JudgedQuestion) -> list[tuple[float, list[Rival]]]:
    """What each good note of a question counts, and the candidates that were not judged good."""
    good, bad = ({one.ref for one in question.judged if one.good == verdict} for verdict in (True, False))
    candidates = {one.ref: one for one in reversed(question.candidates)}
    others = [one for one in candidates.values() if one.ref not in good]
    found: list[tuple[float, list[Rival]]] = []
    for judgement in question.judged:
        mine = candidates.get(judgement.ref)
        if judgement.good and mine and others:
            rivals: list[Rival] = []
            for one in others:
                words, meaning, rest = (a - b for a, b in zip(mine[1:], one[1:], strict=True))
                rivals.append((2.0 if one.ref in bad else 1.0, words + rest, meaning - words))
            found.append((WEIGHTS.get(judgement.how, 0.0), rivals))
    return found


def _worth(good: Sequence[tuple[float, list[Rival]]], meaning: float, soft: float = 0.0) -> float:
    """What a weight of meaning is worth for one question: 1 if every good note ranks first."""
    won = 0.0
    for weight, rivals in good:
        above = sum(counts * _above(base + slope * meaning, soft) for counts, base, slope in rivals)
        won += weight / log2(2 + above)
    return won / sum(weight for weight, _ in good)


def _above(difference: float, soft: float) -> float:
    """Whether the other note ranks above: 0 or 1, or something between if smooth."""
    return 1 / (1 + exp(max(-50.0, min(50.0, difference / soft)))) if soft else float(difference < 0)
