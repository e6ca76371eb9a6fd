"""A person's own questions for their own vault, out of JSON lines. A mistake is told with its file and line."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from difflib import get_close_matches
from typing import Any, NamedTuple, cast

from co_cli.errors import InvalidInputError
from co_cli.notes.refs import without_lines

SHAPE = '{"question": "...", "answers": ["memory:slug"]}'


class Question(NamedTuple):
    """A question and the notes or documents that answer it, each with a grade."""

    id: str
    text: str
    answers: dict[str, int]
    kind: str = ""
    group: str = ""
    before: float | None = None
    """Only documents with a smaller `seq` may answer."""


def read_questions(path: str) -> list[Question]:
    """Lines of {"question", "answers": [ref, ...], "also": [ref, ...], "kind"}; a question's id is its line."""
    found: list[Question] = []
    for number, row in json_lines(path):
        place = f"{path}:{number}"
        if not isinstance(row, dict):
            raise InvalidInputError(f"{place}: a line is an object: {SHAPE}")
        fields = cast("dict[str, Any]", row)
        text, kind = fields.get("question"), fields.get("kind", "")
        if not isinstance(text, str) or not text.strip():
            raise InvalidInputError(f'{place}: "question" is missing or no text; a line is {SHAPE}')
        if not isinstance(kind, str):
            raise InvalidInputError(f'{place}: "kind" is a label, not {kind!r}')
        refs = [*_refs(place, "answers", fields.get("answers")), *_refs(place, "also", fields.get("also", []))]
        if not refs:
            raise InvalidInputError(f'{place}: "answers" names no note; a line is {SHAPE}')
        found.append(Question(str(number), text, dict.fromkeys(refs, 1), kind))
    if not found:
        raise InvalidInputError(f"{path}: there are no questions in it; a line is {SHAPE}")
    return found


def require_answers(path: str, questions: Sequence[Question], refs: Sequence[str]) -> None:
    """A ref that no note has would count as never found, and the figures would mislead."""
    known = set(refs)
    for question in questions:
        for ref in question.answers:
            if ref not in known:
                close = get_close_matches(ref, refs, n=1)
                hint = f"did you mean {close[0]}?" if close else "`co list` shows them"
                raise InvalidInputError(f"{path}:{question.id}: this vault has no note {ref}: {hint}")


def _refs(place: str, name: str, value: object) -> list[str]:
    refs = cast("list[object]", value) if isinstance(value, list) else [None]
    if not all(isinstance(ref, str) and ref.strip() for ref in refs):
        raise InvalidInputError(f'{place}: "{name}" is a list of refs such as ["memory:slug"]; a line is {SHAPE}')
    return [without_lines(str(ref).strip()) for ref in refs]


def json_lines(path: str) -> Iterator[tuple[int, Any]]:
    """Each line that is not blank, with its number."""
    for number, line in enumerate(text_lines(path), 1):
        if line.strip():
            try:
                yield number, json.loads(line)
            except json.JSONDecodeError as error:
                raise InvalidInputError(f"{path}:{number}: not JSON: {error}") from None


def text_lines(path: str) -> Iterator[str]:
    try:
        with open(path, encoding="utf-8-sig") as stream:
            yield from stream
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidInputError(f"{path} cannot be read: {getattr(error, 'strerror', None) or error}") from None
