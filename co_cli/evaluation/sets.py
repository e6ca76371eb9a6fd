"""A public question set into documents, questions and the notes that the documents become.

BEIR's layout: corpus.jsonl {id, title, text[, group, seq, speaker, date, session]}, queries.jsonl {id, text[, category,
group, before]}, qrels.tsv query TAB document TAB grade, meta.json {skip_categories, origin}. `group` keeps collections
apart; with `before` only documents with a smaller `seq` may answer.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
from collections.abc import Generator
from datetime import datetime
from typing import Any, NamedTuple

from co_cli.errors import InvalidInputError
from co_cli.evaluation.questions import Question, json_lines, text_lines
from co_cli.notes.editing import render_note
from co_cli.service.saving import title_from

CONTEXT_FIELD = "context"
"""The frontmatter key that holds what stood around a text."""

SPOKEN_DATE = re.compile(r"(\d{1,2}:\d\d [ap]m) on (\d{1,2} \w+),? (\d{4})$")
TURN = "\n\n"
"""Between two neighbours."""
ISO_DAY = re.compile(r"\d{4}-\d\d-\d\d")


class Document(NamedTuple):
    """A document of a public set, and the texts beside it in its session."""

    id: str
    title: str
    text: str
    group: str = ""
    seq: float = 0.0
    speaker: str = ""
    date: str = ""
    session: str = ""
    previous: str = ""
    following: str = ""


def require_set(folder: str, corpus: str | None = None) -> None:
    for place, name in ((corpus or folder, "corpus.jsonl"), (folder, "queries.jsonl")):
        if not os.path.exists(os.path.join(place, name)):
            hint = "; `--corpus DIR` says where another one's corpus is" if name == "corpus.jsonl" else ""
            raise InvalidInputError(
                f"{place} has no {name}: a set is a folder with corpus.jsonl, queries.jsonl and qrels.tsv{hint}"
            )


def read_documents(folder: str) -> list[Document]:
    """In the order of the file, each with its neighbours."""
    corpus = os.path.join(folder, "corpus.jsonl")
    found: list[Document] = []
    seen: set[str] = set()
    for number, row in json_lines(corpus):
        with _naming(corpus, number):
            document = Document(
                id=_id(row),
                title=str(row.get("title") or ""),
                text=row["text"] if isinstance(row["text"], str) else str(row["text"]),
                group=str(row.get("group", "")),
                seq=float(row.get("seq", 0)),
                speaker=str(row.get("speaker") or ""),
                date=str(row.get("date") or ""),
                session=str(row.get("session", "")),
            )
            if document.id in seen:
                raise ValueError(f"a second document with the id {document.id}")
        seen.add(document.id)
        found.append(document)
    return _beside_each_other(found)


def read_public_questions(folder: str, every_kind: bool = False) -> list[Question]:
    """Those that are scored: with relevant documents, and of no category that the set leaves out."""
    skipped: list[str] = _read_json(os.path.join(folder, "meta.json")).get("skip_categories") or []
    grades = _read_grades(folder)
    queries = os.path.join(folder, "queries.jsonl")
    found: list[Question] = []
    seen: set[str] = set()
    for number, row in json_lines(queries):
        with _naming(queries, number):
            if _id(row) in seen:
                raise ValueError(f"a second question with the id {_id(row)}")
            seen.add(_id(row))
            if _id(row) in grades and (every_kind or row.get("category") not in skipped):
                kind, group = str(row.get("category") or ""), str(row.get("group", ""))
                before = None if row.get("before") is None else float(row["before"])
                found.append(Question(_id(row), row["text"], grades[_id(row)], kind, group, before))
    if not found:
        raise InvalidInputError(f"{queries}: no question has a relevant document in the qrels")
    return found


def origin_of(folder: str) -> str:
    """Where a set says that it comes from."""
    return str(_read_json(os.path.join(folder, "meta.json")).get("origin") or "")


def require_groups(folder: str, documents: list[Document], questions: list[Question]) -> None:
    groups = {document.group for document in documents}
    for question in questions:
        if question.group not in groups:
            raise InvalidInputError(
                f"{folder}: the question {question.id} is of the group {question.group!r}, which no document has"
            )


def note_text(document: Document, with_following: bool = True) -> str:
    """The document as a person would keep it: a note with its title, its moment and what stood around it.

    `with_following` is off for those who must not see what comes later.
    """
    body = re.sub(r"^---", "\\---", document.text)
    context = ", ".join(part for part in (document.title, document.speaker, document.date) if part)
    fields: dict[str, object] = {
        "title": context or (title_from(body) if body.strip() else "untitled"),
        "created": created(document.date),
    }
    if CONTEXT_FIELD:
        around = (document.previous, document.following if with_following else "")
        fields[CONTEXT_FIELD] = "\n".join(text for text in around if text)
    return render_note(fields, body)


def created(date: str) -> str | None:
    """`1:56 pm on 8 May, 2023` and `2025-12-20 (Saturday)` as a note's frontmatter has it; None for anything else."""
    spoken = SPOKEN_DATE.match(date)
    if spoken:
        with contextlib.suppress(ValueError):  # no such month: then it is no date
            moment = datetime.strptime(" ".join(spoken.groups()), "%I:%M %p %d %B %Y")
            return moment.strftime("%Y-%m-%dT%H:%M:%SZ")
    day = ISO_DAY.match(date)
    return day[0] if day else None


def _beside_each_other(documents: list[Document]) -> list[Document]:
    """With the two texts before and the one after in the same session; without sessions there are no neighbours."""
    found = list(documents)
    last: dict[tuple[str, str], int] = {}
    for place, document in enumerate(documents):
        if not document.session:
            continue
        key = (document.group, document.session)
        if key in last:
            before = found[last[key]]
            earlier = before.previous.rpartition(TURN)[2]
            found[place] = found[place]._replace(previous=TURN.join(text for text in (earlier, _said(before)) if text))
            found[last[key]] = found[last[key]]._replace(following=_said(document))
        last[key] = place
    return found


def _said(document: Document) -> str:
    return f"{document.speaker}: {document.text}" if document.speaker else document.text


def _read_grades(folder: str) -> dict[str, dict[str, int]]:
    """Query to documents and grades; BEIR's own files begin with a line of names and lie one folder deeper."""
    path = os.path.join(folder, "qrels.tsv")
    if not os.path.exists(path):
        path = os.path.join(folder, "qrels", "test.tsv")
    grades: dict[str, dict[str, int]] = {}
    for number, line in enumerate(text_lines(path), 1):
        if (number == 1 and line.startswith("query-id\t")) or not line.strip():
            continue
        with _naming(path, number):
            query, document, grade = line.rstrip("\r\n").split("\t")
            grades.setdefault(query, {})[document] = int(grade)
    return grades


@contextlib.contextmanager
def _naming(path: str, number: int) -> Generator[None]:
    """What a line lacks, said with its place."""
    try:
        yield
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise InvalidInputError(f"{path}:{number}: not a line of a question set ({error})") from None


def _id(row: dict[str, Any]) -> str:
    return str(row["id"] if "id" in row else row["_id"])


def _read_json(path: str) -> dict[str, Any]:
    if not os.path.exists(path):
        return {}
    try:
        with open(path, encoding="utf-8") as stream:
            return json.load(stream)
    except (OSError, ValueError) as error:
        raise InvalidInputError(f"{path} cannot be read: {error}") from None
