"""Learn the projection of the provider `languages`: `python -m benchmarks projection FOLDER`.

FOLDER has `de.tsv`, `fr.tsv` and so on: pairs of Tatoeba, the English sentence first. It may have lines of JSON with a
`text` and its `questions`, too, as `benchmarks/reader/data` has: other English than notes, such as a sample of the
reader's data. All are embedded once into `FOLDER/vectors.npz`. One matrix is then learned, from the 512 numbers that
universal-sentence-encoder-multilingual gives to the encoder's 256, which stay as they are:

- a question is nearer to its note than to others, also if one or both of them are projected, so that in a vault of
  several languages the rank of a note does not depend on its language;
- a translation is nearer to its sentence than to others;
- cosines to English are those of the encoder, and cosines of two projected texts those without projecting, or few notes
  would be remembered by heart.

Other than English, there are no questions to learn from: the 512 numbers of English texts stand for them.
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
from co_cli.embedding.encoder import EncoderEmbedder
from co_cli.embedding.languages_encoder import SentenceEncoder
from co_cli.embedding.languages_weights import converted
from co_cli.embedding.multilingual import PROJECTION
from co_cli.ground.paths import user_data_dir

Floats = NDArray[np.float32]

DATA = Path(__file__).parent / "reader" / "data"
PAIRS, HELD_OUT = 2_500, 14
"""Pairs of each language, and the first part of the notes that are kept aside to measure with."""
STEPS, BATCH, RATE = 400, 288, 7e-4
TEMPERATURE, TRANSLATIONS, COSINES = 0.07, 0.5, 150.0
"""Of the softmax over notes; and the shares of the second and the third aim."""
SAME = 0.95
"""Sentences that are nearer to each other than this are no wrong answers to each other."""


def bench_projection(folders: list[str], bar: Bar | None = None) -> list[BenchRow]:
    """nDCG@10 among the notes that were kept aside, by the cosine alone."""
    texts = Texts(_vectors(folders[0]))
    start = _regression(texts)
    learned = _learn(texts, start, bar)
    file = learned.astype("<f2").tobytes()
    Path(PROJECTION).write_bytes(file)
    revision = hashlib.sha256(file).hexdigest()[:8]
    print(f"wrote {PROJECTION}: set the revision of LANGUAGES in co_cli/embedding/space.py to {revision}")
    rows = [
        BenchRow("English, by the encoder", texts.score(texts.questions[0], texts.notes[0]), ""),
        BenchRow("other, all 512 numbers", texts.score(texts.questions[1], texts.notes[1]), ""),
    ]
    for name, matrix in {"before learning": start, "learned": learned}.items():
        asked, notes = ((english, other @ matrix) for english, other in (texts.questions, texts.notes))
        for question, note in ((0, 1), (1, 0), (1, 1)):
            kinds = "{} questions, {} notes".format(*(("English", "other")[form] for form in (question, note)))
            rows.append(BenchRow(f"{name}: {kinds}", texts.score(asked[question], notes[note]), ""))
    return rows


class Texts:
    """Everything to learn from: the encoder's numbers of English texts, and those that are projected."""

    def __init__(self, stored: dict[str, NDArray[Any]]) -> None:
        numbers = {name: rows.astype(np.float32) for name, rows in stored.items() if rows.dtype == np.float16}
        self.notes, self.questions = ((numbers[name], numbers[f"other_{name}"]) for name in ("notes", "questions"))
        self.sentences, self.translations = numbers["sentences"][stored["sentence_of"]], numbers["translations"]
        """One of each for every pair."""
        self.asks: NDArray[np.int64] = stored["asks"]
        """The notes of the questions."""
        self._part: NDArray[np.int64] = stored["part"]
        _, place, sizes = np.unique(stored["languages"], return_inverse=True, return_counts=True)
        weights = 1 / np.sqrt(sizes[place])
        self.weights = weights / weights.sum()
        """Small languages are learned from more often than their sizes say."""
        self.ours = np.flatnonzero((self._part >= 0) & (self._part < HELD_OUT))
        self.others = np.flatnonzero(self._part < 0)
        """Notes to learn from, and passages of other kinds."""
        self.questions_of: list[NDArray[np.int64]] = [
            np.flatnonzero(self.asks == note) for note in range(len(self._part))
        ]

    def score(self, questions: Floats, notes: Floats) -> float:
        """nDCG@10 of the questions about notes that were kept aside, each with one right note."""
        kept = np.flatnonzero(self._part >= HELD_OUT)
        asked = np.flatnonzero(self._part[self.asks] >= HELD_OUT)
        right = np.searchsorted(kept, self.asks[asked])
        cosines = _unit(questions[asked]) @ _unit(notes[kept]).T
        ranks = (cosines > cosines[np.arange(len(asked)), right][:, None]).sum(axis=1)
        return round(float(np.where(ranks < 10, 1 / np.log2(ranks + 2), 0).mean()), 4)


