"""Servers of a team whose database, keeper or writer is killed: no acknowledged save is lost, and the index agrees."""

from __future__ import annotations

import contextlib
import logging
import os
import random
import signal
import threading
import time
from multiprocessing.connection import Connection
from pathlib import Path

from co_cli.entrance.knowledge_base import KnowledgeBase
from co_cli.ground.errors import KnowledgeError, NoteConflictError
from co_cli.ground.settings import load_settings
from co_cli.server.access_tokens import team_of
from co_cli.upkeep.verification import verify
from co_cli.vault.team.keeper import Keeper
from tests import postgres
from tests.soak.runner import PATIENCE, Process, Trial
from tests.vault.team.servers import git

FAULTS = ("database", "keeper", "writer", "frozen server", "frozen keeper")
SHARED = "memory:list"
NAMES = ("one", "two")
LIFE = 40
"""Rounds with one database and one repository."""
FROZEN_SECONDS = 15.0
"""In which the other server has to save while one is frozen: its transaction ends after five."""
KEEPER_SECONDS = 30.0
"""In which it has to be the keeper if that one was: its lease ends after ten."""


def faults(trial: Trial, kinds: tuple[str, ...] = FAULTS) -> None:
    """Two servers save all the time, new notes and lines of one shared note. In each round one is killed or frozen."""
    crew: Crew | None = None
    with postgres.programs(), contextlib.ExitStack() as server:
        for number in trial.rounds():
            if crew is None or (number - 1) % LIFE == 0:
                server.close()
                folder, address = server.enter_context(postgres.own_server())
                crew = Crew(trial.folder(number), address)
                server.callback(crew.close)
            kind = kinds[number % len(kinds)]
            crew.work(trial.chance.uniform(0.1, 0.6))
            hit = kind if kind.startswith("frozen") else f"kills of the {kind}"
            trial.count(hit)
            try:
                crew.hit(kind, folder, trial.chance)
                problems = crew.check()
                if number % LIFE == 0 or number == trial.last:
                    problems += crew.check_remote()
            except Exception as error:
                problems = [f"{type(error).__name__}: {error}"]
            trial.count("saves acknowledged", crew.heard)
            crew.heard = 0
            for problem in problems:
                trial.fault(f"{hit}: {problem}")
            if problems:
                crew = None


