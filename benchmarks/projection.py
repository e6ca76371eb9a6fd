"""Learn the projections of the provider `languages`: `python -m benchmarks projection FOLDER`.

FOLDER has `de.tsv`, `fr.tsv` and so on: pairs of Tatoeba, the English sentence first. With the notes and questions of
`benchmarks/reader/data` they are embedded once into `FOLDER/vectors.npz`. Two matrices are then learned together, one
for the static model's and the encoder's numbers of English, one for the encoder's numbers of any other text:

- a question is nearer to its note than to others, whichever of the two matrices made each vector, so that in a vault of
  several languages the rank of a note does not depend on its language;
- a translation is nearer to its sentence than to others;
- cosines stay what they are without projecting, or few notes would be remembered by heart.

Other than English, there are no questions to learn from: the encoder's numbers of English texts stand for them.
"""

from __future__ import annotations

import hashlib
import json
import os
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.measuring import BenchRow
from benchmarks.vaults import Bar
from co_cli.embedding.languages_encoder import SentenceEncoder
from co_cli.embedding.languages_weights import converted
from co_cli.embedding.multilingual import PROJECTION
from co_cli.embedding.static import shared_embedder
from co_cli.ground.paths import user_data_dir

Floats = NDArray[np.float32]
Step = tuple[Floats, Floats, Floats]
"""Inputs, unit vectors, and the lengths that these had before."""

DATA = Path(__file__).parent / "reader" / "data"
PAIRS, HELD_OUT = 5_000, 14
"""Pairs of each language, and the first part of the notes that are kept aside to measure with."""
DIMENSIONS, STATIC = 256, 256
STEPS, BATCH, RATE = 160, 384, 7e-4
TEMPERATURE, TRANSLATIONS, COSINES = 0.07, 0.5, 100.0
"""Of the softmax over notes; and the shares of the second and the third aim."""
SAME = 0.95
"""Sentences that are nearer to each other than this are no wrong answers to each other."""


def bench_projection(folders: list[str], bar: Bar | None = None) -> list[BenchRow]:
    """nDCG@10 among the notes that were kept aside, by the cosine alone."""
    texts = Texts(_vectors(folders[0]))
    ours = texts.learned_from
    asked = np.flatnonzero(np.isin(texts.asks, ours))
    english = _principal(np.concatenate([texts.notes[ours], texts.questions[asked], texts.sentences[::5]]))
    other = _regression(texts, english)
    learned = _learn(texts, english, other, bar)
    file = np.concatenate(learned).astype("<f2").tobytes()
    Path(PROJECTION).write_bytes(file)
    revision = hashlib.sha256(file).hexdigest()[:8]
    print(f"wrote {PROJECTION}: set the revision of LANGUAGES in co_cli/embedding/space.py to {revision}")
    rows = [
        BenchRow("English, static model alone", texts.score(texts.questions[:, :STATIC], texts.notes[:, :STATIC]), ""),
        BenchRow("English, all 768 numbers", texts.score(texts.questions, texts.notes), ""),
        BenchRow("other, all 512 numbers", texts.score(texts.questions[:, STATIC:], texts.notes[:, STATIC:]), ""),
    ]
    for name, (first, second) in {"before learning": (english, other), "learned": learned}.items():
        asked = {"English": texts.questions @ first, "other": texts.questions[:, STATIC:] @ second}
        notes = {"English": texts.notes @ first, "other": texts.notes[:, STATIC:] @ second}
        for question in asked:
            for note in notes:
                score = texts.score(asked[question], notes[note])
                rows.append(BenchRow(f"256 numbers, {name}: {question} questions, {note} notes", score, ""))
    return rows


class Texts:
    """Everything to learn from, as inputs of the projections: 768 numbers for English, 512 for others."""

    def __init__(self, stored: dict[str, Any]) -> None:
        self.notes: Floats = stored["notes"].astype(np.float32)
        self.questions: Floats = stored["questions"].astype(np.float32)
        self.asks: NDArray[np.int64] = stored["asks"]
        """The notes of the questions."""
        self.part: NDArray[np.int64] = stored["part"]
        self.sentences: Floats = stored["sentences"].astype(np.float32)
        self.translations: Floats = stored["translations"].astype(np.float32)
        self.sentence_of: NDArray[np.int64] = stored["sentence_of"]
        _, place, sizes = np.unique(stored["languages"], return_inverse=True, return_counts=True)
        weights = 1 / np.sqrt(sizes[place])
        self.weights = weights / weights.sum()
        """Small languages are learned from more often than their sizes say."""
        self.learned_from = np.flatnonzero(self.part < HELD_OUT)
        self.questions_of = [np.flatnonzero(self.asks == note) for note in range(len(self.notes))]

    def score(self, questions: Floats, notes: Floats) -> float:
        """nDCG@10 of the questions about notes that were kept aside, each with one right note."""
        kept = np.flatnonzero(self.part >= HELD_OUT)
        asked = np.flatnonzero(self.part[self.asks] >= HELD_OUT)
        right = np.searchsorted(kept, self.asks[asked])
        cosines = _unit(questions[asked]) @ _unit(notes[kept]).T
        ranks = (cosines > cosines[np.arange(len(asked)), right][:, None]).sum(axis=1)
        return round(float(np.where(ranks < 10, 1 / np.log2(ranks + 2), 0).mean()), 4)


