"""Check the reader's training data: parts of JSON lines into a list of problems, or the counts if there are none.

Run `python -m benchmarks.reader.check_data`. The format is described in data/README.md.
"""

from __future__ import annotations

import json
import re
import sys
from collections import Counter, defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from Stemmer import Stemmer

from co_cli.index.tokens import fold, is_stop_word

DATA = Path(__file__).parent / "data"
ROOT = Path(__file__).parents[2]
MEASURED = (ROOT / "knowledge", ROOT / "benchmarks" / "quality")
FIELDS = {"id": str, "life": str, "form": str, "text": str, "questions": list, "near": list}
WORD = re.compile(r"[^\W_]+(?:['’][^\W_]+)*")
SPEAKER = re.compile(r"\w[^:\n]{0,39}: \S")
SEQUENCE = 8
STEMMER = Stemmer("porter")
"""Without the irregular forms that a search knows."""

Note = dict[str, Any]


def content_stems(text: str) -> set[str]:
    """The stems of a text's words, without stop words. A contraction counts as the word before its apostrophe."""
    words = [word for word in WORD.findall(text) if not is_stop_word(word)]
    parts = [re.split("['’]", word)[0] for word in words]
    return {STEMMER.stemWord(fold(part)) for part in parts if not is_stop_word(part)}


def sequences(text: str) -> set[str]:
    """Every run of eight words in a text."""
    words = [word.lower() for word in WORD.findall(text)]
    return {" ".join(words[at : at + SEQUENCE]) for at in range(len(words) - SEQUENCE + 1)}


def field_problem(note: object, part: str) -> str:
    """What is wrong with the fields of one note, or an empty string."""
    if not isinstance(note, dict) or set(note) != set(FIELDS):
        return f"the fields must be {', '.join(FIELDS)}"
    for name, kind in FIELDS.items():
        if not isinstance(note[name], kind) or not note[name]:
            return f"{name} must be a non-empty {kind.__name__}"
    if not all(isinstance(item, str) and item.strip() for item in note["questions"] + note["near"]):
        return "questions and near must hold non-empty strings"
    if not re.fullmatch(re.escape(part.replace("part-", "p")) + r"-\d{3,}", note["id"]):
        return f"the id {note['id']} does not belong to {part}"
    if len(note["questions"]) != 2:
        return "there must be two questions"
    if not 2 <= len(set(note["near"])) == len(note["near"]) <= 4:
        return "there must be 2-4 different near ids"
    heading, _, body = note["text"].partition("\n")
    if note["form"] == "section":
        if not heading.startswith("## ") or not 60 <= len(body.split()) <= 150:
            return f"a section has a '## ' heading line and 60-150 words, not {len(body.split())}"
    elif note["form"] == "chat":
        if not SPEAKER.match(note["text"]):
            return "a chat turn starts with 'Speaker: '"
    elif note["form"] != "note":
        return f"unknown form {note['form']}"
    return ""


def read_parts(folder: Path, problems: list[str]) -> Iterator[Note]:
    """Every note whose fields are valid. What is wrong with the others is added to the problems."""
    for path in sorted(folder.glob("part-*.jsonl")):
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), start=1):
            try:
                note = json.loads(line)
            except ValueError as error:
                problems.append(f"{path.name}:{number}: invalid JSON: {error}")
                continue
            if problem := field_problem(note, path.stem):
                problems.append(f"{path.name}:{number}: {problem}")
            else:
                yield note


def check(folder: Path = DATA) -> tuple[list[Note], list[str]]:
    """The valid notes of a folder, and one line for each problem."""
    problems: list[str] = []
    notes = list(read_parts(folder, problems))
    lives = {note["id"]: note["life"] for note in notes}
    problems += [f"{id}: duplicate id" for id, count in Counter(note["id"] for note in notes).items() if count > 1]
    asked = Counter(" ".join(question.lower().split()) for note in notes for question in note["questions"])
    problems += [f"identical question: {question}" for question, count in asked.items() if count > 1]

    places: dict[str, list[str]] = defaultdict(list)
    measured: set[str] = set()
    for path in (path for root in MEASURED for path in root.rglob("*") if path.suffix in {".md", ".jsonl"}):
        measured |= sequences(path.read_text(encoding="utf-8"))
    for note in notes:
        for near in note["near"]:
            if near == note["id"] or lives.get(near) != note["life"]:
                problems.append(f"{note['id']}: near {near} is not another note of the same life")
        if shared := content_stems(note["questions"][1]) & content_stems(note["text"]):
            problems.append(f"{note['id']}: the second question shares {', '.join(sorted(shared))} with the text")
        for sequence in sequences(note["text"]):
            places[sequence].append(note["id"])
            if sequence in measured:
                problems.append(f"{note['id']}: '{sequence}' occurs in a measured vault")
    problems += [f"'{words}' occurs in {len(ids)} notes: {ids}" for words, ids in places.items() if len(ids) > 3]
    return notes, problems


if __name__ == "__main__":
    notes, problems = check()
    forms = ", ".join(f"{count} {form}" for form, count in Counter(note["form"] for note in notes).most_common())
    lives = len({note["life"] for note in notes})
    print("\n".join(problems) or "No problems.")
    print(f"{len(notes)} notes ({forms}) of {lives} lives, {2 * len(notes)} questions")
    sys.exit(bool(problems))
