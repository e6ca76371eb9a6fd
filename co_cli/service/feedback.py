"""Feedback: record judgements of answers, and learn the balance of words and meaning from them.

The rule. A note that was judged good should rank above every other note of its answer, and above all a note that was
judged bad, which counts double. What weights are worth is the mean of 1 / log2(1 + rank) of the good notes over the
questions; a question counts once, however often it was judged. The balance that is worth most is taken, in steps of
.01, within BOUND of the default; PULL keeps it there unless something is gained.

The check. The questions are split in five parts, and each is ranked by what the other four teach. These held-out
questions must not rank worse on average, and more of them must rank better than worse, beyond chance.

Judgements are replayed on candidates as the default weights ranked them. Those that were inferred from use have none
yet, and those of other vectors or an older formula are out of date: both are ranked again before they teach.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from math import exp, log2, sqrt
from typing import NamedTuple
from zlib import crc32

from co_cli.activity.events import place_of
from co_cli.activity.feedback import (
    Candidate,
    Judgement,
    Tuning,
    change_weights,
    clear_judgements,
    judgements,
    put_judgement,
    put_tuning,
    rank_judgement,
    tunings,
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
ENOUGH = 30.0
"""Judgements, each with its weight."""
ENOUGH_QUESTIONS = 10
CHANCE = 1.64
"""Standard deviations: one time in twenty, as many would get better for no reason."""
PARTS = 5
MOST_QUESTIONS = 500
"""The newest teach."""
WEIGHTS = {"said": 1.0, "cited": 0.3, "opened": 0.3}
"""What a judgement counts: somebody who opens a note may yet find that it is not the answer."""
KEPT = 20
"""Candidates that are stored with each judgement."""
LOOKED_THROUGH = 100
"""Hits among which the judged note is looked for."""
AGAIN = 10
"""Judgements after which weights are learned again automatically."""
RANKED_AT_ONCE = 200
VERDICTS = {"good": True, "bad": False}
DEFAULT_MEANING = DEFAULT.weights["meaning"]


class Lesson(NamedTuple):
    """What the judgements teach, and whether it passes the check."""

    meaning: float
    """The weight of meaning that was learned; words have the rest of 1."""
    kept: bool
    why: str
    judgements: float
    """How many there are, each with its weight."""
    questions: int
    before: float | None = None
    """What the present weights are worth on all questions, 0 to 1, and the learned ones."""
    after: float | None = None
    held_before: float | None = None
    """The same for held-out questions."""
    held_after: float | None = None
    better: int = 0
    worse: int = 0


class Receipt(NamedTuple):
    """What became of one judgement."""

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
    """Those that can teach, each with its weight."""
    lesson: Lesson | None = None
    """What was learned, if it was time to."""
    applied: bool = False


class TuningState(NamedTuple):
    """A vault's weights, and what its judgements teach."""

    learn: str
    """The setting: on, off or ask."""
    space: str | None
    default: dict[str, float] | None
    """None: there are no vectors."""
    settings: dict[str, float] | None
    """Weights of the settings, which win."""
    learned: dict[str, float] | None
    lesson: Lesson
    said: int
    implied: int
    """Judgements inferred from use."""
    silent: int
    """Judgements that teach nothing: without a question, or of a note that was not found."""
    history: list[Tuning]

    @property
    def in_use(self) -> dict[str, float] | None:
        return self.settings or (self.learned if self.learn != "off" else None) or self.default


def judge(kb: KnowledgeBase, ref: str, verdict: str, query: str | None = None) -> Receipt:
    """Record a verdict on a note as the answer to a question; by default the last one that it answered."""
    if verdict not in VERDICTS:
        raise InvalidInputError(f"a verdict is good or bad, not {verdict!r}")
    query = to_utf8(query).strip() if query is not None else None
    if query == "":
        raise InvalidInputError("the query is empty: give the question that the note was found with, or leave it out")
    note = kb.note(ref)
    place = place_of(kb.file_of(note.ref), (kb.root, *(origin.root for origin in kb.index.beside)))
    database, now = kb.activity.written(), time.time()
    if kb.settings.query_log != "on":
        query = None  # not even a hash: a short question can be guessed from it
    elif query is None:
        with database.writing() as connection:
            query = last_question(connection, kb.root, [note.ref], now)
    shown, rank = rank_candidates(kb, query, note.ref) if query else ((), None)
    ranking = ranking_of(kb) if shown else None
    judgement = Judgement(0, fold(query or ""), query, VERDICTS[verdict], "said", note.ref, ranking, shown)
    with database.writing() as connection:
        good, bad = put_judgement(connection, kb.root, place, judgement, now)
        rows, history = judgements(connection, kb.root), tunings(connection, kb.root)
    usable = _weight(_questions(_usable(kb, rows)))
    receipt = Receipt(note.ref, note.title, verdict, query, rank, good, bad, usable)
    if kb.settings.learn != "on" or usable < ENOUGH:
        return receipt
    if history and (history[0].what == "reset" or usable < history[0].judgements + AGAIN):
        return receipt
    lesson = tune(kb, apply=True, automatic=True).lesson
    return receipt._replace(lesson=lesson, applied=lesson.kept)


