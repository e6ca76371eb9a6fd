"""Whether search notices that nothing is there, measured by asking the wrong vault."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from co_cli.evaluation.crossing import auroc
from tests.command import Co


@pytest.mark.parametrize(
    ("higher", "lower", "area"),
    [
        ([0.9, 0.8], [0.1, 0.2], 1.0),
        ([0.1], [0.9], 0.0),
        ([0.5, 0.5], [0.5], 0.5),
        ([0.9, 0.1], [0.5], 0.5),
        ([0.9, 0.5, 0.1], [0.5, 0.0], 0.75),
    ],
)
def test_the_area_is_the_chance_to_stand_above(higher: list[float], lower: list[float], area: float) -> None:
    assert auroc(higher, lower) == pytest.approx(area)


def write_set(folder: Path, groups: dict[str, list[tuple[str, str]]]) -> Path:
    """A set in which each group's facts answer its own questions only."""
    folder.mkdir()
    documents, questions, grades = list[str](), list[str](), ["query-id\tcorpus-id\tscore"]
    for group, pairs in groups.items():
        for number, (fact, question) in enumerate(pairs):
            name = f"{group}{number}"
            documents.append(json.dumps({"id": f"d{name}", "title": "", "text": fact, "group": group}))
            questions.append(json.dumps({"id": f"q{name}", "text": question, "group": group}))
            grades.append(f"q{name}\td{name}\t1")
    for name, lines in (("corpus.jsonl", documents), ("queries.jsonl", questions), ("qrels.tsv", grades)):
        (folder / name).write_text("\n".join(lines) + "\n")
    (folder / "meta.json").write_text("{}")
    return folder


SEA = [("The tide gauge at Skarvik reads forty centimetres high.", "how high does the Skarvik tide gauge read")]
SEA.append(("Fishing boats leave the harbour at dawn.", "when do the fishing boats leave"))
FLAT = [("Grandma bakes bread with rye flour every Sunday.", "which flour does grandma bake bread with")]
FLAT.append(("The violin teacher lives on Maple Street.", "where does the violin teacher live"))


def test_questions_of_another_vault_get_less_confidence(co: Co, tmp_path: Path) -> None:
    folder = write_set(tmp_path / "two", {"sea": SEA, "flat": FLAT})

    ran = co("eval", str(folder), "--absent", "--json")

    (crossed,) = json.loads(ran.out)
    assert (crossed["set"], crossed["questions"], crossed["auroc"]) == ("two", 4, 1.0)
    assert crossed["absent_at_home"] == 0
    assert crossed["absent_elsewhere"] > 0


def test_a_set_of_one_group_cannot_be_crossed(co: Co, tmp_path: Path) -> None:
    ran = co("eval", str(write_set(tmp_path / "one", {"sea": SEA})), "--absent")

    assert ran.code == 2
    assert "has one group" in ran.err


def test_crossing_needs_a_set(co: Co) -> None:
    assert "--absent needs a SET" in co("eval", "--absent").err
