"""Public question sets: vectors must not cost what keywords alone find.

The sets are not part of the repository; without their folder these tests are skipped.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from co_cli.evaluation.running import Evaluation, mean_marks, method
from co_cli.evaluation.sets import read_set
from co_cli.settings import load_settings

SETS = Path(__file__).parents[2].parent / "shared" / "evals"
QUESTIONS = 100

pytestmark = pytest.mark.skipif(not SETS.is_dir(), reason=f"the public question sets are not in {SETS}")


@pytest.mark.parametrize("name", ["anthropic_docs", "xquad_en"])
def test_a_hybrid_search_is_no_worse_than_words_alone(name: str, tmp_path: Path) -> None:
    found = read_set(str(SETS / name))
    found = found._replace(questions=found.questions[:: max(1, len(found.questions) // QUESTIONS)][:QUESTIONS])
    methods = {name: method(name) for name in ("co", "co:fts5", "fts5-any")}

    runs = Evaluation(load_settings(), str(tmp_path)).ask(found, methods)

    scores = {run.method: mean_marks([marks for _, marks, _ in run.answers]) for run in runs}
    assert scores["co"].ndcg10 >= scores["co:fts5"].ndcg10, scores
    assert scores["co"].ndcg10 >= scores["fts5-any"].ndcg10, scores
