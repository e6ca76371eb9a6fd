"""Question sets: a vault's own questions, or a public set in BEIR's layout whose documents become notes.

A public set is a folder: corpus.jsonl {id, title, text[, group, seq, speaker, date, session]}, queries.jsonl {id, text
[, category, group, before]}, qrels.tsv (query TAB document TAB grade) and meta.json {skip_categories}. Only documents
of the question's group can answer it, and with `before` only those with a smaller `seq`.
"""

from __future__ import annotations

import contextlib
import json
import math
import os
import re
import shutil
from collections.abc import Generator, Iterator, Sequence
from datetime import datetime
from typing import Any, NamedTuple

from co_cli.ground.errors import InvalidInputError
from co_cli.notes.editing import render_note
from co_cli.notes.frontmatter import read_frontmatter
from co_cli.notes.refs import FOLDERS, without_lines
from co_cli.notes.subjects import title_from
from co_cli.sources.origin import MARKDOWN

QUESTIONS = "questions.jsonl"
ABSENT = "absent"  # the kind of a question that nothing in the vault answers
SHAPE = '{"question": "...", "answers": ["memory:slug"]}'


class Question(NamedTuple):
    """A question and the notes or documents that answer it, each with a grade."""

    id: str
    text: str
    answers: dict[str, int]
    kind: str = ""
    group: str = ""
    before: float = math.inf


class EvalDocument(NamedTuple):
    """A document of a public set, and what was said around it in its session."""

    id: str
    text: str
    seq: float
    title: str
    speaker: str
    date: str
    group: str
    session: str
    previous: str = ""
    following: str = ""


class QuestionSet(NamedTuple):
    """Questions, and the documents that they are about; a vault's own questions need none."""

    name: str
    questions: list[Question]
    documents: Sequence[EvalDocument] = ()

    @property
    def groups(self) -> list[str]:
        return list(dict.fromkeys(question.group for question in self.questions))


def read_vault(root: str) -> QuestionSet:
    """A vault's own questions, in lines of {"question", "answers", "also", "kind"}; the line number is the id."""
    path, found = os.path.join(root, QUESTIONS), list[Question]()
    for place, row in _rows(path):
        with _at(place):
            text, kind, refs = row["question"], row.get("kind", ""), [*row["answers"], *row.get("also", [])]
            if not (refs or kind == ABSENT) or not all(isinstance(value, str) for value in (text, kind, *refs)):
                raise ValueError(f'a line is {SHAPE}; without answers its "kind" is "{ABSENT}"')
            answers = dict.fromkeys(map(without_lines, refs), 1)
        found.append(Question(place.rpartition(":")[2], text, answers, kind))
    if not found:
        raise InvalidInputError(f"{path} has no questions; a line is {SHAPE}")
    return QuestionSet(os.path.basename(root), found)


def read_set(folder: str, corpus: str | None = None) -> QuestionSet:
    """`corpus` is the folder of corpus.jsonl for a set that has none of its own."""
    if not os.path.exists(os.path.join(folder, "queries.jsonl")):
        needed = "corpus.jsonl, queries.jsonl and qrels.tsv"
        raise InvalidInputError(f"{folder} is not a question set: name a folder that has {needed}")
    own = os.path.join(folder, "corpus.jsonl")
    documents = _read_documents(os.path.join(corpus, "corpus.jsonl") if corpus and not os.path.exists(own) else own)
    found = QuestionSet(os.path.basename(os.path.abspath(folder)), _read_queries(folder), documents)
    if lacking := set(found.groups) - {document.group for document in documents}:
        raise InvalidInputError(f"{folder}: questions have the group {min(lacking)!r}, but no document has it")
    return found


def note_text(document: EvalDocument, with_following: bool = True) -> str:
    """The document as a note. `with_following` is off where questions must not see what was said later."""
    body = re.sub(r"^---", "\\---", document.text)
    title = ", ".join(part for part in (document.title, document.speaker, document.date) if part)
    around = f"{document.previous}\n{document.following if with_following else ''}".strip()
    title = title or title_from(body if body.strip() else "untitled")
    return render_note({"title": title, "created": created(document.date), "context": around}, body)


def created(date: str) -> str | None:
    """`2025-12-20 (Saturday)` and `1:56 pm on 8 May, 2023` as frontmatter has it; None for anything else."""
    if day := re.match(r"\d{4}-\d\d-\d\d", date):
        return day[0]
    with contextlib.suppress(ValueError):
        return datetime.strptime(date, "%I:%M %p on %d %B, %Y").strftime("%Y-%m-%dT%H:%M:%SZ")


