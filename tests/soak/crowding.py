"""Eight processes save, change, forget and search in one vault, and in two vaults that share a search.db.

One of them makes the index anew now and then. In the end no note is lost or doubled, nobody was told that a database is
locked, nobody spent their time waiting in a loop, and every row of the index equals the files.
"""

from __future__ import annotations

import random
import time
from multiprocessing.connection import Connection
from pathlib import Path
from typing import NamedTuple

from tests.soak.comparing import differences
from tests.soak.contract import Trial
from tests.soak.ledger import files_of
from tests.soak.processes import processes
from tests.soak.vaults import WORDS, is_whole, mark_of, open_vault, sealed_text

TOGETHER = 8
STEPS = 200
MANY = 6
"""Notes that each of them keeps."""
BUSY = 6.0
"""So many times the processor time of a process alone would be a loop that waits."""


class Done(NamedTuple):
    """What a process says in the end: its notes, its processor time, and what it did."""

    marks: set[str]
    spent: float
    counts: dict[str, int]


def run(trial: Trial, together: int = TOGETHER, steps: int = STEPS) -> None:
    for number in trial.rounds():
        place = trial.folder(number)
        vaults = ("vault", "garden")
        for vault in vaults:
            open_vault(place, vault).close()
        seeds = [trial.chance.getrandbits(32) for _ in range(together)]
        whose = [vaults[who % 4 == 3] for who in range(together)]
        arguments = [(str(place), whose[who], seeds[who], f"w{who}", steps) for who in range(together)]
        alone = _alone(place / "alone", trial, steps)
        with processes(work, arguments) as crowd:
            answers = [process.says(600) for process in crowd]
        wanted: dict[str, set[str]] = {vault: set() for vault in vaults}
        for vault, answer in zip(whose, answers, strict=True):
            if not isinstance(answer, Done):
                trial.fault(f"a process failed: {answer or 'it ended'}")
                continue
            wanted[vault] |= answer.marks
            for what, count in answer.counts.items():
                trial.count(what, count)
            if alone and answer.spent > BUSY * alone + 2.0:
                trial.fault(f"a process used {answer.spent:.1f} s of the processor; alone it takes {alone:.1f} s")
        for problem in _check(place, wanted):
            trial.fault(problem)


def _alone(place: Path, trial: Trial, steps: int) -> float | None:
    """The processor time that one of them takes when nobody else is there."""
    with processes(work, [(str(place), "vault", trial.chance.getrandbits(32), "alone", steps)]) as one:
        answer = one[0].says(600)
    return answer.spent if isinstance(answer, Done) else None


def _check(place: Path, wanted: dict[str, set[str]]) -> list[str]:
    problems: list[str] = []
    for vault, marks in wanted.items():
        files = {path: data for path, data in files_of(place / vault).items() if path.startswith("memories/")}
        found = [mark_of(data) for data in files.values()]
        problems += [f"{path} is half a note" for path, data in files.items() if not is_whole(data)]
        problems += [f"{mark} in {vault} is lost" for mark in sorted(marks - set(found))]
        problems += [f"{mark} in {vault} is there and was forgotten" for mark in sorted(set(found) - marks)]
        problems += [f"{mark} in {vault} is doubled" for mark in sorted({m for m in found if found.count(m) > 1})]
    opened = [open_vault(place, vault) for vault in wanted]
    try:
        for kb in opened:
            kb.sync()
        return problems + differences(opened)
    finally:
        for kb in opened:
            kb.close()


def work(pipe: Connection, place: str, vault: str, seed: int, who: str, steps: int) -> None:
    """So many steps, then: the marks of the notes that are left, the time that was used, and what was done."""
    chance = random.Random(seed)
    counts = {"saves": 0, "updates": 0, "forgets": 0, "searches": 0, "rebuilds": 0}
    notes: dict[str, str] = {}
    try:
        with open_vault(Path(place), vault) as kb:
            begun = time.process_time()
            for number in range(steps):
                mark = f"{who}x{number}"
                ref = chance.choice(list(notes)) if notes else ""
                verb = chance.choices(("saves", "updates", "forgets", "searches"), (3, 3, 2, 4))[0]
                if who == "w1" and number % 50 == 25:
                    verb = "rebuilds"
                if verb == "rebuilds":
                    kb.rebuild()
                elif verb == "searches":
                    found = kb.search(f"{chance.choice(WORDS)} {notes.get(ref, '')}", limit=5)
                    if found.backend == "grep":
                        raise AssertionError(f"the index did not answer: {found.degraded}")
                elif verb == "forgets" and len(notes) > 1:
                    kb.forget(ref)
                    del notes[ref]
                elif verb == "updates" and notes:
                    kb.update(ref, sealed_text(chance, mark))
                    notes[ref] = mark
                elif len(notes) < MANY:
                    verb = "saves"
                    saved = kb.remember(sealed_text(chance, mark), title=f"Note {mark}", on_related="keep")
                    notes[saved.ref] = mark
                else:
                    continue
                counts[verb] += 1
            spent = time.process_time() - begun
        pipe.send(Done(set(notes.values()), spent, counts))
    except Exception as error:
        pipe.send(f"{type(error).__name__}: {error}")
