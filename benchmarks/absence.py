"""Fit how sure a search is that something answers: a logistic in four plain figures.

The best cosine, the share of the question's words that one passage has, the size of the vault, and the best score of
the reader (not with CO_KNOWLEDGE_READER=off).

Each set's vault is asked its own questions, which it can answer, and those of other families and groups, which it
cannot. Each set counts the same, and so do both kinds of question. Figures are of families that were left out.
"""

from __future__ import annotations

import math
import tempfile
from collections.abc import Iterator, Sequence
from itertools import zip_longest
from typing import NamedTuple

import numpy as np

from benchmarks.held_out import families_of
from benchmarks.measuring import BenchRow
from benchmarks.vaults import Bar
from co_cli.evaluation.running import Evaluation, auroc
from co_cli.evaluation.sets import Question, QuestionSet, read_set
from co_cli.hits import Filters
from co_cli.retrieval.pipeline import search
from co_cli.retrieval.request import SearchRequest
from co_cli.settings import load_settings
from co_cli.vault import Vault

ANSWERED, FOREIGN = 120, 100
"""Questions asked of each set's vaults."""
MOST_GROUPS = 5
STEPS, RIDGE = 60, 1e-3


class Asked(NamedTuple):
    """One question asked of one vault."""

    set: str
    answerable: bool
    cosine: float
    coverage: float
    passages: int
    read: tuple[float, ...]
    """The reader's best score, if it reads."""


def bench_absence(folders: Sequence[str], bar: Bar | None = None) -> list[BenchRow]:
    families = families_of(folders)
    sets = [read_set(folder) for folder in folders]
    asked: list[Asked] = []
    for number, found in enumerate(sets, 1):
        others = [other for other in sets if families[other.name] != families[found.name]]
        asked += _ask(found, [question for other in others for question in _some(other, 40)])
        if bar:
            bar(number, len(sets))
    rows: list[BenchRow] = []
    for family in dict.fromkeys(families.values()):
        weights = fit([one for one in asked if families[one.set] != family])
        mine = [one for one in asked if families[one.set] == family]
        sure = [[float(weights @ _features(one)) for one in mine if one.answerable is kind] for kind in (True, False)]
        rows.append(BenchRow(f"{family}: AUROC", auroc(*sure), ""))
    names = ["cosine", "coverage", "logarithm of the passages", *("reader" for _ in asked[0].read), "constant"]
    return rows + [BenchRow(name, float(value), "") for name, value in zip(names, fit(asked), strict=True)]


def fit(asked: Sequence[Asked]) -> np.ndarray:
    """The coefficients and the constant, by Newton's method."""
    features = np.array([_features(one) for one in asked])
    answers = np.array([float(one.answerable) for one in asked])
    share = np.array([1 / sum(other[:2] == one[:2] for other in asked) for one in asked]) * 100
    found = np.zeros(features.shape[1])
    for _ in range(STEPS):
        sure = 1 / (1 + np.exp(-features @ found))
        slope = features.T @ (share * (sure - answers)) + RIDGE * found
        curve = (features * (share * sure * (1 - sure))[:, None]).T @ features + RIDGE * np.eye(len(found))
        found -= np.linalg.solve(curve, slope)
    return found


def _ask(found: QuestionSet, foreign: Sequence[Question]) -> Iterator[Asked]:
    groups = found.groups[:MOST_GROUPS]
    with tempfile.TemporaryDirectory(prefix="co-bench-", ignore_cleanup_errors=True) as work:
        evaluation = Evaluation(load_settings({"vault": work, "data_dir": f"{work}/data"}), work)
        for place, group in enumerate(groups):
            own = [question for question in found.questions if question.group == group]
            others = [one for one in found.questions if one.group == groups[place - 1] and len(groups) > 1]
            mixed = [one for pair in zip_longest(others, foreign) for one in pair if one]
            with evaluation.vault_of(found, group) as vault:
                for questions, most, answerable in ((own, ANSWERED, True), (mixed, FOREIGN, False)):
                    for question in questions[:: -(-len(questions) * len(groups) // most)]:
                        yield _one(vault, found.name, question.text, answerable)


def _one(vault: Vault, name: str, text: str, answerable: bool) -> Asked:
    request = SearchRequest(text, filters=Filters(outdated=True), reader=vault.reader, read_seconds=None)
    result, trace = search(vault.index.notes, request)
    nearest = max(trace.candidates.cosines.values(), default=0.0)
    read = (max(trace.read_scores.values(), default=0.0),) if vault.reader else ()
    return Asked(name, answerable, nearest, trace.candidates.best_coverage, result.searched.passages, read)


def _some(found: QuestionSet, count: int) -> list[Question]:
    return found.questions[:: -(-len(found.questions) // count)]


def _features(one: Asked) -> np.ndarray:
    return np.array([one.cosine, one.coverage, math.log(max(one.passages, 1)), *one.read, 1.0])
