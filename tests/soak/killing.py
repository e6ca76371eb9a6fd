"""kill -9 at a random moment of saving, changing, forgetting, restoring, syncing, reembedding and rebuilding.

A real process works in a vault and says over a pipe what it begins and what it acknowledges. It is killed in the middle
of the verb whose turn it is. Then: every acknowledged note is there and whole, a change that was under way happened or
did not, and the next process heals the index by itself until every row equals the files.
"""

from __future__ import annotations

import random
import time
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from co_cli.knowledge_base import KnowledgeBase
from tests.soak.comparing import differences
from tests.soak.contract import Trial
from tests.soak.ledger import Ledger, files_of
from tests.soak.processes import Process
from tests.soak.vaults import mark_of, open_vault, sealed_text

VERBS = ("remember", "update", "forget", "restore", "edit", "sync", "reembed", "rebuild")
LIFE = 25
"""Rounds that one vault lives through: what one kill leaves is there when the next strikes."""
FEW, MANY = 4, 12
"""Notes: with few it rather saves, with many it rather forgets."""
OURS = {f"{name}{ending}" for name in ("search.db", "activity.db") for ending in ("", "-wal", "-shm", ".lock")}


def run(trial: Trial) -> None:
    spans: dict[str, float] = dict.fromkeys(VERBS, 0.02)
    ledger: Ledger | None = None
    place = trial.place
    for number in trial.rounds():
        if ledger is None or (number - 1) % LIFE == 0:
            ledger, place = Ledger(), trial.folder(number)
        verb = VERBS[number % len(VERBS)]
        victim = Process(work, str(place), trial.chance.getrandbits(32), verb)
        try:
            for said in _until_killed(victim, verb, spans, trial):
                ledger.hear(said)
        finally:
            victim.close()
        trial.count("kills")
        trial.count("saves acknowledged", ledger.acknowledged)
        left = files_of(place / "vault")
        problems = [*ledger.check(left), *(f"{problem}, after healing" for problem in heal(place))]
        for problem in problems:
            trial.fault(f"killed in {ledger.under_way or verb}: {problem}")
        ledger.settle(left)
        if problems:
            ledger = None  # what is wrong once is told once


def _until_killed(victim: Process, verb: str, spans: dict[str, float], trial: Trial) -> list[Any]:
    """Let it come to the verb, wait for a part of the time that it takes, and kill it. Everything that it said."""
    said: list[Any] = []
    while (one := victim.says()) is not None:
        said.append(one)
        if one[:2] == ("begin", verb):
            begun = time.monotonic()
            wait = trial.chance.uniform(0.0, 1.3 * spans[verb])
            while victim.pipe.poll(max(0.0, begun + wait - time.monotonic())):
                one = victim.says()
                if one is None:
                    break
                said.append(one)
                if one[:2] == ("done", verb):
                    spans[verb] = min(0.5, (3 * spans[verb] + time.monotonic() - begun) / 4)
            else:
                spans[verb] = min(0.5, 1.05 * spans[verb])
            victim.kill()
            rest = victim.rest()
            for _, what, how in [one for one in rest if one[0] == "failed"]:
                trial.fault(f"{what} raised {how}")
            said += [one for one in rest if one[0] != "failed"]
            trial.count("in the middle of something", said[-1][0] == "begin")
            return said
        if one[0] == "failed":
            trial.fault(f"{one[1]} raised {one[2]}")
    trial.fault("the process ended before it was killed")
    return said


def heal(place: Path) -> list[str]:
    """Open the vault as the next process would; whatever is still wrong then."""
    problems: list[str] = []
    with open_vault(place) as kb:
        try:
            degraded = [why for why in kb.search("anchor cedar").degraded if "never synced" not in why]
            if degraded:
                problems.append(f"a search before the next sync was degraded: {degraded}")
            kb.sync()
            problems += differences([kb])
            with kb.activity.database.reading() as connection:
                checked = connection.execute("pragma quick_check(1)").get
                if checked != "ok":
                    problems.append(f"activity.db: {checked}")
        except Exception as error:
            problems.append(f"{type(error).__name__}: {error}")
        for database in (kb.engine.database, kb.activity.database):
            if database.set_aside:
                problems.append(f"a database was found unusable and set aside as {database.set_aside}")
    left = sorted(file.name for file in (place / "data").iterdir() if file.name not in OURS)
    return problems + [f"{name} was left behind" for name in left]


# -- the process that is killed ------------------------------------------------------------------------------------


def work(pipe: Connection, place: str, seed: int, wanted: str) -> None:
    """Do one thing after another, the wanted one soon, and say so before and after."""
    chance = random.Random(seed)
    kb = open_vault(Path(place))
    turn = chance.randrange(3)
    while True:
        notes = [str(file.relative_to(kb.root)) for file in Path(kb.root, "memories").glob("*.md")]
        verb = wanted if turn == 0 else chance.choice(VERBS[:6])
        turn -= 1
        if not notes or (len(notes) < FEW and verb not in (wanted, "restore")):
            verb = "remember"
        elif len(notes) > MANY and verb in ("remember", "restore"):
            verb = "forget"
        if verb == "remember" and verb != wanted and turn == -1:
            turn = 0  # the wanted one is still to come
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
        if not trashed:
            verb = "remember"
        else:
            kept, path = trashed[0]
            mark = mark_of(kb.store.read(kept))
    pipe.send(("begin", verb, path, mark))
    if verb == "remember":
        saved = kb.remember(sealed_text(chance, mark), title=f"Note {mark}", on_related="keep")
        path = str(Path(saved.path).relative_to(kb.root))
    elif verb == "update":
        kb.update(path, sealed_text(chance, mark))
    elif verb == "edit":  # as an editor does: the index is not told
        kb.store.replace(path, sealed_text(chance, mark).encode(), based_on=kb.store.read(path))
    elif verb == "forget":
        kb.forget(path)
    elif verb == "restore":
        kb.restore(path)
    elif verb == "sync":
        kb.sync()
    elif verb == "reembed":
        kb.reembed(fresh=True)
    elif verb == "rebuild":
        kb.rebuild()
    pipe.send(("done", verb, path, mark))
