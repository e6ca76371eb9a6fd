"""Learning: judgements of answers into the balance of words and meaning. Pure: what was shown comes in as plain values.

The rule. A note that was judged good should stand before every other that was shown with it, and above all before one
that was judged bad, which counts double. What weights are worth is the mean of 1 / log2(1 + place) of the good notes,
over the questions; a question counts once, however often it was judged. To learn, places are smooth: a note counts as
standing before another by how far its score is above. The balance that is worth most is taken, in steps of a
hundredth, within BOUND of the default; PULL holds it there unless something is gained. A question of which nothing was
judged good teaches nothing: any change moves a bad note that stood first, and nobody knows what for.

The check. The questions are cut in five parts, and each is replayed by what the other four teach. So held back, they
must not be ranked worse than now in the mean; and more of them must have got better than worse, by more than chance.
"""

from __future__ import annotations

from math import exp, log2, sqrt
from typing import TYPE_CHECKING, NamedTuple
from zlib import crc32

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

BOUND = 0.15
STEP = 0.01
SOFT = 0.003
"""A difference of scores that is about as good as none."""
PULL = 0.1
"""What going all the way to the bound costs, in questions whose good note comes from nowhere to the first place."""
DOUBLE = 2.0
"""What a note counts that was judged bad and stands before a good one."""
ENOUGH = 30.0
"""Judgements, each with its weight."""
ENOUGH_QUESTIONS = 10
CHANCE = 1.64
"""Standard deviations: one time in twenty, as many would get better for no reason."""
PARTS = 5
MOST_QUESTIONS = 500
"""The newest are learned from."""
WEIGHTS = {"said": 1.0, "cited": 0.3, "opened": 0.3}
"""What a judgement counts, by how it came about: who opens a note may yet find that it was not that one."""


class Weights(NamedTuple):
    """How much meaning and words count."""

    meaning: float
    words: float


class Candidate(NamedTuple):
    """A note that was shown, with what each unit of weight gave it."""

    ref: str
    words: float
    meaning: float
    rest: float
    """The parts of its score that no weight of these changes."""


class Judgement(NamedTuple):
    """What somebody said of one note as an answer to a question, and what was shown with it, best first."""

    question: str
    ref: str
    good: bool
    weight: float
    shown: tuple[Candidate, ...]


class Lesson(NamedTuple):
    """What the judgements teach, and whether the replay bears it out."""

    meaning: float
    """The balance that was learned: words have the rest of 1."""
    kept: bool
    why: str
    judgements: float
    """How many there are, each with its weight."""
    questions: int
    before: float | None = None
    """The worth of the present weights on all questions, 0 to 1, and of the learned ones."""
    after: float | None = None
    held_before: float | None = None
    """The same where each part of the questions is ranked by what the others teach."""
    held_after: float | None = None
    better: int = 0
    """Questions that are ranked better so, and worse."""
    worse: int = 0


def candidates(shown: Sequence[tuple[str, Mapping[str, float]]], meaning: float, words: float) -> tuple[Candidate, ...]:
    """Hits with the parts of their scores, as those weights ranked them."""
    found: list[Candidate] = []
    for ref, parts in shown:
        by_words, by_meaning = parts.get("words", 0.0), parts.get("meaning", 0.0)
        rest = sum(parts.values()) - by_words - by_meaning
        found.append(Candidate(ref, by_words / words if words else 0.0, by_meaning / meaning if meaning else 0.0, rest))
    return tuple(found)


