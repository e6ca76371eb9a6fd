"""Whether two memories are about one subject, on pairs that were written before the code.

The first set was there to develop on, the second was never looked at meanwhile, and the third showed mistakes that were
then corrected: see benchmarks/NOTES.md.
"""

from __future__ import annotations

import csv
from pathlib import Path

import pytest

from co_cli.notes.subjects import same_subject

with (Path(__file__).parent / "subject_pairs.tsv").open(encoding="utf-8") as file:
    PAIRS = list(csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE))


@pytest.mark.parametrize(("name", "count", "missed"), [("tuned", 50, 0), ("second", 50, 0), ("third", 30, 1)])
def test_names_numbers_and_quoted_words_tell_subjects_apart(name: str, count: int, missed: int) -> None:
    pairs = [pair for pair in PAIRS if pair["set"] == name]

    wrong = [pair for pair in pairs if same_subject(pair["old"], pair["new"]) != (pair["subject"] == "same")]

    assert len(pairs) == count
    assert sum(pair["subject"] == "same" for pair in pairs) == count / 2
    assert len(wrong) <= missed, wrong


def test_the_order_of_two_texts_does_not_matter() -> None:
    assert [
        pair for pair in PAIRS if same_subject(pair["old"], pair["new"]) != same_subject(pair["new"], pair["old"])
    ] == []


@pytest.mark.parametrize(
    ("old", "new", "same"),
    [
        ("Der T\u00fcrcode ist 1111.", "Der T\u00fcrcode ist 2222.", True),
        ("Bo bevorzugt metrische Einheiten.", "Ana bevorzugt imperiale Einheiten.", False),
        ("", "Likes tea.", True),
        ("...", "?", True),
        ("A" * 50_000, "A" * 50_000, True),
    ],
)
def test_other_languages_and_odd_texts(old: str, new: str, same: bool) -> None:
    assert same_subject(old, new) is same
