"""Sets become vaults on disk and are asked there; answers become figures."""

from __future__ import annotations

import json
import random
import subprocess
import sys
from pathlib import Path

import pytest

from co_cli.entrance.knowledge_base import KnowledgeBase
from co_cli.evaluation.baselines import BASELINES, Desk
from co_cli.evaluation.running import Evaluation, Marks, mark_ranking, mean_marks, method
from co_cli.evaluation.sets import Question, QuestionSet, read_set
from co_cli.ground.errors import InvalidInputError
from co_cli.ground.settings import load_settings
from tests.evaluation.tiny_set import trees, write_set
from tests.folder import Vault

SETS = Path(__file__).parents[2].parent / "shared" / "evals"
EVERY = {name: method(name) for name in ("co", *BASELINES)}


@pytest.fixture
def evaluation(tmp_path: Path) -> Evaluation:
    (tmp_path / "work").mkdir()
    return Evaluation(load_settings(), str(tmp_path / "work"))


def test_every_method_is_asked_every_question(tmp_path: Path, evaluation: Evaluation) -> None:
    runs = evaluation.ask(read_set(str(trees(tmp_path / "trees"))), EVERY)

    assert [run.method for run in runs] == list(EVERY)
    assert [[question.id for question, _, _ in run.answers] for run in runs] == [["1", "2"]] * len(runs)
    every, age, _ = runs[0].rows()
    assert (every["kind"], every["questions"], list(every["marks"])) == ("all", 2, ["1", "2"])
    assert (age["kind"], age["mrr10"], "marks" in age) == ("age", 1.0, False)


def test_groups_never_see_each_other(tmp_path: Path, evaluation: Evaluation) -> None:
    documents = [{"id": f"{name}1", "text": f"{name} likes oaks.", "group": name} for name in ("ada", "bo")]
    questions = [{"id": f"q{name}", "text": "who likes oaks", "group": name} for name in ("bo", "ada")]
    folder = write_set(tmp_path / "set", documents, questions, [("qada", "ada1", 1), ("qbo", "bo1", 1)])

    for run in evaluation.ask(read_set(str(folder)), EVERY):
        assert all(marks in (Marks(1, 1, 1, 1), Marks(0, 0, 0, 0)) for _, marks, _ in run.answers), run.method
        assert [question.id for question, _, _ in run.answers] == ["qbo", "qada"]


def test_later_documents_are_not_there_yet(tmp_path: Path, evaluation: Evaluation) -> None:
    documents = [{"id": f"d{seq}", "text": f"The pool is {seq} metres long.", "seq": seq} for seq in range(4)]
    questions = [
        {"id": "late", "text": "how long is the pool"},
        {"id": "early", "text": "how long is the pool", "before": 2},
        {"id": "never", "text": "how long is the pool", "before": 0},
    ]
    folder = write_set(tmp_path / "set", documents, questions, [(name, "d1", 1) for name in ("early", "late", "never")])
    notes: list[int] = []

    def count(desk: Desk, text: str) -> list[str]:
        notes.append(len(desk.texts()))
        return []

    evaluation.ask(read_set(str(folder)), {"count": count})

    assert notes == [0, 0, 2, 2, 4, 4]  # the first question of a vault is asked twice, to warm up


def test_in_your_vault_one_right_note_is_enough_and_absent_questions_do_not_count(
    vault: Vault, kb: KnowledgeBase, evaluation: Evaluation
) -> None:
    vault.write("memories/oak.md", "Oaks live for centuries.")
    vault.write("memories/elm.md", "Elms stand in the park.")
    asked = [Question("1", "centuries", {"memory:oak": 1, "memory:elm": 1}), Question("2", "who?", {}, "absent")]

    [run] = evaluation.ask(QuestionSet("vault", asked), {"co:fts5": method("co:fts5")}, kb.vault)

    assert [(question.id, marks.recall5) for question, marks, _ in run.answers] == [("1", 1.0)]
    missing = QuestionSet("vault", [Question("7", "who?", {"memory:moon": 1})])
    with pytest.raises(InvalidInputError, match="question 7: this vault has no note memory:moon"):
        evaluation.ask(missing, EVERY, kb.vault)


def test_a_ranking_has_marks() -> None:
    assert mark_ranking(["a", "b", "c"], {"a": 2, "b": 1}) == Marks(1.0, 1.0, 1.0, 1.0)
    assert mark_ranking(["x", "a"], {"a": 1}) == pytest.approx((0.6309, 1.0, 1.0, 0.5), abs=1e-4)
    assert mark_ranking([*"bcdefghijk", "a"], {"a": 1}) == mark_ranking([], {"a": 1}) == Marks(0.0, 0.0, 0.0, 0.0)
    assert mark_ranking(["a", "a", "b"], {"a": 1, "b": 1}) == Marks(1.0, 1.0, 1.0, 1.0)
    assert mark_ranking(["a"], {"a": 1, "b": 1, "c": 0}).recall10 == 0.5
    assert mark_ranking(["a"], {"a": 1, "b": 1}, any_is_enough=True).recall10 == 1.0


@pytest.mark.skipif(not SETS.is_dir(), reason=f"the public question sets and their score.py are not in {SETS}")
@pytest.mark.parametrize("name", ["cranfield"])
def test_scores_equal_those_of_the_scorer_that_came_with_the_sets(name: str, tmp_path: Path) -> None:
    """On rankings that are half right: graded, with several answers, and with kinds that are left out."""
    chance = random.Random(5)
    found = read_set(str(SETS / name))
    ids = [document.id for document in found.documents]
    marks: list[Marks] = []
    lines: list[str] = []
    for question in found.questions:
        right = chance.sample(list(question.answers), min(3, len(question.answers)))
        ranked = list(dict.fromkeys([*right, *chance.sample(ids, 12)]))
        chance.shuffle(ranked)
        marks.append(mark_ranking(ranked, question.answers))
        lines += [f"{question.id}\t{document}\t{-place}\n" for place, document in enumerate(ranked)]
    (tmp_path / "run.tsv").write_text("".join(lines), "utf-8")

    command = [sys.executable, SETS / "score.py", SETS / name, tmp_path / "run.tsv", "--json"]
    theirs = subprocess.run(command, capture_output=True, text=True, check=True)

    assert [*mean_marks(marks), len(marks)] == list(json.loads(theirs.stdout).values())


def test_notes_among_which_is_asked_are_embedded_once_for_all_groups(tmp_path: Path) -> None:
    others = Vault(tmp_path / "others")
    for number in range(3):
        others.write(f"{number}.md", f"Elm number {number} stands by the water.")
    documents = [{"id": name, "text": f"The oak of the {name} is old.", "group": name} for name in ("park", "yard")]
    questions = [{"id": name, "text": "how old is the oak", "group": name} for name in ("park", "yard")]
    folder = write_set(tmp_path / "set", documents, questions, [(name, name, 1) for name in ("park", "yard")])
    work = tmp_path / "work"
    work.mkdir()

    [run] = Evaluation(load_settings(), str(work), among=str(others.root)).ask(
        read_set(str(folder)), {"co": EVERY["co"]}
    )

    assert [marks for _, marks, _ in run.answers] == [Marks(1, 1, 1, 1)] * 2
    with KnowledgeBase.open(str(work), str(work / "among")) as kb:
        cache = kb.index.notes.cache_state()
    assert (cache.misses, cache.hits) == (3 + 2, 3)
