"""The reader's training data keeps the rules of benchmarks/reader/data/README.md."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from benchmarks.reader.check_data import ROOT, check, content_stems
from co_cli.evaluation.sets import read_vault

LIFE = "lighthouse painter in Brittany"


def note(number: int, **changes: Any) -> dict[str, Any]:
    fields = {
        "id": f"p01-{number:03}",
        "life": LIFE,
        "form": "note",
        "text": f"Ladder number {number} goes back to Yann.",
        "questions": [f"who owns ladder {number}?", f"whom do I return rung thing {'i' * number} to?"],
        "near": [f"p01-{other:03}" for other in range(1, 4) if other != number],
    }
    return fields | changes


def problems_of(folder: Path, *notes: dict[str, Any]) -> list[str]:
    (folder / "part-01.jsonl").write_text("\n".join(json.dumps(note) for note in notes), encoding="utf-8")
    return check(folder)[1]


@pytest.mark.slow
def test_the_parts_in_the_repository_have_no_problems() -> None:
    notes, problems = check()

    assert problems == []
    assert len(notes) >= 6_000
    assert len({note["life"] for note in notes}) >= 150


def test_questions_about_unseen_notes_share_no_content_word_with_their_answer() -> None:
    unseen = read_vault(str(ROOT / "benchmarks" / "quality" / "unseen"))
    notes = {f"memory:{path.stem}": path for path in (ROOT / "benchmarks/quality/unseen/memories").glob("*.md")}

    assert len(notes) == len(unseen.questions) == 200
    for question in unseen.questions:
        [answer] = question.answers
        text = f"{answer} {notes[answer].read_text(encoding='utf-8')}"
        assert not content_stems(question.text) & content_stems(text), question


def test_valid_notes_have_no_problems(tmp_path: Path) -> None:
    assert problems_of(tmp_path, note(1), note(2), note(3)) == []


def test_a_rule_that_is_broken_is_named(tmp_path: Path) -> None:
    cases: list[tuple[dict[str, Any], str]] = [
        ({"form": "poem"}, "part-01.jsonl:1: unknown form poem"),
        ({"near": ["p01-002"]}, "part-01.jsonl:1: there must be 2-4 different near ids"),
        ({"near": ["p01-002", "p01-009"]}, "p01-001: near p01-009 is not another note of the same life"),
        ({"life": "another"}, "p01-001: near p01-002 is not another note of the same life"),
        (
            {"questions": ["who?", "whose ladders are these?"]},
            "p01-001: the second question shares ladder with the text",
        ),
        ({"questions": ["who owns ladder 2?", "whom?"]}, "identical question: who owns ladder 2?"),
    ]
    for changes, problem in cases:
        assert problem in problems_of(tmp_path, note(1, **changes), note(2), note(3))


def test_eight_words_that_more_than_three_notes_have_are_found(tmp_path: Path) -> None:
    words = "the brushes dry on the lamp room sill"
    notes = [note(number, text=f"Day {number}: {words}.") for number in range(1, 5)]

    assert problems_of(tmp_path, *notes[:3]) == []
    assert f"'{words}' occurs in 4 notes" in problems_of(tmp_path, *notes)[0]


def test_a_sentence_of_the_sample_vault_is_found(tmp_path: Path) -> None:
    words = "Two wheels a year, entered at 180 euros each, and the tax office accepts that."

    assert "occurs in a measured vault" in problems_of(tmp_path, note(1, text=words), note(2), note(3))[0]
