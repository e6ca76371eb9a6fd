"""Kill a process while it keeps turns and reads them for facets."""

from __future__ import annotations

import random
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from multiprocessing.connection import Connection
from pathlib import Path

from co_cli.activity import extracted
from co_cli.conversations.extraction import KnownMemory, Reply, extract
from co_cli.conversations.facets import Facet, FacetBatch
from co_cli.entrance.knowledge_base import KnowledgeBase
from co_cli.notes.note import read_note
from co_cli.notes.transcripts import USER, SpokenTurn, read_turns
from co_cli.saving.turns import KeptSession, keep_turns
from tests.soak.checks import WORDS, settings_of
from tests.soak.runner import Process, Trial

LIFE = 12
"""Kills with one vault."""
TURNS = 4
"""That are kept before they are read."""


class EveryTurn:
    """A model that finds one fact in each turn of the user, and nothing that is known."""

    name = "soak:every-turn"

    def extract(self, batch: FacetBatch) -> Reply:
        said = [turn for turn in batch.turns if batch.is_person(turn)]
        return Reply([Facet("fact", turn.text, turn.line + 2, turn.last) for turn in said], 10)

    def compare(self, pairs: Sequence[tuple[str, Sequence[KnownMemory]]]) -> Reply:
        return Reply([("new", None)] * len(pairs), 5)


def open_saving(place: Path) -> KnowledgeBase:
    (place / "vault").mkdir(parents=True, exist_ok=True)
    return KnowledgeBase.open(settings=replace(settings_of(place), capture="save"))


def kill(trial: Trial) -> None:
    """Every turn that was acknowledged becomes one memory and one facet, whenever the process is killed."""
    place, kept, span = trial.place, list[str](), 0.05
    for number in trial.rounds():
        if (number - 1) % LIFE == 0:
            place, kept = trial.folder(number), []
        victim = Process(talk_until_killed, str(place), trial.chance.getrandbits(32))
        try:
            messages = list[str]()
            while (said := victim.says()) is not None and said != "reads":
                messages.append(said)
            begun, span = time.monotonic(), min(1.0, 1.3 * span)  # until one comes to its end
            end = begun + trial.chance.uniform(0.0, 1.3 * span)
            while said is not None and (left := end - time.monotonic()) > 0:
                said = victim.says(left) if victim.pipe.poll(left) else None
                if said == "has read":
                    span = min(1.0, (3 * span + time.monotonic() - begun) / 4)
                messages += [said] if said else []
            victim.kill()
            messages += iter(victim.says, None)
        finally:
            victim.close()
        last = [one for one in messages if one in ("reads", "has read")][-1:]
        trial.count("in the middle of it", last != ["has read"])
        kept += [one.removeprefix("kept ") for one in messages if one.startswith("kept ")]
        for failed in (one for one in messages if one.startswith("failed")):
            trial.fault(failed)
        trial.count("kills")
        if number % LIFE == 0 or number == trial.last:
            trial.count("turns", len(kept))
            for problem in check(place, kept):
                trial.fault(problem)


def check(place: Path, kept: Sequence[str]) -> list[str]:
    """Read what is left, and compare turns, facets and memories."""
    with open_saving(place) as kb:
        extract(kb.vault, EveryTurn(), tokens=10**9)
        turns: Counter[str] = Counter()
        memories: Counter[str] = Counter()
        for file in Path(kb.root).rglob("*.md"):
            path = file.relative_to(kb.root).as_posix()
            note = read_note(path, file.read_bytes())
            if path.startswith("conversations/"):
                turns.update(turn.text for turn in read_turns(note.body) if turn.speaker == USER)
            elif path.startswith("memories/"):
                memories[note.body.strip()] += 1
        with kb.activity.written().reading() as connection:
            facets = Counter(row.text for row in extracted.facets(connection, kb.root, "saved"))
    problems = [f"a turn was kept and is gone: {text}" for text in kept if not turns[text]]
    for name, found in (("memory", memories), ("facet", facets)):
        problems += [f"lost {name}: {text}" for text in turns if not found[text]]
        problems += [f"doubled {name}: {text}" for text, count in found.items() if count > 1 or not turns[text]]
    return problems


def talk_until_killed(pipe: Connection, place: str, seed: int) -> None:
    """Keep a few turns and read them, again and again."""
    chance = random.Random(seed)
    try:
        with open_saving(Path(place)) as kb:
            while True:
                for number in range(TURNS):
                    text = f"{chance.randbytes(4).hex()} has {' '.join(chance.choices(WORDS, k=6))}."
                    turns = [SpokenTurn("User", text, time.time()), SpokenTurn("Assistant", "Noted.", time.time())]
                    keep_turns(kb.vault, KeptSession(f"s-{number % 2}"), turns)
                    pipe.send(f"kept {text}")
                pipe.send("reads")
                extract(kb.vault, EveryTurn(), tokens=10**9)
                pipe.send("has read")
    except Exception as error:
        pipe.send(f"failed: {type(error).__name__}: {error}")
        raise
