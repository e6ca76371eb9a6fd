"""What a ranking is worth."""

from __future__ import annotations

import json
import random
import subprocess
import sys
from pathlib import Path

import pytest

from co_cli.evaluation.scoring import Marks, Scores, mark_ranking, mean_of_sets, mean_scores
from co_cli.evaluation.sets import read_documents, read_public_questions

SETS = Path(__file__).parents[2].parent / "shared" / "evals"


def test_the_best_ranking_is_worth_one() -> None:
    assert mark_ranking(["a", "b", "c"], {"a": 2, "b": 1}) == Marks(1.0, 1.0, 1.0, 1.0)


def test_a_lower_place_is_worth_less() -> None:
    marks = mark_ranking(["x", "a"], {"a": 1})

    assert marks.ndcg10 == pytest.approx(0.6309, abs=1e-4)
    assert (marks.recall5, marks.mrr10) == (1.0, 0.5)


def test_recall_is_the_share_of_what_is_relevant() -> None:
    assert mark_ranking(["a"], {"a": 1, "b": 1, "c": 0}).recall10 == 0.5


def test_where_one_answer_is_enough_recall_asks_for_one() -> None:
    assert mark_ranking(["a"], {"a": 1, "b": 1}, any_is_enough=True).recall5 == 1.0
    assert mark_ranking(["x"], {"a": 1, "b": 1}, any_is_enough=True).recall5 == 0.0


def test_what_comes_after_the_tenth_place_does_not_count() -> None:
    assert mark_ranking([*"bcdefghijk", "a"], {"a": 1}) == Marks(0.0, 0.0, 0.0, 0.0)


def test_a_document_that_is_returned_twice_counts_once() -> None:
    assert mark_ranking(["a", "a", "b"], {"a": 1, "b": 1}) == Marks(1.0, 1.0, 1.0, 1.0)


@pytest.mark.parametrize("ranked", [[], ["x"]])
def test_nothing_right_is_worth_nothing(ranked: list[str]) -> None:
    assert mark_ranking(ranked, {"a": 1}) == Marks(0.0, 0.0, 0.0, 0.0)


def test_times_are_those_that_half_and_nearly_all_questions_stay_within() -> None:
    marks = [Marks(1.0, 1.0, 1.0, 1.0)] * 100

    scores = mean_scores(marks, [second / 1000 for second in range(1, 101)])

    assert (scores.questions, scores.median_ms, scores.p95_ms) == (100, 50.0, 95.0)


def test_in_a_mean_over_sets_each_set_counts_alike() -> None:
    small, large = Scores(0.2, 0.4, 0.6, 0.8, 10, 5.0), Scores(0.4, 0.6, 0.8, 1.0, 1_000, 9.0)

    assert mean_of_sets([small, large]) == Scores(0.3, 0.5, 0.7, 0.9, 1_010)


@pytest.mark.skipif(not SETS.is_dir(), reason=f"the public question sets and their score.py are not in {SETS}")
@pytest.mark.parametrize("name", ["cranfield", "realmem_one", "locomo_obs"])
def test_our_scores_are_those_of_the_scorer_that_came_with_the_sets(name: str, tmp_path: Path) -> None:
    """On rankings that are half right: graded, with several answers, and with kinds that are left out."""
    chance = random.Random(5)
    ids = [document.id for document in read_documents(str(SETS / name))]
    marks: list[Marks] = []
    lines: list[str] = []
    for question in read_public_questions(str(SETS / name)):
        right = chance.sample(list(question.answers), min(3, len(question.answers)))
        ranked = list(dict.fromkeys([*right, *chance.sample(ids, 12)]))
        chance.shuffle(ranked)
        marks.append(mark_ranking(ranked, question.answers))
        lines += [f"{question.id}\t{document}\t{-place}\n" for place, document in enumerate(ranked)]
    (tmp_path / "run.tsv").write_text("".join(lines), "utf-8")

    theirs = subprocess.run(
        [sys.executable, SETS / "score.py", SETS / name, tmp_path / "run.tsv", "--json"],
        capture_output=True,
        text=True,
        check=True,
    )

    assert list(mean_scores(marks)[:5]) == list(json.loads(theirs.stdout).values())