def tune(kb: KnowledgeBase, apply: bool = False, automatic: bool = False) -> TuningState:
    """Learn from all judgements. With `apply`, weights that pass the check are used from now on."""
    database, space = kb.activity.written(), kb.embedders.space
    with database.writing() as connection:
        rows, history = judgements(connection, kb.root), tunings(connection, kb.root)
    said = sum(row.how == "said" for row in rows)
    counts = said, len(rows) - said
    explicit = settings_weights(kb.settings)
    if space is None:
        lesson = Lesson(0.0, False, "there are no vectors to weigh words against", 0.0, 0)
        return TuningState(kb.settings.learn, None, None, explicit, None, lesson, *counts, len(rows), history)
    usable = _usable(kb, _rank_again(kb, rows))
    learned = learned_weights(kb, even_if_off=True)
    lesson = learn(usable, DEFAULT_MEANING, learned["meaning"] if learned else None)
    if apply and (lesson.kept or automatic):
        what = "applied" if lesson.kept else "refused"
        tuning = _tuning(what, space.key, lesson.meaning)
        tuning = tuning._replace(judgements=lesson.judgements, before=lesson.before, after=lesson.after)
        with database.writing() as connection:
            put_tuning(connection, kb.root, tuning)
        history = [tuning, *history]
        if lesson.kept:
            row = {"ranking": ranking_of(kb), "meaning": lesson.meaning}
            change_weights(kb.settings.data_dir, lambda known: known.update({kb.root: row}))
            learned = _weights(lesson.meaning)
    default, silent = _weights(DEFAULT_MEANING), len(rows) - len(usable)
    return TuningState(kb.settings.learn, space.key, default, explicit, learned, lesson, *counts, silent, history)


def reset(kb: KnowledgeBase) -> bool:
    """Back to the default weights, until somebody applies others. Judgements stay. False: there was nothing to undo."""
    learned, space = learned_weights(kb, even_if_off=True), kb.embedders.space
    change_weights(kb.settings.data_dir, lambda known: known.pop(kb.root, None))
    if space:
        tuning = _tuning("reset", space.key, DEFAULT_MEANING)
        with kb.activity.database.writing() as connection:
            put_tuning(connection, kb.root, tuning)
    return learned is not None


def clear(kb: KnowledgeBase) -> int:
    """Delete all judgements of this vault, and what was learned from them. Returns how many there were."""
    change_weights(kb.settings.data_dir, lambda known: known.pop(kb.root, None))
    with kb.activity.written().writing() as connection:
        return clear_judgements(connection, kb.root)


def rank_candidates(
    kb: KnowledgeBase, query: str, ref: str | None = None, meaning: float = DEFAULT_MEANING, outdated: bool = False
) -> tuple[tuple[Candidate, ...], int | None]:
    """The first candidates for a question, the judged one among them, and its rank. None without vectors."""
    if kb.embedders.space is None:
        return (), None
    weights = _weights(meaning)
    found = kb.search(query, LOOKED_THROUGH, backend="hybrid", profile="default", weights=weights, outdated=outdated)
    if not any("meaning" in hit.signals for hit in found.hits):
        return (), None
    refs = [without_lines(hit.ref) for hit in found.hits]
    rank = refs.index(ref) + 1 if ref in refs else None
    candidates: list[Candidate] = []
    for place, hit in enumerate(found.hits, 1):
        if place <= KEPT or place == rank:
            parts = {name: hit.signals.get(name, 0.0) for name in ("words", "meaning")}
            rest = sum(hit.signals.values()) - sum(parts.values())
            units = {name: part / weights[name] if weights[name] else 0.0 for name, part in parts.items()}
            candidates.append(Candidate(refs[place - 1], units["words"], units["meaning"], rest))
    return tuple(candidates), rank


def _tuning(what: str, space: str, meaning: float) -> Tuning:
    return Tuning(time.time(), what, space, meaning, round(1 - meaning, 4), 0.0)


def _weights(meaning: float) -> dict[str, float]:
    return {"meaning": meaning, "words": round(1 - meaning, 4)}


def _usable(kb: KnowledgeBase, rows: Sequence[Judgement]) -> list[Judgement]:
    """Judgements that are about a question, and ranked by the vectors and the formula of today."""
    ranking = ranking_of(kb)
    return [row for row in rows if row.question and row.ranking == ranking and _find(row) is not None]


def _find(judgement: Judgement) -> Candidate | None:
    return next((one for one in judgement.candidates if one.ref == judgement.ref), None)


