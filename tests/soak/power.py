"""Power cuts while the databases and while notes are written.

search.db syncs when it checkpoints: it must never be corrupt or hold what was never written, and the next sync must
restore its tail. activity.db syncs with every commit: no acknowledged row may be lost.
"""

from __future__ import annotations

import random
import shutil
import time
from collections import deque
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from co_cli.activity.database import ActivityDatabase
from co_cli.activity.events import SearchEvent
from co_cli.entrance.knowledge_base import KnowledgeBase
from co_cli.ground.values import content_hash
from co_cli.index.sqlite.connection import Database, connect, fetch, vector_extension
from co_cli.notes.store import NoteStore
from co_cli.vault.vault import Opening
from tests.soak.checks import Ledger, differences, mark_of, open_vault, sealed_text, settings_of, unsound
from tests.soak.disk import Disk, FileSystem, Image, Request, listening
from tests.soak.runner import Trial

NOTES_LIFE = 500
LOSSES = 4
"""How often each moment is lost, each time in another way."""
MANY_NOTES = 8
FOLDERS = ("memories", "articles")
LIFE = 250
"""Cuts during the life of one vault."""
WHOLE_EVERY = 10
"""At every tenth cut the index is synced and compared with the files, row by row; at the others it must be sound."""
MANY = 10
DOCS = "select path, hash from docs"
QUERIES = "select text from searches"


def cut_databases(trial: Trial, synchronous: str | None = None) -> None:
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
            trial.counts["rows acknowledged"] = max(trial.counts["rows acknowledged"], len(load.acknowledged))
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
        self._verb = "open"
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

    def _cut(self, image: Image) -> None:
        self._cuts.append(Cut(image, self._verb, len(self.acknowledged)))

    def _open(self) -> KnowledgeBase:
        kb = open_vault(self.place, opening=Opening(short_lived=True))  # no thread: the seed decides what happens
        kb.index.notes.state()
        for database in (kb.engine.database, kb.activity.database):
            if self.synchronous:
                connection = database.borrow()
                connection.pragma("synchronous", self.synchronous)
                database.give_back(connection)
        return kb

    def _step(self) -> None:
        verbs: dict[str, tuple[Callable[[], object], int]] = {
            "save": (self._save, 6),
            "change": (lambda: self._do("update", self._text()), 4),
            "forget": (lambda: self._do("forget"), 2),
            "edit and sync": (self._edit_and_sync, 2),
            "log": (self._log, 8),
            "reopen": (self._reopen, 2),
            "reembed": (lambda: self.kb.reembed(fresh=True), 1),
            "rebuild": (lambda: self.kb.rebuild(), 0 if self.synchronous else 1),
        }
        self._verb = self.chance.choices(list(verbs), [often for _, often in verbs.values()])[0]
        verbs[self._verb][0]()
        for path in self._notes():
            self.history.add((path, content_hash(self.kb.store.read(path))))

    def _notes(self) -> list[str]:
        return sorted(f"memories/{file.name}" for file in (self.place / "vault" / "memories").glob("*.md"))

    def _text(self) -> str:
        return sealed_text(self.chance, self.chance.randbytes(6).hex())

    def _save(self) -> None:
        if len(self._notes()) >= MANY:
            self._do("forget")
        self.kb.remember(self._text(), title=f"Note {self.chance.randbytes(3).hex()}", on_related="keep")

    def _do(self, verb: str, *arguments: str) -> None:
        if notes := self._notes():
            getattr(self.kb, verb)(self.chance.choice(notes), *arguments)

    def _edit_and_sync(self) -> None:
        for path in self._notes()[:3]:
            self.kb.store.replace(path, self._text().encode(), based_on=self.kb.store.read(path))
        self.kb.sync()

    def _log(self) -> None:
        text, before = f"question {self.chance.randbytes(6).hex()}", self.kb.activity.dropped
        event = SearchEvent(self.kb.root, time.time(), "soak", text, "fts5", "found", 1, 1.0, None, (), ())
        self.kb.activity.write([event])
        if self.kb.activity.dropped == before:
            self.acknowledged.append(text)

    def _reopen(self) -> None:
        """The last connection that closes puts the log away."""
        self.kb.close()
        self.kb = self._open()

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
        database = Database(path, vector_extension())
        try:
            usable = connect(path, vector_extension())
            if usable is None:
                return ["search.db is not usable"]
            usable.close()
            if problem := unsound(database):
                return [f"search.db is unsound: {problem}"]
            with database.reading() as connection:
                odd = [row for row in fetch(connection, DOCS) if tuple(row) not in self.history]
        except Exception as error:
            return [f"search.db: {type(error).__name__}: {error}"]
        finally:
            database.close()
        return [f"search.db holds what no note ever said: {odd[0]}"] if odd else []

    def _heal(self, found: Path) -> list[str]:
        """The next process that opens them brings the tail back."""
        with KnowledgeBase.open(settings=replace(settings_of(self.place), data_dir=str(found))) as kb:
            try:
                kb.sync()
                return differences(kb) + (["search.db was set aside"] if kb.engine.database.set_aside else [])
            except Exception as error:
                return [f"{type(error).__name__}: {error}"]


