"""Do questions find the right part of a long text? A set's documents are joined into texts that they are parts of.

Documents of one page (`page#part`), one session or one title become one note, with their titles as headings or without.
Where each part is, is known, so three things can be measured for any way of cutting: is the right text found, is the
right part found (a passage counts for the part that most of it is from), and how much of the right parts is in the
first characters of the answers, which does not favour long passages.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from statistics import mean
from typing import NamedTuple

from benchmarks.measuring import BenchRow
from benchmarks.vaults import Bar
from co_cli.entrance.knowledge_base import KnowledgeBase
from co_cli.evaluation.baselines import Desk, blend
from co_cli.evaluation.running import Marks, mark_ranking
from co_cli.evaluation.sets import EvalDocument, Question, read_set
from co_cli.ground.hits import Passage
from co_cli.ground.settings import Settings, load_settings
from co_cli.ground.values import content_hash
from co_cli.index.stored import IndexedFile
from co_cli.notes.editing import render_note
from co_cli.notes.note import Note, read_note
from co_cli.sources.cutting import split_long
from co_cli.sources.passages import passages_of

Cutter = Callable[["LongText", Note], list[Passage]]

DEPTH = 50
"""Passages asked for: several of them may be of one part."""
READ = 4_000
"""Characters of the answers that somebody reads."""


class Part(NamedTuple):
    """A document of the set, and where in the long text it stands."""

    id: str
    start: int
    end: int


class LongText(NamedTuple):
    """Documents of a set, one behind the other."""

    title: str
    group: str
    text: str
    parts: list[Part]


class Place(NamedTuple):
    """A passage that was found: which text it is of, and from where to where."""

    ref: str
    start: int
    end: int


def join(documents: Sequence[EvalDocument], headings: bool = True) -> list[LongText]:
    """The long texts of a set, each with its parts in the order of the file."""
    together: dict[tuple[str, str], list[EvalDocument]] = {}
    for document in documents:
        together.setdefault((document.group, _belongs_to(document)), []).append(document)
    return [_joined(group, name, parts, headings) for (group, name), parts in together.items()]


def bench_long_texts(folders: Sequence[str], bar: Bar | None = None) -> list[BenchRow]:
    """Every way of cutting, on the texts of each set with their parts' titles as headings, and without."""
    rows: list[BenchRow] = []
    with tempfile.TemporaryDirectory(prefix="co-bench-", ignore_cleanup_errors=True) as work:
        settings = load_settings({"data_dir": work}, environ={"HOME": work}, start=work)
        for folder in folders:
            found = read_set(folder)
            plain = join(found.documents, headings=False)
            headed = join(found.documents, headings=True)
            for texts, kind in [(headed, "headings")] * (headed != plain) + [(plain, "no headings")]:
                for name, cutter in CUTTERS.items():
                    rows += measure_cut(f"{found.name}, {kind}, {name}", texts, found.questions, cutter, settings, bar)
    return rows


def measure_cut(
    name: str,
    texts: Sequence[LongText],
    questions: Sequence[Question],
    cutter: Cutter,
    settings: Settings,
    bar: Bar | None = None,
) -> list[BenchRow]:
    """Ask every question of texts that are cut in this way."""
    sizes: list[int] = []
    marks: list[tuple[Marks, Marks, float]] = []
    for group in dict.fromkeys(question.group for question in questions):
        vault = tempfile.mkdtemp(dir=settings.data_dir)
        with KnowledgeBase.open(settings=replace(settings, vault=vault, data_dir=f"{vault}-data")) as kb:
            desk = CutDesk(kb.vault)
            shelf: dict[str, Shelved] = {}
            for number, text in enumerate(text for text in texts if text.group == group):
                note, passages = desk.put(number, text, cutter)
                sizes += [len(passage.text) for passage in passages]
                shelf[note.ref] = Shelved(text, note, note.body.index(text.text))
            kb.sync()
            for question in questions:
                if question.group == group:
                    marks.append(_marked(question, shelf, _ask(desk, question.text, shelf)))
                    if bar:
                        bar(len(marks), len(questions))
    return [
        BenchRow(f"{name}: characters of a passage", mean(sizes), ""),
        BenchRow(f"{name}: right text", mean(one.ndcg10 for one, _, _ in marks), "nDCG@10"),
        BenchRow(f"{name}: right part", mean(one.ndcg10 for _, one, _ in marks), "nDCG@10"),
        BenchRow(f"{name}: right parts in {READ:,} characters", mean(share for _, _, share in marks), "of 1"),
    ]


class Shelved(NamedTuple):
    """A long text as a note of the vault, and where in the note's body it begins."""

    text: LongText
    note: Note
    shift: int


