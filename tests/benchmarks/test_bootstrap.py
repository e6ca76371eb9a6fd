"""Is one run better than another, or was it luck?"""

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


def test_a_steady_gain_is_better_and_a_steady_loss_is_worse() -> None:
    low, high = marks(*[0.2, 0.4] * 50), marks(*[0.3, 0.6] * 50)

    [gain], [loss] = ndcg({"set": low}, {"set": high}), ndcg({"set": high}, {"set": low})

    assert (gain.first, gain.second, gain.difference, gain.questions) == (0.3, 0.45, 0.15, 100)
    assert 0 < gain.low < 0.15 < gain.high
    assert (gain.verdict, loss.verdict) == ("better", "worse")
    assert (loss.low, loss.high) == pytest.approx((-gain.high, -gain.low), abs=0.01)


def test_noise_is_no_difference() -> None:
    chance = random.Random(1)
    first, second = (marks(*(chance.random() for _ in range(200))) for _ in range(2))

    [found] = ndcg({"set": first}, {"set": second})

    assert found.low < 0 < found.high
    assert found.verdict == "unsure"


def test_questions_are_paired() -> None:
    """Easy and hard questions differ far more than the two runs do."""
    hard_and_easy = [0.0, 1.0] * 20
    better = [0.02, 1.0] * 20

    [found] = ndcg({"set": marks(*hard_and_easy)}, {"set": marks(*better)})

    assert found.verdict == "better"


def test_the_interval_is_as_wide_as_the_theory_says() -> None:
    """The mean of n differences of spread s lies within 1.96 s / sqrt(n)."""
    [found] = ndcg({"set": marks(*[0.0] * 400)}, {"set": marks(*[0.0, 1.0] * 200)})

    assert (found.low, found.high) == pytest.approx((0.5 - 0.049, 0.5 + 0.049), abs=0.003)


def test_the_same_runs_give_the_same_interval() -> None:
    first, second = {"set": marks(0.1, 0.5, 0.9)}, {"set": marks(0.2, 0.4, 1.0)}

    assert compare(first, second) == compare(first, second)


def test_a_run_beside_itself_shows_nothing() -> None:
    [found] = ndcg({"set": marks(0.1, 0.9)}, {"set": marks(0.1, 0.9)})

    assert (found.difference, found.low, found.high, found.verdict) == (0.0, 0.0, 0.0, "unsure")


def test_in_the_mean_over_sets_each_set_counts_alike() -> None:
    first = {"small": marks(*[0.0] * 10), "large": marks(*[0.0] * 1_000)}
    second = {"small": marks(*[0.4] * 10), "large": marks(*[0.2] * 1_000)}

    small, large, mean = ndcg(first, second)

    assert (small.set, large.set, mean.set) == ("small", "large", "mean")
    assert (mean.difference, mean.low, mean.high, mean.questions) == (0.3, 0.3, 0.3, 1_010)


def test_only_questions_that_both_answered_are_compared() -> None:
    [found] = ndcg({"set": marks(0.5, 0.5), "other": marks(1.0)}, {"set": marks(0.6)})

    assert (found.set, found.questions) == ("set", 1)


def test_runs_of_different_sets_cannot_be_compared() -> None:
    with pytest.raises(InvalidInputError, match="share no question: they are of one and of two"):
        compare({"one": marks(1.0)}, {"two": marks(1.0)})


def test_two_files_of_co_eval_are_compared(tmp_path: Path) -> None:
    for name, value in (("before", 0.2), ("after", 0.5)):
        row = {"set": "trees", "method": "co", "marks": marks(*[value] * 9)}
        (tmp_path / f"{name}.json").write_text(json.dumps([row]))

    ndcg, _ = bench_compare([str(tmp_path / "before.json"), str(tmp_path / "after.json")])

    assert (ndcg.value, ndcg.name) == (0.3, "trees (9), ndcg10: 0.2000 to 0.5000 [+0.3000, +0.3000] better")


@pytest.mark.parametrize("content", ["oak", "7", "[]", '[{"method": "co", "set": "s", "marks": {"q": [1]}}]'])
def test_a_file_without_a_run_is_refused(tmp_path: Path, content: str) -> None:
    (tmp_path / "before.json").write_text(content)

    with pytest.raises(InvalidInputError, match=r"before\.json"):
        bench_compare([str(tmp_path / "before.json")] * 2)
