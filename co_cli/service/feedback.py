"""Feedback: record ratings of answers, and learn the weights of words and meaning from them.

The rule. A note rated good should rank above all other candidates; a note rated bad counts double. A weight is worth
the mean of 1 / log2(1 + rank) of the good notes over the questions; each question counts once. The best weight is
taken, in steps of .01, within BOUND of the default; PULL keeps it there unless something is gained.

The check. The questions are split in five parts, and each is ranked by what the other four teach. These held-out
questions must not rank worse on average, and more of them must rank better than worse, beyond chance.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from math import log2, sqrt, tanh
from statistics import fmean
from typing import NamedTuple

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

BOUND, STEP, PARTS = 0.15, 0.01, 5
SOFT, EXACT = 0.003, 1e-9
"""A difference of scores that hardly matters. To learn, ranks are smooth; to check, they are exact."""
PULL = 0.1
"""The cost of going all the way to the bound, in questions whose good note rises from nowhere to the first rank."""
ENOUGH, ENOUGH_QUESTIONS, AGAIN = 30.0, 10, 10
"""Ratings, each with its weight, and questions needed to learn; and further ratings before it learns again."""
CHANCE = 1.64
"""Standard deviations: one time in twenty, as many would get better for no reason."""
MOST_QUESTIONS, CANDIDATES = 200, 100
"""The newest questions teach. Each is searched, and its good notes are compared with so many hits."""
WEIGHTS = {"said": 1.0, "cited": 0.3, "opened": 0.3}
"""What a rating counts: somebody who opens a note may yet find that it is not the answer."""
VERDICTS = {"good": True, "bad": False}
DEFAULT_WEIGHTS = {name: DEFAULT.weights[name] for name in ("meaning", "words")}


class Candidate(NamedTuple):
    """A note ranked for a question, with the parts of its score: words and meaning as with a weight of 1."""

    ref: str
    words: float
    meaning: float
    rest: float


class JudgedQuestion(NamedTuple):
    """A question with its ratings, the last of each note, and its candidates, best first."""

    text: str
    judged: tuple[Judgement, ...]
    candidates: tuple[Candidate, ...] = ()


class Lesson(NamedTuple):
    """What the ratings teach, and whether it passes the check."""

    meaning: float
    """The weight of meaning that was learned; words have the rest of 1."""
    kept: bool
    why: str
    judgements: float
    """How many were used, each counted with its weight."""
    questions: int
    before: float | None = None
    """The worth of the weights in use, 0 to 1; `after`: of the learned ones."""
    after: float | None = None


class FeedbackReceipt(NamedTuple):
    """The result of one rating."""

    ref: str
    title: str
    verdict: str
    query: str | None
    """The question it was about; None: the note alone."""
    rank: int | None
    """Where the default weights rank the note; None: not among the first hundred, or no question."""
    judgements: float
    lesson: Lesson | None = None
    """What was learned, if it was time to."""

    @property
    def applied(self) -> bool:
        return self.lesson is not None and self.lesson.kept


class Tuning(NamedTuple):
    """A vault's weights, and what its ratings teach."""

    in_use: dict[str, float] | None
    """None: there are no vectors."""
    source: str
    """settings, learned or default"""
    learned: dict[str, float] | None
    lesson: Lesson
    said: int
    implied: int
    """Ratings inferred from use."""


def judge(kb: KnowledgeBase, ref: str, verdict: str, query: str | None = None) -> FeedbackReceipt:
    """Rate a note as the answer to a question; by default the last one that it answered."""
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
        put_judgement(connection, kb.root, place, judgement, time.time())
        questions = questions_of(judgements(connection, kb.root))
    refs = [one.ref for one in rank_candidates(kb, query)] if query else []
    rank = refs.index(note.ref) + 1 if note.ref in refs else None
    count = _weight(questions) if kb.embedders.space else 0.0
    receipt = FeedbackReceipt(note.ref, note.title, verdict, query, rank, count)
    row = read_learned(kb.settings.data_dir).get(kb.root) or {"judgements": ENOUGH - AGAIN}
    last = row["judgements"]  # None after a reset
    if kb.settings.learn != "on" or count < ENOUGH or last is None or count < last + AGAIN:
        return receipt
    return receipt._replace(lesson=tune(kb, apply=True).lesson)


def tune(kb: KnowledgeBase, apply: bool = False) -> Tuning:
    """Learn from all ratings. With `apply`, weights that pass the check are used from now on."""
    with kb.activity.written().writing() as connection:
        rows = judgements(connection, kb.root)
    said = sum(row.how == "said" for row in rows)
    counts, learned, questions = (said, len(rows) - said), learned_weights(kb, even_if_off=True), questions_of(rows)
    if kb.embedders.space is None:
        return Tuning(None, "default", None, Lesson(0.0, False, "there are no vectors", 0.0, 0), *counts)
    if _weight(questions) >= ENOUGH:
        questions = [one._replace(candidates=rank_candidates(kb, one.text)) for one in questions]
    lesson = learn(questions, DEFAULT_WEIGHTS["meaning"], learned["meaning"] if learned else None)
    if apply:
        learned = weights_of(lesson.meaning) if lesson.kept else learned
        _set_learned(kb, ranking_of(kb), learned["meaning"] if learned else None, _weight(questions))
    given, used = settings_weights(kb.settings), learned if kb.settings.learn != "off" else None
    source = "settings" if given else "learned" if used else "default"
    return Tuning(given or used or DEFAULT_WEIGHTS, source, learned, lesson, *counts)


