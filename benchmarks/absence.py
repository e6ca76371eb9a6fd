"""Fit how sure a search is that something answers, and count how often that is right.

With the reader, the confidence is a logistic in its best score and in the odds without it. With
CO_KNOWLEDGE_READER=off, it is a logistic in the best cosine, the share of the question's words that one passage has,
and the size of the vault.

Each vault is asked its own questions, which it can answer, and others, which it cannot. Public sets get those of other
families and groups. Short notes get those of other lives: quality/short_notes, and five lives each of the part of
reader/data that the reader was not trained on. With vectors of `languages`, half of the short notes in each other
language get the questions of the other half, too. Public sets and short notes count the same. AUROC is that of families
that were left out. In the end quality/unseen, on which nothing is fitted, is asked as users ask.
"""

from __future__ import annotations

import json
import math
import shutil
import tempfile
from collections.abc import Generator, Iterator, Sequence
from contextlib import closing, contextmanager
from itertools import zip_longest
from pathlib import Path
from typing import NamedTuple, TypeVar

import numpy as np

from benchmarks.held_out import families_of
from benchmarks.measuring import BenchRow
from benchmarks.vaults import Bar
from co_cli.embedding.languages_weights import is_installed
from co_cli.evaluation.running import Evaluation, auroc
from co_cli.evaluation.sets import EvalDocument, Question, QuestionSet, read_set, read_vault
from co_cli.ground.hits import Filters, SearchResult
from co_cli.ground.settings import Settings, load_settings
from co_cli.retrieval.pipeline import search
from co_cli.retrieval.request import SearchRequest
from co_cli.retrieval.results import Fit, odds_unread
from co_cli.searching import answers
from co_cli.searching.requests import Options
from co_cli.vault.vault import Vault, open_vault, sync_vault

Item = TypeVar("Item")

ANSWERED, FOREIGN = 120, 100
"""Questions asked of each set's vaults."""
MOST_GROUPS = 5
STEPS, RIDGE = 60, 1e-3
SIZE = -0.25
"""The coefficient of the logarithm of the passages. Fitted with the others, it tells short notes from public sets, and
is wrong for small vaults."""
FOLDER = Path(__file__).parent
TRANSLATED = FOLDER / "quality" / "languages"
SHORT_NOTES, UNSEEN = FOLDER / "quality" / "short_notes", FOLDER / "quality" / "unseen"
LIVES = FOLDER / "reader" / "data" / "part-05.jsonl"
"""Lives that the reader was not trained on."""
NOTES = "short notes"
"""The family of all vaults of short notes."""
MISSED = 0.05
"""The share of questions with an answer that may be called absent."""
DIGITS = 5
"""A process's first search compares vectors in SQLite, later ones in numpy: the last digits of a cosine differ."""


class Asked(NamedTuple):
    """One question asked of one vault."""

    set: str
    answerable: bool
    cosine: float
    coverage: float
    passages: int
    read: tuple[float, ...]
    """The reader's best score, and the odds without it, if it reads."""


class Life(NamedTuple):
    """What a person keeps, and the questions about it: those that may share words with a note, and others."""

    documents: list[EvalDocument]
    plain: list[Question]
    paraphrases: list[Question]

    @property
    def questions(self) -> list[Question]:
        return [*self.plain, *self.paraphrases]


def bench_absence(folders: Sequence[str], bar: Bar | None = None) -> list[BenchRow]:
    families = families_of(folders)
    sets = [read_set(folder) for folder in folders]
    asked: list[Asked] = []
    for number, found in enumerate(sets, 1):
        others = [other for other in sets if families[other.name] != families[found.name]]
        asked += _ask(found, [question for other in others for question in _some(other.questions, 40)])
        if bar:
            bar(number, len(sets))
    notes = [*_ask_notes(), *_ask_translated()]
    asked += notes
    families |= {question.set: NOTES for question in notes}
    rows: list[BenchRow] = []
    for family in dict.fromkeys(families.values()):
        weights = fit([question for question in asked if families[question.set] != family], families)
        mine = [question for question in asked if families[question.set] == family]
        sure = [[_odds(weights, one) for one in mine if one.answerable is kind] for kind in (True, False)]
        rows.append(BenchRow(f"{family}: AUROC", auroc(*sure), ""))
    names = ["reader", "without reading"] if asked[0].read else ["cosine", "coverage"]
    rows += [
        BenchRow(name, float(value), "") for name, value in zip([*names, "constant"], fit(asked, families), strict=True)
    ]
    return rows + judge_unseen()


