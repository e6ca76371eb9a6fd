"""One process stays: 10,000 searches and 1,000 syncs, and it is no larger at the end than it was early on.

Its memory stays within a tenth of its early plateau, and it holds no more files and threads than then.
"""

from __future__ import annotations

import os
import random
import sys
import threading
from multiprocessing.connection import Connection
from pathlib import Path
from typing import NamedTuple

from tests.soak.contract import Trial
from tests.soak.processes import processes
from tests.soak.vaults import WORDS, open_vault, sealed_text

SEARCHES = 10
"""And one sync, in each round."""
NOTES = 300
EARLY = 0.2
"""The plateau is what it has reached after this part of the rounds."""
GROWN = 1.10


class Size(NamedTuple):
    """Of a process: its memory in bytes (0 where the system does not tell), and what it holds open."""

    memory: int
    files: int
    threads: int


def run(trial: Trial, notes: int = NOTES) -> None:
    place = trial.folder(1)
    sizes: list[Size] = []
    with processes(stay, [(str(place), trial.chance.getrandbits(32), notes)]) as (process,):
        if process.says(600) != "ready":
            trial.fault("the process did not begin")
            return
        for _ in trial.rounds():
            process.pipe.send("go")
            answer = process.says()
            if not isinstance(answer, Size):
                trial.fault(f"the process failed: {answer or 'it ended'}")
                return
            sizes.append(answer)
            trial.count("searches", SEARCHES)
            trial.count("syncs")
    for problem in grown(sizes):
        trial.fault(problem)
    if sizes:
        trial.count("MB at the end", round(sizes[-1].memory / 1e6))


def grown(sizes: list[Size]) -> list[str]:
    """What grew after the early plateau."""
    early = max(1, int(len(sizes) * EARLY))
    begun, after = sizes[:early], sizes[early:]
    if not after:
        return []
    problems: list[str] = []
    plateau = max(size.memory for size in begun)
    last = sorted(size.memory for size in after[-max(1, len(after) // 10) :])
    now = last[len(last) // 2]
    if plateau and now > GROWN * plateau:
        problems.append(f"memory grew from {plateau / 1e6:.1f} to {now / 1e6:.1f} MB")
    for what in ("files", "threads"):
        before, most = (max(getattr(size, what) for size in part) for part in (begun, after[-10:]))
        if most > before:
            problems.append(f"open {what} grew from {before} to {most}")
    return problems


def stay(pipe: Connection, place: str, seed: int, notes: int) -> None:
    """Search and sync whenever it is told to go, and say how large it is afterwards."""
    chance = random.Random(seed)
    memories = Path(place, "vault", "memories")
    memories.mkdir(parents=True)
    for number in range(notes):
        (memories / f"{number}.md").write_text(sealed_text(chance, f"n{number}"))
    with open_vault(Path(place)) as kb:
        kb.sync()
        kb.search(" ".join(chance.sample(WORDS, 3)), track=True)
        kb.activity.flush()  # the log opens its file when it has something to write
        pipe.send("ready")
        while True:
            try:
                pipe.recv()
            except EOFError:
                return
            try:
                changed = memories / f"{chance.randrange(notes)}.md"
                if chance.random() < 0.1 and changed.exists():
                    changed.unlink()
                else:
                    changed.write_text(sealed_text(chance, changed.stem))
                kb.sync()
                for _ in range(SEARCHES):
                    kb.search(" ".join(chance.sample(WORDS, 3)), track=True)
                pipe.send(size_now())
            except Exception as error:
                pipe.send(f"{type(error).__name__}: {error}")


def size_now() -> Size:
    """Of this process."""
    return Size(_memory(), _files(), threading.active_count())


def _memory() -> int:
    if sys.platform == "linux":
        with open("/proc/self/statm", "rb") as stream:
            return int(stream.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    if sys.platform == "win32":
        return 0
    import resource

    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


def _files() -> int:
    for folder in ("/proc/self/fd", "/dev/fd"):
        if os.path.isdir(folder):
            return len(os.listdir(folder))
    return 0