def add_others(root: str, folder: str) -> int:
    """Copy the Markdown files of a folder into a vault, as memories that answer nothing. Returns how many there are.

    No text is there twice: neither one of the vault's own, nor two alike in the folder.
    """
    known = {_text_of(path) for path in _markdown_in(root)}
    home = os.path.join(root, FOLDERS["memory"], "among")
    os.makedirs(home, exist_ok=True)
    first = count = len(os.listdir(home))
    for path in _markdown_in(folder):
        if (text := _text_of(path)) and text not in known:
            known.add(text)
            shutil.copyfile(path, os.path.join(home, f"{count}.md"))
            count += 1
    if count == first:
        raise InvalidInputError(f"{folder} has no Markdown file with another text: name a folder of notes")
    return count


def _markdown_in(folder: str) -> list[str]:
    found = (os.path.join(parent, name) for parent, _, names in os.walk(folder) for name in names)
    return sorted(path for path in found if path.lower().endswith(MARKDOWN))


def _text_of(path: str) -> str:
    with open(path, encoding="utf-8", errors="replace") as stream:
        text = stream.read()
    return text[read_frontmatter(text).body :].strip()


def _read_documents(path: str) -> list[EvalDocument]:
    """In file order, each with the two texts before it and the one after it in its session."""
    found: dict[str, EvalDocument] = {}
    last: dict[tuple[str, str], tuple[str, str, str]] = {}
    for place, row in _rows(path):
        with _at(place):
            texts = {name: str(row.get(name, "")) for name in ("title", "speaker", "date", "group", "session")}
            document = EvalDocument(row["id"], str(row["text"]), float(row.get("seq", 0)), **texts)
        if document.session:
            said = f"{document.speaker}: {document.text}".removeprefix(": ")
            key = (document.group, document.session)
            previous, earlier, before = last.get(key, ("", "", ""))
            document = document._replace(previous=f"{earlier}\n\n{before}".strip())
            if previous:
                found[previous] = found[previous]._replace(following=said)
            last[key] = (document.id, before, said)
        found[document.id] = document
    return list(found.values())


def _read_queries(folder: str) -> list[Question]:
    """Those that are scored: with relevant documents, and of no category that the set leaves out."""
    path, meta, qrels = (os.path.join(folder, name) for name in ("queries.jsonl", "meta.json", "qrels.tsv"))
    with _at(meta):
        about: dict[str, Any] = json.loads("".join(_lines(meta))) if os.path.exists(meta) else {}
        skipped: list[str] = about.get("skip_categories") or []
    grades: dict[str, dict[str, int]] = {}
    qrels = qrels if os.path.exists(qrels) else os.path.join(folder, "qrels", "test.tsv")  # as in BEIR's own sets
    for number, line in enumerate(_lines(qrels), 1):
        with _at(f"{qrels}:{number}"):
            if line.strip() and not line.startswith("query-id\t"):
                query, document, grade = line.rstrip("\r\n").split("\t")
                grades.setdefault(query, {})[document] = int(grade)
    found: list[Question] = []
    for place, row in _rows(path):
        with _at(place):
            if row["id"] in grades and row.get("category") not in skipped:
                kind, group, before = row.get("category", ""), row.get("group", ""), float(row.get("before", math.inf))
                found.append(Question(row["id"], row["text"], grades[row["id"]], str(kind), str(group), before))
    if not found:
        raise InvalidInputError(f"{path}: no question has a relevant document in the qrels")
    return found


def _rows(path: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """The objects of a JSONL file, each with its place for messages."""
    for number, line in enumerate(_lines(path), 1):
        if line.strip():
            with _at(f"{path}:{number}"):
                row = {name: value for name, value in json.loads(line).items() if value is not None}
                row["id"] = str(row.get("id", row.get("_id", "")))
            yield f"{path}:{number}", row


def _lines(path: str) -> list[str]:
    with _at(path), open(path, encoding="utf-8-sig") as stream:
        return stream.readlines()


@contextlib.contextmanager
def _at(place: str) -> Generator[None]:
    """Report what is wrong together with its place."""
    try:
        yield
    except (AttributeError, KeyError, OSError, TypeError, ValueError) as error:
        problem = f"{error} is missing" if isinstance(error, KeyError) else getattr(error, "strerror", None) or error
        raise InvalidInputError(f"{place}: {problem}") from None
