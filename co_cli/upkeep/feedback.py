"""Feedback: record ratings of answers, and learn the weights of words and meaning from them.

A weight is worth the mean of 1 / log2(1 + rank) of the notes rated good; each question counts once. To check the best
one, the questions are split in five parts, and each is ranked by what the other four teach: more questions must rank
better than worse, beyond chance.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import log2, sqrt
from statistics import fmean
from typing import NamedTuple

from co_cli.activity import judgements
from co_cli.activity.judgements import Judgement
from co_cli.activity.query_log import fold
from co_cli.notes.refs import without_lines
from co_cli.retrieval.profiles import DEFAULT
from co_cli.saving.judged_hits import rate
from co_cli.searching.answers import search
from co_cli.searching.requests import Options
from co_cli.vault.ranking import learned_weights, settings_weights, weights_of
from co_cli.vault.vault import Vault

STEPS = (0.0, 0.05, -0.05, 0.1, -0.1, 0.15, -0.15)
"""What may be added to the default weight of meaning. Of two that are worth the same, the first is learned."""
ENOUGH, ENOUGH_QUESTIONS, EVERY = 30.0, 10, 10
"""Ratings, each with its weight, and questions needed to learn. With `learn = "on"`, every tenth rating learns."""
PARTS, CHANCE = 5, 1.64
"""Of the check. Standard deviations: one time in twenty, as many would get better for no reason."""
MOST_QUESTIONS, CANDIDATES = 200, 100
"""The newest questions teach. Each is searched, and its good notes are compared with this many hits."""
WEIGHTS = {"said": 1.0, "heard": 0.3, "cited": 0.3, "opened": 0.3}
"""What a rating counts: somebody who opens a note may yet find that it is not the answer."""
DEFAULT_WEIGHTS = {name: DEFAULT.weights[name] for name in ("meaning", "words")}
Parts = tuple[float, float, float]  # of a score: meaning and words as with a weight of 1, and the rest


class Comparison(NamedTuple):
    """The notes found for a question: those rated good, and the others. A note rated bad is there twice."""

    good: list[Parts]
    others: list[Parts]

    def worth(self, weight: float) -> float:
        """What a weight of meaning is worth for this question: 1 if every good note ranks first."""
        good, others = (
            [weight * meaning + (1 - weight) * words + rest for meaning, words, rest in notes] for notes in self
        )
        return fmean(1 / log2(2 + sum(other > score for other in others)) for score in good)


class Lesson(NamedTuple):
    """What the ratings teach, and whether it passes the check."""

    meaning: float
    """The weight of meaning that was learned; words have the rest of 1."""
    kept: bool
    why: str
    ratings: float
    """How many were used, each counted with its weight."""
    questions: int
    before: float | None = None
    """The worth of the weights in use, 0 to 1; `after`: of the learned ones."""
    after: float | None = None


class Tuning(NamedTuple):
    """A vault's weights, and what its ratings teach."""

    in_use: dict[str, float]
    source: str
    """settings, learned or default"""
    learned: dict[str, float] | None
    said: int
    implied: int
    """Ratings inferred from use."""
    lesson: Lesson


def judge(
    vault: Vault, ref: str, good: bool, query: str | None = None, how: str = "said", until: float | None = None
) -> Judgement:
    """Rate a note as the answer to a question, and learn from the ratings if it is time to."""
    judgement = rate(vault, ref, good, query, how, until)
    with vault.activity.database.reading() as connection:
        said = sum(row.how == "said" for row in judgements.read(connection, vault.root))
    was_reset = judgements.read_learned(vault.settings.data_dir).get(vault.root, True) is None
    if vault.settings.learn == "on" and not was_reset and said % EVERY == 0:
        tune(vault, apply=True)
    return judgement


