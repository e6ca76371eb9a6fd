"""Cut the power while search.db and activity.db are written, by a disk that forgets what was not synced.

The notes are left whole here: names.py is about them. Of search.db, which syncs when it checkpoints: it is never
corrupt, holds nothing that was never written, and the next sync brings its tail back. Of activity.db, which syncs with
every commit: no acknowledged row is lost. The same with `synchronous=off` finds faults, or it would find none anywhere.
"""

from __future__ import annotations

import random
import shutil
import time
from collections import deque
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from co_cli.activity.background import write_now
from co_cli.activity.database import ActivityDatabase
from co_cli.activity.events import Searched
from co_cli.index.sqlite.connection import Database, connect, fetch, vector_extension
from co_cli.knowledge_base import KnowledgeBase
from co_cli.notes.store import content_hash
from tests.soak.comparing import differences, unsound
from tests.soak.contract import Trial
from tests.soak.disk import Disk, Image
from tests.soak.names import listening
from tests.soak.vaults import open_vault, sealed_text, settings_of

LIFE = 250
"""Cuts during the life of one vault."""
WHOLE_EVERY = 10
"""At every tenth cut the index is synced and compared with the files, row by row; at the others it must be sound."""
MANY = 10
DOCS = "select path, hash from docs"
QUERIES = "select questions.text from queries join questions on questions.id = queries.question_id"


def run(trial: Trial, synchronous: str | None = None) -> None:
    """`synchronous` is SQLite's pragma in place of ours, to see that a careless one is found out."""
    load: Load | None = None
    try:
        for number in trial.rounds():
            if load is None or (number - 1) % LIFE == 0:
                if load is not None:
                    load.close()
                load = Load(trial.folder(number), trial.chance, synchronous)
            load.chance = load.disk.chance = trial.chance
            cut = load.next_cut()
            trial.count("cuts")
            for problem in load.check(cut, number % WHOLE_EVERY == 0):
                trial.fault(f"cut in {cut.verb}: {problem}")
            trial.count("indexes compared with the files", number % WHOLE_EVERY == 0)
            trial.count("rows acknowledged", load.newly_acknowledged())
    finally:
        if load is not None:
            load.close()


class Cut(NamedTuple):
    """What a cut left, in what it struck, and how many rows were acknowledged by then."""

    image: Image
    verb: str
    known: int