def cut_notes(trial: Trial) -> None:
    """Cut the power while the real note store saves, changes, forgets and restores.

    Every acknowledged note must be there and whole, and a forgotten one in the trash.
    """
    work: Work | None = None
    for number in trial.rounds():
        if work is None or (number - 1) % NOTES_LIFE == 0:
            work = Work(trial.folder(number) / "vault", trial.chance)
        work.chance = trial.chance
        verb, problems = work.next_cut()
        trial.count("cuts")
        for problem in problems:
            trial.fault(f"cut in {verb}: {problem}")
        trial.count("saves acknowledged", work.ledger.acknowledged)
        work.ledger.acknowledged = 0


class Work:
    """A note store at work, and what the file system would have kept."""

    def __init__(self, root: Path, chance: random.Random) -> None:
        root.mkdir()
        self.chance, self.store = chance, NoteStore(str(root))
        self.kept, self.ledger = FileSystem(), Ledger()
        self._cuts: deque[tuple[str, list[str]]] = deque()

    def next_cut(self) -> tuple[str, list[str]]:
        """What was under way, and what is wrong after the cut."""
        while not self._cuts:
            with listening(self.store.root, self._hear):
                self._step()
            self._cut()  # and after it was acknowledged
        return self._cuts.popleft()

    def _hear(self, request: Request) -> None:
        self._cut()
        self.kept.hear(request)

    def _cut(self) -> None:
        for _ in range(LOSSES):
            found = self.kept.after_cut(self.chance)
            self._cuts.append((self.ledger.verb, self.ledger.check(found)))

    def _step(self) -> None:
        notes = sorted(self.ledger.notes)
        verb = self.chance.choice(("remember", "update", "forget", "restore"))
        trashed = (
            [(kept, home) for kept, home in self.store.trashed() if home not in notes] if verb == "restore" else []
        )
        if not notes or (verb == "restore" and not trashed) or (verb == "forget" and len(notes) < MANY_NOTES // 2):
            verb = "remember"
        if verb in ("remember", "restore") and len(notes) >= MANY_NOTES:
            verb = "forget"
        mark = self.chance.randbytes(6).hex()
        path = self.chance.choice(notes) if notes else ""
        text = sealed_text(self.chance, mark).encode()
        if verb == "restore":
            path = trashed[0][1]
            mark = mark_of(self.store.read(trashed[0][0]))
        self.ledger.hear(("begin", verb, path, mark))
        if verb == "remember":
            folder = f"{self.chance.choice(FOLDERS)}/{self.chance.choice(('', 'a', 'a/b'))}".rstrip("/")
            path = self.store.create(folder, f"Note {mark}", text)
        elif verb == "update":
            self.store.replace(path, text, based_on=self.store.read(path))
        elif verb == "forget":
            self.store.trash(path)
        else:
            self.store.restore(*trashed[0])
        self.ledger.hear(("done", verb, path, mark))