def _vectors(folder: str) -> dict[str, NDArray[Any]]:
    file = os.path.join(folder, "vectors.npz")
    if not os.path.exists(file):
        files = [*sorted(DATA.glob("part-*.jsonl")), *sorted(Path(folder).glob("*.jsonl"))]
        lines = [json.loads(line) for path in files for line in path.open(encoding="utf-8")]
        texts = [line["text"] for line in lines]
        questions = [(question, place) for place, line in enumerate(lines) for question in line["questions"]]
        asked = [question for question, _ in questions]
        pairs = [
            (path.stem, *parts)
            for path in sorted(Path(folder).glob("*.tsv"))
            for parts in [line.split("\t") for line in path.read_text("utf-8").split("\n")][:PAIRS]
            if len(parts) == 2
        ]
        sentences = sorted({english for _, english, _ in pairs})
        place_of = {sentence: place for place, sentence in enumerate(sentences)}
        encoder, other = EncoderEmbedder(), SentenceEncoder(converted(user_data_dir(os.environ)))
        np.savez(
            file,
            notes=_english(encoder, texts),
            other_notes=_other(other, texts),
            questions=_english(encoder, asked),
            other_questions=_other(other, asked),
            asks=np.array([place for _, place in questions]),
            part=np.array([int(line["id"][1:3]) if "id" in line else -1 for line in lines]),
            sentences=_english(encoder, sentences),
            translations=_other(other, [translation for _, _, translation in pairs]),
            sentence_of=np.array([place_of[english] for _, english, _ in pairs]),
            languages=np.array([language for language, _, _ in pairs]),
        )
    return dict(np.load(file))


def _english(encoder: EncoderEmbedder, texts: list[str]) -> NDArray[np.float16]:
    return np.array([np.frombuffer(vector or bytes(1_024), "<f4") for vector in encoder.embed(texts, "document")], "f2")


def _other(encoder: SentenceEncoder, texts: list[str]) -> NDArray[np.float16]:
    batches = [encoder.encode(texts[at : at + 512]) for at in range(0, len(texts), 512)]
    return np.concatenate(batches).astype(np.float16)


def _regression(texts: Texts) -> Floats:
    """The least squares from the numbers of notes, questions and translations to the encoder's."""
    notes = np.concatenate([texts.ours, texts.others])
    asked = np.flatnonzero(np.isin(texts.asks, notes))
    wanted, inputs = (
        np.concatenate([texts.notes[form][notes], texts.questions[form][asked], pairs])
        for form, pairs in enumerate((texts.sentences, texts.translations))
    )
    weights = np.concatenate([np.ones(len(notes) + len(asked)), 0.3 * len(texts.weights) * texts.weights])[:, None]
    ridge = 1e-2 * weights.sum() / inputs.shape[1] * np.eye(inputs.shape[1])
    weighted = inputs * weights
    return np.linalg.solve(weighted.T @ inputs + ridge, weighted.T @ wanted).astype(np.float32)


