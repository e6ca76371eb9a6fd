"""Two agents save the same fact, nearly the same, or the same title, at the same moment.

The same fact is one note; anything else is a note each: never an overwrite, and never a word lost.
"""

from __future__ import annotations

import random
from multiprocessing.connection import Connection
from pathlib import Path
from typing import NamedTuple

from tests.soak.contract import Trial
from tests.soak.ledger import files_of
from tests.soak.processes import processes
from tests.soak.vaults import WORDS, open_vault

TOGETHER = 3


class Receipt(NamedTuple):
    """What an agent was told."""

    outcome: str
    path: str


HOW_MANY = {"the same fact": 1, "nearly the same fact": TOGETHER, "the same title": TOGETHER}
"""Notes that must come of it."""


def run(trial: Trial) -> None:
    place = trial.folder(1)
    open_vault(place).close()
    with processes(save_when_told, [(str(place),)] * TOGETHER) as agents:
        for number in trial.rounds():
            kind = list(HOW_MANY)[number % len(HOW_MANY)]
            before = set(files_of(place / "vault"))
            saves = _saves(kind, trial.chance)
            for agent, (title, text) in zip(agents, saves, strict=True):
                agent.pipe.send((title, text))
            answers = [agent.says() for agent in agents]
            trial.count("saves", TOGETHER)
            files = files_of(place / "vault")
            made = [files[path].decode() for path in files.keys() - before]
            for problem in _check(kind, saves, answers, made):
                trial.fault(f"{kind}: {problem}")


def _saves(kind: str, chance: random.Random) -> list[tuple[str | None, str]]:
    """What each of them saves."""
    word = chance.randbytes(4).hex()
    fact = f"The {word} is kept with {' '.join(chance.sample(WORDS, 14))} and nothing else."
    if kind == "the same fact":
        return [(None, fact)] * TOGETHER
    if kind == "nearly the same fact":
        return [
            (None, fact.replace("nothing else", f"nothing else {chr(97 + number) * 3}")) for number in range(TOGETHER)
        ]
    return [(f"Where {word} is", f"{number} {' '.join(chance.sample(WORDS, 14))}.") for number in range(TOGETHER)]


def _check(kind: str, saves: list[tuple[str | None, str]], answers: list[object], made: list[str]) -> list[str]:
    receipts = [answer for answer in answers if isinstance(answer, Receipt)]
    if len(receipts) < TOGETHER:
        return [f"an agent failed: {next(answer for answer in answers if answer not in receipts)}"]
    problems = [] if len(made) == HOW_MANY[kind] else [f"{len(made)} notes were made"]
    written = "\n".join(made)
    problems += [f"lost: {text}" for _, text in saves if any(word not in written for word in text.split())]
    outcomes = sorted(answer.outcome for answer in receipts)
    if kind == "the same fact" and outcomes != ["created", *["duplicate"] * (TOGETHER - 1)]:
        problems.append(f"the receipts say {outcomes}")
    if kind == "the same title" and len({answer.path for answer in receipts}) != TOGETHER:
        problems.append("two receipts name one note")
    return problems


def save_when_told(pipe: Connection, place: str) -> None:
    """Save each text that comes, and answer with the receipt."""
    with open_vault(Path(place)) as kb:
        while True:
            try:
                title, text = pipe.recv()
            except EOFError:
                return
            try:
                saved = kb.remember(text, title=title)
                pipe.send(Receipt(saved.outcome, saved.path))
            except Exception as error:
                pipe.send(f"{type(error).__name__}: {error}")
