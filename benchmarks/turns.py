"""Are turns found as well in conversations that were captured as when each is a note of its own?

The turns of a set with sessions are kept as agents' turns are, one file for each session. A hit counts for the turn
that it is of. `co eval` makes a note of each turn: its speaker and date are the title, its neighbours the context.
"""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from pathlib import Path

from benchmarks.measuring import BenchRow
from benchmarks.vaults import Bar
from co_cli.entrance.knowledge_base import KnowledgeBase
from co_cli.evaluation.running import Evaluation, Marks, mark_ranking, mean_marks, method
from co_cli.evaluation.sets import EvalDocument, QuestionSet, created, read_set
from co_cli.ground.settings import load_settings
from co_cli.notes.dates import read_moment
from co_cli.notes.refs import lines_of, without_lines
from co_cli.notes.transcripts import SpokenTurn, read_turns
from co_cli.saving.turns import KeptSession, keep_turns
from co_cli.vault.vault import Opening


def bench_turns(folders: Sequence[str], bar: Bar | None = None) -> list[BenchRow]:
    """With the reader, unless the settings turn it off."""
    rows: list[BenchRow] = []
    with tempfile.TemporaryDirectory() as work:
        for folder in folders:
            found = read_set(folder)
            settings = load_settings()
            read = settings.knowledge_reader != "off"
            (run,) = Evaluation(settings, work).ask(found, {"co": method("co" if read else "co:hybrid")})
            notes = mean_marks([marks for _, marks, _ in run.answers])
            turns = mean_marks(ask_turns(found, Path(work), read, bar))
            for name, before, after in zip(Marks._fields, notes, turns, strict=True):
                rows.append(BenchRow(f"{found.name}: {name}, each turn a note", before, ""))
                rows.append(BenchRow(f"{found.name}: {name}, conversations", after, ""))
    return rows


def ask_turns(found: QuestionSet, work: Path, read: bool = False, bar: Bar | None = None) -> list[Marks]:
    """What the answers to all questions are worth, each group in a vault of its own."""
    marks: list[Marks] = []
    for number, group in enumerate(found.groups):
        flags = {"vault": tempfile.mkdtemp(dir=work), "data_dir": tempfile.mkdtemp(dir=work)}
        with KnowledgeBase.open(settings=load_settings(flags), opening=Opening()) as kb:
            places = _keep(kb, [document for document in found.documents if document.group == group])
            kb.sync()
            for question in (one for one in found.questions if one.group == group):
                hits = kb.search(question.text, read=read, outdated=True).hits
                ranked = [places[without_lines(hit.ref)][(lines_of(hit.ref) or (0, 0))[0]] for hit in hits]
                marks.append(mark_ranking(ranked, question.answers))
        if bar:
            bar(number + 1, len(found.groups))
    return marks


def _keep(kb: KnowledgeBase, documents: Sequence[EvalDocument]) -> dict[str, dict[int, str]]:
    """Keep each session; return which document each line of each conversation is of."""
    sessions: dict[str, list[EvalDocument]] = {}
    for document in documents:
        sessions.setdefault(document.session, []).append(document)
    places: dict[str, dict[int, str]] = {}
    for session, said in sessions.items():
        turns = [SpokenTurn(one.speaker, one.text, read_moment(created(one.date))) for one in said]
        ref = keep_turns(kb.vault, KeptSession(session), turns).ref
        note = kb.note(ref)
        for document, turn in zip(said, read_turns(note.body, note.body_line), strict=True):
            places.setdefault(ref, {}).update(dict.fromkeys(range(turn.line, turn.last + 1), document.id))
    return places
