"""Public question sets: floors, and vectors must not cost what keywords alone find.

The sets are not part of the repository; without their folder these tests are skipped.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.turns import ask_turns
from co_cli.evaluation.running import Evaluation, mean_marks, method
from co_cli.evaluation.sets import read_set
from co_cli.ground.settings import load_settings

pytestmark = pytest.mark.slow

SETS = Path(__file__).parents[2].parent / "shared" / "evals"
QUESTIONS, CHANCE = 40, 0.02
"""Questions of each set, spread over all of it, and how far their mean may be off."""


@pytest.mark.parametrize(("name", "floor"), [("anthropic_docs", 0.79)])
def test_a_hybrid_search_is_as_good_as_measured_and_no_worse_than_words_alone(
    name: str, floor: float, tmp_path: Path
) -> None:
    if not (SETS / name).is_dir():
        pytest.skip(f"the public question set is not in {SETS / name}")
    found = read_set(str(SETS / name))
    found = found._replace(questions=found.questions[:: max(1, len(found.questions) // QUESTIONS)][:QUESTIONS])
    methods = {name: method(name) for name in ("co", "co:fts5")}

    runs = Evaluation(load_settings(), str(tmp_path)).ask(found, methods)

    scores = {run.method: mean_marks([marks for _, marks, _ in run.answers]).ndcg10 for run in runs}
    assert scores["co"] >= floor, scores
    assert scores["co"] >= scores["co:fts5"] - CHANCE, scores


def test_turns_of_captured_conversations_are_found_as_well_as_notes(tmp_path: Path) -> None:
    if not (SETS / "locomo_turn").is_dir():
        pytest.skip(f"the public question set is not in {SETS / 'locomo_turn'}")
    found = read_set(str(SETS / "locomo_turn"))
    found = found._replace(questions=[one for one in found.questions if one.group == found.groups[0]][::2])

    (run,) = Evaluation(load_settings(), str(tmp_path)).ask(found, {"co": method("co:hybrid")})
    notes = mean_marks([marks for _, marks, _ in run.answers])
    turns = mean_marks(ask_turns(found, tmp_path))

    assert turns.ndcg10 >= notes.ndcg10 - CHANCE
    assert turns.recall10 >= notes.recall10 - CHANCE
