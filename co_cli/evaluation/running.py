"""Ask every question of a set, with each method, of a vault on disk that was synced as any other.

Methods share the vault: it is indexed once and asked many times. They take turns in being the first to be asked, and
each vault is asked one question beforehand, so that times are those of a process that has been up for a while.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple
from zlib import crc32

from co_cli.errors import IndexUnavailableError
from co_cli.evaluation.baselines import Desk, Ranking
from co_cli.evaluation.methods import LookedAt, Method, answerable
from co_cli.evaluation.questions import Question
from co_cli.evaluation.scoring import Marks, Scores, mark_ranking, mean_scores
from co_cli.evaluation.sets import Document, note_text, read_documents, read_public_questions, require_groups
from co_cli.knowledge_base import KnowledgeBase
from co_cli.notes.refs import FOLDERS
from co_cli.settings import Settings

SHORT = 2_000
"""Characters up to which somebody would keep a text as a memory."""

Progress = Callable[[int, int], None]


class Answered(NamedTuple):
    """One question: what was returned for it, what that is worth, and how long it took."""

    question: Question
    ranking: Ranking
    marks: Marks
    seconds: float
    degraded: str = ""
    looked_at: LookedAt = ()


class Run(NamedTuple):
    """Every question of a set, answered by one method."""

    set: str
    method: str
    answered: list[Answered]

    def scores(self) -> dict[str, Scores]:
        """Over `all` questions, and by their kind if they have one."""
        kinds = dict.fromkeys(answered.question.kind for answered in self.answered if answered.question.kind)
        found = {"all": _scores(self.answered)}
        for kind in kinds:
            found[kind] = _scores([answered for answered in self.answered if answered.question.kind == kind])
        return found

    def degraded(self) -> str:
        """What was missing and how often: figures of half a search mislead."""
        reasons = [answered.degraded for answered in self.answered if answered.degraded]
        return f"{len(reasons)} of {len(self.answered)} answers: {reasons[0]}" if reasons else ""


def _scores(answered: Sequence[Answered]) -> Scores:
    return mean_scores([one.marks for one in answered], [one.seconds for one in answered])


def run_vault(
    name: str,
    kb: KnowledgeBase,
    questions: Sequence[Question],
    methods: Sequence[Method],
    asking: Progress | None = None,
) -> list[Run]:
    """Ask a vault that is there. One right note is enough for recall. Nothing is written but the index."""
    desk = Desk(kb)
    chosen = answerable(methods, desk)
    found: list[list[Answered]] = []
    for question, answers in zip(questions, _ask(desk, questions, chosen), strict=True):
        found.append(_marked(question, answers, any_is_enough=True))
        if asking:
            asking(len(found), len(questions))
    return _runs(name, chosen, found)


def run_set(
    folder: str,
    work: str,
    settings: Settings,
    methods: Sequence[Method],
    *,
    corpus: str | None = None,
    every_kind: bool = False,
    sample: int | None = None,
    indexing: Progress | None = None,
    asking: Progress | None = None,
) -> list[Run]:
    """Write a public set as vaults of notes under `work`, one for each group, and ask its questions there.

    With `before`, the vault grows: each question is asked when it holds just the documents that may answer. `sample` is
    how many questions to ask at most. Who asks again in the same `work` need not embed again.
    """
    documents, questions = read_documents(corpus or folder), read_public_questions(folder, every_kind)
    questions = drawn(questions, sample)
    require_groups(folder, documents, questions)
    places = {question.id: place for place, question in enumerate(questions)}
    found: dict[int, list[Answered]] = {}
    chosen: list[Method] = []
    for number, group in enumerate(dict.fromkeys(question.group for question in questions)):
        vault = os.path.join(work, f"vault-{number}")
        if any(question.before is not None for question in questions):  # a vault that grows begins empty
            shutil.rmtree(vault, ignore_errors=True)
            shutil.rmtree(f"{vault}-data", ignore_errors=True)
        os.makedirs(vault, exist_ok=True)
        # a search.db of its own: how rare a word is must not depend on the other groups
        with KnowledgeBase.open(
            settings=settings._replace(vault=vault, data_dir=f"{vault}-data", knowledge_exclude=())
        ) as kb:
            desk = Desk(kb)
            chosen = answerable(methods, desk)
            asked = [question for question in questions if question.group == group]
            for ids, stage in _grow(desk, [one for one in documents if one.group == group], asked, indexing):
                for question, answers in zip(stage, _ask(desk, stage, chosen), strict=True):
                    found[places[question.id]] = _marked(question, answers, ids)
                    if asking:
                        asking(len(found), len(questions))
    return _runs(set_name(folder), chosen, [found[place] for place in range(len(questions))])


def drawn(questions: Sequence[Question], sample: int | None) -> list[Question]:
    """So many of them, by lot, in their order; the same ones every time."""
    if sample is None or sample >= len(questions):
        return list(questions)
    lots = sorted(questions, key=lambda question: (crc32(question.id.encode("utf-8", "replace")), question.id))
    chosen = {question.id for question in lots[:sample]}
    return [question for question in questions if question.id in chosen]


def set_name(folder: str) -> str:
    return os.path.basename(os.path.abspath(folder))


def require_vectors(kb: KnowledgeBase) -> None:
    """After a sync: a vault of which half has vectors would be measured wrongly."""
    waiting = kb.status().unembedded
    if waiting:
        raise IndexUnavailableError(
            f"{waiting} passages of {kb.root} got no vector, so figures would mislead: `co doctor` says why, and "
            "CO_KNOWLEDGE_EMBEDDING_PROVIDER=none measures words alone"
        )


def _grow(
    desk: Desk, documents: Sequence[Document], questions: Sequence[Question], indexing: Progress | None
) -> Iterator[tuple[dict[str, str], list[Question]]]:
    """The vault as it was when some questions were asked: its refs and their documents' ids, and those questions."""
    stages: dict[float, list[Question]] = {}
    for question in questions:
        stages.setdefault(float("inf") if question.before is None else question.before, []).append(question)
    with_following = list(stages) == [float("inf")]  # what comes next is not known yet where time matters
    ids: dict[str, str] = {}
    waiting = list(enumerate(documents))
    for before, stage in sorted(stages.items()):
        for number, document in waiting:
            if document.seq < before:
                ids[_write(desk.kb.root, number, document, with_following)] = document.id
        waiting = [(number, document) for number, document in waiting if document.seq >= before]
        desk.kb.sync(indexing)
        require_vectors(desk.kb)
        desk.refresh()
        yield ids, stage


