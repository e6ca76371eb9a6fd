"""How well contradictions and updates are noticed: `python -m tests.upkeep.measuring` prints precision and recall.

`pairs.jsonl` was written before the rules and tuned on; `unseen_pairs.jsonl` was written at the same time and not.
`later_pairs.jsonl` was written when the rules were done: then precision was 0.92 and recall 0.69, and its one false
alarm became a rule.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import NamedTuple

from co_cli.notes.claims import claims_of
from co_cli.notes.disagreeing import disagree

DATA = Path(__file__).parent / "data"
SETS = ("pairs.jsonl", "unseen_pairs.jsonl", "later_pairs.jsonl")
ALARMING = ("contradicts", "updates")


class Pair(NamedTuple):
    """An old memory, a new one, and what the new one is to the old."""

    label: str
    old: str
    new: str


class Measured(NamedTuple):
    """What was noticed of a set of pairs."""

    pairs: int
    right: int
    false: list[Pair]
    missed: list[Pair]

    @property
    def precision(self) -> float:
        return self.right / max(self.right + len(self.false), 1)

    @property
    def recall(self) -> float:
        return self.right / max(self.right + len(self.missed), 1)


def pairs(name: str) -> list[Pair]:
    return [Pair(**json.loads(line)) for line in (DATA / name).read_text("utf-8").splitlines()]


def measure(name: str) -> Measured:
    right, false, missed = 0, list[Pair](), list[Pair]()
    asked = pairs(name)
    for pair in asked:
        noticed = disagree(claims_of(pair.old), claims_of(pair.new)) is not None
        if pair.label in ALARMING:
            right += noticed
            missed += [] if noticed else [pair]
        elif noticed:
            false.append(pair)
    return Measured(len(asked), right, false, missed)


if __name__ == "__main__":
    for name in SETS:
        found = measure(name)
        print(f"{name}: {found.pairs} pairs, precision {found.precision:.2f}, recall {found.recall:.2f}")
        for kind, those in (("false alarm", found.false), ("missed", found.missed)):
            for pair in those:
                print(f"  {kind} ({pair.label}): {pair.old} | {pair.new}")
