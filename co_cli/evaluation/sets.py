"""Question sets into notes and questions: our own `questions.jsonl` beside a vault, and folders in BEIR's layout.

BEIR's layout: corpus.jsonl {id, title, text[, group, seq, date, speaker]}, queries.jsonl {id, text[, category, group,
before]}, qrels.tsv query TAB document TAB grade, meta.json {skip_categories}. `group` keeps collections apart; with
`before` only documents with a smaller `seq` may answer.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
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
    return [
        Document(row["id"], _title(row), row["text"], str(row.get("group", "")), float(row.get("seq", 0)))
        for _, row in _rows(corpus)
    ]


def _title(row: dict[str, Any]) -> str:
    """The document's own, with who said it and when: a note carries its context."""
    return ", ".join(str(row[key]) for key in ("title", "speaker", "date") if row.get(key))


def read_public_questions(folder: str) -> list[Question]:
    """Those that are scored: with relevant documents, and of no category that the set leaves out."""
    skipped = set(_read_json(os.path.join(folder, "meta.json")).get("skip_categories") or [])
    grades: dict[str, dict[str, int]] = {}
    with open(os.path.join(folder, "qrels.tsv"), encoding="utf-8") as stream:
        for line in stream:
            query, document, grade = line.rstrip("\n").split("\t")
            grades.setdefault(query, {})[document] = int(grade)
    return [
        Question(
            text=row["text"],
            answers=grades[row["id"]],
            kind=str(row.get("category", "")),
            group=str(row.get("group", "")),
            before=row.get("before"),
        )
        for _, row in _rows(os.path.join(folder, "queries.jsonl"))
        if row["id"] in grades and row.get("category") not in skipped
    ]


def _rows(path: str) -> Iterator[tuple[int, Any]]:
    try:
        with open(path, encoding="utf-8") as stream:
            for number, line in enumerate(stream, 1):
                if line.strip():
                    yield number, json.loads(line)
    except OSError as error:
        raise InvalidInputError(f"{path} cannot be read: {error.strerror}") from None
    except json.JSONDecodeError as error:
        raise InvalidInputError(f"{path}: not JSON lines: {error}") from None


def _read_json(path: str) -> dict[str, Any]:
    if not os.path.exists(path):
        return {}
    with open(path, encoding="utf-8") as stream:
        return json.load(stream)