class CutDesk(Desk):
    """The index as this experiment needs it: with passages that were cut in another way."""

    def put(self, number: int, text: LongText, cutter: Cutter) -> tuple[Note, list[Passage]]:
        """Write a text as a note and index it; the next sync finds it done and adds vectors."""
        path = f"articles/{number}.md"
        full = os.path.join(self.vault.root, path)
        os.makedirs(os.path.dirname(full), exist_ok=True)
        data = render_note({"title": text.title}, text.text).encode("utf-8", "replace")
        with open(full, "wb") as stream:
            stream.write(data)
        note = read_note(path, data)
        passages = cutter(text, note)
        file = IndexedFile(path, content_hash(data), os.path.getmtime(full), note, passages)
        with self.vault.engine.writing() as writer:
            writer.put_files(writer.add_origin(self.vault.index.origin), [file])
        return note, passages

    def stored(self, passages: Iterable[int]) -> dict[int, tuple[str, int, str]]:
        """The ref, first line and text of each passage."""
        with self.vault.engine.reading() as reader:
            found = reader.passages(list(passages))
        return {number: (passage.ref, passage.first_line, passage.body) for number, passage in found.items()}


def _ask(desk: CutDesk, question: str, shelf: dict[str, Shelved]) -> list[Place]:
    """The passages that answer, best first, wherever they are from: the ranking of the `simple` baseline."""
    desk.begin()
    words, near = desk.words(question, any_term=True), desk.nearest(question)
    cosines = near | desk.cosines(question, [passage for passage in words if passage not in near])
    scores = blend(words, cosines, desk.simple_share)
    best = sorted(scores, key=lambda passage: (-scores[passage], passage))[:DEPTH]
    stored = desk.stored(best)
    places: list[Place] = []
    for ref, first_line, body in (stored[passage] for passage in best):
        note, shift = shelf[ref].note, shelf[ref].shift
        lines = note.body.split("\n", first_line - note.body_line)
        start = note.body.index(body, len(note.body) - len(lines[-1])) - shift
        places.append(Place(ref, start, start + len(body)))
    return places


def _marked(question: Question, shelf: dict[str, Shelved], places: Sequence[Place]) -> tuple[Marks, Marks, float]:
    right = {
        ref: [part for part in shelved.text.parts if question.answers.get(part.id, 0) > 0]
        for ref, shelved in shelf.items()
    }
    grades = {ref: max(question.answers[part.id] for part in parts) for ref, parts in right.items() if parts}
    documents = mark_ranking([place.ref for place in places], grades)
    named = [name for name in (_mostly(shelf[place.ref].text.parts, place) for place in places) if name]
    return documents, mark_ranking(named, question.answers), _read(right, places)


def _mostly(parts: Sequence[Part], place: Place) -> str:
    """The part that most of a passage is of."""
    shares = [(min(part.end, place.end) - max(part.start, place.start), part.id) for part in parts]
    share, name = max(shares, key=lambda one: one[0])
    return name if share > 0 else ""


def _read(right: dict[str, list[Part]], places: Sequence[Place]) -> float:
    """How much of the right parts somebody has seen who reads so many characters of the answers, in order."""
    seen: dict[str, set[int]] = {}
    left = READ
    for place in places:
        end = min(place.end, place.start + left)
        seen.setdefault(place.ref, set()).update(range(place.start, end))
        left -= end - place.start
        if left <= 0:
            break
    shares: list[float] = []
    for ref, parts in right.items():
        for part in parts:
            had = len(seen.get(ref, set()).intersection(range(part.start, part.end)))
            shares.append(had / max(1, min(READ, part.end - part.start)))
    return min(1.0, sum(shares) / len(shares)) if shares else 0.0


def _belongs_to(document: EvalDocument) -> str:
    page, mark, _ = document.id.partition("#")
    return document.session or (page if mark else document.title or document.id)


def _joined(group: str, name: str, documents: Sequence[EvalDocument], headings: bool) -> LongText:
    title = documents[0].date or name.rstrip("/").rpartition("/")[2].replace("-", " ")
    parts: list[Part] = []
    text = ""
    for document in documents:
        said = document.text.replace("\r\n", "\n").strip()
        said = f"{document.speaker}: {said}" if document.speaker else said
        headed = headings and document.title and document.title != name
        written = f"## {document.title}\n\n{said}".rstrip() if headed else said
        parts.append(Part(document.id, len(text), len(text) + len(written)))
        text += written + ("\n" if document.speaker else "\n\n" if written else "")
    return LongText(title, group, text.rstrip("\n"), parts)


def _cut_at_parts(text: LongText, note: Note) -> list[Passage]:
    """Exactly where the parts begin, which no reader can know: the best that a model's proposals could do."""
    ranges: list[tuple[int, int]] = []
    for part in text.parts:
        if text.text[part.start : part.end].strip():
            first = text.text.count("\n", 0, part.start) + 1
            ranges.append((first, first + text.text.count("\n", part.start, part.end)))
    return passages_of(note, boundaries=lambda note: ranges)


def _cut_by_size(longest: int) -> Cutter:
    """By the number of characters alone."""

    def cut(text: LongText, note: Note) -> list[Passage]:
        passages: list[Passage] = []
        for start, end in split_long(note.body, (0, len(note.body)), longest):
            first = note.body_line + note.body.count("\n", 0, start)
            passages.append(Passage(note.body[start:end], first, first + note.body.count("\n", start, end)))
        return passages

    return cut


CUTTERS: dict[str, Cutter] = {
    "as shipped": lambda text, note: passages_of(note),
    "2,000 characters": _cut_by_size(2_000),
    "at the parts": _cut_at_parts,
}
