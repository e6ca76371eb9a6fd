"""Ask every question of a set with each method, in a vault that was synced like any other, and score the answers."""

from __future__ import annotations

import math
import os
import tempfile
import time
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from statistics import median
from typing import Any, NamedTuple

from co_cli.evaluation.baselines import BASELINES, Desk
from co_cli.evaluation.sets import ABSENT, Question, QuestionSet, add_others, note_text
from co_cli.ground.errors import IndexUnavailableError, InvalidInputError
from co_cli.ground.hits import SearchResult
from co_cli.ground.reports import Progress
from co_cli.ground.settings import Settings
from co_cli.notes.refs import FOLDERS, without_lines
from co_cli.searching.answers import search
from co_cli.searching.requests import BACKENDS, Options
from co_cli.vault.vault import Vault, open_vault, sync_vault

SHORT = 2_000  # characters up to which a document becomes a memory; longer ones become articles
Method = Callable[[Desk, str], list[str]]  # returns refs, best first
Ids = dict[str, str] | None  # of documents, by the refs of their notes


class Marks(NamedTuple):
    """What the ranking for one question is worth, or the mean of many, each from 0 to 1."""

    ndcg10: float
    recall5: float
    recall10: float
    mrr10: float


class Run(NamedTuple):
    """Every question of a set, answered by one method: what the answer is worth, and the seconds it took."""

    set: str
    method: str
    answers: list[tuple[Question, Marks, float]]

    def rows(self) -> list[dict[str, Any]]:
        """Means over all questions, with the marks of each, and for each kind of question."""
        rows: list[dict[str, Any]] = []
        for kind in dict.fromkeys(("all", *(question.kind or "all" for question, *_ in self.answers))):
            mine = [answer for answer in self.answers if kind in ("all", answer[0].kind)]
            means, seconds = mean_marks([marks for _, marks, _ in mine]), [seconds for *_, seconds in mine]
            row = {"set": self.set, "method": self.method, "kind": kind, "questions": len(mine), **means._asdict()}
            rows.append({**row, "ms": round(median(seconds) * 1000, 2)})
        rows[0]["marks"] = {question.id: marks for question, marks, _ in self.answers}
        return rows


def method(name: str) -> Method:
    """`co`, what agents and commands get, `co:BACKEND`, which does not read, or a baseline.

    Outdated notes count, so that figures do not change with the calendar.
    """
    backends = {"co": None, **{f"co:{backend}": backend for backend in BACKENDS}}
    if name not in backends and name not in BASELINES:
        raise InvalidInputError(f"there is no method {name!r}; there are {', '.join([*backends, *BASELINES])}")
    if name in BASELINES:
        return lambda desk, text: [ref for ref, _ in BASELINES[name](desk, text)][:10]
    options = Options(filters={"outdated": True}, backend=backends[name], read=None if name == "co" else False)
    return lambda desk, text: [without_lines(hit.ref) for hit in search(desk.vault, text, options).hits]


@contextmanager
def temporary(vault: Vault, shared: bool = False) -> Generator[Vault]:
    """A vault that is closed in the end, and leaves nothing in a database that others use but cached vectors."""
    try:
        yield vault
    finally:
        if shared or vault.settings.engine != "sqlite":
            vault.index.drop_all()
        vault.close()