class Crew:
    """Two servers, each a process with a clone, and what they were told is saved."""

    def __init__(self, place: Path, address: str) -> None:
        self.place, self.address, self.heard = place, address, 0
        self.notes: dict[str, str] = {}
        """The mark of each note by its ref."""
        self.lines: set[str] = set()
        """The marks that were added to the shared note."""
        git(place, "init", "--quiet", "--bare", "notes.git")
        for name in NAMES:
            git(place, "clone", "--quiet", "notes.git", name)
        self.servers = {name: self._start(name) for name in NAMES}

    def work(self, seconds: float) -> None:
        """Hear what is acknowledged, for some time but at least one save of each."""
        end = time.monotonic() + seconds
        missing = set(NAMES)
        while missing or time.monotonic() < end:
            for name in NAMES:
                while self.servers[name].pipe.poll(0.01):
                    self._hear(self.servers[name].pipe.recv())
                    missing.discard(name)
            assert time.monotonic() < end + PATIENCE, f"nothing is saved by {missing}"

    def hit(self, kind: str, folder: Path, chance: random.Random) -> None:
        if kind == "database":
            postgres.kill_server(folder)
            postgres.start_server(folder, "")
            return
        keeper = self._keeper()
        if kind.startswith("frozen"):
            keeps = [name for name in NAMES if self.servers[name].pid == keeper]
            self._freeze(keeps[0] if keeps and kind == "frozen keeper" else chance.choice(NAMES))
            return
        for name in NAMES:
            if kind == "writer" or self.servers[name].pid == keeper or keeper is None:
                self.servers[name].kill()
                with contextlib.suppress(EOFError, OSError):
                    while self.servers[name].pipe.poll():
                        self._hear(self.servers[name].pipe.recv())
                self.servers[name].close()
                self.servers[name] = self._start(name)
                return

    def _freeze(self, name: str) -> None:
        """Stop a server at any point, let it go on once the other has saved and is the keeper, and hear both save."""
        (other,) = (one for one in NAMES if one != name)
        pid, keeper = self.servers[name].pid, self._keeper()
        assert pid
        os.kill(pid, signal.SIGSTOP)
        try:
            while self.servers[other].pipe.poll():  # what it saved before
                self._hear(self.servers[other].pipe.recv())
            assert self.servers[other].pipe.poll(FROZEN_SECONDS), f"{other} cannot save while {name} is frozen"
            end = time.monotonic() + KEEPER_SECONDS
            while pid == keeper and self._keeper() == pid:
                assert time.monotonic() < end, f"{name} is frozen and still the keeper"
                time.sleep(0.2)
        finally:
            os.kill(pid, signal.SIGCONT)
        self.work(0)

    def check(self) -> list[str]:
        """What was acknowledged and is not there, on a server that is up to date."""
        marks, lines = dict(self.notes), set(self.lines)  # what is acknowledged now must be there a moment later
        with open_server(self.place / NAMES[0], self.address) as kb:
            kb.sync()
            problems = [f"{ref} has lost {mark}" for ref, mark in marks.items() if mark not in kb.note(ref).body]
            if lines:
                text = kb.note(SHARED).body
                problems += [f"{SHARED} has lost {mark}" for mark in lines if mark not in text]
            found = verify(kb.index)
            problems += [f"{path} {what}" for one in found.origins for path, what in one.differing]
        return problems + ([found.damage] if found.damage else [])

    def check_remote(self) -> list[str]:
        """What was acknowledged and never came to the remote, after the last round of a keeper."""
        self.close()
        with open_server(self.place / NAMES[1], self.address) as kb:
            team = team_of(kb.vault)
            assert team
            stop = threading.Event()
            keeper = threading.Thread(target=Keeper(team).run, args=(stop,))
            keeper.start()
            end = time.monotonic() + PATIENCE
            while team.state().outbox and time.monotonic() < end:
                time.sleep(0.05)
            stop.set()
            keeper.join()
        git(self.place, "clone", "--quiet", "notes.git", "after")
        texts = {file.stem: file.read_text("utf-8") for file in (self.place / "after" / "memories").iterdir()}
        problems = [f"{ref} was not pushed" for ref in self.notes if ref.removeprefix("memory:") not in texts]
        problems += [f"{name} was never in conflict" for name in texts if "conflict" in name]
        return problems + [f"the line {mark} was not pushed" for mark in self.lines if mark not in texts["list"]]

    def close(self) -> None:
        for server in self.servers.values():
            server.close()

    def _start(self, name: str) -> Process:
        return Process(save_until_killed, str(self.place / name), self.address, random.randbytes(4).hex())

    def _keeper(self) -> int | None:
        with open_server(self.place / NAMES[0], self.address) as kb:
            keeper = team.state().keeper if (team := team_of(kb.vault)) else None
        return int(keeper.rpartition(":")[2]) if keeper else None

    def _hear(self, said: tuple[str, str]) -> None:
        ref, mark = said
        self.heard += 1
        if ref == SHARED:
            self.lines.add(mark)
        else:
            self.notes[ref] = mark


def open_server(folder: Path, address: str) -> KnowledgeBase:
    flags = {"vault": str(folder), "data_dir": f"{folder}-data"}
    environ = {
        "CO_ENGINE": address,
        "HOME": str(folder.parent),
        "CO_KNOWLEDGE_READER": "off",
        "CO_KNOWLEDGE_EMBEDDING_PROVIDER": "static",
    }
    return KnowledgeBase.open(settings=load_settings(flags, environ, str(folder.parent)))


def save_until_killed(pipe: Connection, folder: str, address: str, name: str) -> None:
    """A server: a keeper in a thread of its own, and one save after another. Says what was acknowledged."""
    logging.disable()  # it would tell of every kill
    kb = open_server(Path(folder), address)
    team = team_of(kb.vault)
    assert team
    threading.Thread(target=Keeper(team).run, args=(threading.Event(),), daemon=True).start()
    number = 0
    while True:
        number += 1
        mark = f"{name}{number:04}x"
        try:
            if number % 3:
                saved = kb.remember(f"Mark {mark} is here.", title=mark, on_related="keep")
                pipe.send((saved.ref, mark))
            else:
                _add_line(kb, mark)
                pipe.send((SHARED, mark))
        except NoteConflictError:
            continue  # the other server was faster
        except KnowledgeError:
            time.sleep(0.05)  # the database is away


def _add_line(kb: KnowledgeBase, mark: str) -> None:
    if not any(note.ref == SHARED for note in kb.notes()):
        kb.remember(f"- {mark}", title="List", path="list.md", on_related="keep")
        return
    note = kb.note(SHARED)
    kb.update(SHARED, f"{note.body.rstrip()}\n- {mark}\n", version=note.version)
