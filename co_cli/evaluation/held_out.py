"""How good would the closer look be on sets that it has never seen? Its shares are learned on the other families.

Every set is asked twice through the product. The first time what was looked at is kept, and the shares are learned from
it: for each family from all the others, and once from all. Then the questions are asked again with what was learned.
The candidates, and every constant beside the shares, stay as they ship.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from co_cli.errors import InvalidInputError
from co_cli.evaluation.baselines import Desk
from co_cli.evaluation.comparing import Comparison, compare_families
from co_cli.evaluation.learned_shares import Lessons, learn_shares, lessons, values_of
from co_cli.evaluation.methods import LIMIT, PRODUCT, Answer, Method, method
from co_cli.evaluation.running import Progress, Run
from co_cli.evaluation.saved_runs import marks_of
from co_cli.evaluation.scoring import Scores, mean_of_sets
from co_cli.notes.refs import without_lines
from co_cli.retrieval.question import asks
from co_cli.retrieval.rerank import DEFAULT, Shares
from co_cli.retrieval.trace import Trace
from co_cli.service.asking import read_asked
from co_cli.service.finding import find
from co_cli.values import Filters

SIMPLE, IN_SAMPLE, HELD_OUT = "simple", "in sample", "held out"
COLUMNS = (SIMPLE, PRODUCT, IN_SAMPLE, HELD_OUT)
BESIDE = ((SIMPLE, PRODUCT), (SIMPLE, HELD_OUT), (PRODUCT, HELD_OUT), (IN_SAMPLE, HELD_OUT))
"""What is compared: A, and whether B is better."""

Asking = Callable[[str, Sequence[Method]], list[Run]]
"""A set, by its name, asked with some methods."""


class Difference(NamedTuple):
    """Two columns, in the mean over the families."""

    first: str
    second: str
    comparison: Comparison


class HeldOut:
    """What became of it so far: whoever stops the work has the sets that are finished."""

    def __init__(self, families: Mapping[str, str]) -> None:
        self.families = dict(families)
        """Of each set."""
        self.runs: list[Run] = []
        self._taught: dict[str, Lessons] = {}
        self.shares: dict[str, Shares] = {}
        """What was learned, by the family that was left out."""
        self.every: Shares | None = None
        """What was learned on all of them."""

    def look(self, ask: Asking) -> None:
        """Every set for the first time: what there is to learn from is kept."""
        for name in self.families:
            runs = ask(name, (method(SIMPLE), Method(PRODUCT, _looking_closely, needs_vectors=True)))
            if len(runs) < 2:
                raise InvalidInputError("--held-out needs vectors, and the settings want words alone")
            self._taught[name] = lessons([(one.looked_at, one.question.answers) for one in runs[1].answered])
            self.runs += [run._replace(answered=[one._replace(looked_at=()) for one in run.answered]) for run in runs]

    def learn(self, learning: Progress | None = None) -> None:
        """Without each family, and once from all."""
        left_out = list(dict.fromkeys(self.families.values()))
        for number, left in enumerate(left_out):
            others = {name: one for name, one in self._taught.items() if self.families[name] != left}
            self.shares[left] = learn_shares(others, self.families)
            if learning:
                learning(number + 1, len(left_out) + 1)
        self.every = learn_shares(self._taught, self.families)

    def ask_again(self, ask: Asking) -> None:
        """Every set with what was learned."""
        every = self.every
        assert every is not None, "learn first"
        for name, left in self.families.items():
            ways = ((IN_SAMPLE, every), (HELD_OUT, self.shares[left]))
            self.runs += ask(name, [Method(way, _weighed_by(shares)) for way, shares in ways])

    def finished(self) -> dict[str, dict[str, Scores]]:
        """Sets that have every column, and their columns."""
        found: dict[str, dict[str, Scores]] = {name: {} for name in self.families}
        for run in self.runs:
            found[run.set][run.method] = run.scores()["all"]
        return {name: columns for name, columns in found.items() if len(columns) == len(COLUMNS)}

    def means(self) -> dict[str, Scores]:
        """Of each column over the families, as far as their sets are finished: each family counts alike."""
        there = self.finished()
        of_families = [
            {
                column: mean_of_sets([there[name][column] for name in there if self.families[name] == family])
                for column in COLUMNS
            }
            for family in dict.fromkeys(self.families[name] for name in there)
        ]
        return {column: mean_of_sets([means[column] for means in of_families]) for column in COLUMNS}

    def differences(self) -> list[Difference]:
        """In the mean over the families, as far as their sets are finished."""
        there = self.finished()
        marks = {column: marks_of([run for run in self.runs if run.set in there], column) for column in COLUMNS}
        return [
            Difference(first, second, one)
            for first, second in BESIDE
            for one in compare_families(marks[first], marks[second], self.families)
            if one.measure in ("ndcg10", "recall10")
        ]


def _looking_closely(desk: Desk, text: str) -> Answer:
    """As `co` answers, and what it looked at."""
    answer, trace = _ask(desk, text)
    if trace is None or not trace.evidence:
        return answer
    values = values_of(trace, asks(text))
    refs = {passage.id: passage.ref for passage in desk.index.passages(list(values))}
    return answer._replace(looked_at=[(refs[passage], said) for passage, said in values.items()])


def _weighed_by(shares: Shares) -> Callable[[Desk, str], Answer]:
    """As `co` answers, with other shares in the closer look."""
    return lambda desk, text: _ask(desk, text, shares)[0]


def _ask(desk: Desk, text: str, shares: Shares = DEFAULT) -> tuple[Answer, Trace | None]:
    started = time.perf_counter()
    filters = Filters(outdated=True)
    asked = read_asked(desk.kb.settings, desk.kb.learned_weights(), filters, LIMIT, None, None, None)
    finding = find(desk.kb, desk.index, text, asked._replace(profile=asked.profile._replace(shares=shares)))
    seconds = time.perf_counter() - started
    ranking = [(without_lines(hit.ref), hit.score) for hit in finding.hits]
    return Answer(ranking, seconds, "; ".join(finding.degraded)), finding.trace
