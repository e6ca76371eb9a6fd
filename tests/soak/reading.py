"""A process searches while another writes without a pause: does it stay as fast?

Beside a writer in the same vault it makes at least 0.8 of the searches that it makes beside a writer in another one,
which takes as much of the machine and nothing else. Both are measured in turn, and the median counts.
"""

from __future__ import annotations

import random
import time
from multiprocessing.connection import Connection
from pathlib import Path

from tests.soak.contract import Trial
from tests.soak.processes import processes
from tests.soak.vaults import WORDS, open_vault, sealed_text

NOTES = 500
SEARCHES = 60
"""In each of the two measurements of a round."""
SLOWEST = 0.8
FEWEST = 5
"""Rounds that a median is taken of."""


def run(trial: Trial, notes: int = NOTES, searches: int = SEARCHES) -> None:
    place = trial.folder(1)
    places = (place / "shared", place / "apart")
    for one in places:
        _fill(one, notes, trial.chance)
    ratios: list[float] = []
    with (
        processes(search, [(str(places[0]), searches)]) as (reader,),
        processes(write, [(str(places[0]), str(places[1]))]) as (writer,),
    ):
        for number in trial.rounds():
            took: dict[str, float] = {}
            for where in ("shared", "apart") if number % 2 else ("apart", "shared"):
                writer.pipe.send(where)
                if writer.says() != "writing":
                    trial.fault("the writer failed")
                    return
                reader.pipe.send(trial.chance.getrandbits(32))
                answer = reader.says()
                writer.pipe.send("stop")
                written = writer.says()
                if not isinstance(answer, float) or not isinstance(written, int):
                    trial.fault(f"failed: {answer}; {written}")
                    return
                took[where] = answer
                trial.count("searches", searches)
                trial.count("writes meanwhile", written)
            ratios.append(took["apart"] / took["shared"])
    if len(ratios) >= FEWEST:
        middle = sorted(ratios)[len(ratios) // 2]
        trial.count("% of the speed beside a writer", round(100 * middle))
        if middle < SLOWEST:
            trial.fault(f"a reader has {middle:.2f} of its speed beside a writer")


def _fill(place: Path, notes: int, chance: random.Random) -> None:
    (place / "vault" / "memories").mkdir(parents=True)
    for number in range(notes):
        (place / "vault" / "memories" / f"{number}.md").write_text(sealed_text(chance, f"n{number}"))
    with open_vault(place) as kb:
        kb.sync()


def search(pipe: Connection, place: str, searches: int) -> None:
    """So many searches for each seed that comes, and how long they took."""
    with open_vault(Path(place)) as kb:
        for _ in range(10):
            kb.search("anchor")  # what the first ones import and read, others need not
        while True:
            try:
                chance = random.Random(pipe.recv())
            except EOFError:
                return
            try:
                begun = time.perf_counter()
                for _ in range(searches):
                    kb.search(" ".join(chance.sample(WORDS, 3)))
                pipe.send(time.perf_counter() - begun)
            except Exception as error:
                pipe.send(f"{type(error).__name__}: {error}")


def write(pipe: Connection, shared: str, apart: str) -> None:
    """Write where it is told until it is told to stop; how many notes that were."""
    chance = random.Random(1)
    with open_vault(Path(shared)) as one, open_vault(Path(apart)) as other:
        while True:
            try:
                kb = one if pipe.recv() == "shared" else other
            except EOFError:
                return
            try:
                count = 0
                kb.update("memory:1", sealed_text(chance, "m1"))
                pipe.send("writing")
                while not pipe.poll():
                    kb.update(f"memory:{chance.randrange(10)}", sealed_text(chance, f"m{count}"))
                    count += 1
                pipe.recv()
                pipe.send(count)
            except Exception as error:
                pipe.send(f"{type(error).__name__}: {error}")
