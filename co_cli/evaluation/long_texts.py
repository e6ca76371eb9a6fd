"""Does a question find the right part of a long text? A set's documents are joined into texts that they are parts of.

Documents of one page (`page#part`), one session or one title become one note, with its parts' titles as headings or
without them. Where each part stands is known, so three things can be measured for any way of cutting: is the right
text found (documents), is the right part (a passage counts for the part that most of it is of), and how much of the
right parts has been read after the first characters of the answers, which does not favour long passages.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from co_cli.evaluation.questions import Question
from co_cli.evaluation.running import require_vectors, set_name
from co_cli.evaluation.scoring import Marks, Scores, mark_ranking, mean_scores
from co_cli.evaluation.sets import Document, read_documents, read_public_questions, require_groups
from co_cli.index.rows import IndexedFile, put_file
from co_cli.knowledge_base import KnowledgeBase
from co_cli.notes.editing import render_note
from co_cli.notes.note import Note, read_note
from co_cli.notes.store import content_hash
from co_cli.retrieval.profiles import profile_named
from co_cli.service.searching import search_index
from co_cli.settings import Settings
from co_cli.values import Filters, Passage

Cutter = Callable[["LongText", Note], list[Passage]]
Progress = Callable[[int, int], None]

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


class Found(NamedTuple):
    """How one way of cutting did on one set."""

    set: str
    cut: str
    headings: bool
    passages: int
    characters: float
    """Of a passage, on average."""
    documents: Scores
    parts: Scores
    read: float
    """The share of the right parts that stands in the first characters of the answers."""


def join(documents: Sequence[Document], headings: bool = True) -> list[LongText]:
    """The long texts of a set, each with its parts in the order of the file."""
    together: dict[tuple[str, str], list[Document]] = {}
    for document in documents:
        together.setdefault((document.group, _belongs_to(document)), []).append(document)
    return [_joined(group, name, parts, headings) for (group, name), parts in together.items()]


def has_headings(folder: str) -> bool:
    """Do the parts have titles of their own, so that it matters whether these are written above them?"""
    documents = read_documents(folder)
    return join(documents, headings=True) != join(documents, headings=False)


def measure_cuts(
    folder: str,
    work: str,
    settings: Settings,
    cutters: dict[str, Cutter],
    headings: bool = True,
    asking: Progress | None = None,
) -> list[Found]:
    """Ask every question of a set's long texts, once for each way of cutting them, of an index of its own."""
    documents, questions = read_documents(folder), read_public_questions(folder)
    require_groups(folder, documents, questions)
    texts = join(documents, headings)
    found: list[Found] = []
    done, total = 0, len(cutters) * len(questions)
    for number, (name, cutter) in enumerate(cutters.items()):
        cut: list[Passage] = []
        marks: list[tuple[Marks, Marks, float]] = []
        for place, group in enumerate(dict.fromkeys(question.group for question in questions)):
            vault = os.path.join(work, f"{number}-{place}")
            os.makedirs(os.path.join(vault, "articles"))
            mine = [text for text in texts if text.group == group]
            with KnowledgeBase.open(
                settings=settings._replace(vault=vault, data_dir=f"{vault}-data", knowledge_exclude=())
            ) as kb:
                shelf = _fill(kb, mine, cutter, cut)
                for question in questions:
                    if question.group == group:
                        marks.append(_marked(question, shelf, _ask(kb, question.text, shelf)))
                        done += 1
                        if asking:
                            asking(done, total)
        found.append(
            Found(
                set_name(folder),
                name,
                headings,
                len(cut),
                round(sum(len(passage.text) for passage in cut) / max(1, len(cut)), 1),
                mean_scores([one for one, _, _ in marks]),
                mean_scores([one for _, one, _ in marks]),
                round(sum(share for _, _, share in marks) / max(1, len(marks)), 4),
            )
        )
    return found


class Shelved(NamedTuple):
    """A long text as a note of the vault, and where in the note's body it begins."""

    text: LongText
    note: Note
    shift: int


def _fill(kb: KnowledgeBase, texts: Sequence[LongText], cutter: Cutter, cut: list[Passage]) -> dict[str, Shelved]:
    """Write the texts as notes and index them cut in this way; the sync finds them done. Returns them by their refs."""
    shelf: dict[str, Shelved] = {}
    for number, text in enumerate(texts):
        path = f"articles/{number}.md"
        data = render_note({"title": text.title}, text.text).encode("utf-8", "replace")
        with open(os.path.join(kb.root, path), "wb") as stream:
            stream.write(data)
        note = read_note(path, data)
        passages = cutter(text, note)
        cut += passages
        with kb.index.rows.writing() as (connection, vault):
            file = IndexedFile(path, content_hash(data), os.path.getmtime(stream.name), note, passages)
            put_file(connection, vault, file)
        shelf[note.ref] = Shelved(text, note, note.body.index(text.text))
    kb.sync()
    require_vectors(kb)
    return shelf


def _ask(kb: KnowledgeBase, question: str, shelf: dict[str, Shelved]) -> list[Place]:
    """The passages that answer, best first, wherever they are from."""
    profile = profile_named("default")._replace(diversify=False)
    with kb.index.snapshot():
        finding = search_index(kb.index, kb.embedders, question, Filters(), DEPTH, None, profile)
        ids = [candidate.passage_id for candidate in finding.ranked[:DEPTH]]
        stored = {passage.id: passage for passage in kb.index.passages(ids)}
    places: list[Place] = []
    for number in ids:
        passage = stored[number]
        note, shift = shelf[passage.ref].note, shelf[passage.ref].shift
        lines = note.body.split("\n", passage.first_line - note.body_line)
        start = note.body.index(passage.body, len(note.body) - len(lines[-1])) - shift
        places.append(Place(passage.ref, start, start + len(passage.body)))
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


def _belongs_to(document: Document) -> str:
    page, mark, _ = document.id.partition("#")
    return document.session or (page if mark else document.title or document.id)


def _joined(group: str, name: str, documents: Sequence[Document], headings: bool) -> LongText:
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


def spans(text: LongText) -> Iterator[tuple[int, int]]:
    """The first and last line of each part that says anything, counted from 1."""
    for part in text.parts:
        if part.end > part.start:
            first = text.text.count("\n", 0, part.start) + 1
            yield first, first + text.text.count("\n", part.start, part.end)
