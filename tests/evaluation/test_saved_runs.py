"""Runs that are written down: as JSON for a later comparison, and as a ranking for other scorers."""

from __future__ import annotations

from pathlib import Path

import pytest

from co_cli.errors import InvalidInputError
from co_cli.evaluation.questions import Question
from co_cli.evaluation.running import Answered, Run
from co_cli.evaluation.saved_runs import json_text, marks_of, ranking_text, read_marks, rows_of
from co_cli.evaluation.scoring import Marks
from co_cli.settings import load_settings


def a_run(method: str = "co", ndcg: float = 1 / 3) -> Run:
    question = Question("q1", "oaks", {"a": 1}, "trees")
    return Run("set", method, [Answered(question, [("a", 0.5), ("b", 0.5), ("c", 0.7)], Marks(ndcg, 1, 1, 1), 0.004)])


def test_a_saved_run_is_read_as_it_was(tmp_path: Path) -> None:
    runs = [a_run(), a_run("fts5-any", 0.25)]
    file = tmp_path / "before.json"
    file.write_text(json_text([row for run in runs for row in rows_of(run, load_settings())]))

    assert read_marks(str(file))["set"]["q1"] == pytest.approx(marks_of(runs, "co")["set"]["q1"], abs=1e-6)
    assert read_marks(f"{file}:fts5-any")["set"]["q1"].ndcg10 == 0.25


def test_rows_say_what_was_asked_and_how_it_was_answered() -> None:
    every, kind = rows_of(a_run("co:fts5"), load_settings())

    assert (every["set"], every["method"], every["backend"], every["kind"]) == ("set", "co:fts5", "fts5", "all")
    assert (every["provider"], every["degraded"], every["median_ms"]) == ("static", "", 4.0)
    assert (kind["kind"], "marks" in kind) == ("trees", False)
    assert rows_of(a_run("simple"), load_settings())[0]["backend"] is None


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("[]", "has no run of co; it has none at all"),
        ('[{"method": "rrf", "set": "s"}]', "has no run of co; it has rrf"),
        ("{}", "has no run of co"),
        ("7", "is not what `co eval --json` prints"),
        ("oak", "is not what `co eval --json` prints"),
        ('[{"method": "co", "set": "s", "marks": {"q": [1]}}]', "is not what `co eval --json` prints"),
    ],
)
def test_a_file_that_holds_no_such_run_is_told(tmp_path: Path, content: str, said: str) -> None:
    file = tmp_path / "before.json"
    file.write_text(content)

    with pytest.raises(InvalidInputError, match=said):
        read_marks(str(file))


def test_scores_of_a_ranking_keep_its_order_for_scorers_that_sort() -> None:
    lines = [line.split("\t") for line in ranking_text(a_run()).splitlines()]

    assert [(question, document) for question, document, _ in lines] == [("q1", "a"), ("q1", "b"), ("q1", "c")]
    scores = [float(score) for *_, score in lines]
    assert scores == sorted(scores, reverse=True)
    assert len(set(scores)) == 3