def fit(asked: Sequence[Asked], families: dict[str, str]) -> np.ndarray:
    """The coefficients and the constant, by Newton's method."""
    features = np.array([_features(question) for question in asked])
    answered = np.array([float(question.answerable) for question in asked])
    share = _shares(asked, families)
    given = np.array([_odds(np.zeros(features.shape[1]), question) for question in asked])
    found = np.zeros(features.shape[1])
    for _ in range(STEPS):
        sure = 1 / (1 + np.exp(-features @ found - given))
        slope = features.T @ (share * (sure - answered)) + RIDGE * found
        curve = (features * (share * sure * (1 - sure))[:, None]).T @ features + RIDGE * np.eye(len(found))
        found -= np.linalg.solve(curve, slope)
    return found


def _shares(asked: Sequence[Asked], families: dict[str, str]) -> np.ndarray:
    """How much each question counts: both kinds of a set the same, all sets the same, short notes as much as sets."""
    notes = [families[name] == NOTES for name in dict.fromkeys(question.set for question in asked)]
    most = {True: max(sum(notes), 1), False: max(len(notes) - sum(notes), 1)}
    counts = [(question.set, question.answerable) for question in asked]
    return np.array([1_000 / most[families[key[0]] == NOTES] / counts.count(key) for key in counts])


def judge_unseen() -> list[BenchRow]:
    """What the product says of questions about these notes, and of questions about other lives."""
    lives = read_lives()
    kinds = {
        "in the notes' words": [question.text for life in lives for question in life.plain],
        "in other words": [question.text for life in lives for question in life.paraphrases],
    }
    with _copy(UNSEEN) as vault:
        own = [answers.search(vault, question.text, Options()) for question in read_vault(str(UNSEEN)).questions]
        foreign = {
            kind: [answers.search(vault, text, Options()) for text in _some(texts, FOREIGN)]
            for kind, texts in kinds.items()
        }
    rows = [BenchRow("unseen: absent, with an answer", _share(own, "absent"), "")]
    least = sorted(_sure(own))[int(MISSED * len(own))]
    for kind, results in foreign.items():
        found = sum(sure >= least for sure in _sure(results)) / len(results)
        rows += [
            BenchRow(f"unseen: AUROC, other lives {kind}", auroc(_sure(own), _sure(results)), ""),
            BenchRow(f"unseen: found, other lives {kind}", _share(results, "found"), ""),
            BenchRow("... if 5 % of the questions with an answer were called absent", found, ""),
        ]
    return rows + _calibration(_sure(own), [sure for results in foreign.values() for sure in _sure(results)])


def _calibration(own: Sequence[float], foreign: Sequence[float]) -> list[BenchRow]:
    """Of the questions with about such a confidence, the share that have an answer, if half of all had one."""
    rows: list[BenchRow] = []
    for low in (0.0, 0.2, 0.4, 0.6, 0.8):
        parts = [
            [sure for sure in part if low <= sure < low + 0.2 or sure == low + 0.2 == 1] for part in (own, foreign)
        ]
        right, wrong = len(parts[0]) / len(own), len(parts[1]) / len(foreign)
        name = f"unseen: answered, of {sum(map(len, parts))} with a confidence of {low:.1f} to {low + 0.2:.1f}"
        rows += [BenchRow(name, right / (right + wrong), "")] if right + wrong else []
    return rows


def read_lives() -> list[Life]:
    """The lives of one part of our own notes."""
    notes = [json.loads(line) for line in LIVES.read_text("utf-8").splitlines()]
    found: list[Life] = []
    for life in dict.fromkeys(note["life"] for note in notes):
        mine = [note for note in notes if note["life"] == life]
        documents = [EvalDocument(note["id"], note["text"], 0, "", "", "", "", "") for note in mine]
        asked = ([Question(note["id"], note["questions"][kind], {note["id"]: 1}) for note in mine] for kind in (0, 1))
        found.append(Life(documents, *asked))
    return found


