"""Questions that a person writes for their own vault."""

from __future__ import annotations

from pathlib import Path

import pytest

from co_cli.errors import InvalidInputError
from co_cli.evaluation.questions import read_questions, require_answers


def test_a_line_is_a_question_with_the_notes_that_answer_it(tmp_path: Path) -> None:
    file = tmp_path / "questions.jsonl"
    file.write_text(
        '{"question": "who?", "answers": ["memory:ada"], "also": ["article:people#L3-9"], "kind": "people"}\n'
        '\n{"question": "when?", "answers": ["memory:may"]}\n',
        "utf-8-sig",
    )

    first, second = read_questions(str(file))

    assert (first.id, first.text, first.kind) == ("1", "who?", "people")
    assert first.answers == {"memory:ada": 1, "article:people": 1}
    assert (second.id, second.kind) == ("3", "")


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("not json", "not JSON"),
        ("[1]", "a line is an object"),
        ('{"answers": ["memory:a"]}', '"question" is missing'),
        ('{"question": "  ", "answers": ["memory:a"]}', '"question" is missing'),
        ('{"question": "who?"}', '"answers" is a list of refs'),
        ('{"question": "who?", "answer": ["memory:a"]}', '"answers" is a list of refs'),
        ('{"question": "who?", "answers": "memory:a"}', '"answers" is a list of refs'),
        ('{"question": "who?", "answers": [7]}', '"answers" is a list of refs'),
        ('{"question": "who?", "answers": []}', '"answers" names no note'),
        ('{"question": "who?", "answers": ["memory:a"], "also": 1}', '"also" is a list of refs'),
        ('{"question": "who?", "answers": ["memory:a"], "kind": 1}', '"kind" is a label'),
    ],
)
def test_a_mistake_is_told_with_its_line(tmp_path: Path, line: str, said: str) -> None:
    file = tmp_path / "questions.jsonl"
    file.write_text('{"question": "fine", "answers": ["memory:a"]}\n' + line + "\n", "utf-8")

    with pytest.raises(InvalidInputError) as raised:
        read_questions(str(file))

    assert str(raised.value).startswith(f"{file}:2: {said}")


def test_an_empty_file_says_what_a_line_is(tmp_path: Path) -> None:
    file = tmp_path / "questions.jsonl"
    file.write_text("\n", "utf-8")

    with pytest.raises(InvalidInputError, match=r"there are no questions in it.*\"answers\""):
        read_questions(str(file))


def test_an_answer_that_the_vault_does_not_have_is_told_with_the_closest_one(tmp_path: Path) -> None:
    file = tmp_path / "questions.jsonl"
    file.write_text('\n{"question": "who?", "answers": ["memory:odalis"]}\n', "utf-8")

    with pytest.raises(InvalidInputError, match=r":2: .* no note memory:odalis: did you mean memory:odalys"):
        require_answers(str(file), read_questions(str(file)), ["memory:odalys", "article:people"])