def _rank_again(kb: KnowledgeBase, rows: list[Judgement]) -> list[Judgement]:
    """Give judgements their candidates, and store them; the newest first, so many at a time."""
    ranking = ranking_of(kb)
    places = [place for place, row in enumerate(rows) if row.query and row.ranking != ranking]
    for place in places[-RANKED_AT_ONCE:]:
        shown, _ = rank_candidates(kb, rows[place].query or "", rows[place].ref)
        if shown:
            rows[place] = rows[place]._replace(ranking=ranking, candidates=shown)
            with kb.activity.database.writing() as connection:
                rank_judgement(connection, rows[place])
    return rows


def learn(rows: Sequence[Judgement], default: float, present: float | None = None) -> Lesson:
    """The weight of meaning that these judgements teach; `present` is the one in use, if not the default."""
    present = default if present is None else present
    questions = _questions(rows)
    weight = _weight(questions)
    if weight < ENOUGH:
        return Lesson(present, False, f"{weight:g} of the {ENOUGH:g} judgements that it takes", weight, len(questions))
    if len(questions) < ENOUGH_QUESTIONS:
        why = f"they are about {len(questions)} of the {ENOUGH_QUESTIONS} questions that it takes"
        return Lesson(present, False, why, weight, len(questions))
    order = sorted(questions, key=lambda text: (crc32(text.encode("utf-8", "replace")), text))
    rivals = [_rivals(questions[text]) for text in order]
    steps = round(BOUND / STEP)
    tried = [round(default + STEP * step, 4) for step in range(-steps, steps + 1)]
    tried = [meaning for meaning in tried if 0 <= meaning <= 1]
    curves = [[_worth(one, meaning, SOFT) for meaning in tried] for one in rivals]

    def best(curves: Sequence[Sequence[float]]) -> float:
        def gain(place: int) -> tuple[float, float]:
            away = abs(tried[place] - default)
            return round(sum(curve[place] for curve in curves) - PULL * (away / BOUND) ** 2, 9), -away

        return tried[max(range(len(tried)), key=gain)]

    meaning = best(curves)
    before, after = (_mean([_worth(one, weight) for one in rivals]) for weight in (present, meaning))
    held: list[tuple[float, float]] = []
    for part in range(PARTS):
        others = best([curve for place, curve in enumerate(curves) if place % PARTS != part])
        held += [(_worth(one, present), _worth(one, others)) for one in rivals[part::PARTS]]
    held_before, held_after = _mean([old for old, _ in held]), _mean([new for _, new in held])
    better, worse = (sum(sign * (new - old) > 1e-9 for old, new in held) for sign in (1, -1))
    kept = False
    if abs(meaning - present) < STEP / 2:
        why = "they ask for no other weights than the present ones"
    elif after <= before:
        why = "replayed, other weights rank the judged notes no better"
    elif held_after < held_before:
        why = "held-out questions would rank worse by what the others teach"
    elif not better or better - worse < CHANCE * sqrt(better + worse):
        why = f"{better} questions better and {worse} worse is no more than chance"
    else:
        kept, why = True, f"of held-out questions, {better} got better and {worse} worse"
    replay = before, after, held_before, held_after, better, worse
    return Lesson(meaning, kept, why, weight, len(questions), *replay)


def _mean(values: Sequence[float]) -> float:
    return round(sum(values) / len(values), 4)


def _weight(questions: dict[str, list[Judgement]]) -> float:
    return round(sum(WEIGHTS.get(one.how, 0.0) for found in questions.values() for one in found), 1)


def _questions(rows: Sequence[Judgement]) -> dict[str, list[Judgement]]:
    """The newest questions that teach something, each with its judgements. Of one note the last word counts."""
    found: dict[str, dict[str, Judgement]] = {}
    for row in rows:
        found.setdefault(row.question, {})[row.ref] = row
    teaching = [(question, list(judged.values())) for question, judged in found.items()]
    return dict([one for one in teaching if _rivals(one[1])][-MOST_QUESTIONS:])


Rival = tuple[float, float, float]
"""What another note counts, and how far the good one is above it: without meaning, and more for each unit of it."""


def _rivals(judged: Sequence[Judgement]) -> list[tuple[float, list[Rival]]]:
    """The good notes of a question: what each counts, and the other candidates that were not judged good.

    Without a good note there are none: any change moves a bad note that ranked first, and nobody knows what for.
    """
    good, bad = ({one.ref for one in judged if one.good == verdict} for verdict in (True, False))
    found: list[tuple[float, list[Rival]]] = []
    for judgement in judged:
        mine = _find(judgement)
        if judgement.good and mine is not None:
            rivals = [
                (
                    2.0 if one.ref in bad else 1.0,
                    mine.words + mine.rest - one.words - one.rest,
                    (mine.meaning - one.meaning) - (mine.words - one.words),
                )
                for one in judgement.candidates
                if one.ref not in good
            ]
            if rivals:
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
