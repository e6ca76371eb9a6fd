"""Do agents get the notes that answer, and no others? Small vaults with questions of many kinds, and sessions.

`python -m benchmarks precision [FOLDER...]`: each folder has vaults as `benchmarks/quality/precision/README.md`
describes them. Questions are asked with recall_memory, and the turns of a session are given to the hook of a coding
agent. `tune` was trained on; `chosen` chose the model; `kept` was not looked at while anything was chosen.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from statistics import fmean
from typing import Any, NamedTuple

from benchmarks.measuring import BenchRow
from benchmarks.vaults import Bar
from co_cli.entrance.local import LocalKnowledgeBase
from co_cli.ground.settings import load_settings
from co_cli.hooks.given_notes import text_for
from co_cli.hooks.hook_events import read_event
from co_cli.notes.new_note import render_note
from co_cli.notes.refs import FOLDERS, without_lines
from co_cli.notes.subjects import title_from
from co_cli.tools.budget import estimate_tokens
from co_cli.tools.toolbox import Toolbox

FOLDER = Path(__file__).parent / "quality" / "precision"
CLIENT = "claude-code"
TURN = "turn of a session"

Row = dict[str, Any]


class Given(NamedTuple):
    """What an agent was given for one question or prompt."""

    vault: str
    kind: str
    text: str
    answers: frozenset[str]
    accepted: frozenset[str]
    """Neither wanted nor wrong."""
    refs: tuple[str, ...]
    tokens: int

    @property
    def right(self) -> int:
        return len(self.answers & {*self.refs})

    @property
    def wrong(self) -> list[str]:
        return [ref for ref in self.refs if ref not in self.answers and ref not in self.accepted]

    @property
    def precision(self) -> float:
        """An answer without a right note counts as 0, also an empty one."""
        return self.right / (self.right + len(self.wrong)) if self.right else 0.0

    @property
    def recall(self) -> float:
        return self.right / len(self.answers)

    @property
    def is_exact(self) -> bool:
        return self.right == len(self.answers) and not self.wrong


def bench_precision(folders: Sequence[str], bar: Bar | None = None) -> list[BenchRow]:
    rows: list[BenchRow] = []
    for folder in map(Path, folders or [str(FOLDER / "tune")]):
        given: list[Given] = []
        files = sorted(folder.glob("*.json"))
        for number, file in enumerate(files):
            given += ask_vault(file)
            if bar:
                bar(number + 1, len(files))
        rows += [row._replace(name=f"{folder.name}: {row.name}") for row in summary(given)]
    return rows


def ask_vault(file: Path) -> Iterator[Given]:
    """Every question, and every turn of the session, of one vault."""
    vault: Row = json.loads(file.read_text("utf-8"))
    with tempfile.TemporaryDirectory(prefix="co-bench-", ignore_cleanup_errors=True) as work:
        settings = load_settings({"vault": f"{work}/vault", "data_dir": f"{work}/data"})
        write_notes(Path(work, "vault"), vault["notes"])
        with LocalKnowledgeBase(settings) as kb:
            kb.sync()
            kb.embed()
            toolbox = Toolbox(kb)
            for asked in vault["questions"]:
                found = toolbox.call("recall_memory", {"query": asked["text"]})
                hits = found.data["hits"] if found.data["state"] == "found" else []
                yield _given(file.stem, asked, [hit["ref"] for hit in hits], found.text)
            before: set[str] = set()
            for turn in vault.get("session", ()):
                event = read_event(CLIENT, _event(turn["text"], file.stem))
                text = text_for(kb, event) if event else ""
                refs = [line[2:].partition(" ")[0] for line in text.splitlines() if line.startswith("| ")]
                asked = {**turn, "kind": TURN, "answers": [id for id in turn["answers"] if id not in before]}
                given = _given(file.stem, asked, [ref for ref in refs if ref.startswith(("memory:", "entity:"))], text)
                before.update(given.refs)
                yield given


def write_notes(root: Path, notes: Sequence[Row]) -> None:
    kinds = {note["id"]: note.get("kind", "memory") for note in notes}
    for note in notes:
        folder = root / FOLDERS[kinds[note["id"]]]
        folder.mkdir(parents=True, exist_ok=True)
        fields = {name: note[name] for name in ("aliases", "tags", "created") if note.get(name)}
        fields["title"] = note.get("title") or title_from(note["text"])
        if newer := note.get("superseded_by"):
            fields["superseded_by"] = f"{kinds[newer]}:{newer}"
        (folder / f"{note['id']}.md").write_text(render_note(fields, note["text"]), "utf-8")


def _given(vault: str, asked: Row, refs: Sequence[str], text: str) -> Given:
    names = [without_lines(ref).partition(":")[2] for ref in refs]
    accepted = frozenset(asked.get("also", ()))
    answers = frozenset(asked["answers"])
    return Given(vault, asked["kind"], asked["text"], answers, accepted, tuple(names), estimate_tokens(text))


def summary(given: Sequence[Given]) -> list[BenchRow]:
    """All questions, each kind of them, and the turns of sessions."""
    questions = [one for one in given if one.kind != TURN]
    rows = _figures("all", questions)
    for kind in dict.fromkeys(one.kind for one in given):
        rows += _figures(kind, [one for one in given if one.kind == kind])
    return [*rows, BenchRow("all: tokens of an answer", fmean(one.tokens for one in questions), "tokens")]


def _figures(name: str, given: Sequence[Given]) -> list[BenchRow]:
    answered, others = [one for one in given if one.answers], [one for one in given if not one.answers]
    rows: list[BenchRow] = []
    if answered:
        rows += [
            BenchRow(f"{name}: precision", fmean(one.precision for one in answered), f"of {len(answered)}"),
            BenchRow(f"{name}: recall", fmean(one.recall for one in answered), f"of {len(answered)}"),
            BenchRow(f"{name}: exactly right", fmean(one.is_exact for one in answered), f"of {len(answered)}"),
        ]
    if others:
        nothing = fmean(not one.wrong for one in others)
        rows.append(BenchRow(f"{name}: nothing where nothing is right", nothing, f"of {len(others)}"))
    return rows


def _event(prompt: str, session: str) -> bytes:
    return json.dumps({"hook_event_name": "UserPromptSubmit", "session_id": session, "prompt": prompt}).encode()