def _vectors(folder: str) -> dict[str, Any]:
    file = os.path.join(folder, "vectors.npz")
    if not os.path.exists(file):
        encoder = SentenceEncoder(converted(user_data_dir(os.environ)))
        lines = [json.loads(line) for path in sorted(DATA.glob("part-*.jsonl")) for line in path.open(encoding="utf-8")]
        questions = [(question, place) for place, line in enumerate(lines) for question in line["questions"]]
        pairs = [
            (path.stem, *parts)
            for path in sorted(Path(folder).glob("*.tsv"))
            for parts in [line.split("\t") for line in path.read_text("utf-8").split("\n")][:PAIRS]
            if len(parts) == 2
        ]
        sentences = sorted({english for _, english, _ in pairs})
        place_of = {sentence: place for place, sentence in enumerate(sentences)}
        np.savez(
            file,
            notes=_both(encoder, [line["text"] for line in lines]),
            questions=_both(encoder, [question for question, _ in questions]),
            asks=np.array([place for _, place in questions]),
            part=np.array([int(line["id"][1:3]) for line in lines]),
            sentences=_both(encoder, sentences),
            translations=_encoded(encoder, [other for _, _, other in pairs]),
            sentence_of=np.array([place_of[english] for _, english, _ in pairs]),
            languages=np.array([language for language, _, _ in pairs]),
        )
    return dict(np.load(file))


def _both(encoder: SentenceEncoder, texts: list[str]) -> NDArray[np.float16]:
    static = np.zeros((len(texts), STATIC), np.float16)
    for row, vector in zip(static, shared_embedder().embed(texts, "document"), strict=True):
        if vector is not None:
            row[:] = np.frombuffer(vector, "<f4")
    return np.concatenate([static, _encoded(encoder, texts)], axis=1)


def _encoded(encoder: SentenceEncoder, texts: list[str]) -> NDArray[np.float16]:
    batches = [encoder.encode(texts[at : at + 512]) for at in range(0, len(texts), 512)]
    return np.concatenate(batches).astype(np.float16)


def _principal(rows: Floats) -> Floats:
    """The directions in which rows differ most."""
    return np.ascontiguousarray(np.linalg.eigh(rows.T @ rows)[1][:, ::-1][:, :DIMENSIONS]).astype(np.float32)


def _regression(texts: Texts, english: Floats) -> Floats:
    """From the encoder's numbers alone, of English texts and of translations, to what English is projected to."""
    notes = texts.notes[texts.learned_from]
    inputs = np.concatenate([notes[:, STATIC:], texts.translations])
    wanted = _unit(np.concatenate([notes @ english, (texts.sentences @ english)[texts.sentence_of]]))
    ridge = 1e-3 * len(inputs) / inputs.shape[1] * np.eye(inputs.shape[1])
    return np.linalg.solve(inputs.T @ inputs + ridge, inputs.T @ wanted).astype(np.float32)


def _learn(texts: Texts, english: Floats, other: Floats, bar: Bar | None) -> tuple[Floats, Floats]:
    """Adam, with a rate that falls to zero."""
    random = np.random.default_rng(1)
    matrices = [english.copy(), other.copy()]
    means, squares = ([np.zeros_like(matrix) for matrix in matrices] for _ in range(2))
    for step in range(STEPS):
        rate = RATE * 0.5 * (1 + np.cos(np.pi * step / STEPS))
        slopes = [
            first + second
            for first, second in zip(_ask(texts, *matrices, random), _translate(texts, *matrices, random), strict=True)
        ]
        for matrix, slope, mean, square in zip(matrices, slopes, means, squares, strict=True):
            mean += 0.1 * (slope - mean)
            square += 0.02 * (slope * slope - square)
            matrix -= rate * (mean / (1 - 0.9 ** (step + 1))) / (np.sqrt(square / (1 - 0.98 ** (step + 1))) + 1e-8)
        if bar:
            bar(step + 1, STEPS)
    return matrices[0], matrices[1]


