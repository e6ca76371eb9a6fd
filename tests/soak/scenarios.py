"""Scenarios with real processes: killed writers, and a crowd in two vaults."""

from __future__ import annotations

import random
import time
from collections import Counter
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from co_cli.entrance.knowledge_base import KnowledgeBase
from tests.soak.checks import WORDS, Ledger, differences, files_of, is_whole, mark_of, open_vault, sealed_text
from tests.soak.runner import Process, Trial, processes

# -- kill -9 -----------------------------------------------------------------------------------------------------------

VERBS = ("remember", "update", "forget", "restore", "edit", "sync", "reembed", "rebuild")
LIFE = 25
"""Rounds with one vault, so that a kill meets what earlier ones left."""
FEW, MANY = 4, 12
OUR_FILES = {
    f"{name}{ending}"
    for name in ("search.db", "activity.db", "activity.spool")
    for ending in ("", "-wal", "-shm", ".lock")
}


def kill(trial: Trial) -> None:
    """Kill a process in the middle of each verb.

    Every acknowledged note must be there and whole, a change in progress happened or did not, and the next process
    must repair the index by itself.
    """
    spans: dict[str, float] = dict.fromkeys(VERBS, 0.02)
    ledger: Ledger | None = None
    place = trial.place
    for number in trial.rounds():
        if ledger is None or (number - 1) % LIFE == 0:
            ledger, place = Ledger(), trial.folder(number)
        verb = VERBS[number % len(VERBS)]
        victim = Process(work_until_killed, str(place), trial.chance.getrandbits(32), verb)
        try:
            for said in _kill_during(victim, verb, spans, trial):
                ledger.hear(said)
        finally:
            victim.close()
        trial.count("kills")
        trial.count("saves acknowledged", ledger.acknowledged)
        left = files_of(place / "vault")
        problems = [*ledger.check(left), *(f"{problem}, after the next sync" for problem in _heal(place))]
        for problem in problems:
            trial.fault(f"killed in {ledger.verb or verb}: {problem}")
        ledger.settle(left)
        if problems:
            ledger = None  # start again, so that one fault is reported once


def _kill_during(victim: Process, verb: str, spans: dict[str, float], trial: Trial) -> list[Any]:
    """Let the process come to the verb, wait for a part of the time that it takes, and kill it."""
    said: list[Any] = []
    while (message := victim.says()) is not None and message[:2] != ("begin", verb):
        said.append(message)
    begun = time.monotonic()
    end = begun + trial.chance.uniform(0.0, 1.3 * spans[verb])
    spans[verb] = min(0.5, 1.05 * spans[verb])
    while message is not None:
        said.append(message)
        if message[:2] == ("done", verb):
            spans[verb] = min(0.5, (3 * spans[verb] + time.monotonic() - begun) / 4)
        left = end - time.monotonic()
        message = victim.says(left) if left > 0 and victim.pipe.poll(left) else None
    victim.kill()
    said += iter(victim.says, None)
    for _, what, how in [message for message in said if message[0] == "failed"]:
        trial.fault(f"{what} raised {how}")
    said = [message for message in said if message[0] != "failed"]
    if said:
        trial.count("in the middle of something", said[-1][0] == "begin")
    return said


def _heal(place: Path) -> list[str]:
    """Open the vault as the next process would, and return what is still wrong."""
    problems: list[str] = []
    with open_vault(place) as kb:
        try:
            degraded = [why for why in kb.search("anchor cedar").degraded if "never synced" not in why]
            if degraded:
                problems.append(f"a search before the next sync was degraded: {degraded}")
            kb.sync()
            problems += differences(kb)
            with kb.activity.database.reading() as connection:
                checked = connection.execute("pragma quick_check(1)").get
                problems += [] if checked == "ok" else [f"activity.db: {checked}"]
        except Exception as error:
            problems.append(f"{type(error).__name__}: {error}")
        for database in (kb.engine.database, kb.activity.database):
            if database.set_aside:
                problems.append(f"a database was found unusable and moved to {database.set_aside}")
    left = sorted(file.name for file in (place / "data").iterdir() if file.name not in OUR_FILES)
    return problems + [f"{name} was left behind" for name in left]