def write_vault(vault: str, documents: Sequence[Document]) -> dict[str, str]:
    """All of these documents as notes. Returns their refs and ids."""
    return {_write(vault, number, document, True): document.id for number, document in enumerate(documents)}


def _write(vault: str, number: int, document: Document, with_following: bool) -> str:
    """As a person would keep it: a short text as a memory, a long one as an article. Returns its ref."""
    source = "memory" if len(document.text) <= SHORT else "article"
    folder = os.path.join(vault, FOLDERS[source])
    os.makedirs(folder, exist_ok=True)
    with open(os.path.join(folder, f"{number}.md"), "w", encoding="utf-8", errors="replace") as stream:
        stream.write(note_text(document, with_following))
    return f"{source}:{number}"


def _ask(desk: Desk, questions: Sequence[Question], methods: Sequence[Method]) -> Iterator[list[Answered]]:
    """The answers to each question, in the order of the methods; not marked yet."""
    unmarked = Marks(0.0, 0.0, 0.0, 0.0)
    for method in methods:
        method.answer(desk, questions[0].text)  # whatever is read once is read now
    for number, question in enumerate(questions):
        first = number % max(1, len(methods))  # there is none where all of them need vectors
        answers: dict[str, Answered] = {}
        for method in (*methods[first:], *methods[:first]):
            answer = method.answer(desk, question.text)
            answers[method.name] = Answered(
                question, answer.ranking, unmarked, answer.seconds, answer.degraded, answer.looked_at
            )
        yield [answers[method.name] for method in methods]


def _marked(
    question: Question, answers: Sequence[Answered], ids: dict[str, str] | None = None, any_is_enough: bool = False
) -> list[Answered]:
    """With marks, and documents' ids in place of refs."""
    marked: list[Answered] = []
    for answered in answers:
        ranking = [(ids[ref] if ids else ref, score) for ref, score in answered.ranking]
        marks = mark_ranking([name for name, _ in ranking], question.answers, any_is_enough)
        looked_at = [(ids[ref] if ids else ref, values) for ref, values in answered.looked_at]
        marked.append(answered._replace(ranking=ranking, marks=marks, looked_at=looked_at))
    return marked


def _runs(name: str, methods: Sequence[Method], found: Sequence[Sequence[Answered]]) -> list[Run]:
    return [Run(name, method.name, [answers[place] for answers in found]) for place, method in enumerate(methods)]
