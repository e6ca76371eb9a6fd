"""The experiments that choose numbers: comparing runs, holding sets out, a year of facts, cutting long texts."""

from __future__ import annotations

import json
import random
import time
from pathlib import Path

import pytest

from benchmarks.bootstrap import Comparison, bench_compare, compare
from benchmarks.held_out import choose, families_of
from benchmarks.long_texts import CUTTERS, join, measure_cut
from benchmarks.year import facts_of_a_year, live_a_year
from co_cli.errors import InvalidInputError
from co_cli.evaluation.running import Marks
from co_cli.evaluation.sets import Document, Question
from co_cli.settings import load_settings

FACTS = {
    "oak": "Oaks live for centuries, and their wood is hard. ",
    "elm": "Elms stand along the park, and a beetle kills them. ",
    "ship": "The harbour master keeps a list of boats and their owners. ",
}


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


def test_the_interval_is_as_wide_as_the_theory_says() -> None:
    """The mean of n differences of spread s lies within 1.96 s / sqrt(n)."""
    [found] = ndcg({"set": marks(*[0.0] * 400)}, {"set": marks(*[0.0, 1.0] * 200)})

    assert (found.low, found.high) == pytest.approx((0.5 - 0.049, 0.5 + 0.049), abs=0.003)


def test_in_the_mean_over_sets_each_set_counts_alike() -> None:
    first = {"small": marks(*[0.0] * 10), "large": marks(*[0.0] * 1_000)}
    second = {"small": marks(*[0.4] * 10), "large": marks(*[0.2] * 1_000)}

    *_, mean = ndcg(first, second)

    assert (mean.set, mean.difference, mean.questions) == ("mean", 0.3, 1_010)


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


def test_a_number_is_judged_on_a_family_of_sets_that_it_was_not_chosen_on(tmp_path: Path) -> None:
    origins = {"chat": "talks@1", "turns_long": "talks@1", "code": "functions@2", "code_tune": ""}
    for name, origin in origins.items():
        (tmp_path / name).mkdir()
        (tmp_path / name / "meta.json").write_text(json.dumps({"origin": origin}))
    families = families_of([str(tmp_path / name) for name in origins])
    scores = {
        "co": {"chat": 0.5, "turns_long": 0.5, "code": 0.5, "code_tune": 0.5},
        "low": {"chat": 0.9, "turns_long": 0.9, "code": 0.1, "code_tune": 0.1},
        "high": {"chat": 0.2, "turns_long": 0.2, "code": 0.7, "code_tune": 0.7},
    }

    talk, code = choose(scores, families)

    assert families == {"chat": "chat", "turns_long": "chat", "code": "code", "code_tune": "code"}
    assert (talk.candidate, talk.held_out, talk.current) == ("high", 0.2, 0.5)
    assert (code.candidate, code.held_out) == ("low", 0.1)
    with pytest.raises(InvalidInputError, match="at least two families"):
        families_of([str(tmp_path / "chat")])


def test_in_a_year_of_facts_the_valid_one_is_found_first(tmp_path: Path) -> None:
    year = facts_of_a_year(seed=11, facts=50, changes=14, ends=6)
    assert year == facts_of_a_year(seed=11, facts=50, changes=14, ends=6)

    rows = {row.name: row.value for row in live_a_year(str(tmp_path), load_settings(), time.time(), year)}

    for when in ("today", "on a day of the year"):
        assert rows[f"as it ships, with `supersedes`: right {when}"] >= 0.9
        assert rows[f"ignoring time, with `supersedes`: right {when}"] < 0.8


def test_a_cut_at_the_parts_of_a_long_text_finds_each_of_them(tmp_path: Path) -> None:
    pages = {"oak": "trees", "elm": "trees", "ship": "sea"}
    documents = [
        Document(f"{pages[name]}#{name}", fact + fact.upper() * 13, 0.0, name.title(), "", "", "", "")
        for name, fact in FACTS.items()
    ]
    asked = {"oak": "how old do oaks get", "elm": "what kills the elms", "ship": "who keeps the list of boats"}
    questions = [Question(name, text, {f"{pages[name]}#{name}": 1}) for name, text in asked.items()]
    texts = join(documents, headings=False)

    assert [[text.text[part.start : part.end][:4] for part in text.parts] for text in texts] == [
        ["Oaks", "Elms"],
        ["The "],
    ]
    for name, cutter in CUTTERS.items():
        _, found, parts, read = (
            row.value for row in measure_cut(name, texts, questions, cutter, load_settings({"data_dir": str(tmp_path)}))
        )
        assert found == 1.0
        assert parts == 1.0 or name == "2,000 characters"
        assert 0.4 < read <= 1.0
