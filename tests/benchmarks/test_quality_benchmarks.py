"""The experiments that choose numbers: comparing runs, holding sets out, a year of facts, cutting long texts."""

from __future__ import annotations

import json
import random
from pathlib import Path

import pytest

from benchmarks.bootstrap import Comparison, bench_compare, compare
from co_cli.errors import InvalidInputError
from co_cli.evaluation.running import Marks


def marks(*values: float) -> dict[str, Marks]:
    return {str(number): Marks(value, value, value, value) for number, value in enumerate(values)}


def ndcg(first: dict[str, dict[str, Marks]], second: dict[str, dict[str, Marks]]) -> list[Comparison]:
    return [found for found in compare(first, second) if found.measure == "ndcg10"]


def test_a_paired_gain_is_better_a_loss_is_worse_and_noise_is_neither() -> None:
    chance = random.Random(1)
    noise = [marks(*(chance.random() for _ in range(200))) for _ in range(2)]
    low, high = marks(*[0.0, 1.0] * 20), marks(*[0.02, 1.0] * 20)  # questions differ far more than the runs do

    verdicts = [ndcg({"set": one}, {"set": two})[0].verdict for one, two in ((low, high), (high, low), noise)]

    assert verdicts == ["better", "worse", "unsure"]


def test_two_files_of_co_eval_are_compared_and_others_refused(tmp_path: Path) -> None:
    for name, value in (("before", 0.2), ("after", 0.5)):
        row = {"set": "trees", "method": "co", "marks": marks(*[value] * 9)}
        (tmp_path / f"{name}.json").write_text(json.dumps([row]))

    found, _ = bench_compare([str(tmp_path / "before.json"), str(tmp_path / "after.json")])

    assert (found.value, found.name) == (0.3, "trees (9), ndcg10: 0.2000 to 0.5000 [+0.3000, +0.3000] better")
    (tmp_path / "before.json").write_text("[]")
    with pytest.raises(InvalidInputError, match=r"before\.json"):
        bench_compare([str(tmp_path / "before.json")] * 2)
    with pytest.raises(InvalidInputError, match="share no question"):
        compare({"one": marks(1.0)}, {"two": marks(1.0)})