def _ask(texts: Texts, english: Floats, other: Floats, random: np.random.Generator) -> tuple[Floats, Floats]:
    """The slopes of finding notes by questions, among notes of one life, which follow each other, and some others."""
    starts = random.integers(0, len(texts.learned_from) - 24, size=BATCH // 48)
    near = [texts.learned_from[start : start + 24] for start in starts]
    notes = np.unique(np.concatenate([*near, random.choice(texts.learned_from, BATCH // 2, replace=False)]))
    asked = np.array([random.choice(texts.questions_of[note]) for note in notes])
    inputs = [[rows, rows[:, STATIC:]] for rows in (texts.questions[asked], texts.notes[notes])]
    steps = [[_project(rows, matrix) for rows, matrix in zip(side, (english, other), strict=True)] for side in inputs]
    questions, found = (np.concatenate([unit for _, unit, _ in side]) for side in steps)
    cosines, count = questions @ found.T, len(notes)
    slopes = _choose(cosines, count)
    both = texts.questions[asked] @ texts.notes[notes].T / 2
    alone = inputs[0][1] @ inputs[1][1].T
    slopes += COSINES * 2 * (cosines - np.block([[both, alone], [alone, alone]])) / cosines.size
    back = [np.split(slopes @ found, 2), np.split(slopes.T @ questions, 2)]
    first, second = (sum(_back(side[at], part[at]) for side, part in zip(steps, back, strict=True)) for at in (0, 1))
    return np.asarray(first), np.asarray(second)


def _choose(cosines: Floats, count: int) -> Floats:
    """The slopes of choosing the right note, in either form, from it and all wrong ones in both forms."""
    rows = np.arange(2 * count)
    right = rows % count, rows % count + count
    worths = np.exp((cosines - cosines.max(axis=1, keepdims=True)) / TEMPERATURE)
    wrong = worths.sum(axis=1) - worths[rows, right[0]] - worths[rows, right[1]]
    slopes = np.zeros_like(cosines)
    for form in right:
        total = worths[rows, form] + wrong
        shares = worths / total[:, None]
        shares[rows, right[0]] = shares[rows, right[1]] = 0
        shares[rows, form] = worths[rows, form] / total - 1
        slopes += shares / (4 * count * TEMPERATURE)
    return slopes


def _translate(texts: Texts, english: Floats, other: Floats, random: np.random.Generator) -> tuple[Floats, Floats]:
    """The slopes of finding translations, in both directions, and of keeping cosines among each language's own."""
    chosen = random.choice(len(texts.translations), BATCH, replace=False, p=texts.weights)
    inputs = texts.sentences[texts.sentence_of[chosen]], texts.translations[chosen]
    steps = [_project(rows, matrix) for rows, matrix in zip(inputs, (english, other), strict=True)]
    (_, ours, _), (_, theirs, _) = steps
    cosines, place = ours @ theirs.T, np.arange(BATCH)
    alike = inputs[0][:, STATIC:] @ inputs[0][:, STATIC:].T > SAME
    alike[place, place] = False
    slopes = np.zeros_like(cosines)
    for axis in (0, 1):
        shares = np.exp(np.where(alike, -np.inf, cosines / TEMPERATURE))
        shares /= shares.sum(axis=axis, keepdims=True)
        shares[place, place] -= 1
        slopes += TRANSLATIONS * shares / (2 * BATCH * TEMPERATURE)
    backs = [slopes @ theirs, slopes.T @ ours]
    for at, (rows, unit, _) in enumerate(steps):
        length = 2 if at == 0 else 1  # of both models' numbers together
        changed = unit @ unit.T - rows @ rows.T / length
        changed[place, place] = 0
        backs[at] += COSINES * 4 * changed @ unit / changed.size
    first, second = (_back(step, back) for step, back in zip(steps, backs, strict=True))
    return first, second


def _project(rows: Floats, matrix: Floats) -> Step:
    projected = rows @ matrix
    lengths = np.maximum(np.linalg.norm(projected, axis=1, keepdims=True), 1e-9)
    return rows, projected / lengths, lengths


def _back(step: Step, slopes: Floats) -> Floats:
    """The slope of the matrix, from those of the unit vectors."""
    rows, unit, lengths = step
    return rows.T @ ((slopes - unit * (unit * slopes).sum(axis=1, keepdims=True)) / lengths)


def _unit(rows: Floats) -> Floats:
    return rows / np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1e-9)
