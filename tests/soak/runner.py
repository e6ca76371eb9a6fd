"""Run a scenario: rounds, faults and counts (`Trial`), and processes that can be killed (`Process`)."""

from __future__ import annotations

import contextlib
import multiprocessing
import random
import shutil
import signal
import sys
import time
from collections import Counter
from collections.abc import Callable, Generator, Iterator
from pathlib import Path
from typing import Any

MAX_FAULTS = 20
PATIENCE = 60.0
"""Seconds after which a silent process is a fault."""


class Trial:
    """One run of a scenario: where it works, when it ends, and what it found."""

    def __init__(
        self, name: str, place: Path, seed: int, rounds: int, seconds: float | None = None, first: int = 1
    ) -> None:
        self.name, self.place, self.seed = name, place, seed
        self.counts: Counter[str] = Counter()
        self.faults: list[str] = []
        self.again = ""
        """The options that repeat the first fault."""
        self.done = 0
        self._rounds = range(first, first + rounds)
        self.last = first + rounds - 1
        self._begun = time.monotonic()
        self._end = None if seconds is None else self._begun + seconds
        self._number = self._folder_since = first
        self.chance = self._chance(first)

    def rounds(self) -> Iterator[int]:
        """The numbers of the rounds, until they or the seconds are over or there are many faults."""
        for number in self._rounds:
            if len(self.faults) >= MAX_FAULTS or (self._end is not None and time.monotonic() >= self._end):
                return
            self._number, self.chance = number, self._chance(number)
            yield number
            self.done += 1

    def folder(self, number: int) -> Path:
        """An empty folder for this round and the ones after it. Removes the one before."""
        for old in self.place.glob(f"{self.name}-*"):
            shutil.rmtree(old, ignore_errors=True)
        folder = self.place / f"{self.name}-{number}"
        folder.mkdir(parents=True)
        self._folder_since = number
        return folder

    def count(self, what: str, number: int = 1) -> None:
        self.counts[what] += number

    def fault(self, text: str) -> None:
        self.faults.append(f"round {self._number}: {text}")
        rounds = self._number - self._folder_since + 1
        self.again = self.again or f"--first {self._folder_since} --rounds {rounds}"

    def summary(self) -> str:
        """What was done, the faults, and the command that repeats the first one."""
        done = ", ".join(f"{number:,} {what}" for what, number in self.counts.items())
        seconds = time.monotonic() - self._begun
        text = f"{self.name}: {self.done:,} rounds, {seconds:,.1f} s, {len(self.faults)} faults; {done}"
        again = [f"again: python -m tests.soak {self.name} --seed {self.seed} {self.again}"] if self.faults else []
        return "\n  ".join([text, *self.faults, *again])

    def _chance(self, number: int) -> random.Random:
        return random.Random(f"{self.seed}/{self.name}/{number}")


class Process:
    """A process that runs `target(pipe, *arguments)`, if possible forked from a server that imported everything."""

    def __init__(self, target: Callable[..., None], *arguments: Any) -> None:
        context: Any = multiprocessing.get_context("spawn" if sys.platform == "win32" else "forkserver")
        if sys.platform != "win32":
            names = ("checks", "scenarios", "extract", "team")
            context.set_forkserver_preload([f"tests.soak.{name}" for name in names])
        self.pipe, theirs = context.Pipe()
        self._process = context.Process(target=_without_ctrl_c, args=(target, theirs, *arguments), daemon=True)
        self._process.start()
        theirs.close()  # so that the end of the process is the end of the pipe

    def says(self, seconds: float = PATIENCE) -> Any:
        """The next message; None if it ended, or was silent for too long."""
        try:
            return self.pipe.recv() if self.pipe.poll(seconds) else None
        except (EOFError, OSError):
            return None

    @property
    def pid(self) -> int | None:
        return self._process.pid

    def kill(self) -> None:
        """SIGKILL. What it said before can still be read."""
        self._process.kill()
        self._process.join()

    def end(self) -> int | None:
        """Wait until it ends by itself. Its exit code; None if it had to be killed."""
        self._process.join(PATIENCE)
        code = self._process.exitcode
        self.close()
        return code

    def close(self) -> None:
        if self._process.is_alive():
            self.kill()
        self.pipe.close()


@contextlib.contextmanager
def processes(target: Callable[..., None], arguments: list[tuple[Any, ...]]) -> Generator[list[Process]]:
    """One process for each tuple of arguments. All are killed at the end."""
    begun: list[Process] = []
    try:
        for given in arguments:
            begun.append(Process(target, *given))
        yield begun
    finally:
        for process in begun:
            process.close()


def _without_ctrl_c(target: Callable[..., None], pipe: Any, *arguments: Any) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the runner gets it and ends us
    target(pipe, *arguments)
