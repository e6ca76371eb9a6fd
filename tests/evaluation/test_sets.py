"""Question sets: a vault's own, and folders in BEIR's layout."""

from __future__ import annotations

from pathlib import Path

import pytest

from co_cli.evaluation.sets import created, note_text, read_set, read_vault
from co_cli.ground.errors import InvalidInputError
from co_cli.notes.note import read_note
from tests.evaluation.tiny_set import trees, write_set


def test_questions_without_answers_and_of_skipped_categories_are_not_asked(tmp_path: Path) -> None:
    assert [question.id for question in read_set(str(trees(tmp_path / "trees"))).questions] == ["1", "2"]


def test_a_note_has_its_speaker_and_its_moment(tmp_path: Path) -> None:
    said = {"id": "1", "text": "--- I swim.", "speaker": "Ada", "date": "1:56 pm on 8 May, 2023"}
    [document] = read_set(str(write_set(tmp_path, [said], [{"id": "q", "text": "?"}], [("q", "1", 1)]))).documents

    note = read_note("memories/1.md", note_text(document).encode())

    assert (note.title, note.body.strip()) == ("Ada, 1:56 pm on 8 May, 2023", "\\--- I swim.")
    assert note.created == 1683554160.0
    dates = ("12:40 am on 27 March, 2022", "2025-12-20 (Saturday)", "1:56 pm on 8 Floréal, 2023", "")
    assert [created(date) for date in dates] == ["2022-03-27T00:40:00Z", "2025-12-20", None, None]


def test_a_broken_line_is_reported_with_its_place(tmp_path: Path) -> None:
    for file, line, message in (
        ("corpus.jsonl", "not json", "Expecting value"),
        ("corpus.jsonl", '{"id": "new"}', "'text' is missing"),
        ("corpus.jsonl", '{"id": "new", "text": "x", "seq": "soon"}', "could not convert"),
        ("corpus.jsonl", "[]", "has no attribute"),
        ("qrels.tsv", "1 oak 1", "not enough values"),
    ):
        folder = trees(tmp_path / "trees")
        with open(folder / file, "a", encoding="utf-8") as stream:
            stream.write(line + "\n")

        with pytest.raises(InvalidInputError, match=f"{file}:4: .*{message}"):
            read_set(str(folder))


def test_a_set_without_a_scored_question_or_a_groups_documents_is_refused(tmp_path: Path) -> None:
    documents, question = [{"id": "a", "text": "Oaks."}], {"id": "q", "text": "oaks"}

    with pytest.raises(InvalidInputError, match="no question has a relevant document"):
        read_set(str(write_set(tmp_path, documents, [question], [])))
    with pytest.raises(InvalidInputError, match="the group 'moon', but no document has it"):
        read_set(str(write_set(tmp_path, documents, [{**question, "group": "moon"}], [("q", "a", 1)])))


def test_a_vaults_questions_may_have_several_answers_or_none(tmp_path: Path) -> None:
    (tmp_path / "questions.jsonl").write_text(
        '{"question": "oaks?", "answers": ["memory:oak#L3-9"], "also": ["memory:elm"], "kind": "trees"}\n\n'
        '{"question": "moon?", "answers": [], "kind": "absent"}\n'
    )

    oaks, moon = read_vault(str(tmp_path)).questions

    assert (oaks.id, oaks.answers, oaks.kind) == ("1", {"memory:oak": 1, "memory:elm": 1}, "trees")
    assert (moon.id, moon.answers, moon.kind) == ("3", {}, "absent")


def test_a_mistake_in_a_vaults_questions_is_reported(tmp_path: Path) -> None:
    for line, message in (
        ("", "has no questions"),
        ('{"answers": ["memory:oak"]}', "questions.jsonl:1: 'question' is missing"),
        ('{"question": "who?", "answers": []}', 'without answers its "kind" is "absent"'),
        ('{"question": "who?", "answers": [7]}', "questions.jsonl:1: a line is"),
    ):
        (tmp_path / "questions.jsonl").write_text(line + "\n")

        with pytest.raises(InvalidInputError, match=message):
            read_vault(str(tmp_path))