def work_until_killed(pipe: Connection, place: str, seed: int, wanted: str) -> None:
    """Do one thing after another, the wanted one soon, and say so before and after."""
    chance = random.Random(seed)
    kb = open_vault(Path(place))
    turn = chance.randrange(3)
    while True:
        notes = [str(file.relative_to(kb.root)) for file in Path(kb.root, "memories").glob("*.md")]
        verb = wanted if turn <= 0 and notes else chance.choice(VERBS[:6])
        turn -= 1
        if not notes or (len(notes) < FEW and verb not in (wanted, "restore")):
            verb = "remember"
        elif len(notes) > MANY and verb in ("remember", "restore"):
            verb = "forget"
        try:
            _do(kb, verb, chance, notes, pipe)
        except Exception as error:
            pipe.send(("failed", verb, f"{type(error).__name__}: {error}"))
            raise


def _do(kb: KnowledgeBase, verb: str, chance: random.Random, notes: list[str], pipe: Connection) -> None:
    mark = chance.randbytes(6).hex()
    path = chance.choice(notes) if notes else ""
    if verb == "restore":
        trashed = [(kept, home) for kept, home in kb.store.trashed() if home not in notes]
        if trashed:
            kept, path = trashed[0]
            mark = mark_of(kb.store.read(kept))
        else:
            verb = "remember"
    pipe.send(("begin", verb, path, mark))
    text = sealed_text(chance, mark)
    if verb == "remember":
        saved = kb.remember(text, title=f"Note {mark}", on_related="keep")
        path = str(Path(saved.path).relative_to(kb.root))
    elif verb == "update":
        kb.update(path, text)
    elif verb == "edit":  # as an editor does: the index does not know
        kb.store.replace(path, text.encode(), based_on=kb.store.read(path))
    elif verb in ("forget", "restore"):
        getattr(kb, verb)(path)
    else:
        getattr(kb, verb)()
    pipe.send(("done", verb, path, mark))


# -- a crowd -----------------------------------------------------------------------------------------------------------

TOGETHER = 8
STEPS = 200
NOTES_EACH = 6


def crowd(trial: Trial, steps: int = STEPS) -> None:
    """Eight processes make a search.db at once, then save, change, forget and search in two vaults; one also rebuilds.

    No note may be lost or doubled, no process may fail, and in the end the index must equal the files.
    """
    for number in trial.rounds():
        place = trial.folder(number)
        home = ["garden" if who % 4 == 3 else "vault" for who in range(TOGETHER)]
        arguments = [(str(place), home[who], trial.chance.getrandbits(32), f"w{who}", steps) for who in range(TOGETHER)]
        with processes(work_in_crowd, arguments) as workers:
            answers = [worker.says(600) for worker in workers]
        wanted: dict[str, set[str]] = {vault: set() for vault in home}
        for vault, answer in zip(home, answers, strict=True):
            if isinstance(answer, tuple):
                wanted[vault] |= answer[0]
                trial.counts.update(answer[1])
            else:
                trial.fault(f"a process failed: {answer or 'it ended'}")
        for vault, marks in wanted.items():
            for problem in _check_crowd(place, vault, marks):
                trial.fault(f"{vault}: {problem}")


def _check_crowd(place: Path, vault: str, marks: set[str]) -> list[str]:
    files = {path: data for path, data in files_of(place / vault).items() if path.startswith("memories/")}
    found = sorted(mark_of(data) for data in files.values())
    problems = [f"{path} is half a note" for path, data in files.items() if not is_whole(data)]
    if found != sorted(marks):
        problems.append(f"lost {sorted(marks - set(found))}, forgotten or doubled {sorted(set(found) - marks)}")
    with open_vault(place, vault) as kb:
        kb.sync()
        return problems + differences(kb)


def work_in_crowd(pipe: Connection, place: str, vault: str, seed: int, who: str, steps: int) -> None:
    """Say which notes there are in the end, by their marks, and how often what was done; or what went wrong."""
    chance, counts = random.Random(seed), Counter[str]()
    notes: dict[str, str] = {}
    try:
        with open_vault(Path(place), vault) as kb:
            for number in range(steps):
                mark = f"{who}x{number}"
                ref = chance.choice(list(notes)) if notes else ""
                verb = chance.choices(("saves", "updates", "forgets", "searches"), (3, 3, 2, 4))[0]
                if who == "w1" and number % 50 == min(25, steps // 2):
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
                elif len(notes) < NOTES_EACH:
                    verb = "saves"
                    saved = kb.remember(sealed_text(chance, mark), title=f"Note {mark}", on_related="keep")
                    notes[saved.ref] = mark
                else:
                    continue
                counts[verb] += 1
        pipe.send((set(notes.values()), counts))
    except Exception as error:
        pipe.send(f"{type(error).__name__}: {error}")
