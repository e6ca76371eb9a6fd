"""The experiments that choose numbers: comparing runs, holding sets out, a year of facts, cutting long texts."""

from __future__ import annotations

import json
import random
from pathlib import Path

import pytest

from benchmarks import absence
from benchmarks.bootstrap import Comparison, bench_compare, compare
from benchmarks.crowd import ROOT, ask, read_texts, write_notes
from co_cli.evaluation.running import Marks
from co_cli.ground.errors import InvalidInputError


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


FACTS = {
    "oak": ("Oaks live for a thousand years.", "how old do oaks get?"),
    "kettle": ("The kettle stands on the stove.", "where is the kettle?"),
    "rent": ("Rent is due on the third of each month.", "when is the rent due?"),
    "dentist": ("The dentist moved to Harbour Street.", "where did the dentist move?"),
}


def write_set(folder: Path, origin: str) -> str:
    folder.mkdir()
    files: dict[str, list[object]] = {
        "corpus.jsonl": [{"id": name, "title": "", "text": text} for name, (text, _) in FACTS.items()],
        "queries.jsonl": [{"id": f"q-{name}", "text": asked} for name, (_, asked) in FACTS.items()],
        "meta.json": [{"origin": origin}],
    }
    for name, rows in files.items():
        (folder / name).write_text("\n".join(map(json.dumps, rows)))
    (folder / "qrels.tsv").write_text("".join(f"q-{name}\t{name}\t1\n" for name in FACTS))
    return str(folder)


def write_vault(folder: Path) -> Path:
    (folder / "memories").mkdir(parents=True)
    lines: list[str] = []
    for name, (text, asked) in FACTS.items():
        (folder / "memories" / f"{name}.md").write_text(text)
        lines.append(json.dumps({"question": asked, "answers": [f"memory:{name}"]}))
    (folder / "questions.jsonl").write_text("\n".join(lines))
    return folder


@pytest.mark.slow
@pytest.mark.parametrize("reader", ["off", "on"])
def test_confidence_is_fitted_and_judged_from_sets_and_vaults(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, reader: str
) -> None:
    monkeypatch.setenv("CO_KNOWLEDGE_READER", reader)
    notes = [
        {"id": f"{life}-{name}", "life": life, "text": text, "questions": [asked, f"{asked} Please."]}
        for life in ("first", "second")
        for name, (text, asked) in FACTS.items()
    ]
    (tmp_path / "lives.jsonl").write_text("\n".join(map(json.dumps, notes)))
    monkeypatch.setattr(absence, "LIVES", tmp_path / "lives.jsonl")
    monkeypatch.setattr(absence, "SHORT_NOTES", write_vault(tmp_path / "short_notes"))
    monkeypatch.setattr(absence, "UNSEEN", write_vault(tmp_path / "unseen"))

    rows = absence.bench_absence([write_set(tmp_path / name, name) for name in ("trees", "houses")])

    figures = {row.name: row.value for row in rows}
    fitted = ["reader", "without reading", "constant"] if reader == "on" else ["cosine", "coverage", "constant"]
    assert [name for name in figures if not name.startswith(("unseen", "..."))] == [
        *(f"{family}: AUROC" for family in ("trees", "houses", "short notes")),
        *fitted,
    ]
    # the same facts everywhere: nothing tells the questions of one vault from those of another
    assert figures["trees: AUROC"] == figures["unseen: AUROC, other lives in the notes' words"] == 0.5


@pytest.mark.medium
@pytest.mark.slow
def test_a_crowd_makes_answers_harder_to_find(tmp_path: Path) -> None:
    lines = [{"text": f"The cat takes {number} units at {number}:15."} for number in range(1_200)]
    lines += lines[:100]
    (tmp_path / "corpus.jsonl").write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    (tmp_path / "queries.jsonl").write_text('{"text": "a question is no note"}\n')
    texts = read_texts(tmp_path)
    assert sorted(texts) == sorted({line["text"] for line in lines})
    write_notes(tmp_path / "40", texts[:40])

    rows = list(ask(tmp_path, ROOT / "benchmarks/quality/short_notes", "static", [0, 40], None))

    assert [(size, kind) for size, kind, *_ in rows] == [
        (size, kind) for size in (0, 40) for kind in ("all", "paraphrase")
    ]
    assert rows[0][2] > rows[2][2]
    (tmp_path / "corpus.jsonl").write_text("")
    with pytest.raises(InvalidInputError, match="at least 1,000"):
        read_texts(tmp_path)