def learn(judgements: Sequence[Judgement], default: float, now: float | None = None) -> Lesson:
    """The balance that these judgements teach, as a weight of meaning; `now` is the present one, if not the default."""
    present = default if now is None else now
    questions = _questions(judgements)
    told = count(judgements)
    if told < ENOUGH:
        return Lesson(present, False, f"{told:g} of the {ENOUGH:g} judgements that it takes", told, len(questions))
    if len(questions) < ENOUGH_QUESTIONS:
        few = f"they are about {len(questions)} of the {ENOUGH_QUESTIONS} questions that it takes"
        return Lesson(present, False, few, told, len(questions))
    order = sorted(questions, key=lambda text: (crc32(text.encode("utf-8", "replace")), text))
    pairs = [_pairs(questions[text]) for text in order]
    tried = _tried(default)
    curves = [[_worth_of(one, balance, SOFT) for balance in tried] for one in pairs]
    meaning = _best(curves, tried, default)
    before, after = (sum(_worth_of(one, balance) for one in pairs) / len(pairs) for balance in (present, meaning))
    held: list[tuple[float, float]] = []
    for part in range(PARTS):  # each is ranked by what the others teach
        balance = _best([curve for place, curve in enumerate(curves) if place % PARTS != part], tried, default)
        held += [(_worth_of(one, present), _worth_of(one, balance)) for one in pairs[part::PARTS]]
    better, worse = (sum(sign * (new - old) > 1e-9 for old, new in held) for sign in (1, -1))
    held_before, held_after = (sum(one[place] for one in held) / len(held) for place in (0, 1))
    before, after, held_before, held_after = (round(one, 4) for one in (before, after, held_before, held_after))
    found = Lesson(
        meaning, False, "", told, len(questions), before, after, held_before, held_after, int(better), int(worse)
    )
    if abs(meaning - present) < STEP / 2:
        return found._replace(why="they ask for no other weights than the present ones")
    if after <= before:
        return found._replace(why="replayed, other weights rank the judged notes no better")
    if held_after < held_before - 1e-9:
        return found._replace(why="questions held back would be ranked worse by what the others teach")
    if not better or better - worse < CHANCE * sqrt(better + worse):
        return found._replace(why=f"{better} questions better and {worse} worse is no more than chance would do")
    return found._replace(kept=True, why=f"of questions held back, {better} got better and {worse} worse")


def count(judgements: Sequence[Judgement]) -> float:
    """How many of them teach something, each with its weight."""
    return round(sum(one.weight for told in _questions(judgements).values() for one in told), 1)


def _questions(judgements: Sequence[Judgement]) -> dict[str, list[Judgement]]:
    """The newest that teach something, each with all that was said of it. Of one note the last word counts."""
    found: dict[str, dict[str, Judgement]] = {}
    for judgement in judgements:
        found.setdefault(judgement.question, {})[judgement.ref] = judgement
    telling = [(question, list(told.values())) for question, told in found.items()]
    telling = [(question, told) for question, told in telling if any(_pairs(told))]
    return dict(telling[-MOST_QUESTIONS:])


def _tried(default: float) -> list[float]:
    steps = round(BOUND / STEP)
    tried = [round(default + STEP * step, 4) for step in range(-steps, steps + 1)]
    return [balance for balance in tried if 0 <= balance <= 1]


def _best(curves: Sequence[Sequence[float]], tried: Sequence[float], default: float) -> float:
    """The balance that is worth most; of several that are worth the same, the nearest to the default."""

    def gained(place: int) -> tuple[float, float]:
        away = abs(tried[place] - default)
        return round(sum(curve[place] for curve in curves) - PULL * (away / BOUND) ** 2, 9), -away

    return tried[max(range(len(tried)), key=gained)]


Pair = tuple[float, float, float]
"""What an other note counts, and how far the good one is above it: where meaning weighs nothing, and by its weight."""


def _pairs(told: Sequence[Judgement]) -> list[tuple[float, list[Pair]]]:
    """Each good note of a question: what it counts, and the others that were shown and not judged good."""
    good, bad = ({one.ref for one in told if one.good is verdict} for verdict in (True, False))
    found: list[tuple[float, list[Pair]]] = []
    for judgement in told:
        mine = next((one for one in judgement.shown if one.ref == judgement.ref), None)
        others = [one for one in judgement.shown if one.ref not in good]
        if judgement.good and mine is not None and others:
            above = [(mine.words + mine.rest - one.words - one.rest, mine.meaning - one.meaning) for one in others]
            pairs = [
                (DOUBLE if one.ref in bad else 1.0, at_none, by_meaning - (mine.words - one.words))
                for one, (at_none, by_meaning) in zip(others, above, strict=True)
            ]
            found.append((judgement.weight, pairs))
    return found


def _worth_of(good: Sequence[tuple[float, list[Pair]]], balance: float, soft: float = 0.0) -> float:
    """What a balance is worth for one question: 1 where every good note is first."""
    won = 0.0
    for weight, pairs in good:
        before = sum(counts * _before(at_none + slope * balance, soft) for counts, at_none, slope in pairs)
        won += weight / log2(2 + before)
    return won / sum(weight for weight, _ in good)


def _before(difference: float, soft: float) -> float:
    """Does the other stand before it: 0 or 1, or where it is smooth, how much."""
    if not soft:
        return float(difference < 0)
    return 1 / (1 + exp(max(-50.0, min(50.0, difference / soft))))
