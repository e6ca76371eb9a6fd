"""Whether two memories contradict each other, on pairs that were written before the code.

The second set was written after it, and nothing was changed for it.
"""

from __future__ import annotations

import csv
from pathlib import Path

import pytest

from co_cli.notes.contradictions import contradicts
from tests.notes.test_subjects import PAIRS as OTHER_PAIRS

with (Path(__file__).parent / "contradictions.tsv").open(encoding="utf-8") as file:
    PAIRS = list(csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE))


@pytest.mark.parametrize(("name", "found", "count"), [("first", 11, 12), ("second", 12, 15)])
def test_most_pairs_with_another_value_contradict_each_other_and_no_others_do(
    name: str, found: int, count: int
) -> None:
    pairs = [pair for pair in PAIRS if pair["set"] == name]

    yes = [contradicts(pair["old"], pair["new"]) for pair in pairs if pair["contradict"] == "yes"]
    no = [contradicts(pair["old"], pair["new"]) for pair in pairs if pair["contradict"] == "no"]

    assert len(yes) == count
    assert sum(yes) >= found
    assert len(no) >= 12
    assert not any(no)


def test_texts_about_different_subjects_never_contradict_each_other() -> None:
    assert [pair for pair in OTHER_PAIRS if pair["subject"] == "other" and contradicts(pair["old"], pair["new"])] == []


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ("Mara: Lives in Porto.", "Mara: Lives in Lisbon.", True),
        ("Mara Lind: Speaks German.", "Mara Lind: Speaks French.", False),
        ("Project idea: Kanban board.", "Project idea: Chat bot.", False),
        ("The shop is closed on Sunday.", "The shop is closed on Monday.", False),
        ("The shop is.", "The shop is with us.", False),
        ("", "", False),
        ("...", "is", False),
        ("I live in Porto.", "I live in Porto.", False),
        ("I live in Porto.", "I live in Porto and Lisbon.", False),
        ("I live in Porto.", "I no longer live in Lisbon.", False),
        ("x is " * 20_000, "x is 1.", False),
    ],
)
def test_notes_under_a_name_and_odd_texts(old: str, new: str, expected: bool) -> None:
    assert contradicts(old, new) is expected