def _learn(texts: Texts, start: Floats, bar: Bar | None) -> Floats:
    """Adam, with a rate that falls to zero."""
    random = np.random.default_rng(1)
    matrix, mean, square = start.copy(), np.zeros_like(start), np.zeros_like(start)
    for step in range(STEPS):
        rate = RATE * 0.5 * (1 + np.cos(np.pi * step / STEPS))
        slope = _ask(texts, matrix, random) + _translate(texts, matrix, random)
        mean += 0.1 * (slope - mean)
        square += 0.02 * (slope * slope - square)
        matrix -= rate * (mean / (1 - 0.9 ** (step + 1))) / (np.sqrt(square / (1 - 0.98 ** (step + 1))) + 1e-8)
        if bar:
            bar(step + 1, STEPS)
    return matrix


def _ask(texts: Texts, matrix: Floats, random: np.random.Generator) -> Floats:
    """The slope of finding notes by questions: those of few lives, which follow each other, or passages."""
    notes: NDArray[np.int64]
    if len(texts.others) and random.random() < 0.5:
        notes = random.choice(texts.others, BATCH, replace=False)
    else:
        starts = random.integers(0, len(texts.ours) - 24, size=BATCH // 48)
        near = [texts.ours[start : start + 24] for start in starts]
        notes = np.unique(np.concatenate([*near, random.choice(texts.ours, BATCH // 2, replace=False)]))
    asked = np.array([int(random.choice(texts.questions_of[int(note)])) for note in notes])
    sides = [[form[rows] for form in both] for both, rows in ((texts.questions, asked), (texts.notes, notes))]
    (question, found), count = (np.concatenate([side[0], _unit(side[1] @ matrix)]) for side in sides), len(notes)
    cosines = question @ found.T
    english, alone = (sides[0][form] @ sides[1][form].T for form in (0, 1))
    slopes = _choose(cosines, count)
    slopes += COSINES * 2 * (cosines - np.block([[english, english], [english, alone]])) / cosines.size
    backs = (slopes @ found)[count:], (slopes.T @ question)[count:]
    return np.add(*(_back(side[1], matrix, back) for side, back in zip(sides, backs, strict=True)))


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


def _translate(texts: Texts, matrix: Floats, random: np.random.Generator) -> Floats:
    """The slope of finding translations, in both directions, and of keeping cosines among them."""
    chosen, place = random.choice(len(texts.weights), BATCH, replace=False, p=texts.weights), np.arange(BATCH)
    ours, rows = texts.sentences[chosen], texts.translations[chosen]
    theirs = _unit(rows @ matrix)
    cosines, alike = ours @ theirs.T, ours @ ours.T > SAME
    alike[place, place] = False
    slopes = np.zeros_like(cosines)
    for axis in (0, 1):
        shares = np.exp(np.where(alike, -np.inf, cosines / TEMPERATURE))
        shares /= shares.sum(axis=axis, keepdims=True)
        shares[place, place] -= 1
        slopes += TRANSLATIONS * shares / (2 * BATCH * TEMPERATURE)
    changed = theirs @ theirs.T - rows @ rows.T
    changed[place, place] = 0
    return _back(rows, matrix, slopes.T @ ours + COSINES * 4 * changed @ theirs / changed.size)


def _back(rows: Floats, matrix: Floats, slopes: Floats) -> Floats:
    """The slope of the matrix, from those of the unit vectors."""
    projected = rows @ matrix
    lengths = np.maximum(np.linalg.norm(projected, axis=1, keepdims=True), 1e-9)
    unit = projected / lengths
    return rows.T @ ((slopes - unit * (unit * slopes).sum(axis=1, keepdims=True)) / lengths)


def _unit(rows: Floats) -> Floats:
    return rows / np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1e-9)