class Evaluation:
    """Asks questions in a vault `vault`, or in temporary vaults made of a set's documents, one for each group."""

    def __init__(
        self, settings: Settings, work: str, bar: Progress = lambda done, total: None, among: str | None = None
    ) -> None:
        """With `among`, temporary vaults also have the notes of this folder, which answer nothing."""
        self._settings, self._work, self._bar, self._among = settings, work, bar, among

    def ask(self, found: QuestionSet, methods: dict[str, Method], vault: Vault | None = None) -> list[Run]:
        """With `before`, a vault grows: each question is asked when it holds just the documents that may answer."""
        runs = [(Run(found.name, name, []), method) for name, method in methods.items()]
        if vault:
            self._sync(vault)
            refs = Desk(vault).texts().keys()
            for question in found.questions:  # a ref that no note has would count as never found
                if unknown := question.answers.keys() - refs:
                    raise InvalidInputError(f"question {question.id}: this vault has no note {min(unknown)}")
            self._ask(Desk(vault), [question for question in found.questions if question.kind != ABSENT], runs)
        for group in found.groups if not vault else ():
            asked = [question for question in found.questions if question.group == group]
            with self._vault() as vault:
                for before in sorted({question.before for question in asked}):
                    ids = self._fill(vault, found, group, before)
                    self._ask(Desk(vault), [question for question in asked if question.before == before], runs, ids)
        return [run for run, _ in runs]

    def abstain(self, found: QuestionSet, vault: Vault | None = None) -> dict[str, Any]:
        """How well confidence tells that nothing answers: questions of kind `absent`, or for another group's vault."""
        answers: list[tuple[bool, SearchResult]] = []
        if vault:
            self._sync(vault)
            answers = [
                (question.kind != ABSENT, search(vault, question.text, Options())) for question in found.questions
            ]
        for place, group in enumerate(found.groups if not vault and len(found.groups) > 1 else ()):
            with self._vault() as vault:
                self._fill(vault, found, group)
                for question in found.questions:
                    if question.group in (group, found.groups[place - 1]):
                        answers.append((question.group == group, search(vault, question.text, Options())))
        parts = [[result for answerable, result in answers if answerable is wanted] for wanted in (True, False)]
        if not all(parts):
            raise InvalidInputError(f"{found.name} has no unanswerable questions: groups, or the kind {ABSENT!r}")
        sure, unsure = ([result.confidence or 0.0 for result in part] for part in parts)
        wrongly, rightly = (sum(result.state == "absent" for result in part) / len(part) for part in parts)
        row = {"set": found.name, "answerable": len(sure), "unanswerable": len(unsure), "auroc": auroc(sure, unsure)}
        return {**row, "absent_wrongly": round(wrongly, 4), "absent_rightly": round(rightly, 4)}

    @contextmanager
    def vault_of(self, found: QuestionSet, group: str = "") -> Generator[Vault]:
        """A temporary vault with the documents of a group."""
        with self._vault() as vault:
            self._fill(vault, found, group)
            yield vault

    @contextmanager
    def _vault(self) -> Generator[Vault]:
        """With a search.db of its own; among the notes of others with one whose cache has the vectors of those."""
        with tempfile.TemporaryDirectory(dir=self._work, ignore_cleanup_errors=True) as folder:
            root, data_dir = os.path.join(folder, "vault"), os.path.join(folder, "data")
            os.mkdir(root)
            if self._among:
                add_others(root, self._among)
                data_dir = os.path.join(self._work, "among")
            settings = replace(self._settings, vault=root, data_dir=data_dir, knowledge_exclude=())
            with temporary(open_vault(settings), shared=bool(self._among)) as vault:
                yield vault

    def _fill(self, vault: Vault, found: QuestionSet, group: str, before: float = math.inf) -> dict[str, str]:
        """Write a group's documents as notes and sync them. Returns the documents' ids by the notes' refs."""
        ids: dict[str, str] = {}
        for number, document in enumerate(found.documents):
            if document.group == group and document.seq < before:
                source = "memory" if len(document.text) <= SHORT else "article"
                path = os.path.join(vault.root, FOLDERS[source], f"{number}.md")
                os.makedirs(os.path.dirname(path), exist_ok=True)
                if not os.path.exists(path):
                    with open(path, "w", encoding="utf-8", errors="replace") as stream:
                        stream.write(note_text(document, with_following=before == math.inf))
                ids[f"{source}:{number}"] = document.id
        self._sync(vault)
        return ids

    def _sync(self, vault: Vault) -> None:
        sync_vault(vault, self._bar)
        if vault.embedders.space and (waiting := vault.index.unembedded()):
            raise IndexUnavailableError(f"{waiting} passages have no vector and would not be found: see `co doctor`")

    def _ask(self, desk: Desk, questions: list[Question], runs: list[tuple[Run, Method]], ids: Ids = None) -> None:
        """Add answers to the runs. The first question is asked twice, to warm up; methods take turns in going first."""
        for number, question in enumerate([*questions[:1], *questions]):
            turn = number % len(runs)
            for run, method in (*runs[turn:], *runs[:turn]):
                desk.begin()
                started = time.perf_counter()
                refs = method(desk, question.text)
                seconds = time.perf_counter() - started
                marks = mark_ranking([ids.get(ref, ref) if ids else ref for ref in refs], question.answers, ids is None)
                if number:
                    run.answers.append((question, marks, seconds))
            self._bar(number, len(questions))


def mark_ranking(ranked: Sequence[str], grades: dict[str, int], any_is_enough: bool = False) -> Marks:
    """`ranked` is best first. Recall is the share of relevant names, or with `any_is_enough` whether one was found."""
    gains = [grades.get(name, 0) for name in dict.fromkeys(ranked)][:10]
    best = _discounted(sorted(grades.values(), reverse=True)[:10])
    relevant = 1 if any_is_enough else sum(grade > 0 for grade in grades.values())
    recall5, recall10 = (sum(gain > 0 for gain in gains[:depth]) / max(1, relevant) for depth in (5, 10))
    first = next((place for place, gain in enumerate(gains, 1) if gain > 0), math.inf)
    return Marks(_discounted(gains) / best if best else 0.0, min(1.0, recall5), min(1.0, recall10), 1 / first)


def mean_marks(marks: Sequence[Marks]) -> Marks:
    return Marks(*(round(sum(column) / len(marks), 4) for column in zip(*marks, strict=True)))


def auroc(higher: Sequence[float], lower: Sequence[float]) -> float:
    """The chance that one of the first is above one of the second; a tie counts half."""
    wins = sum((high > other) + (high == other) / 2 for high in higher for other in lower)
    return round(wins / (len(higher) * len(lower)), 4)


def _discounted(gains: Sequence[int]) -> float:
    return sum(gain / math.log2(place + 2) for place, gain in enumerate(gains))
