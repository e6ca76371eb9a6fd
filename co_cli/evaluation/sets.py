"""Question sets into notes and questions: our own `questions.jsonl` beside a vault, and folders in BEIR's layout.

BEIR's layout: corpus.jsonl {id, title, text[, group, seq, date, speaker]}, queries.jsonl {id, text[, category, group,
before]}, qrels.tsv query TAB document TAB grade, meta.json {skip_categories}. `group` keeps collections apart; with
`before` only documents with a smaller `seq` may answer.
"""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Generator, Iterator
from typing import Any, NamedTuple

from co_cli.errors import InvalidInputError


class Question(NamedTuple):
    """A question and the notes that answer it, each with a grade."""

    text: str
    answers: dict[str, int]
    kind: str = ""
    group: str = ""
    before: float | None = None


class Document(NamedTuple):
    """A document of a public set."""

    id: str
    title: str
    text: str
    group: str
    seq: float


def read_questions(path: str) -> list[Question]:
    """Lines of {"question", "answers": [ref, ...], "also": [ref, ...], "kind"}: any of these notes is right."""
    found: list[Question] = []
    for number, row in _rows(path):
        try:
            answers = dict.fromkeys([*row["answers"], *row.get("also", [])], 1)
            found.append(Question(row["question"], answers, row.get("kind", "")))
        except (KeyError, TypeError):
            shape = '{"question": "...", "answers": ["memory:slug"]}'
            raise InvalidInputError(f"{path}:{number}: a line is {shape}") from None
    if not found:
        raise InvalidInputError(f"{path}: there are no questions in it")
    return found


def read_documents(folder: str) -> list[Document]:
    corpus = os.path.join(folder, "corpus.jsonl")
    found: list[Document] = []
    for number, row in _rows(corpus):
        with _naming(corpus, number):
            found.append(
                Document(_id(row), _title(row), row["text"], str(row.get("group", "")), float(row.get("seq", 0)))
            )
    return found


def read_public_questions(folder: str) -> list[Question]:
    """Those that are scored: with relevant documents, and of no category that the set leaves out."""
    skipped = set(_read_json(os.path.join(folder, "meta.json")).get("skip_categories") or [])
    grades = _read_grades(folder)
    queries = os.path.join(folder, "queries.jsonl")
    found: list[Question] = []
    for number, row in _rows(queries):
        with _naming(queries, number):
            if _id(row) in grades and row.get("category") not in skipped:
                kind, group = str(row.get("category", "")), str(row.get("group", ""))
                found.append(Question(row["text"], grades[_id(row)], kind, group, row.get("before")))
    return found


def _read_grades(folder: str) -> dict[str, dict[str, int]]:
    """Query to documents and grades; BEIR's own files begin with a line of names and lie one folder deeper."""
    path = os.path.join(folder, "qrels.tsv")
    if not os.path.exists(path):
        path = os.path.join(folder, "qrels", "test.tsv")
    grades: dict[str, dict[str, int]] = {}
    for number, line in enumerate(_lines(path), 1):
        if number == 1 and line.startswith("query-id\t"):
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
    except (KeyError, TypeError, ValueError) as error:
        raise InvalidInputError(f"{path}:{number}: not a line of a question set ({error})") from None


def _id(row: dict[str, Any]) -> str:
    return str(row["id"] if "id" in row else row["_id"])


def _title(row: dict[str, Any]) -> str:
    """The document's own, with who said it and when: a note carries its context."""
    return ", ".join(str(row[key]) for key in ("title", "speaker", "date") if row.get(key))


def _lines(path: str) -> Iterator[str]:
    try:
        with open(path, encoding="utf-8") as stream:
            yield from stream
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidInputError(f"{path} cannot be read: {getattr(error, 'strerror', None) or error}") from None


def _rows(path: str) -> Iterator[tuple[int, Any]]:
    for number, line in enumerate(_lines(path), 1):
        if line.strip():
            try:
                yield number, json.loads(line)
            except json.JSONDecodeError as error:
                raise InvalidInputError(f"{path}:{number}: not JSON: {error}") from None


def _read_json(path: str) -> dict[str, Any]:
    if not os.path.exists(path):
        return {}
    with open(path, encoding="utf-8") as stream:
        return json.load(stream)
