"""The reader's training, from a small made-up data folder to a model file. Needs torch, which is no dependency."""

from __future__ import annotations

import json
import lzma
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("torch", reason="training the reader needs torch: pip install torch")

from benchmarks.reader import export, judge, prepare, train
from benchmarks.reader.model import Reader, Store, join, read_state
from benchmarks.reader.packed import Texts

DIM, LAYERS, WORDS = 96, 2, 30_522
TOPICS = (
    "kettle",
    "bicycle",
    "passport",
    "piano",
    "boiler",
    "garden",
    "tent",
    "violin",
    "stove",
    "canoe",
    "ladder",
    "lamp",
)


def lines(path: Path, rows: list[dict[str, Any]]) -> None:
    text = "".join(json.dumps(row) + "\n" for row in rows)
    with lzma.open(path, "wt") if path.suffix == ".xz" else path.open("w") as file:
        file.write(text)


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """Passages with pairs and written questions, our own notes, and an evaluation set."""
    folder = tmp_path / "data"
    for name in ("", "notes", "sets/tiny"):
        (folder / name).mkdir(parents=True, exist_ok=True)
    passages = [
        {"text": f"The {one} stands in room {at}.", "source": "rooms", "group": at} for at, one in enumerate(TOPICS)
    ]
    asked = [{"query": f"where is the {one}?", "positives": [at]} for at, one in enumerate(TOPICS)]
    lines(folder / "passages.jsonl.xz", passages)
    lines(folder / "pairs.jsonl.xz", [{**row, "negatives": [0], "source": "rooms", "weak": 0} for row in asked[1:]])
    lines(folder / "written.jsonl.xz", [{**row, "source": "written:rooms"} for row in asked])
    notes = [
        {
            "id": f"p01-{at:03}",
            "life": f"keeper of house {at % 3}",
            "form": "note",
            "text": f"The {one} cost {at} crowns at the fair.",
            "questions": [f"what did the {one} cost?", f"how much was thing {'i' * (at + 1)}?"],
            "near": [f"p01-{(at + step) % len(TOPICS):03}" for step in (3, 6)],
        }
        for at, one in enumerate(TOPICS)
    ]
    lines(folder / "notes/part-01.jsonl", notes)
    documents = [{"id": one, "title": "", "text": f"My {one} is number {at}."} for at, one in enumerate(TOPICS)]
    lines(folder / "sets/tiny/corpus.jsonl", documents)
    lines(folder / "sets/tiny/queries.jsonl", [{"id": one, "text": f"which number is the {one}?"} for one in TOPICS])
    (folder / "sets/tiny/qrels.tsv").write_text("".join(f"{one}\t{one}\t1\n" for one in TOPICS))
    return folder


def start_weights() -> dict[str, np.ndarray]:
    random = np.random.default_rng(1)
    shapes = {
        "w.weight": (WORDS, DIM),
        "p.weight": (192, DIM),
        "t.weight": (2, DIM),
        "ln.weight": (DIM,),
        "ln.bias": (DIM,),
    }
    for layer in range(LAYERS):
        for name, rows, columns in (("qkv", 3 * DIM, DIM), ("o", DIM, DIM), ("f1", 2 * DIM, DIM), ("f2", DIM, 2 * DIM)):
            shapes |= {f"L.{layer}.{name}.weight": (rows, columns), f"L.{layer}.{name}.bias": (rows,)}
        shapes |= {f"L.{layer}.{norm}.{kind}": (DIM,) for norm in ("l1", "l2") for kind in ("weight", "bias")}
    return {name: random.normal(0, 0.1, shape).astype(np.float32) for name, shape in shapes.items()}


