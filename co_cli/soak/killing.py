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
from co_cli.notes.files import TEMPORARY
from co_cli.soak.comparing import differences
from co_cli.soak.contract import Trial
from co_cli.soak.processes import Process
from co_cli.soak.vaults import is_whole, mark_of, open_vault, sealed_text

VERBS = ("remember", "update", "forget", "restore", "edit", "sync", "reembed", "rebuild")
WRITES = ("remember", "update", "forget", "restore", "edit")
LIFE = 10
"""Rounds that one vault lives through: what one kill leaves is there when the next strikes."""
FEW, MANY = 4, 12
"""Notes: with few it rather saves, with many it rather forgets."""
OURS = {f"{name}{ending}" for name in ("search.db", "activity.db") for ending in ("", "-wal", "-shm", ".lock")}


def run(trial: Trial) -> None:
    spans: dict[str, float] = dict.fromkeys(VERBS, 0.02)
    ledger: Ledger | None = None
    for number in trial.rounds():
        if ledger is None or (number - 1) % LIFE == 0:
            ledger = Ledger(trial.folder(number))
        verb = VERBS[number % len(VERBS)]
        victim = Process(work, str(ledger.place), trial.chance.getrandbits(32), verb)
        try:
            for said in _until_killed(victim, verb, spans, trial):
                ledger.hear(said)
        finally:
            victim.close()
        trial.count("kills")
        trial.count("saves acknowledged", ledger.acknowledged)
        problems = [*ledger.check(), *(f"{problem}, after healing" for problem in heal(ledger.place))]
        for problem in problems:
            trial.fault(f"killed in {ledger.under_way or verb}: {problem}")
        ledger.settle()
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
            said += victim.rest()
            trial.count(f"in {verb}", said[-1][:2] == ("begin", verb))
            return said
        if one[0] == "failed":
            trial.fault(f"{one[1]} raised {one[2]}")
    trial.fault("the process ended before it was killed")
    return said


class Ledger:
    """What was acknowledged about the notes of one vault, and what was under way."""

    def __init__(self, place: Path) -> None:
        self.place = place
        self.notes: dict[str, str] = {}
        self.trashed: set[str] = set()
        self.pending: tuple[str, str, str] | None = None
        self.under_way = ""
        self.acknowledged = 0

    def hear(self, said: Any) -> None:
        if said[0] == "begin":
            _, verb, path, mark = said
            self.under_way = verb
            self.pending = (verb, path, mark)
        elif said[0] == "done":
            _, verb, path, mark = said
            if verb in WRITES:
                self.acknowledged += 1
            if verb == "forget":
                self.trashed.add(self.notes.pop(path))
            elif verb in WRITES:
                self.notes[path] = mark
                self.trashed.discard(mark)
            self.pending = None

    def check(self) -> list[str]:
        """What is wrong with the files."""
        found = self._files("vault/memories")
        trash = {mark_of(data) for data in self._files("vault/.trash").values()}
        problems = [f"{path} is half a note" for path, data in found.items() if not is_whole(data)]
        verb, at, mark = self.pending or ("", "", "")
        for path, known in self.notes.items():
            now = mark_of(found[path]) if path in found else None
            if now == known or (path == at and now == mark and verb in ("update", "edit")):
                continue
            if path == at and verb == "forget" and now is None and known in trash:
                continue
            problems.append(f"{path} was acknowledged with {known} and has {now}")
        for path in found.keys() - self.notes.keys():
            if verb not in ("remember", "restore") or mark_of(found[path]) != mark:
                problems.append(f"{path} is there and nobody saved it")
        back = mark if verb == "restore" and mark in map(mark_of, found.values()) else None
        lost = self.trashed - trash - {back}
        problems += [f"{mark} was forgotten and is not in the trash" for mark in sorted(lost)]
        odd = [file.name for file in (self.place / "vault").rglob("*") if file.is_file() and _odd(file)]
        return problems + [f"{name} was left behind" for name in odd]

    def settle(self) -> None:
        """What is there now is what counts from here on."""
        self.notes = {path: mark_of(data) for path, data in self._files("vault/memories").items()}
        self.trashed = {mark_of(data) for data in self._files("vault/.trash").values()}
        self.pending, self.under_way, self.acknowledged = None, "", 0

    def _files(self, folder: str) -> dict[str, bytes]:
        root = self.place / folder
        return {str(file.relative_to(self.place / "vault")): file.read_bytes() for file in root.rglob("*.md")}


def _odd(file: Path) -> bool:
    return file.suffix != ".md" and not file.name.startswith(TEMPORARY)


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
        for database in (kb.database, kb.activity.database):
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
