"""Folders in BEIR's layout."""

from __future__ import annotations

from pathlib import Path

import pytest

from co_cli.errors import InvalidInputError
from co_cli.evaluation.sets import created, note_text, read_documents, read_public_questions, require_groups
from co_cli.notes.note import read_note
from tests.evaluation.tiny_set import trees, write_set


def test_questions_without_answers_and_of_skipped_categories_are_not_asked(tmp_path: Path) -> None:
    folder = str(trees(tmp_path / "trees"))

    assert [question.id for question in read_public_questions(folder)] == ["1", "2"]
    assert [question.id for question in read_public_questions(folder, every_kind=True)] == ["1", "2", "3"]


def test_beirs_own_names_are_read_too(tmp_path: Path) -> None:
    folder = write_set(tmp_path, [{"_id": "a", "text": "Oaks."}], [{"_id": "q", "text": "oaks"}], [])
    (folder / "qrels.tsv").unlink()
    (folder / "qrels").mkdir()
    (folder / "qrels" / "test.tsv").write_text("query-id\tcorpus-id\tscore\nq\ta\t2\n")

    assert read_documents(str(folder))[0].id == "a"
    assert read_public_questions(str(folder))[0].answers == {"a": 2}


def test_a_document_knows_what_was_said_beside_it_in_its_session(tmp_path: Path) -> None:
    said = [
        {"id": "1", "text": "Hello.", "speaker": "Ada", "session": 1},
        {"id": "2", "text": "Good day.", "speaker": "Bo", "session": 1},
        {"id": "3", "text": "Later.", "session": 2},
    ]
    first, second, third = read_documents(str(write_set(tmp_path, said, [], [])))

    assert (first.previous, first.following) == ("", "Bo: Good day.")
    assert (second.previous, second.following) == ("Ada: Hello.", "")
    assert (third.previous, third.following) == ("", "")


def test_a_note_has_its_speaker_and_its_moment(tmp_path: Path) -> None:
    said = {"id": "1", "text": "--- I swim.", "speaker": "Ada", "date": "1:56 pm on 8 May, 2023"}
    [document] = read_documents(str(write_set(tmp_path, [said], [], [])))

    note = read_note("memories/1.md", note_text(document).encode())

    assert (note.title, note.body.strip()) == ("Ada, 1:56 pm on 8 May, 2023", "\\--- I swim.")
    assert note.created == 1683554160.0


@pytest.mark.parametrize(
    ("date", "expected"),
    [
        ("1:56 pm on 8 May, 2023", "2023-05-08T13:56:00Z"),
        ("12:40 am on 27 March, 2022", "2022-03-27T00:40:00Z"),
        ("2025-12-20 (Saturday)", "2025-12-20"),
        ("1:56 pm on 8 Floréal, 2023", None),
        ("last spring", None),
        ("", None),
    ],
)
def test_dates_are_read_as_the_sets_write_them(date: str, expected: str | None) -> None:
    assert created(date) == expected


@pytest.mark.parametrize(
    ("file", "line", "said"),
    [
        ("corpus.jsonl", "not json", "not JSON"),
        ("corpus.jsonl", '{"text": "no id"}', "not a line of a question set"),
        ("corpus.jsonl", '{"id": "oak", "text": "again"}', "a second document with the id oak"),
        ("corpus.jsonl", '{"id": "new", "text": "x", "seq": "soon"}', "not a line of a question set"),
        ("corpus.jsonl", "[]", "not a line of a question set"),
        ("queries.jsonl", '{"id": "1", "text": "again"}', "a second question with the id 1"),
        ("qrels.tsv", "1 oak 1", "not a line of a question set"),
    ],
)
def test_a_broken_line_is_told_with_its_place(tmp_path: Path, file: str, line: str, said: str) -> None:
    folder = trees(tmp_path / "trees")
    with open(folder / file, "a", encoding="utf-8") as stream:
        stream.write(line + "\n")

    with pytest.raises(InvalidInputError) as raised:
        read_documents(str(folder))
        read_public_questions(str(folder))

    assert f"{file}:4: " in str(raised.value)
    assert said in str(raised.value)


def test_a_set_without_a_scored_question_is_refused(tmp_path: Path) -> None:
    folder = write_set(tmp_path, [{"id": "a", "text": "Oaks."}], [{"id": "q", "text": "oaks"}], [])

    with pytest.raises(InvalidInputError, match="no question has a relevant document"):
        read_public_questions(str(folder))


def test_a_question_of_a_group_without_documents_is_refused(tmp_path: Path) -> None:
    questions = [{"id": "q", "text": "oaks", "group": "moon"}]
    folder = str(write_set(tmp_path, [{"id": "a", "text": "Oaks."}], questions, [("q", "a", 1)]))

    with pytest.raises(InvalidInputError, match="question q is of the group 'moon'"):
        require_groups(folder, read_documents(folder), read_public_questions(folder))