def reset(kb: KnowledgeBase) -> None:
    """Back to the default weights, until somebody applies others. Ratings stay."""
    _set_learned(kb, None, None, None)


def clear(kb: KnowledgeBase) -> int:
    """Delete all ratings of this vault, and what was learned from them. Returns how many there were."""
    change_learned(kb.settings.data_dir, lambda known: known.pop(kb.root, None))
    with kb.activity.written().writing() as connection:
        return clear_judgements(connection, kb.root)


def _set_learned(kb: KnowledgeBase, ranking: str | None, meaning: float | None, count: float | None) -> None:
    row = {"ranking": ranking, "meaning": meaning, "judgements": count}
    change_learned(kb.settings.data_dir, lambda known: known.update({kb.root: row}))


def weights_of(meaning: float) -> dict[str, float]:
    return {"meaning": meaning, "words": round(1 - meaning, 4)}


def questions_of(rows: Sequence[Judgement]) -> list[JudgedQuestion]:
    """The newest questions for which some note was rated good. Bad notes alone do not say what should rank first."""
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
        words, meant = (hit.signals.get(name, 0.0) for name in ("words", "meaning"))
        rest = sum(hit.signals.values()) - words - meant
        words, meant = words / (weights["words"] or 1), meant / (weights["meaning"] or 1)
        candidates.append(Candidate(without_lines(hit.ref), words, meant, rest))
    return tuple(candidates)


def learn(questions: Sequence[JudgedQuestion], default: float, present: float | None = None) -> Lesson:
    """The weight of meaning that these ratings teach; `present` is the one in use, if not the default."""
    present = default if present is None else present
    weight = _weight(questions)
    if weight < ENOUGH:
        return Lesson(present, False, f"{weight:g} of the {ENOUGH:g} ratings needed to learn", weight, len(questions))
    questions = [one for one in questions if _teaches(one)]
    if len(questions) < ENOUGH_QUESTIONS:
        why = f"they are about {len(questions)} of the {ENOUGH_QUESTIONS} questions that it takes"
        return Lesson(present, False, why, weight, len(questions))
    steps = round(BOUND / STEP)
    tried = [round(default + STEP * step, 4) for step in range(-steps, steps + 1)]
    tried = [meaning for meaning in tried if 0 <= meaning <= 1]
    curves = [[_worth(one, meaning, SOFT) for meaning in tried] for one in questions]

    def best(chosen: Sequence[Sequence[float]]) -> float:
        gains = {
            meaning: sum(worths) - PULL * ((meaning - default) / BOUND) ** 2
            for meaning, worths in zip(tried, zip(*chosen, strict=True), strict=True)
        }
        return max(gains, key=gains.__getitem__)

    meaning = best(curves)
    held: list[tuple[float, float]] = []
    for part in range(PARTS):
        taught = best([curve for place, curve in enumerate(curves) if place % PARTS != part])
        held += [(_worth(one, present), _worth(one, taught)) for one in questions[part::PARTS]]
    better, worse = (sum(sign * (new - old) > EXACT for old, new in held) for sign in (1, -1))
    before, after = (round(fmean(_worth(one, weight) for one in questions), 4) for weight in (present, meaning))
    chance = better - worse < CHANCE * sqrt(better + worse) or fmean(new - old for old, new in held) < 0
    kept = after > before and better > 0 and not chance
    why = f"of held-out questions, {better} rank better and {worse} worse"
    why += "" if kept else ", no more than chance" if after > before else ": other weights do not help"
    return Lesson(meaning, kept, why, weight, len(questions), before, after)


def _weight(questions: Sequence[JudgedQuestion]) -> float:
    return round(sum(WEIGHTS.get(one.how, 0.0) for question in questions for one in question.judged), 1)


def _teaches(question: JudgedQuestion) -> bool:
    """Whether a good note is among the candidates, with others to compare it with."""
    refs, good = {one.ref for one in question.candidates}, {one.ref for one in question.judged if one.good}
    return bool(refs & good and refs - good)


def _worth(question: JudgedQuestion, meaning: float, soft: float = EXACT) -> float:
    """What a weight of meaning is worth for one question: 1 if every good note ranks first."""
    scores = {
        one.ref: meaning * one.meaning + (1 - meaning) * one.words + one.rest for one in reversed(question.candidates)
    }
    good = {one.ref: WEIGHTS.get(one.how, 0.0) for one in question.judged if one.good and one.ref in scores}
    counts = {one.ref: 2.0 for one in question.judged if not one.good}
    others = [(counts.get(ref, 1.0), score) for ref, score in scores.items() if ref not in good]
    won = 0.0
    for ref, weight in good.items():
        above = sum(count * (0.5 - 0.5 * tanh((scores[ref] - score) / (2 * soft))) for count, score in others)
        won += weight / log2(2 + above)
    return won / sum(good.values())
