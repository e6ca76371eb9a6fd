"""The sample vault: pleasant to read, linked, and with questions that words alone cannot answer."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from co_cli.ground.paths import sample_vault
from co_cli.index.tokens import is_stop_word, spans
from co_cli.notes.note import Note, read_note
from co_cli.notes.refs import path_of, stem_of

VAULT = Path(sample_vault())
FILES = sorted(VAULT.rglob("*.md"))
NOTES = {
    str(file.relative_to(VAULT).as_posix()): read_note(file.relative_to(VAULT).as_posix(), file.read_bytes())
    for file in FILES
}
QUESTIONS: list[dict[str, Any]] = [
    json.loads(line) for line in (VAULT / "questions.jsonl").read_text("utf-8").splitlines()
]


def note_of(ref: str) -> Note:
    path = path_of(ref)
    assert path in NOTES, f"{ref} names no note"
    return NOTES[path]


def stems(text: str) -> set[str]:
    """The content words of a text, as the index stems them."""
    return {span.token for span in spans(text) if not is_stop_word(text[span.start : span.end])}


def everything_in(note: Note) -> str:
    return " ".join((note.title, note.body, *note.tags, *note.aliases, note.description, stem_of(note.path)))


def test_every_note_can_be_read_and_says_something() -> None:
    assert [(path, note.problem) for path, note in NOTES.items() if note.problem] == []
    assert [path for path, note in NOTES.items() if len(note.body.strip()) < 20] == []


def test_every_question_is_asked_once_and_its_answers_exist() -> None:
    assert len({question["question"].casefold() for question in QUESTIONS}) == len(QUESTIONS)
    for question in QUESTIONS:
        assert set(question) - {"also"} == {"question", "answers", "kind"}
        assert question["kind"] in ("words", "paraphrase", "absent")
        assert bool(question["answers"]) is (question["kind"] != "absent")
        for ref in (*question["answers"], *question.get("also", [])):
            note = note_of(ref)
            assert note.ref == ref


def test_every_link_leads_to_a_note() -> None:
    names = {stem_of(other).casefold() for other in NOTES} | {
        alias.casefold() for note in NOTES.values() for alias in note.aliases
    }
    names |= {note.title.casefold() for note in NOTES.values()}
    for path, target in ((path, target) for path, note in NOTES.items() for target in note.links):
        if target.endswith(".md"):
            there = (VAULT / path).parent / target
            assert there.resolve().is_file() or (VAULT / target).is_file(), f"{path} links to {target}"
        else:
            assert target.rsplit("/", 1)[-1].casefold() in names, f"{path} links to [[{target}]]"


def test_a_paraphrase_shares_no_content_word_with_its_answers_and_other_questions_do() -> None:
    for question in QUESTIONS:
        asked = stems(question["question"])
        shared = asked & stems(" ".join(everything_in(note_of(ref)) for ref in question["answers"]))
        assert bool(shared) is (question["kind"] == "words"), (question, shared)