class Load:
    """A vault at work on a disk that forgets."""

    def __init__(self, place: Path, chance: random.Random, synchronous: str | None) -> None:
        self.place, self.chance, self.synchronous = place, chance, synchronous
        self.history: set[tuple[str, str]] = set()
        self.acknowledged: list[str] = []
        self._told, self._verb = 0, "open"
        self._cuts: deque[Cut] = deque()
        (place / "data").mkdir()
        self.disk = Disk(str(place / "data"), chance, self._cut)
        self._listening = listening(str(place / "data"), self.disk.hear)
        self._listening.__enter__()
        self.kb = self._open()

    def close(self) -> None:
        self.kb.close()
        self._listening.__exit__(None, None, None)
        self.disk.unregister()

    def next_cut(self) -> Cut:
        """Work until the power was cut; what was begun is finished, for the disk goes on."""
        while not self._cuts:
            self._step()
        return self._cuts.popleft()

    def newly_acknowledged(self) -> int:
        told, self._told = self._told, len(self.acknowledged)
        return self._told - told

    def _cut(self, image: Image) -> None:
        self._cuts.append(Cut(image, self._verb, len(self.acknowledged)))

    def _open(self) -> KnowledgeBase:
        kb = open_vault(self.place)
        kb.brief = True  # no thread of its own: what happens is decided by the seed
        kb.index.counts()
        for database in (kb.engine.database, kb.activity.database):
            if self.synchronous:
                connection = database.borrow()
                connection.pragma("synchronous", self.synchronous)
                database.give_back(connection)
        return kb

    def _step(self) -> None:
        verbs: dict[Callable[[], None], int] = {
            self._save: 6,
            self._change: 4,
            self._forget: 2,
            self._edit_and_sync: 2,
            self._log: 8,
            self._reopen: 2,
            self._reembed: 1,
            self._rebuild: 1 if not self.synchronous else 0,
        }
        verb = self.chance.choices(list(verbs), list(verbs.values()))[0]
        self._verb = verb.__name__.strip("_")
        verb()
        for path in self._notes():
            self.history.add((path, content_hash(self.kb.store.read(path))))

    def _notes(self) -> list[str]:
        return sorted(f"memories/{file.name}" for file in (self.place / "vault" / "memories").glob("*.md"))

    def _text(self) -> str:
        return sealed_text(self.chance, self.chance.randbytes(6).hex())

    def _save(self) -> None:
        if len(self._notes()) >= MANY:
            self._forget()
        self.kb.remember(self._text(), title=f"Note {self.chance.randbytes(3).hex()}", on_related="keep")

    def _change(self) -> None:
        if notes := self._notes():
            self.kb.update(self.chance.choice(notes), self._text())

    def _forget(self) -> None:
        if notes := self._notes():
            self.kb.forget(self.chance.choice(notes))

    def _edit_and_sync(self) -> None:
        for path in self._notes()[:3]:
            self.kb.store.replace(path, self._text().encode(), based_on=self.kb.store.read(path))
        self.kb.sync()

    def _log(self) -> None:
        text, before = f"question {self.chance.randbytes(6).hex()}", self.kb.activity.dropped
        event = Searched(self.kb.root, time.time(), "soak", text, "fts5", "found", 1, 1.0, None, (), ())
        write_now(self.kb.activity, [event])
        if self.kb.activity.dropped == before:
            self.acknowledged.append(text)

    def _reopen(self) -> None:
        """The last connection that closes puts the log away."""
        self.kb.close()
        self.kb = self._open()

    def _reembed(self) -> None:
        self.kb.reembed(fresh=True)

    def _rebuild(self) -> None:
        self.kb.rebuild()

    # -- when the power is back -------------------------------------------------------------------------------------

    def check(self, cut: Cut, whole: bool) -> list[str]:
        """What is wrong with the databases as the cut left them."""
        found = self.place / "cut"
        shutil.rmtree(found, ignore_errors=True)
        found.mkdir()
        for name, data in cut.image.items():
            (found / name).write_bytes(data)
        problems = self._check_activity(found, cut)
        if "search.db" in cut.image:
            problems += self._check_index(found)
        return problems or (self._heal(found) if whole else [])

    def _check_activity(self, found: Path, cut: Cut) -> list[str]:
        if not cut.known:
            return []
        if "activity.db" not in cut.image:
            return ["activity.db is gone"]
        database = ActivityDatabase(str(found))
        try:
            with database.reading() as connection:
                checked = connection.execute("pragma integrity_check(1)").get
                rows = {row[0] for row in fetch(connection, QUERIES)}
        except Exception as error:
            return [f"activity.db: {type(error).__name__}: {error}"]
        finally:
            database.close()
        if database.set_aside or checked != "ok":
            return [f"activity.db is unsound: {database.set_aside or checked}"]
        lost = [text for text in self.acknowledged[: cut.known] if text not in rows]
        return [f"activity.db lost {len(lost)} of {cut.known} acknowledged rows"] if lost else []

    def _check_index(self, found: Path) -> list[str]:
        path = str(found / "search.db")
        try:
            connection = connect(path, vector_extension())
        except Exception as error:
            return [f"search.db: {type(error).__name__}: {error}"]
        if connection is None:
            return ["search.db is not usable"]
        connection.close()
        database = Database(path, vector_extension())
        try:
            problem = unsound(database)
            if problem:
                return [f"search.db is unsound: {problem}"]
            with database.reading() as connection:
                odd = [row for row in fetch(connection, DOCS) if tuple(row) not in self.history]
        finally:
            database.close()
        return [f"search.db holds what no note ever said: {odd[0]}"] if odd else []

    def _heal(self, found: Path) -> list[str]:
        """The next process that opens them brings the tail back."""
        kb = KnowledgeBase(settings_of(self.place)._replace(data_dir=str(found)))
        try:
            kb.sync()
            problems = differences([kb])
            if kb.set_aside:
                problems.append("search.db was set aside")
            return problems
        except Exception as error:
            return [f"{type(error).__name__}: {error}"]
        finally:
            kb.close()