def _ask_notes() -> Iterator[Asked]:
    """Vaults of short notes with their own questions and those of other lives."""
    lives = read_lives()
    for number in range(2):
        inside, outside = lives[number::2], lives[1 - number :: 2]
        documents = [document for life in inside for document in life.documents]
        own = [question for life in inside for question in life.questions]
        others = [question for life in outside for question in life.questions]
        found = QuestionSet(f"lives {number + 1}", own, documents)
        yield from _ask(found, others)
    own = read_vault(str(SHORT_NOTES)).questions
    with _copy(SHORT_NOTES) as vault:
        for question in own:
            yield _one(vault, SHORT_NOTES.name, question.text, True)
        for question in _some([question for life in lives for question in life.questions], FOREIGN):
            yield _one(vault, SHORT_NOTES.name, question.text, False)


def _ask_translated() -> Iterator[Asked]:
    """Halves of the short notes in each other language, with the questions of both halves."""
    if load_settings({}).knowledge_embedding_provider not in (None, "languages") or not is_installed():
        return
    for folder in sorted(path for path in TRANSLATED.iterdir() if path.is_dir()):
        asked = read_vault(str(folder)).questions
        for number in range(2):
            with _copy(folder, number) as vault:
                for question in asked:
                    inside = all(_half(ref.partition(":")[2]) == number for ref in question.answers)
                    yield _one(vault, f"short notes in {folder.name}", question.text, inside)


def _half(name: str) -> int:
    """Which half a short note is in. Notes about the same thing, whose names begin alike, are together."""
    subjects = sorted({path.stem.split("-")[0] for path in (SHORT_NOTES / "memories").iterdir()})
    return subjects.index(name.split("-")[0]) % 2


def _ask(found: QuestionSet, foreign: Sequence[Question]) -> Iterator[Asked]:
    groups = found.groups[:MOST_GROUPS]
    with tempfile.TemporaryDirectory(prefix="co-bench-", ignore_cleanup_errors=True) as work:
        evaluation = Evaluation(_settings(work), work)
        for place, group in enumerate(groups):
            own = [question for question in found.questions if question.group == group]
            others = [one for one in found.questions if one.group == groups[place - 1] and len(groups) > 1]
            mixed = [one for pair in zip_longest(others, foreign) for one in pair if one]
            with evaluation.vault_of(found, group) as vault:
                for questions, most, answerable in ((own, ANSWERED, True), (mixed, FOREIGN, False)):
                    for question in questions[:: -(-len(questions) * len(groups) // most)]:
                        yield _one(vault, found.name, question.text, answerable)


def _one(vault: Vault, name: str, text: str, answerable: bool) -> Asked:
    request = SearchRequest(text, filters=Filters(outdated=True), reader=vault.reader, read_always=True)
    result, trace = search(vault.index.notes, request)
    nearest = round(max(trace.candidates.cosines.values(), default=0.0), DIGITS)
    coverage, passages, space = trace.candidates.best_coverage, result.searched.passages, trace.prepared.space
    read: tuple[float, ...] = ()
    if vault.reader and space and space.certainty:
        unread = odds_unread(Fit(space.certainty, passages), nearest, coverage)
        read = (max(trace.read_scores.values(), default=0.0), unread)
    return Asked(name, answerable, nearest, coverage, passages, read)


@contextmanager
def _copy(folder: Path, half: int | None = None) -> Generator[Vault]:
    """A copy of a vault, or of half of its notes, synced."""
    with tempfile.TemporaryDirectory(prefix="co-bench-", ignore_cleanup_errors=True) as work:
        shutil.copytree(folder, f"{work}/vault")
        for note in Path(work, "vault", "memories").iterdir() if half is not None else ():
            if _half(note.stem) != half:
                note.unlink()
        with closing(open_vault(_settings(work))) as vault:
            sync_vault(vault)
            yield vault


def _settings(work: str) -> Settings:
    return load_settings({"vault": f"{work}/vault", "data_dir": f"{work}/data"})


def _some(found: Sequence[Item], count: int) -> Sequence[Item]:
    return found[:: -(-len(found) // count)]


def _sure(results: Sequence[SearchResult]) -> list[float]:
    return [round(result.confidence or 0.0, DIGITS) for result in results]


def _share(results: Sequence[SearchResult], state: str) -> float:
    return sum(result.state == state for result in results) / len(results)


def _features(one: Asked) -> np.ndarray:
    return np.array([*(one.read or (one.cosine, one.coverage)), 1.0])


def _odds(weights: np.ndarray, one: Asked) -> float:
    return float(weights @ _features(one)) + (0.0 if one.read else SIZE * _size(one))


def _size(one: Asked) -> float:
    return math.log(max(one.passages, 1))