def tune(vault: Vault, apply: bool = False) -> Tuning:
    """Learn from all ratings. With `apply`, weights that pass the check are used from now on."""
    with vault.activity.written().writing() as connection:
        rows = judgements.read(connection, vault.root)
    questions: dict[str, dict[str, Judgement]] = {}
    for row in rows:
        if row.query:
            questions.setdefault(fold(row.query), {})[row.ref] = row
    # bad notes alone do not say what should rank first
    newest = [rated for rated in questions.values() if any(row.good for row in rated.values())][-MOST_QUESTIONS:]
    count = round(sum(WEIGHTS[row.how] for rated in newest for row in rated.values()), 1)
    found = [compare(vault, rated) for rated in newest] if count >= ENOUGH else []
    learned = learned_weights(vault.ranking, even_if_off=True)
    lesson = learn(found, count, (learned or DEFAULT_WEIGHTS)["meaning"])
    if vault.embedders.space is None:
        lesson = lesson._replace(kept=False, why="there are no vectors to weigh words against")
    if apply and lesson.kept:
        learned, row = weights_of(lesson.meaning), {"ranking": vault.ranking.key, "meaning": lesson.meaning}
        judgements.change_learned(vault.settings.data_dir, lambda known: known.update({vault.root: row}))
    given, used = settings_weights(vault.settings), learned if vault.settings.learn != "off" else None
    source = "settings" if given else "learned" if used else "default"
    said = sum(row.how == "said" for row in rows)
    return Tuning(given or used or DEFAULT_WEIGHTS, source, learned, said, len(rows) - said, lesson)


def reset(vault: Vault) -> None:
    """Back to the default weights, until somebody applies others. Ratings stay."""
    judgements.change_learned(vault.settings.data_dir, lambda known: known.update({vault.root: None}))


def clear(vault: Vault) -> int:
    """Delete all ratings of this vault, and what was learned from them. Returns how many there were."""
    judgements.change_learned(vault.settings.data_dir, lambda known: known.pop(vault.root, None))
    with vault.activity.written().writing() as connection:
        return judgements.clear(connection, vault.root)


def compare(vault: Vault, rated: Mapping[str, Judgement]) -> Comparison:
    """Search with the default weights for a question whose ratings, by ref, are given."""
    comparison, weights = Comparison([], []), DEFAULT_WEIGHTS
    query = next(row.query or "" for row in rated.values())
    options = Options(CANDIDATES, backend="hybrid", profile="default", weights=weights, read=False)
    found = search(vault, query, options)
    for hit in found.hits:
        meaning, words = (hit.signals.get(name, 0.0) for name in weights)
        parts = meaning / weights["meaning"], words / weights["words"], sum(hit.signals.values()) - meaning - words
        row = rated.get(without_lines(hit.ref))
        if row and row.good:
            comparison.good.append(parts)
        else:
            comparison.others.extend([parts] * (2 if row else 1))
    return comparison


def learn(found: Sequence[Comparison], count: float, present: float = DEFAULT_WEIGHTS["meaning"]) -> Lesson:
    """The weight of meaning that these ratings teach; `present` is the one in use."""
    found = [question for question in found if question.good and question.others]
    for kind, number, enough in (("ratings", count, ENOUGH), ("questions", len(found), ENOUGH_QUESTIONS)):
        if number < enough:
            return Lesson(present, False, f"{number:g} of the {enough:g} {kind} needed to learn", count, len(found))
    tried = [round(DEFAULT_WEIGHTS["meaning"] + step, 4) for step in STEPS]

    def best(questions: Sequence[Comparison]) -> float:
        return max(tried, key=lambda weight: sum(question.worth(weight) for question in questions))

    gains: list[float] = []
    for part in range(PARTS):
        taught = best([question for place, question in enumerate(found) if place % PARTS != part])
        gains += [question.worth(taught) - question.worth(present) for question in found[part::PARTS]]
    better, worse = sum(gain > 0 for gain in gains), sum(gain < 0 for gain in gains)
    meaning = best(found)
    before, after = (round(fmean(question.worth(weight) for question in found), 4) for weight in (present, meaning))
    kept = after > before and sum(gains) > 0 and better - worse > CHANCE * sqrt(better + worse)
    why = f"of held-out questions, {better} rank better and {worse} worse"
    return Lesson(meaning, kept, why, count, len(found), before, after)