def test_training_goes_from_a_data_folder_to_a_model_file_with_the_same_scores(data: Path, tmp_path: Path) -> None:
    work = tmp_path / "work"
    folders = ["--data", str(data), "--notes", str(data / "notes"), "--sets", str(data / "sets")]
    prepare.main([str(work), *folders, "--only", "train", "lists"])
    export.write_model(work / "start.bin", start_weights())
    export.write_model(work / "mpnet.bin", start_weights() | {"r.weight": np.ones((32, export.HEADS), np.float32)})
    tiny = {"batch": 8, "negatives": 3, "steps": 6, "tokens": 32, "windows": [[32, 1]]}
    runs = [
        {"name": "teacher", "layers": [0, 1], "start": "mpnet", **tiny},
        {"name": "large", "layers": [0, 1], "teacher": "teacher", **tiny},
        {"name": "small", "layers": [1], "start": "large", "teacher": "large", **tiny},
    ]

    train.main([json.dumps(runs), str(work)])
    export.main([str(work / "small.pt"), str(work / "small.bin")])

    results = [json.loads(line) for line in (work / "results.jsonl").read_text().splitlines()]
    assert [row["run"] for row in results] == ["teacher", "large", "small"]
    assert results[2]["sets"]["tiny"][0] > 0.5, "the hybrid alone finds most answers"
    question, passage = (Store(Texts.of([tokens])) for tokens in ([2073, 2003], [1996, 10140]))
    number = question.ends[:1]
    pair = join((question, number), (passage, number), 16)
    assert pair[0][0].tolist()[:8] == [101, 2073, 2003, 102, 1996, 10140, 102, 0]
    trained = Reader(train._state(work, "small"))(*pair)
    exported = Reader(read_state(work / "small.bin"))(*pair)
    assert abs(float(trained - exported)) < 0.1


def test_a_reader_learns_to_judge_and_its_scores_can_be_moved(data: Path, tmp_path: Path) -> None:
    work = tmp_path / "work"
    prepare.main([str(work), "--data", str(data), "--notes", str(data / "notes"), "--only", "train"])
    head = {"h1.weight": (DIM, 2 * DIM), "h1.bias": (DIM,), "h2.weight": (1, DIM), "h2.bias": (1,)}
    random = np.random.default_rng(2)
    weights = start_weights() | {name: random.normal(0, 0.1, shape) for name, shape in head.items()}
    export.write_model(work / "start.bin", {name: array.astype(np.float32) for name, array in weights.items()})
    runs = [{"name": "judge", "start": "start", "guide": "start", "order": 0.1, "batch": 8, "steps": 40, "rate": 1e-3}]
    (work / "runs.json").write_text(json.dumps(runs))

    judge.main([str(work / "runs.json"), str(work)])
    export.main([str(work / "judge.bin"), str(work / "moved.bin"), "--level", "2", "1"])

    library, run = judge.Library(work), judge.Run(**runs[0])
    batches = [judge.Vaults(library, run).draw() for _ in range(5)]
    start, judged, moved = (Reader(read_state(work / f"{name}.bin")).eval() for name in ("start", "judge", "moved"))
    first, last = (
        sum(
            float(judge.losses(run, batch, judge.score(model, library, batch), judge.score(start, library, batch)))
            for batch in batches
        )
        for model in (start, judged)
    )
    assert last < first
    score, higher = (judge.score(model, library, batches[0])[0, 1].item() for model in (judged, moved))
    assert abs(higher - (2 * score + 1)) < 0.05


def test_a_model_file_keeps_weights_to_the_precision_of_its_type(tmp_path: Path) -> None:
    weights = start_weights()

    digests = {bits: export.write_model(tmp_path / f"{bits}.bin", weights, bits == 4) for bits in (4, 8)}

    assert digests[4] != digests[8]
    header, eight = export.read_model(tmp_path / "8.bin")
    assert (header["layers"], header["heads"]) == (LAYERS, export.HEADS)
    assert max(float(np.abs(eight[name] - value).max()) for name, value in weights.items()) < 0.003
    four = export.read_model(tmp_path / "4.bin")[1]["w.weight"]
    assert float(np.abs(four - weights["w.weight"]).max()) < 0.05
