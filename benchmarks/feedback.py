"""Does feedback help? A simulated user rates answers to half of the questions; the other half is measured.

Of the first ten hits, each right note is rated good, and the first one bad if it is wrong. Both halves teach once and
are asked once; the judgements go through the same rule and the same check as a person's.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Sequence
from typing import NamedTuple

from benchmarks.measuring import BenchRow
from benchmarks.vaults import Bar
from co_cli.entrance.knowledge_base import KnowledgeBase
from co_cli.evaluation.running import mark_ranking
from co_cli.evaluation.sets import Question, read_vault
from co_cli.ground.errors import InvalidInputError
from co_cli.ground.paths import sample_vault
from co_cli.ground.settings import load_settings
from co_cli.notes.refs import without_lines
from co_cli.retrieval.profiles import DEFAULT
from co_cli.upkeep.feedback import DEFAULT_WEIGHTS, Comparison, Judgement, Lesson, compare, learn
from co_cli.vault.ranking import weights_of

LOOKED_AT = 10


class Taught(NamedTuple):
    """One user: what they asked, what their judgements taught, and how the questions that were held back fared."""

    user: str
    questions: int
    default: float
    """The weight of meaning that they began with."""
    lessons: tuple[Lesson, Lesson]
    before: float
    """nDCG@10 of the questions held back, by that weight."""
    after: float
    """The same with what the other half taught, where the check let it through."""
    unchecked: float
    """The same if nothing were checked."""


def bench_feedback(bar: Bar | None = None) -> list[BenchRow]:
    """nDCG@10 of questions held back: by the weights at first, and as the judgements of the others changed them."""
    with tempfile.TemporaryDirectory(prefix="co-bench-") as folder:
        flags = {"vault": sample_vault(), "data_dir": os.path.join(folder, "data")}
        settings = load_settings(flags, environ={"HOME": folder}, start=folder)
        with KnowledgeBase.open(settings=settings) as kb:
            kb.sync()
            questions = [one for one in read_vault(kb.root).questions if one.answers]
            found = experiment(kb, questions, bar)
            if bar:
                bar.done()
    rows: list[BenchRow] = []
    for user in found:
        name = f"{user.user}, from meaning {user.default:g}"
        taught = ", ".join(f"{one.meaning:.2f} {'kept' if one.kept else 'refused'}" for one in user.lessons)
        rows.append(BenchRow(f"{name}: before", user.before, "nDCG@10"))
        rows.append(BenchRow(f"{name}: {taught}", user.after, "nDCG@10", user.after / user.before))
    return rows


def rate(kb: KnowledgeBase, questions: Sequence[Question]) -> tuple[list[Comparison], int]:
    """What somebody says who knows the answers, and in how many ratings."""
    found: list[Comparison] = []
    count = 0
    for question in questions:
        hits = kb.search(question.text, LOOKED_AT, profile="default", weights=DEFAULT_WEIGHTS, read=False).hits
        rated: dict[str, Judgement] = {}
        for place, ref in enumerate(without_lines(hit.ref) for hit in hits):
            if place == 0 or ref in question.answers:
                rated[ref] = Judgement(ref, question.text, ref in question.answers)
        if any(one.good for one in rated.values()):
            found.append(compare(kb.vault, rated))
            count += len(rated)
    return found, count


def experiment(
    kb: KnowledgeBase, questions: Sequence[Question], asked: Callable[[int, int], None] | None = None
) -> list[Taught]:
    """One user who asks them all, and one for each kind of question, who asks nothing else."""
    if kb.embedders.space is None:
        raise InvalidInputError("the embedding provider is `none`: there is nothing to weigh words against")
    kinds = ["", *dict.fromkeys(question.kind for question in questions if question.kind)]
    found: list[Taught] = []
    for number, kind in enumerate(kinds, 1):
        mine = [question for question in questions if not kind or question.kind == kind]
        found.append(_teach(kb, kind or "all", mine, DEFAULT.weights["meaning"]))
        if asked:
            asked(number, len(kinds))
    return found


def _teach(kb: KnowledgeBase, user: str, questions: Sequence[Question], default: float) -> Taught:
    halves = questions[::2], questions[1::2]
    lessons: list[Lesson] = []
    sums = [0.0, 0.0, 0.0]
    for taught, held in (halves, halves[::-1]):
        lesson = learn(*rate(kb, taught))
        lessons.append(lesson)
        weights = default, lesson.meaning if lesson.kept else default, lesson.meaning
        worth = {meaning: _ndcg(kb, held, meaning) for meaning in dict.fromkeys(weights)}
        for place, meaning in enumerate(weights):
            sums[place] += worth[meaning] * len(held) / len(questions)
    before, after, unchecked = (round(one, 4) for one in sums)
    return Taught(user, len(questions), default, (lessons[0], lessons[1]), before, after, unchecked)


def _ndcg(kb: KnowledgeBase, questions: Sequence[Question], meaning: float) -> float:
    total = 0.0
    for question in questions:
        found = kb.search(question.text, outdated=True, profile="default", weights=weights_of(meaning), read=False)
        total += mark_ranking([without_lines(hit.ref) for hit in found.hits], question.answers).ndcg10
    return total / len(questions) if questions else 0.0
