"""What a soak is: rounds of a real fault in a folder of its own, with a seed, an end, and a verdict.

A soak is a module of this package with a function `run(trial)` and an entry in catalogue.py:

    def run(trial: Trial) -> None:
        for number in trial.rounds():           # ends by itself: rounds, seconds, or too many faults
            place = trial.folder(number)        # fresh, and removed when the next round begins
            ... do harm, chosen by `trial.chance` (of its own for each round: one round can be repeated alone) ...
            trial.count("kills")
            if lost:
                trial.fault(f"{ref} was acknowledged and is lost")

It never touches a vault of the user's, ends every process that it began (in a `finally`: Ctrl-C may strike at any
moment), and does not catch KeyboardInterrupt. What it counted and found until then is still told.
"""

from __future__ import annotations

import random
import shutil
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

from tests.soak.scratch import stop_if_asked

MOST_FAULTS = 20
"""A soak that found so many has shown enough."""

Progress = Callable[[int, int], None]
"""Called with how many rounds are done, and of how many."""


class Verdict(NamedTuple):
    """What a soak did and found."""

    name: str
    rounds: int
    seconds: float
    faults: list[str]
    counts: dict[str, int]
    again: str = ""
    """The rounds that led to the first fault, as options of `python -m tests.soak`."""

    @property
    def shown(self) -> str:
        """`2,000 kills, 11,812 saves acknowledged`."""
        return ", ".join(f"{number:,} {what}" for what, number in self.counts.items())


class Trial:
    """One run of a soak: where it works, what chance decides, when it ends, and what it found."""

    def __init__(
        self,
        name: str,
        place: Path,
        seed: int,
        rounds: int,
        seconds: float | None = None,
        first: int = 1,
        progress: Progress | None = None,
    ) -> None:
        self.name, self.place, self.seed = name, place, seed
        self.chance = random.Random(f"{seed}/{name}/{first}")
        self.counts: Counter[str] = Counter()
        self.faults: list[str] = []
        self.again = ""
        """The rounds that led to the first fault, as options of `python -m tests.soak`."""
        self._most, self._seconds, self._first, self._progress = rounds, seconds, first, progress
        self._begun = time.monotonic()
        self._done = 0
        self._number = self._since = first

    def rounds(self) -> Iterator[int]:
        """The numbers of the rounds, until the rounds or the seconds are over or enough is found."""
        for number in range(self._first, self._first + self._most):
            if self.over():
                return
            self._number = number
            self.chance = random.Random(f"{self.seed}/{self.name}/{number}")
            yield number
            self._done += 1
            if self._progress:
                self._progress(self._done, self._most)

    def over(self) -> bool:
        """Is the time up, or was enough found? For rounds that take long themselves."""
        stop_if_asked()
        late = self._seconds is not None and time.monotonic() - self._begun >= self._seconds
        return late or len(self.faults) >= MOST_FAULTS

    def folder(self, number: int) -> Path:
        """An empty folder for this round and those after it; that of the rounds before goes."""
        folder = self.place / f"{self.name}-{number}"
        for old in self.place.glob(f"{self.name}-*"):
            shutil.rmtree(old, ignore_errors=True)
        folder.mkdir(parents=True)
        self._since = number
        return folder

    def count(self, what: str, number: int = 1) -> None:
        """Add to what the table tells, such as `kills`."""
        self.counts[what] += number

    def fault(self, text: str) -> None:
        """Something that must not be. The round stands before it, to be repeated with those that led to it."""
        self.faults.append(f"round {self._number}: {text}")
        self.again = self.again or f"--first {self._since} --rounds {self._number - self._since + 1}"

    def verdict(self) -> Verdict:
        """As far as it went."""
        seconds = time.monotonic() - self._begun
        return Verdict(self.name, self._done, seconds, list(self.faults), dict(self.counts), self.again)
