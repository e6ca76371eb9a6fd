"""Does search know when nothing is there? Each group's questions, asked of its own vault and of one that cannot answer.

The figure is the area under the ROC curve of the confidence: the chance that a question that can be answered gets more
of it than one that cannot.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from typing import NamedTuple

from co_cli.errors import InvalidInputError
from co_cli.evaluation.running import require_vectors, set_name, write_vault
from co_cli.evaluation.sets import read_documents, read_public_questions, require_groups
from co_cli.knowledge_base import KnowledgeBase
from co_cli.settings import Settings

Progress = Callable[[int, int], None]


class Crossed(NamedTuple):
    """How well confidence tells questions that can be answered from those that cannot."""

    set: str
    questions: int
    auroc: float
    absent_at_home: float
    """The share of questions that are told `absent` although the answer is there."""
    absent_elsewhere: float
    """The share that is told so where no answer is."""


def cross(
    folder: str,
    work: str,
    settings: Settings,
    corpus: str | None = None,
    indexing: Progress | None = None,
    asking: Progress | None = None,
) -> Crossed:
    """Ask each question of its own group's vault, and of the next group's."""
    documents, questions = read_documents(corpus or folder), read_public_questions(folder, False)
    require_groups(folder, documents, questions)
    groups = list(dict.fromkeys(question.group for question in questions))
    if len(groups) < 2:
        raise InvalidInputError(f"{folder} has one group: there is no other vault that could not answer")
    at_home: list[float] = []
    elsewhere: list[float] = []
    absent = {True: 0, False: 0}
    for number, group in enumerate(groups):
        vault = os.path.join(work, f"crossed-{number}")
        with KnowledgeBase.open(settings=_of(settings, vault)) as kb:
            write_vault(kb.root, [one for one in documents if one.group == group])
            kb.sync(indexing)
            require_vectors(kb)
            for question in questions:
                own = question.group == group
                if not own and groups[(groups.index(question.group) + 1) % len(groups)] != group:
                    continue
                found = kb.search(question.text)
                (at_home if own else elsewhere).append(found.confidence or 0.0)
                absent[own] += found.state == "absent"
                if asking:
                    asking(len(at_home) + len(elsewhere), 2 * len(questions))
    count = len(questions)
    return Crossed(set_name(folder), count, auroc(at_home, elsewhere), absent[True] / count, absent[False] / count)


def _of(settings: Settings, vault: str) -> Settings:
    os.makedirs(vault)
    return settings._replace(vault=vault, data_dir=f"{vault}-data", knowledge_exclude=())


def auroc(higher: Sequence[float], lower: Sequence[float]) -> float:
    """The chance that one of the first is above one of the second; a tie counts half."""
    ranked = sorted([(value, 1) for value in higher] + [(value, 0) for value in lower])
    below, total, place = 0, 0.0, 0
    while place < len(ranked):
        same = _run(ranked, place)
        total += sum(same) * (below + (len(same) - sum(same)) / 2)
        below += len(same) - sum(same)
        place += len(same)
    return total / (len(higher) * len(lower)) if higher and lower else 0.5


def _run(ranked: Sequence[tuple[float, int]], place: int) -> list[int]:
    """The kinds of all that have the value at this place."""
    found: list[int] = []
    while place < len(ranked) and (not found or ranked[place][0] == ranked[place - 1][0]):
        found.append(ranked[place][1])
        place += 1
    return found
